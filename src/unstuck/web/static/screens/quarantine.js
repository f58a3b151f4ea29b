// Quarantine: single things that could not be written although the database answered; each sweep tries them again.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { oneLine } from "../lib/text.js";
import { Acts, Answer, Empty, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";

const COLUMNS = [
  ["What", (each) => html`<${Pill} tone="warn">${each.duty}<//> ${each.job ? html`<${JobLink} id=${each.job} tenant=${each.tenant}>${each.workflow ?? each.job.slice(-8)}<//>` : (each.target ?? "")}`],
  ["Error", (each) => html`<span class="error-text">${oneLine(each.error, 220)}</span>`, "what"],
  ["Since", (each) => html`<${When} at=${each.since_at} />`, "narrow"],
  ["Tries", (each) => String(each.tries), "narrow right"],
  ["Last", (each) => html`<${When} at=${each.tried_at} />`, "narrow"],
  ["", (each) => html`<${Acts} actions=${each.job ? [actions.retryAside(each.job, each.tenant)] : []} />`, "right"],
];

export const Quarantine = () => {
  const asked = useAsked(["quarantine"], { limit: 100 }, { every: 10_000, keep: true });
  return html`<${Screen} title="Quarantine" lead="One thing in trouble delays nothing but itself: it is set aside here, and tried again alone." wide=${true}>
    <${Answer} of=${asked}>${(page) => (page.items.length ? html`<${Table} label="Quarantine" columns=${COLUMNS} rows=${page.items} keyOf=${(each) => `${each.duty} ${each.job} ${each.target}`} />` : html`<${Empty} title="Nothing is set aside">Whatever had to be written was.<//>`)}<//>
  <//>`;
};
