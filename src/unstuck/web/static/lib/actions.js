// Everything the page changes: each action says its operation, its request, its command, and what it did. An action
// that cannot be undone, or needs a word, asks first (parts/dialog.js).

import { address, ask, Problem } from "./api.js";
import { refresh } from "./asked.js";
import { command, ofTenant, ofTenants } from "./command.js";
import { signal } from "./dom.js";
import { go, href, place } from "./router.js";
import { oneLine, shortId } from "./text.js";

// --- toasts -------------------------------------------------------------------------------------------------------

export const toasts = signal([]);
let number = 0;

export const toast = (text, { tone = "good", command: typed = null, detail = null, link = null } = {}) => {
  const made = { id: (number += 1), text, tone, command: typed, detail, link };
  toasts.value = [...toasts.value.slice(-3), made];
  setTimeout(() => dismiss(made.id), tone === "bad" ? 15_000 : 8000);
};
export const dismiss = (id) => (toasts.value = toasts.value.filter((each) => each.id !== id));

export const copy = async (text, what = "Copied") => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain http from elsewhere there is no clipboard for pages. What stands outside an open dialog has no focus.
    const area = Object.assign(document.createElement("textarea"), { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(what, { detail: oneLine(text, 120) });
};

// What went wrong, to which thing, and what helps.
export const tell = (problem, more) => toast(problem.detail || problem.title, { tone: "bad", detail: problem.remedy, ...more });

// --- doing --------------------------------------------------------------------------------------------------------

// The action that waits for a word from whoever asked for it: parts/dialog.js shows it.
export const asking = signal(null);

export const begin = (action) => {
  if (action.confirm || action.fields) asking.value = action;
  else carryOut(action, {});
};

// A refusal is told, here or where `refused` shows it, and nothing was done: null.
export const carryOut = async (action, values, refused) => {
  const { method = "POST", path, query, body, done } = action;
  try {
    const sent = method === "DELETE" ? undefined : { ...(typeof body === "function" ? body(values) : body) };
    const asked = typeof query === "function" ? query(values) : query;
    const answer = await ask(method, address(path, asked), sent);
    toast(typeof done === "function" ? done(answer, values) : done, { command: commandOf(action, values) });
    action.after?.(answer, values);
    if (!action.leads?.()) refresh();
    return answer ?? true;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (refused) refused(problem);
    else tell(problem, { command: commandOf(action, values) });
    return null;
  }
};

export const commandOf = (action, values = usual(action)) =>
  typeof action.command === "function" ? action.command(values) : action.command;

// What was typed into a field, as the request takes it; or what is wrong with it.
export const read = (field, text) => {
  if (!text && field.optional) return { value: "" };
  if (field.json || field.number) {
    try {
      const value = JSON.parse(text);
      if (field.number && !Number.isInteger(value)) throw new Error("not a whole number");
      return { value };
    } catch {
      return { problem: field.number ? "a whole number is needed" : "this is not JSON: texts stand in quotes" };
    }
  }
  if (!text) return { problem: "it is needed" };
  return { value: text };
};

// What its fields hold before anybody has typed.
const usual = (action) =>
  Object.fromEntries((action.fields ?? []).filter((field) => field.value).map((field) => [field.name, read(field, field.value).value]));

// --- what there is to do ------------------------------------------------------------------------------------------

// From the screen of a thing that is there no more to the others of its kind. True: we were there.
export const leave = (noun) => {
  const [first, name] = place.value.words;
  if (first !== noun || !name) return false;
  go(href([noun]));
  return true;
};

const REASON = { name: "reason", label: "Reason", hint: "kept in the history", optional: true };
const said = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value != null));

const ofJob = (job, verb, label, more = {}) => ({
  operation: `jobs.${verb.replaceAll("-", "_")}`,
  label,
  path: ["jobs", job.id, verb],
  query: { tenant: job.tenant },
  body: said,
  command: (values) => command(`jobs ${verb}`, [job.id], { ...said(values), ...ofTenant(job.tenant) }),
  ...more,
});

const named = (job) => `${job.workflow} ${shortId(job.id)}`;

export const cancel = (job) =>
  ofJob(job, "cancel", "Cancel", {
    tone: "bad",
    confirm: {
      title: `Cancel ${named(job)}?`,
      text:
        job.state === "RUNNING"
          ? "Its handler is asked to stop. What it has done so far is not undone."
          : "It has not started, and never will in this run.",
      yes: "Cancel the job",
    },
    fields: [REASON],
    done: (answer) => (answer.state === "CANCELLED" ? `${named(job)} is cancelled` : `${named(job)} was asked to stop`),
  });

