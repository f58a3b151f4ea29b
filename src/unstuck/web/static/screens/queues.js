// Queues, and the tenants that share them: how deep, how old, who serves them, what shuts and limits them.

import * as actions from "../lib/actions.js";
import { command, ofTenants } from "../lib/command.js";
import { about } from "../lib/api.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { may } from "../lib/session.js";
import { atLeast, count } from "../lib/text.js";
import { Acts, Empty, Pill, Screen, Table } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const LIMITS = [
  { name: "concurrency", label: "At once", hint: "most jobs that run at once; empty: any number", optional: true, number: true },
  { name: "rate", label: "Rate", hint: "most that start in a time, e.g. 100/m; empty: any number", optional: true },
  { name: "max_queued", label: "Most waiting", hint: "more are refused; empty: any number", optional: true, number: true },
];
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
// As it is typed: 100/m, 5/30s.
const rateOf = ({ rate, per }) => {
  const [length, unit] = UNITS.find(([each]) => per % each === 0) ?? [1, "s"];
  return rate == null ? null : `${rate}/${per === length ? "" : per / length}${unit}`;
};
// What is typed differs from what holds; null lifts that part.
const changes = (values, held) =>
  Object.fromEntries(LIMITS.map(({ name }) => [name, values[name] === "" || values[name] === undefined ? null : values[name]]).filter(([name, value]) => value !== (held[name] ?? null)));
const spelt = (changed) => (Object.keys(changed).length ? Object.fromEntries(Object.entries(changed).map(([name, value]) => [name, value ?? "none"])) : { concurrency: "N" });

// Whose limit it is that holds there: a tenant's own or, where it has none, every tenant's.
const owned = (kind, tenant, limits) => (kind === "tenant" ? {} : { tenant: limits.length > 0 && limits.every((each) => each.tenant === "*") ? "*" : tenant });

export const limit = (kind, name, tenant, limits) => {
  const noun = kind === "tenant" ? "tenants" : "queues";
  const query = owned(kind, tenant, limits);
  const own = limits.find((each) => (query.tenant === "*") === (each.tenant === "*")) ?? {};
  const held = { concurrency: own.concurrency, rate: rateOf(own), max_queued: own.max_queued };
  return {
    operation: `${noun}.limit`, label: "Limit…", path: [noun, name, "limit"], query,
    confirm: { title: `Limit ${kind} ${name}`, text: "What runs already goes on; the limit counts from the next start.", yes: "Set the limit" },
    fields: LIMITS.map((field) => ({ ...field, value: String(held[field.name] ?? "") })), body: (values) => changes(values, held),
    command: (values) => command(`${noun} limit`, [name], { ...spelt(changes(values, held)), ...ofTenants(query.tenant) }),
    done: (answer) => (answer.limit ? `${kind} ${name}: ${told([answer.limit])}` : `${kind} ${name} has no limit any more`),
  };
};
export const unlimit = (kind, name, tenant, limits) => {
  const noun = kind === "tenant" ? "tenants" : "queues";
  const query = owned(kind, tenant, limits);
  return {
    operation: `${noun}.unlimit`, label: "No limit", path: [noun, name, "unlimit"], query,
    confirm: { title: `Lift the limit of ${kind} ${name}?`, text: `It is ${told(limits)}. What waits may start at once.`, yes: "Lift it" },
    command: command(`${noun} limit`, [name], { none: true, ...ofTenants(query.tenant) }),
    done: (answer) =>
      answer.limit ? `${kind} ${name} keeps the limit of its code: ${told([answer.limit])}`
      : limits.length > 1 ? `${kind} ${name} has no limit of its own any more; that of all tenants together holds` : `${kind} ${name} has no limit any more`,
  };
};

export const told = (limits) => limits.map((each) => [each.concurrency != null && `${each.concurrency} at once`, rateOf(each), each.max_queued != null && `${count(each.max_queued)} waiting`].filter(Boolean).join(", ") + (each.tenant !== "*" ? "" : each.kind === "tenant" ? " (each tenant)" : " (all tenants together)")).join("; ");

export const Queues = () => {
  const pages = usePages(["queues"], {}, { keyOf: (each) => each.name, wakes: () => true, pace: 2000 });
  const tenant = about().tenant;
  const columns = [
    ["Queue", (each) => html`<a href=${href(["jobs"], { q: term("queue", each.name) })}><b>${each.name}</b></a>`],
    ["", (each) => html`${each.pauses.length > 0 && html`<${Pill} tone="warn" title=${each.pauses.map((pause) => pause.reason ?? "").join()}>paused by ${each.pauses[0].by}${each.pauses[0].tenant === "*" ? ", for every tenant" : ""}<//>`}${each.workers.length === 0 && each.waiting > 0 && html`<${Pill} tone="bad">nobody serves it<//>`}`],
    ["Waiting", (each) => atLeast(each.waiting, each.at_least.includes("QUEUED")), "narrow right"],
    ["Running", (each) => count(each.running), "narrow right"],
    ["Scheduled", (each) => count(each.scheduled), "narrow right"],
    ["Workers", (each) => (each.workers.length ? each.workers.join(", ") : html`<span class="dim">none</span>`)],
    ["Limits", (each) => told(each.limits) || html`<span class="dim">none</span>`],
    ["", (each) => html`<${Acts} actions=${[each.pauses.length ? actions.unpause("queue", each.name, tenant, each.pauses) : actions.pause("queue", each.name, tenant), limit("queue", each.name, tenant, each.limits), ...(each.limits.length ? [unlimit("queue", each.name, tenant, each.limits)] : [])]} />`, "right"],
  ];
  return html`<${Screen} title="Queues" lead=${html`How much waits where. ${may("tenants.list") && html`<a href=${href(["tenants"])}>Tenants</a> share them by their weight.`}`} wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="No queue has jobs" icon="queue">A queue is there from its first job on.<//>`}>
      ${(rows) => html`<${Table} label="Queues" columns=${columns} rows=${rows} keyOf=${(each) => each.name} />`}<//>
  <//>`;
};
