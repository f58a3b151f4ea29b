// Settings of the running installation: what they mean, who set them, and how health sees it.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { duration } from "../lib/time.js";
import { Acts, Answer, Card, Empty, Facts, Pill, Screen, Table, When } from "../parts/basic.js";

const change = (setting) => actions.set(setting.name, setting.meaning, setting.value, `JSON; the default is ${JSON.stringify(setting.default)}`);

const COLUMNS = [
  ["Setting", (each) => html`<b class="mono">${each.name}</b><span class="under dim">${each.meaning}</span>`, "what"],
  ["Value", (each) => html`<code>${JSON.stringify(each.value)}</code>${each.set_at == null && html` <span class="dim">default</span>`}`, "narrow"],
  ["Set", (each) => (each.set_at ? html`<${When} at=${each.set_at} /> by ${each.set_by}` : html`<span class="dim">–</span>`)],
  ["", (each) => html`<${Acts} actions=${[change(each), ...(each.set_at ? [actions.reset(each.name)] : [])]} />`, "right"],
];

export const Settings = () => {
  const settings = useAsked(["settings"], {}, {});
  const health = useAsked(["health"], {}, { every: 15_000, keep: true });
  return html`<${Screen} title="Settings" lead="What can be changed while everything runs. The rest is configured where a process starts: unstuck config." wide=${true}>
    <${Card} title="Health"><${Answer} of=${health}>${(view) => html`<ul class="checks">${view.checks.map((check, place) => html`<li key=${place}><${Pill} tone=${check.ok ? "good" : check.fatal ? "bad" : "warn"}>${check.ok ? "ok" : check.fatal ? "broken" : "look"}<//><b>${check.name}</b><span>${check.detail}</span></li>`)}</ul>`}<//><//>
    <${Card} title="Runtime settings"><${Answer} of=${settings}>${(page) => (page.items.length ? html`<${Table} label="Settings" columns=${COLUMNS} rows=${page.items} keyOf=${(each) => each.name} />` : html`<${Empty} title="There are none" />`)}<//><//>
    ${health.data && html`<${Card} title="How long things can take at most" note="while the database can be written"><${Facts} facts=${Object.entries(health.data.bounds).map(([name, seconds]) => [name.replaceAll("_", " "), duration(seconds)])} /><//>`}
  <//>`;
};