export const interrupt = (job) =>
  ofJob(job, "interrupt", "Pause", { fields: [REASON], done: `${named(job)} was asked to pause; resume lets it go on` });

export const resume = (job) =>
  ofJob(job, "resume", "Resume", { body: {}, done: `${named(job)} goes on; finished steps are kept` });

export const retry = (job) =>
  ofJob(job, "retry", "Retry", {
    body: {},
    confirm: ["FAILED", "TIMEOUT", "CANCELLED"].includes(job.state)
      ? { title: `Run ${named(job)} again from its start?`, text: "Finished steps and partial results are forgotten; resume would keep them.", yes: "Retry" }
      : null,
    done: `${named(job)} runs again`,
  });

export const runNow = (job) => ofJob(job, "run-now", "Run now", { body: {}, done: `${named(job)} is due now` });
export const release = (job, force = false) =>
  ofJob(job, "release", force ? "Release anyway" : "Release", {
    body: force ? { force } : {},
    command: command("jobs release", [job.id], { force, ...ofTenant(job.tenant) }),
    confirm: force ? { title: `Start ${named(job)} although others have not ended?`, text: "It comes after jobs that have not ended yet.", yes: "Release it" } : null,
    done: `${named(job)} is released`,
  });

export const skip = (job) =>
  ofJob(job, "skip", "Skip", {
    body: {},
    confirm: { title: `Skip ${named(job)}?`, text: `Its target ${job.target ?? ""} goes on without it; the job stays as it is.`, yes: "Skip it" },
    done: `${named(job)} is skipped: its target moves on`,
  });

export const resolve = (job) =>
  ofJob(job, "resolve", "Resolve…", {
    confirm: { title: `Resolve ${named(job)}`, text: "It is COMPLETED with the result that you give; nothing runs.", yes: "Resolve it" },
    fields: [{ name: "result", label: "Result", hint: "JSON, e.g. null or {\"ok\": true}", json: true, value: "null", long: true }],
    body: (values) => ({ result: values.result }),
    command: (values) => command("jobs resolve", [job.id, JSON.stringify(values.result ?? null)], ofTenant(job.tenant)),
    done: `${named(job)} is resolved`,
  });

export const replay = (job) =>
  ofJob(job, "replay", "Run a copy", { body: {}, done: (answer) => `a new job with the same arguments: ${shortId(answer.id)}` });

export const reprioritise = (job) =>
  ofJob(job, "reprioritise", "Priority…", {
    fields: [{ name: "priority", label: "Priority", hint: "higher goes first; 0 is usual", number: true, value: String(job.priority) }],
    body: (values) => ({ priority: values.priority }),
    command: (values) => command("jobs reprioritise", [String(values.priority ?? "N"), job.id], ofTenant(job.tenant)),
    done: (answer) => `${named(job)} has priority ${answer.priority}`,
  });

const decision = (approval, verb, label, more) => ({
  operation: `approvals.${verb}`,
  label,
  path: ["approvals", approval.job, verb],
  query: { tenant: approval.tenant },
  fields: [{ name: "comment", label: "Comment", hint: "kept with the decision", optional: true }],
  body: (values) => ({ key: approval.key, ...said(values) }),
  command: (values) =>
    command(`approvals ${verb}`, [approval.job], { key: approval.key, ...said(values), ...ofTenant(approval.tenant) }),
  ...more,
});
export const approve = (approval) =>
  decision(approval, "approve", "Approve", {
    tone: "good",
    confirm: { title: "Approve?", text: approval.question, yes: "Approve" },
    done: "approved: the job goes on",
  });
export const reject = (approval) =>
  decision(approval, "reject", "Reject", {
    tone: "bad",
    confirm: { title: "Reject?", text: approval.question, yes: "Reject" },
    done: "rejected",
  });

export const sendEvent = (job, event) => ({
  operation: "events.send",
  label: `Send ${event}`,
  path: ["events"],
  query: { tenant: job.tenant },
  fields: [{ name: "payload", label: "Payload", hint: "JSON, e.g. null", json: true, value: "null", long: true }],
  body: (values) => ({ event, job: job.id, payload: values.payload }),
  command: (values) =>
    command("events send", [job.id, event], { payload: JSON.stringify(values.payload ?? null), ...ofTenant(job.tenant) }),
  done: `event ${event} was sent`,
});

export const ack = (notification) => ({
  operation: "notifications.ack",
  label: "Take note",
  path: ["notifications", notification.number, "ack"],
  query: { tenant: notification.tenant },
  command: command("notifications ack", [notification.number], ofTenant(notification.tenant)),
  done: "noted",
});

