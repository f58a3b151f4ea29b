// Tenants: their share, their jobs, what shuts and limits them.

import * as actions from "../lib/actions.js";
import { command } from "../lib/command.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { atLeast, count } from "../lib/text.js";
import { may } from "../lib/session.js";
import { Acts, Empty, Pill, Screen, Table } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";
import { limit, told, unlimit } from "./queues.js";

const weigh = (tenant) => ({
  operation: "tenants.weigh", label: "Weight…", path: ["tenants", tenant.name, "weigh"],
  fields: [{ name: "weight", label: "Weight", hint: "turns for each turn of a tenant of weight 1", number: true, value: String(tenant.weight) }],
  command: ({ weight }) => command("tenants weight", [tenant.name, String(weight ?? "N")]), body: ({ weight }) => ({ weight }), done: (answer) => `tenant ${tenant.name} has weight ${answer.weight}`,
});

const COLUMNS = [
  ["Tenant", (each) => html`<a href=${href(["jobs"], { tenant: each.name })}><b>${each.name}</b></a>`],
  ["", (each) => html`${each.pauses.length > 0 && html`<${Pill} tone="warn">paused<//>`}${each.blocked > 0 && html`<${Pill} tone="bad">${count(each.blocked)} blocked<//>`}`],
  ...["QUEUED", "RUNNING", "FAILED", "COMPLETED"].map((state) => [state[0] + state.slice(1).toLowerCase(), (each) => atLeast(each.states[state] ?? 0, each.at_least.includes(state)), "narrow right"]),
  ["Weight", (each) => String(each.weight), "narrow right"],
  ["Limits", (each) => told(each.limits) || html`<span class="dim">none</span>`],
  ["", (each) => html`<${Acts} actions=${[each.pauses.length ? actions.unpause("tenant", each.name) : actions.pause("tenant", each.name), weigh(each), limit("tenant", each.name, null, each.limits), ...(each.limits.some((one) => one.name === each.name) ? [unlimit("tenant", each.name, null, each.limits)] : [])]} />`, "right"],
];

export const Tenants = () =>
  may("tenants.list") ? html`<${All} />` : html`<${Screen} title="Tenants"><${Empty} title="Your role may not see tenants" icon="queue">A platform-admin may.<//><//>`;

const All = () => {
  const pages = usePages(["tenants"], {}, { keyOf: (each) => each.name, wakes: () => true, pace: 3000 });
  return html`<${Screen} title="Tenants" lead="Who shares the workers, and by which weight." wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="No tenant has jobs" icon="queue">A tenant is known from its first job on.<//>`}>
      ${(rows) => html`<${Table} label="Tenants" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.name} />`}<//>
  <//>`;
};
