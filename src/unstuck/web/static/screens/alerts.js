// Alerts: what is wrong now, with the way to its cause; and the rules that find it, with their numbers.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { command } from "../lib/command.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href, ours } from "../lib/router.js";
import { Acts, Answer, Card, Empty, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const TONES = { critical: "bad", warning: "warn", info: "calm" };

const ack = (alert) => ({
  operation: "alerts.ack", label: "Take note", path: ["alerts", alert.number, "ack"], body: {}, command: command("alerts ack", [alert.number]), done: "noted; it stays open until its trouble is over",
});
const mute = (alert) => ({
  operation: "alerts.mute", label: "Mute…", path: ["alerts", alert.number, "mute"],
  confirm: { title: "Mute this alert?", text: "It stays in this list and is told nowhere else, also if it ends and comes again. Unmuting undoes it.", yes: "Mute it" },
  fields: [{ name: "lasts", label: "For", hint: "e.g. 30m or 8h; 30 days at most", value: "1h" }],
  body: ({ lasts }) => ({ lasts }), command: ({ lasts }) => command("alerts mute", [alert.number], { for: lasts }), done: "muted",
});
const unmute = (alert) => ({
  operation: "alerts.unmute", label: "Unmute", path: ["alerts", alert.number, "unmute"], body: {}, command: command("alerts unmute", [alert.number]), done: "it is told again",
});
const change = (rule) => actions.set(rule.setting, rule.meaning, rule.value, "a number; 0 turns the rule off");

const possible = (alert) => (alert.closed_at ? [] : [...(alert.acked_at ? [] : [ack(alert)]), alert.muted_until ? unmute(alert) : mute(alert)]);

const RULES = [
  ["Rule", (each) => html`<b>${each.title}</b> <code class="dim">${each.rule}</code><span class="under dim">${each.meaning}</span>`, "what"],
  ["Number", (each) => (each.value ? html`<code>${String(each.value)}</code>` : html`<${Pill}>off<//>`), "narrow"],
  ["Open", (each) => (each.open ? html`<${Pill} tone="bad">${String(each.open)}<//>` : html`<span class="dim">none</span>`), "narrow"],
  ["Looked", (each) => html`<${When} at=${each.looked_at} none="not yet" />${each.failing_at && html` <${Pill} tone="bad" title=${each.error ?? ""}>fails<//><span class="under error-text">${each.error ?? ""}</span>`}`, "narrow"],
  ["", (each) => html`<${Acts} actions=${[change(each)]} />`, "right"],
];

export const Alerts = ({ query }) => {
  const isAll = query.get("all") === "yes";
  const wakes = (event) => event.kind.startsWith("alert.");
  const pages = usePages(["alerts"], isAll ? { closed: true } : {}, { keyOf: (each) => each.number, wakes });
  const rules = useAsked(["alerts", "rules"], {}, { wakes, every: 30_000, pace: 3000 });
  return html`<${Screen} title="Alerts" lead="What has lasted too long or comes too often. Each opens by itself, and is over by itself." wide=${true}>
    <div class="tabs" role="group" aria-label="Which alerts">
      <a class="button small" aria-current=${isAll ? undefined : "true"} href=${href(["alerts"])}>Open</a>
      <a class="button small" aria-current=${isAll ? "true" : undefined} href=${href(["alerts"], { all: "yes" })}>All</a></div>
    <${Listed} pages=${pages} empty=${html`<${Empty} title=${isAll ? "There was no alert" : "No alert is open"}>The rules below look about every half minute. What one finds stands here until it is over.<//>`}>
      ${(rows) => html`<ul class="cards">${rows.map((each) => html`<li key=${each.number} data-row class="card note ${TONES[each.severity] ?? "warn"} ${each.$look ?? ""}">
        <header class="card-head"><h2>${each.title}</h2><span class="dim">${each.rule} · <${When} at=${each.opened_at} />${each.tenant !== "*" ? ` · ${each.tenant}` : ""}</span>
          <span class="acts">${each.closed_at && html`<${Pill} tone="good">over<//>`}${each.acked_at && html`<${Pill}>noted by ${each.acked_by}<//>`}${each.muted_until && html`<${Pill}>muted<//>`}<${Acts} actions=${possible(each)} /><a class="button small" href=${ours(each)}>Look</a></span></header>
        <p>${each.message}</p></li>`)}</ul>`}<//>
    <${Card} title="Rules"><${Answer} of=${rules}>${(page) => html`<${Table} label="Rules" columns=${RULES} rows=${page.items} keyOf=${(each) => each.rule} />`}<//><//>
  <//>`;
};