export const lift = (entry) => ({
  operation: "blacklist.remove",
  label: "Lift",
  method: "DELETE",
  path: ["blacklist", entry.workflow],
  query: { tenant: entry.tenant },
  confirm: {
    title: `Let ${entry.workflow} run again?`,
    text: `${entry.auto ? "The breaker shut it out" : `${entry.blacklisted_by} shut it out`}: ${entry.reason}. Its count of stuck runs begins anew.`,
    yes: "Lift the entry",
  },
  command: command("blacklist remove", [entry.workflow], entry.tenant === "*" ? { all_tenants: true } : { tenant: entry.tenant }),
  done: `${entry.workflow} runs again`,
});

export const blacklist = (workflow, tenant) => ({
  operation: "blacklist.add",
  label: "Blacklist…",
  tone: "bad",
  path: ["blacklist"],
  query: { tenant },
  confirm: {
    title: `Shut ${workflow} out?`,
    text: `No job of it${tenant && tenant !== "*" ? ` of tenant ${tenant}` : ""} is accepted or started until somebody lifts the entry. What runs goes on.`,
    yes: "Blacklist it",
  },
  fields: [{ name: "reason", label: "Reason", hint: "those who are refused read it", optional: true }],
  body: (values) => ({ workflow, ...said(values) }),
  command: (values) => command("blacklist add", [workflow], { ...said(values), ...(tenant === "*" ? {} : { tenant }) }),
  done: `${workflow} is on the blacklist`,
});

// A command line takes lists with commas, and none.
const spelt = (value) => (value == null || value.length === 0 ? "none" : Array.isArray(value) ? value.join(",") : String(value));

export const set = (name, meaning, value, hint) => ({
  operation: "settings.set",
  label: "Change…",
  method: "PUT",
  path: ["settings", name],
  confirm: { title: name, text: meaning, yes: "Set it" },
  fields: [{ name: "value", label: "Value", hint, json: true, value: JSON.stringify(value) }],
  body: (values) => ({ value: values.value }),
  command: (values) => command("settings set", [name, spelt("value" in values ? values.value : value)]),
  done: `${name} is set`,
});
export const reset = (name) => ({
  operation: "settings.reset",
  label: "Reset",
  path: ["settings", name, "reset"],
  confirm: { title: `Give ${name} its default again?`, text: "The value that was set is forgotten; the audit knows it.", yes: "Reset it" },
  body: {},
  command: command("settings set", [name], { default: true }),
  done: `${name} has its default again`,
});

const NOUNS = { queue: "queues", workflow: "workflows", target: "targets", tenant: "tenants" };
const whose = (kind, tenant) => (kind === "tenant" ? {} : { tenant });

export const pause = (kind, name, tenant) => ({
  operation: `${NOUNS[kind]}.pause`,
  label: "Pause…",
  path: [NOUNS[kind], name, "pause"],
  query: whose(kind, tenant),
  confirm: { title: `Pause ${kind} ${name}?`, text: "Nothing new of it starts; what runs goes on. Unpausing undoes it.", yes: "Pause" },
  fields: [
    { name: "seconds", label: "For", hint: "e.g. 10m; empty: until somebody unpauses it", optional: true },
    REASON,
  ],
  body: said,
  command: ({ seconds, ...values }) =>
    command(`${NOUNS[kind]} pause`, [name], { for: seconds, ...said(values), ...(kind === "tenant" ? {} : ofTenants(tenant)) }),
  done: `${kind} ${name} is paused`,
});

// Lifted is the pause that shuts it: that of every tenant where `tenant` has none of its own.
export const unpause = (kind, name, tenant, pauses = []) => {
  const owner = pauses.length > 0 && pauses.every((each) => each.tenant === "*") ? "*" : tenant;
  return {
    operation: `${NOUNS[kind]}.unpause`,
    label: "Unpause",
    path: [NOUNS[kind], name, "unpause"],
    query: whose(kind, owner),
    command: command(`${NOUNS[kind]} unpause`, [name], kind === "tenant" ? {} : ofTenants(owner)),
    done: ({ lifted, left }) => {
      if (!left.length) return `${kind} ${name} ${lifted ? "goes on" : "was not paused"}`;
      return `${lifted ? "one pause is lifted" : "nothing was lifted"}: ${kind} ${name} is still paused ${left.some((each) => each.tenant === "*") ? "for every tenant" : "for others"}`;
    },
  };
};

