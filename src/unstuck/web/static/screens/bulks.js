// Bulks: verbs over many jobs, those under way and those that ended.

import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { count } from "../lib/text.js";
import { Empty, Screen, State, Table, When } from "../parts/basic.js";
import { Progress, words as spelt } from "../parts/bulk.js";
import { Listed } from "../parts/listed.js";

const COLUMNS = [
  ["Bulk", (each) => html`<a href=${href(["bulks", each.number])}><b>${each.verb}</b> <span class="dim">#${each.number}</span></a>`, "narrow"],
  ["State", (each) => html`<${State} state=${each.state} />`, "narrow"],
  ["Which", (each) => html`<code>${spelt(each.filter)}</code>`, "what"],
  ["Done", (each) => count(each.done), "narrow right"],
  ["Refused", (each) => count(each.refused), "narrow right"],
  ["Began", (each) => html`<${When} at=${each.began_at} /> by ${each.by}`],
];

export const Bulks = ({ words: [, number] }) => {
  const pages = usePages(["bulks"], {}, { keyOf: (each) => each.number });
  return html`<${Screen} title="Bulks" lead="One verb over all the jobs that a search means. Workers carry it out." wide=${true}>
    ${number && html`<${Progress} number=${number} />`}
    <${Listed} pages=${pages} empty=${html`<${Empty} title="None yet" icon="jobs">Search <a href=${href(["jobs"])}>jobs</a>, then “Act on all that match”.<//>`}>
      ${(rows) => html`<${Table} label="Bulks" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.number} open=${true} />`}<//>
  <//>`;
};
