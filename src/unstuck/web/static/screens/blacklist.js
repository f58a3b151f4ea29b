// The blacklist: workflows that are shut out, by the breaker or by a person, and those that were.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { Acts, Answer, Card, Empty, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const COLUMNS = [
  ["Workflow", (each) => html`<a href=${href(["workflows", each.workflow])}><b>${each.workflow}</b></a>${each.tenant === "*" ? html` <${Pill}>every tenant<//>` : ""}`],
  ["By", (each) => (each.auto ? html`<${Pill} tone="bad">the breaker<//>` : each.blacklisted_by), "narrow"],
  ["Why", (each) => `${each.reason}${each.stuck_count ? ` (${each.stuck_count} stuck)` : ""}`, "what"],
  ["Since", (each) => html`<${When} at=${each.blacklisted_at} />`, "narrow"],
];

export const Blacklist = () => {
  const wakes = (event) => event.kind.startsWith("blacklist.");
  const asked = useAsked(["blacklist"], {}, { wakes });
  const past = usePages(["blacklist", "history"], {}, { keyOf: (each) => each.number, wakes });
  return html`<${Screen} title="Blacklist" lead="Workflows whose jobs are neither accepted nor started, because too many of them got stuck or somebody says so." wide=${true}>
    <${Answer} of=${asked}>${(page) => (page.items.length ? html`<${Table} label="Blacklist" columns=${[...COLUMNS, ["", (each) => html`<${Acts} actions=${[actions.lift(each)]} />`, "right"]]} rows=${page.items} keyOf=${(each) => each.number} />` : html`<${Empty} title="Nobody is shut out">The breaker shuts a workflow out when too many of its runs get stuck.<//>`)}<//>
    <${Card} title="Before"><${Listed} pages=${past} empty=${html`<p class="dim">Nothing stood here before.</p>`}>${(rows) => html`<${Table} label="History of the blacklist" columns=${[...COLUMNS, ["Lifted", (each) => (each.removed_at ? html`<${When} at=${each.removed_at} /> by ${each.removed_by}` : html`<${Pill} tone="bad">stands<//>`)]]} rows=${rows} keyOf=${(each) => each.number} />`}<//><//>
  <//>`;
};
