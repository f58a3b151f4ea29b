// Targets: lines in which one job runs at a time, and who blocks them.

import { ofTenant } from "../lib/command.js";
import * as actions from "../lib/actions.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { atLeast } from "../lib/text.js";
import { Acts, Empty, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

export const TONES = { BLOCKED: "bad", PAUSED: "warn", HELD: "warn", RUNNING: "good", FREE: "calm" };

export const blocker = (target) => ({ id: target.blocked_by, tenant: target.tenant, workflow: `the job that blocks ${target.name}`, target: target.name });
export const blockerActions = (target) => (target.blocked_by ? [actions.resume(blocker(target)), actions.skip(blocker(target)), actions.resolve(blocker(target))] : []);

const COLUMNS = [
  ["Target", (each) => html`<a href=${href(["targets", each.name], ofTenant(each.tenant))}><b>${each.name}</b></a>`],
  ["State", (each) => html`<${Pill} tone=${TONES[each.state] ?? "calm"}>${each.state}<//>`, "narrow"],
  ["Waiting", (each) => atLeast(each.waiting, each.waiting_at_least), "narrow right"],
  ["Head", (each) => (each.head ? html`<${JobLink} id=${each.head} tenant=${each.tenant} />` : html`<span class="dim">–</span>`), "narrow"],
  ["Blocked", (each) => (each.blocked_at ? html`<${When} at=${each.blocked_at} /> by <${JobLink} id=${each.blocked_by} tenant=${each.tenant} />` : html`<span class="dim">–</span>`)],
  ["", (each) => html`<${Acts} actions=${[...blockerActions(each), ...(each.pause ? [actions.unpause("target", each.name, each.tenant)] : [])]} />`, "right"],
];

export const Targets = ({ query }) => {
  const isBlocked = query.get("all") !== "yes";
  const pages = usePages(["targets"], isBlocked ? { blocked: true } : {}, { keyOf: (each) => `${each.tenant} ${each.name}`, wakes: (event) => event.kind.startsWith("target.") || event.target, pace: 1500 });
  const tabs = html`<div class="tabs" role="group" aria-label="Which targets">
    <a class="button small" aria-current=${isBlocked ? "true" : undefined} href=${href(["targets"])}>Blocked</a>
    <a class="button small" aria-current=${isBlocked ? undefined : "true"} href=${href(["targets"], { all: "yes" })}>All</a></div>`;
  return html`<${Screen} title="Targets" lead="Jobs on one target run one at a time, in order. A job that failed or paused blocks those behind it until somebody decides." wide=${true}>
    ${tabs}
    <${Listed} pages=${pages} empty=${isBlocked ? html`<${Empty} title="No target is blocked">Every line moves. <a href=${href(["targets"], { all: "yes" })}>Show all targets</a><//>` : html`<${Empty} title="No targets yet" icon="target">A workflow with <code>target="{customer}"</code> runs one job per customer at a time.<//>`}>
      ${(rows) => html`<${Table} label="Targets" columns=${COLUMNS} rows=${rows} keyOf=${(each) => `${each.tenant} ${each.name}`} open=${true} />`}
    <//>
  <//>`;
};