export const drain = (worker) => ({
  operation: "workers.drain",
  label: "Drain",
  tone: "bad",
  path: ["workers", "drain"],
  body: { worker: worker.name },
  confirm: { title: `Drain ${worker.name}?`, text: "It takes no new job, finishes or hands back what it runs, and ends. Start it again where you started it.", yes: "Drain it" },
  command: command("workers drain", [worker.name]),
  done: `${worker.name} drains`,
});

export const recycle = (process, worker) => ({
  operation: "workers.recycle",
  label: "Recycle",
  path: ["workers", "processes", process.pid, "recycle"],
  body: { worker: worker.name },
  command: command("workers recycle", [process.pid], { worker: worker.name }),
  done: `process ${process.pid} is replaced when its jobs have ended`,
});

export const kill = (process, worker) => ({
  operation: "workers.kill",
  label: "Kill",
  tone: "bad",
  path: ["workers", "processes", process.pid, "kill"],
  body: { worker: worker.name },
  confirm: { title: `Kill process ${process.pid} now?`, text: `Its ${process.running} running jobs go back to the queue at no cost, and run again from their last step.`, yes: "Kill it" },
  command: command("workers kill", [process.pid], { worker: worker.name }),
  done: `process ${process.pid} is ended; its jobs run again`,
});

// Whether it was never run because of its signature, and not run in vain.
export const isUnsigned = (letter) => !["exhausted", "set_aside"].includes(letter.reason);

export const redrive = (letter) => {
  const force = isUnsigned(letter);
  return {
    operation: "dead_letters.redrive",
    role: force ? "tenant-admin" : null,
    label: force ? "Verify again" : "Redrive",
    path: ["dead-letters", letter.job, "redrive"],
    query: { tenant: letter.tenant },
    body: force ? { force } : {},
    confirm: force ? { title: "Let workers verify it once more?", text: "That helps if their keys or rules were mended since. Else it is refused again, and comes back here.", yes: "Verify again" } : null,
    command: command("dead-letters redrive", [letter.job], { force, ...ofTenant(letter.tenant) }),
    done: force ? "workers verify it once more" : "it runs again",
    leads: () => leave("dead-letters"),
  };
};
export const resign = (letter) => ({
  operation: "dead_letters.resign",
  label: "Sign anew",
  path: ["dead-letters", letter.job, "resign"],
  query: { tenant: letter.tenant },
  confirm: { title: "Sign it anew?", text: "Its arguments run as they stand now. Look at them first: somebody may have altered them.", yes: "Sign it" },
  command: command("dead-letters resign", [letter.job], ofTenant(letter.tenant)),
  done: "signed anew: it runs again",
  leads: () => leave("dead-letters"),
});
export const discard = (letter) => ({
  operation: "dead_letters.discard",
  label: "Discard",
  tone: "bad",
  path: ["dead-letters", letter.job, "discard"],
  query: { tenant: letter.tenant },
  confirm: { title: "Discard this dead letter?", text: "It cannot be redriven afterwards.", yes: "Discard it" },
  command: command("dead-letters discard", [letter.job], ofTenant(letter.tenant)),
  done: "discarded",
  leads: () => leave("dead-letters"),
});

export const retryAside = (job, tenant) => ({
  operation: "quarantine.retry",
  label: "Try now",
  path: ["quarantine", "retry"],
  query: { tenant },
  body: job ? { job } : {},
  command: command("quarantine retry", job ? [job] : [], ofTenant(tenant)),
  done: "the next sweep tries it first",
});

// What can be asked of a job in its present state; the server knows better, and says so.
export const possible = (job) => {
  const { state } = job;
  const found = [];
  if (job.is_blocker) found.push(resume(job), skip(job), resolve(job));
  if (state === "PENDING") found.push(release(job, !job.on_hold));
  if (state === "QUEUED" && ["SCHEDULED", "RETRYING"].includes(job.shown_state)) found.push(runNow(job));
  if (["QUEUED", "PENDING"].includes(state)) found.push(reprioritise(job));
  if (state === "PAUSED" && !job.is_blocker) found.push(resume(job));
  if (["FAILED", "TIMEOUT", "CANCELLED"].includes(state)) {
    if (!job.is_blocker) found.push(resume(job));
    found.push(retry(job));
    if (state !== "CANCELLED" && !job.is_blocker) found.push(resolve(job));
  }
  if (["RUNNING", "WAITING", "QUEUED"].includes(state)) found.push(interrupt(job));
  if (!["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD"].includes(state)) found.push(cancel(job));
  if (["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"].includes(state)) found.push(replay(job));
  return found;
};
