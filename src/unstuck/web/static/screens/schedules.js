// Schedules: what runs by the clock, when next, and what came of the last ticks.

import { leave } from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { command, ofTenant } from "../lib/command.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { plural, pretty } from "../lib/text.js";
import { duration, exact } from "../lib/time.js";
import { Acts, Answer, Card, Empty, Facts, Folded, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const TONES = { ACTIVE: "good", PAUSED: "warn", ENDED: "calm", REMOVED: "calm" };
const OUTCOMES = { fired: "good", missed: "bad", refused: "bad", skipped: "warn" };

const verb = (schedule, name, label, done, more = {}) => ({
  operation: `schedules.${name.replace("-", "_")}`, label, path: ["schedules", schedule.name, name], query: { tenant: schedule.tenant }, body: {},
  command: command(`schedules ${name}`, [schedule.name], ofTenant(schedule.tenant)), done, ...more,
});
const remove = (schedule) => ({
  operation: "schedules.delete", label: "Delete", tone: "bad", method: "DELETE", path: ["schedules", schedule.name], query: { tenant: schedule.tenant },
  confirm: { title: `Delete schedule ${schedule.name}?`, text: "It fires no more, and is forgotten. Its jobs stay.", yes: "Delete it" },
  command: command("schedules delete", [schedule.name], ofTenant(schedule.tenant)), done: `${schedule.name} is deleted`,
  leads: () => leave("schedules"),
});
const possible = (schedule) => [
  verb(schedule, "run-now", "Run now", `${schedule.name} made its job`),
  schedule.state === "PAUSED" ? verb(schedule, "resume", "Resume", `${schedule.name} goes on with its next tick`) : verb(schedule, "pause", "Pause", `${schedule.name} is paused`),
  ...(schedule.owner ? [] : [remove(schedule)]),
];
const rule = (schedule) => (schedule.cron ? html`<code>${schedule.cron}</code> <span class="dim">${schedule.zone}</span>` : `every ${duration(schedule.every)}`);

const COLUMNS = [
  ["Schedule", (each) => html`<a href=${href(["schedules", each.name], ofTenant(each.tenant))}><b>${each.name}</b></a>`],
  ["State", (each) => html`<${Pill} tone=${TONES[each.state]}>${each.state}<//>${each.silent && html` <${Pill} tone="bad">silent<//>`}`, "narrow"],
  ["Runs", (each) => html`<a href=${href(["workflows", each.workflow])}>${each.workflow}</a>`],
  ["When", (each) => (each.cron ? html`<code>${each.cron}</code><span class="under dim">${each.meaning}</span>` : each.meaning), "what"],
  ["Next", (each) => html`<${When} at=${each.next_at} />`, "narrow"],
  ["Last", (each) => html`<${When} at=${each.last_at} />`, "narrow"],
  ["", (each) => html`<${Acts} actions=${possible(each)} />`, "right"],
];

export const Schedules = ({ words: [, name], query }) => (name ? html`<${One} name=${name} query=${query} />` : html`<${All} />`);

const All = () => {
  const pages = usePages(["schedules"], {}, { keyOf: (each) => `${each.tenant} ${each.name}`, wakes: (event) => event.kind === "submitted", pace: 3000 });
  return html`<${Screen} title="Schedules" lead="What runs by the clock. Workers fire each tick once, also when many of them look." wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="Nothing runs by the clock" icon="clock">Make one: <code>unstuck schedules create nightly report --cron "0 3 * * *"</code>, or in code: <code>@app.workflow(cron="0 3 * * *")</code><//>`}>
      ${(rows) => html`<${Table} label="Schedules" columns=${COLUMNS} rows=${rows} keyOf=${(each) => `${each.tenant} ${each.name}`} open=${true} />`}<//>
  <//>`;
};

const One = ({ name, query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const schedule = useAsked(["schedules", name], whose, { wakes: (event) => event.kind === "submitted", pace: 3000 });
  const next = useAsked(["schedules", name, "next"], { ...whose, count: 5 }, { every: 30_000 });
  const firings = usePages(["schedules", name, "firings"], whose, { keyOf: (each) => each.number, wakes: (event) => event.kind === "submitted", pace: 3000 });
  return html`<${Answer} of=${schedule}>${(each) => html`<${Screen} title=${html`${each.name} <${Pill} tone=${TONES[each.state]}>${each.state}<//>`} lead=${each.meaning} actions=${html`<${Acts} small=${false} actions=${possible(each)} />`}>
    <div class="pair">
      <${Card} title="Next"><${Answer} of=${next}>${(ticks) => (ticks.ticks.length ? html`<ol class="ticks">${ticks.ticks.map((tick) => html`<li key=${tick}><${When} at=${tick} /> <span class="dim">${exact(tick).split("\n")[0]}</span></li>`)}</ol>` : html`<p class="dim">None: it is paused, or over.</p>`)}<//><//>
      <${Card} title="What it does"><${Facts} facts=${[["Runs", html`<a href=${href(["workflows", each.workflow])}>${each.workflow}</a>`], ["Rule", rule(each)], ["Overlap", each.overlap], ["Catch up", each.catch_up], ["Queue", each.queue], ["Target", each.target], ["Declared by", each.owner], ["Made", html`<${When} at=${each.created_at} /> by ${each.created_by}`], ["Paused", each.paused_at && html`<${When} at=${each.paused_at} /> by ${each.paused_by} ${each.pause_reason ?? ""}`]]} />
        <${Folded} text=${pretty(each.args.length ? { args: each.args, kwargs: each.kwargs } : each.kwargs)} label="arguments" /><//>
    </div>
    <${Card} title="Ticks" note="the newest first"><${Listed} pages=${firings} empty=${html`<${Empty} title="It has not fired yet" icon="clock" />`}>${(rows) => html`<${Table} label="Ticks" rows=${rows} keyOf=${(firing) => firing.number} columns=${[
      ["Tick", (firing) => html`<${When} at=${firing.tick_at} />`, "narrow"],
      ["Came of it", (firing) => html`<${Pill} tone=${OUTCOMES[firing.outcome]}>${firing.outcome}<//>${firing.ticks > 1 ? ` ${plural(firing.ticks, "tick")}` : ""}`, "narrow"],
      ["Job", (firing) => (firing.job ? html`<${JobLink} id=${firing.job} tenant=${each.tenant} />` : html`<span class="dim">${firing.reason ?? "–"}</span>`)],
      ["Why", (firing) => `${firing.kind.replace("_", " ")}${firing.by ? ` by ${firing.by}` : ""}`],
    ]} />`}<//><//>
  <//>`}<//>`;
};
