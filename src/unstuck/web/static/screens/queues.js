// Queues, and the tenants that share them: how deep, how old, who serves them, what shuts and limits them.

import * as actions from "../lib/actions.js";
import { command, ofTenant } from "../lib/command.js";
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
  { name: "concurrency", label: "At once", hint: "most jobs that run at once; empty: any number", optional: true },
  { name: "rate", label: "Rate", hint: "most that start in a time, e.g. 100/m; empty: any number", optional: true },
  { name: "max_queued", label: "Most waiting", hint: "more are refused; empty: any number", optional: true },
];
const numbers = ({ concurrency, rate, max_queued: most }) => ({ ...(concurrency ? { concurrency: Number(concurrency) } : {}), ...(rate ? { rate } : {}), ...(most ? { max_queued: Number(most) } : {}) });

export const limit = (kind, name, tenant) => {
  const noun = kind === "tenant" ? "tenants" : "queues";
  const flags = kind === "tenant" ? {} : ofTenant(tenant);
  return {
    operation: `${noun}.limit`, label: "Limit…", path: [noun, name, "limit"], query: kind === "tenant" ? {} : { tenant },
    confirm: { title: `Limit ${kind} ${name}`, text: "What runs already goes on; the limit counts from the next start.", yes: "Set the limit" },
    fields: LIMITS, body: numbers, command: (values) => command(`${noun} limit`, [name], { ...numbers(values), ...flags }), done: `${kind} ${name} is limited`,
  };
};
export const unlimit = (kind, name, tenant) => {
  const noun = kind === "tenant" ? "tenants" : "queues";
  return {
    operation: `${noun}.unlimit`, label: "No limit", path: [noun, name, "unlimit"], query: kind === "tenant" ? {} : { tenant },
    command: command(`${noun} limit`, [name], { none: true, ...(kind === "tenant" ? {} : ofTenant(tenant)) }), done: `${kind} ${name} has no limit any more`,
  };
};

export const told = (limits) => limits.map((each) => [each.concurrency != null && `${each.concurrency} at once`, each.rate != null && `${each.rate} per ${each.per} s`, each.max_queued != null && `${count(each.max_queued)} waiting`].filter(Boolean).join(", ")).join("; ");

export const Queues = () => {
  const pages = usePages(["queues"], {}, { keyOf: (each) => each.name, wakes: () => true, pace: 2000 });
  const tenant = about().tenant;
  const columns = [
    ["Queue", (each) => html`<a href=${href(["jobs"], { q: term("queue", each.name) })}><b>${each.name}</b></a>`],
    ["", (each) => html`${each.pauses.length > 0 && html`<${Pill} tone="warn" title=${each.pauses.map((pause) => pause.reason ?? "").join()}>paused by ${each.pauses[0].by}<//>`}${each.workers.length === 0 && each.waiting > 0 && html`<${Pill} tone="bad">nobody serves it<//>`}`],
    ["Waiting", (each) => atLeast(each.waiting, each.at_least.includes("QUEUED")), "narrow right"],
    ["Running", (each) => count(each.running), "narrow right"],
    ["Scheduled", (each) => count(each.scheduled), "narrow right"],
    ["Workers", (each) => (each.workers.length ? each.workers.join(", ") : html`<span class="dim">none</span>`)],
    ["Limits", (each) => told(each.limits) || html`<span class="dim">none</span>`],
    ["", (each) => html`<${Acts} actions=${[each.pauses.length ? actions.unpause("queue", each.name, tenant) : actions.pause("queue", each.name, tenant), limit("queue", each.name, tenant), ...(each.limits.length ? [unlimit("queue", each.name, tenant)] : [])]} />`, "right"],
  ];
  return html`<${Screen} title="Queues" lead=${html`How much waits where. ${may("tenants.list") && html`<a href=${href(["tenants"])}>Tenants</a> share them by their weight.`}`} wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="No queue has jobs" icon="queue">A queue is there from its first job on.<//>`}>
      ${(rows) => html`<${Table} label="Queues" columns=${columns} rows=${rows} keyOf=${(each) => each.name} />`}<//>
  <//>`;
};
