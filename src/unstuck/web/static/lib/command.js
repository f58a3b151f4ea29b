// Commands as a shell takes them: whatever the page does can be pasted into a terminal instead.

const PLAIN = /^[\w@%+=:,./-]+$/;
export const word = (text) => {
  const plain = String(text);
  return PLAIN.test(plain) ? plain : `'${plain.replaceAll("'", `'"'"'`)}'`;
};

// command("jobs cancel", [id], {reason: "…", tenant}); a name that begins with a dash stands behind `--`.
export const command = (verb, names = [], flags = {}) => {
  const options = Object.entries(flags)
    .filter(([, value]) => value != null && value !== "" && value !== false)
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => option(name, one)));
  const dashed = names.some((name) => String(name).startsWith("-"));
  const said = names.map(word);
  return ["unstuck", verb, ...(dashed ? [...options, "--", ...said] : [...said, ...options])].join(" ");
};

const option = (name, value) => {
  const flag = `--${name.replaceAll("_", "-")}`;
  if (value === true) return flag;
  return String(value).startsWith("-") ? `${flag}=${word(value)}` : `${flag} ${word(value)}`;
};

// Commands ask about the tenant "default" unless they are told otherwise.
export const ofTenant = (tenant) => (tenant && tenant !== "default" && tenant !== "*" ? { tenant } : {});
// Pauses, limits and entries of the blacklist may be of every tenant; webhooks may be the platform's.
export const ofTenants = (tenant) => (tenant === "*" ? { all_tenants: true } : ofTenant(tenant));
export const ofOwner = (tenant) => (tenant === "*" ? { tenant } : ofTenant(tenant));
