// One target: whose turn it is, who blocks it, who waits behind.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { atLeast } from "../lib/text.js";
import { Acts, Answer, Card, Empty, Facts, JobLink, Pill, Screen, State, Table, When } from "../parts/basic.js";
import { COLUMNS } from "./jobs.js";
import { blockerActions, TONES } from "./targets.js";

export const Target = ({ words: [, name], query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const asked = useAsked(["targets", name], whose, { wakes: (event) => event.target === name, pace: 800 });
  return html`<${Answer} of=${asked}>${(target) => html`<${Whole} target=${target} />`}<//>`;
};

const Whole = ({ target }) => {
  const whose = target.tenant;
  return html`<${Screen} title=${html`Target ${target.name} <${Pill} tone=${TONES[target.state] ?? "calm"}>${target.state}<//>`}
    lead=${`${atLeast(target.waiting, target.waiting_at_least)} ${target.waiting === 1 ? "job waits" : "jobs wait"} for a turn`}
    actions=${html`<${Acts} small=${false} actions=${[target.pause ? actions.unpause("target", target.name, whose) : actions.pause("target", target.name, whose)]} />`}>
    ${target.blocked_by && html`<${Card} tone="why bad" id="blocked">
      <p class="verdict">Blocked <${When} at=${target.blocked_at} /> by <${JobLink} id=${target.blocked_by} tenant=${whose} /></p>
      ${target.turn && target.turn.id === target.blocked_by && html`<p>${target.turn.workflow} <${State} state=${target.turn.shown_state} /> <span class="error-text">${target.turn.error_type ?? ""} ${target.turn.error_message ?? ""}</span></p>`}
      <p class="dim">Resume tries it again; skip lets the others go on without it; resolve says what its result is.</p>
      <${Acts} actions=${blockerActions(target)} small=${false} />
    <//>`}
    ${target.pause && html`<${Card} title="Paused" tone="warn"><${Facts} facts=${[["By", target.pause.by], ["Since", html`<${When} at=${target.pause.since_at} />`], ["Until", target.pause.until_at ? html`<${When} at=${target.pause.until_at} />` : "somebody unpauses it"], ["Reason", target.pause.reason]]} /><//>`}
    <${Card} title="Its turn">${target.turn ? html`<${Table} label="Its turn" columns=${COLUMNS} rows=${[target.turn]} keyOf=${(job) => job.id} open=${true} />` : html`<p class="dim">Nobody's: the target is free.</p>`}<//>
    <${Card} title="In line" note="the first of them">${target.line.length ? html`<${Table} label="In line" columns=${COLUMNS} rows=${target.line} keyOf=${(job) => job.id} open=${true} />` : html`<${Empty} title="Nobody waits" />`}<//>
    <p><a href=${href(["jobs"], { q: term("target", target.name) })}>All jobs on this target</a></p>
  <//>`;
};
