// The blacklist: workflows that are shut out, by the breaker or by a person, and those that were.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { plural } from "../lib/text.js";
import { Acts, Answer, Card, Empty, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const HARMS = { stuck: "got stuck", freeze: "froze a shared process", crash: "crashed", loss: "were lost" };
// Why a workflow is shut out, or was; the breaker says "auto:stuck+crash:5".
export const whyListed = (entry) => {
  const [, harms, number] = /^auto:([a-z+]+):(\d+)$/.exec(entry.reason) ?? [];
  return harms ? `${plural(Number(number), "run")} that ${harms.split("+").map((each) => HARMS[each] ?? each).join(" or ")} made the breaker shut it out` : `by ${entry.blacklisted_by}: ${entry.reason.replace(/^manual:/, "")}`;
};

const COLUMNS = [
  ["Workflow", (each) => html`<a href=${href(["workflows", each.workflow])}><b>${each.workflow}</b></a>${each.tenant === "*" ? html` <${Pill}>every tenant<//>` : ""}`],
  ["Why", whyListed, "what"],
  ["Since", (each) => html`<${When} at=${each.blacklisted_at} />`, "narrow"],
];

export const Blacklist = () => {
  const wakes = (event) => event.kind.startsWith("blacklist.");
  const asked = useAsked(["blacklist"], {}, { wakes });
  const past = usePages(["blacklist", "history"], {}, { keyOf: (each) => each.number, wakes });
  return html`<${Screen} title="Blacklist" lead="Workflows whose jobs are neither accepted nor started, because too many of them got stuck or somebody says so." wide=${true}>
    <${Answer} of=${asked}>${(page) => (page.items.length ? html`<${Table} label="Blacklist" columns=${[...COLUMNS, ["", (each) => html`<${Acts} actions=${[actions.lift(each)]} />`, "right"]]} rows=${page.items} keyOf=${(each) => each.number} />` : html`<${Empty} title="Nobody is shut out">The breaker shuts a workflow out when too many of its runs get stuck.<//>`)}<//>
    <${Card} title="Before"><${Listed} pages=${{ ...past, rows: past.rows?.filter((each) => each.removed_at) }} empty=${html`<p class="dim">Nothing that stood here was lifted.</p>`}>${(rows) => html`<${Table} label="History of the blacklist" columns=${[...COLUMNS, ["Lifted", (each) => html`<${When} at=${each.removed_at} /> by ${each.removed_by}`]]} rows=${rows} keyOf=${(each) => each.number} />`}<//><//>
  <//>`;
};
