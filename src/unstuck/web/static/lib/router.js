// Where we are: the path below the prefix under which the page is served, and its query. Every screen is an address
// that can be reloaded and shared; names in it may hold anything.

import { tenant } from "./api.js";
import { ofTenant } from "./command.js";
import { batch, signal } from "./dom.js";

const PREFIX = new URL(document.baseURI).pathname;

export const decoded = (word) => {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
};

const read = () => {
  const words = location.pathname.slice(PREFIX.length).split("/").filter(Boolean).map(decoded);
  return { words, query: new URLSearchParams(location.search), key: location.pathname };
};

export const place = signal(read());

// href(["jobs", id], {tab: "logs"}). Whose things are looked at stays in the address until somebody says another.
export const href = (words, query) => {
  const asked = new URLSearchParams();
  if (tenant.value && !query?.tenant) asked.append("tenant", tenant.value);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value != null && value !== "") asked.append(name, value);
  }
  const text = asked.toString();
  return PREFIX + words.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
};

// What has the focus once the next screen is drawn: readers of the screen hear where they are. null: nothing.
export const next = { focus: null };

export const go = (address, { replace = false, focus = "#main" } = {}) => {
  if (address === location.pathname + location.search) return;
  next.focus = replace ? null : focus;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  moved(!replace);
};

const moved = (isNew) => {
  const before = place.value.key;
  batch(() => {
    place.value = read();
    tenant.value = place.value.query.get("tenant") ?? "";
  });
  if (isNew && before !== place.value.key) {
    scrollTo(0, 0);
  }
};

// The same screen with other words in its query; undefined takes one out.
export const requery = (changes, how = { replace: true }) => {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), how);
};

// Where a notification or an alert leads: only below our own prefix, and to the tenant that it is about.
export const ours = ({ link, tenant: whose }) => {
  const path = PREFIX + String(link).replace(/^\/+/, "");
  const { tenant: named } = ofTenant(whose);
  return named ? `${path}${path.includes("?") ? "&" : "?"}tenant=${encodeURIComponent(named)}` : path;
};

addEventListener("popstate", () => moved(false));
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || anchor.target || anchor.hasAttribute("download")) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(anchor.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(PREFIX)) return;
  if (to.pathname.startsWith(`${PREFIX}api/`) || to.hash) return;
  event.preventDefault();
  go(to.pathname + to.search);
});
