// The overview: is everything moving, and if not, what needs you; then how it went, and what happens right now.

import { ofTenant } from "../lib/command.js";
import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html, useState } from "../lib/dom.js";
import { facts, meaning, subject, tone } from "../lib/events.js";
import { decoded, href, ours, requery } from "../lib/router.js";
import { term } from "../lib/search.js";
import { recent } from "../lib/stream.js";
import { atLeast, count, oneLine, plural } from "../lib/text.js";
import { clock, exact, hourAgo, serverNow } from "../lib/time.js";
import { Acts, Answer, Card, Empty, JobLink, Loading, Trouble, When } from "../parts/basic.js";
import { Bars, Chart } from "../parts/chart.js";
import { Icon } from "../parts/icons.js";
import { whyListed } from "./blacklist.js";
import { blocker } from "./targets.js";

export const Overview = ({ waiting, query }) => {
  const needs = useNeeds(waiting);
  return html`<div class="screen wide">
    <${Headline} needs=${needs} />
    <${Numbers} />
    <${Charts} range=${query.get("range") in RANGES ? query.get("range") : USUAL_RANGE} />
    <${Feed} />
  </div>`;
};

// --- what needs you -----------------------------------------------------------------------------------------------

const kind = (...beginnings) => (event) => beginnings.some((each) => event.kind.startsWith(each));

// Each thing once: what happened, since when, the buttons that help, and where to look.
const useNeeds = (waiting) => {
  const health = useAsked(["health"], {}, { wakes: kind("worker.", "pause.", "notification."), every: 15_000, pace: 5000 });
  const blacklist = useAsked(["blacklist"], {}, { wakes: kind("blacklist.") });
  const stuck = useAsked(["jobs"], { error_type: "ExecutionStuck", state: "FAILED", since: hourAgo(), limit: 10 }, { wakes: kind("stuck", "resumed", "resolved"), pace: 2000, keep: true });
  const all = { health, blacklist, stuck, ...waiting };
  const problem = Object.values(all).find((each) => each.problem && each.problem.status !== 403)?.problem;
  const isLoading = Object.values(all).some((each) => each.isLoading);
  return { things: things(all), isLoading, problem, health: health.data };
};

const things = ({ health, approvals, targets, blacklist, notifications, stuck }) => {
  const found = [];
  const links = new Set((notifications.data?.items ?? []).map((each) => each.link));
  // What is listed below with its own button is not told twice.
  const told = new Set(["alerts", "notifications", "targets", ...(links.has("/platform/dead-letters") ? ["dead_letters"] : [])]);
  const titles = new Set((notifications.data?.items ?? []).map((each) => each.title));
  const checks = (health.data?.checks ?? []).filter((check) => !check.ok && !told.has(check.name) && (check.fatal || !titles.has(CHECKS[check.name]?.[0])));
  found.push(...checks.filter((check) => check.fatal).map(ofCheck));
  const byWorkflow = Object.groupBy(stuck.data?.items ?? [], (job) => `${job.tenant} ${job.workflow}`);
  const isShut = (job) => (blacklist.data?.items ?? []).some((entry) => entry.workflow === job.workflow && ["*", job.tenant].includes(entry.tenant));
  for (const jobs of Object.values(byWorkflow)) found.push(ofStuck(jobs[0], jobs.length, isShut(jobs[0])));
  for (const target of targets.data?.items ?? []) found.push(ofTarget(target));
  for (const entry of blacklist.data?.items ?? []) found.push(ofEntry(entry));
  for (const approval of approvals.data?.items ?? []) found.push(ofApproval(approval));
  found.push(...checks.filter((check) => !check.fatal).map(ofCheck));
  const listed = new Set(targets.data?.items.map((target) => `${target.tenant} /targets/${target.name}`));
  for (const entry of blacklist.data?.items ?? []) listed.add(`${entry.workflow} blacklist`);
  for (const each of notifications.data?.items ?? []) {
    const isListed = listed.has(each.link.includes("tab=blacklist") ? `${each.workflow} blacklist` : `${each.tenant} ${decoded(each.link)}`);
    if (!isListed) found.push(ofNotification(each));
  }
  return mixed(found);
};

// The first of each kind before the second of any: a hundred of one kind must not hide the only one of another.
const mixed = (found) => {
  const seen = {};
  const ranked = found.map((thing) => [(seen[thing.kind] = (seen[thing.kind] ?? 0) + 1), thing]);
  return ranked.sort(([a], [b]) => a - b).map(([, thing]) => thing);
};

// What a check is about, in words, and the screen that shows it; others stand whole among the settings.
const CHECKS = {
  workers: ["No worker is alive", "workers"],
  ready: ["No worker takes new jobs", "workers"],
  silent: ["A worker fell silent", "workers"],
  polls: ["A worker does not hear what is asked of it", "workers"],
  import: ["A worker cannot import its app", "workers"],
  processes: ["A worker cannot start its processes", "workers"],
  roles: ["Something that workers do fails", "workers"],
  queue: ["Jobs wait too long", "queues"],
  schedules: ["A schedule fell silent", "schedules"],
  webhooks: ["A webhook is in trouble", "webhooks"],
  secrets: ["Secrets of hooks are stored in clear text", "hooks"],
  quarantine: ["Something was set aside", "quarantine"],
  dead_letters: ["Dead letters", "dead-letters"],
};

const ofCheck = (check) => {
  const [title, screen] = CHECKS[check.name] ?? [`Health: ${check.name}`, "settings"];
  return { kind: check.fatal ? "broken" : "check", id: `check ${check.name}`, icon: "stuck", tone: check.fatal ? "bad" : "warn", title, text: check.detail, address: href([screen]) };
};
// What is on the blacklist runs again once it is lifted: that is a thing of its own.
const ofStuck = (job, times, isShut) => ({
  kind: "stuck", id: `stuck ${job.tenant} ${job.workflow}`, icon: "stuck", tone: "bad", title: html`<b>${job.workflow}</b> got stuck${times > 1 ? ` ${times} times in an hour` : ""}`, at: job.finished_at, text: job.error_message,
  address: href(["jobs", job.id], ofTenant(job.tenant)), look: "See its stack", actions: isShut ? [] : [actions.resume(job), actions.retry(job)],
});
const ofTarget = (target) => ({
  kind: "target", id: `target ${target.tenant} ${target.name}`, icon: "block", tone: "bad", title: html`Target <b>${target.name}</b> is blocked`, at: target.blocked_at,
  text: `${atLeast(target.waiting, target.waiting_at_least)} ${target.waiting === 1 ? "job waits" : "jobs wait"} behind a job that failed or paused`,
  address: href(["targets", target.name], ofTenant(target.tenant)), look: "Who blocks it",
  actions: target.blocked_by ? [actions.resume(blocker(target)), actions.skip(blocker(target))] : [],
});
const ofEntry = (entry) => ({
  kind: "entry", id: `entry ${entry.number}`, icon: "stop", tone: "bad", title: html`Workflow <b>${entry.workflow}</b> is on the blacklist`, at: entry.blacklisted_at,
  text: whyListed(entry),
  address: href(["blacklist"]), look: "Blacklist", actions: [actions.lift(entry)],
});
const ofApproval = (approval) => ({
  kind: "approval", id: `approval ${approval.job} ${approval.key}`, icon: "hand", tone: "warn", title: html`<b>${approval.workflow}</b> asks: ${approval.question}`, at: approval.asked_at,
  until: approval.until_at, then: approval.on_timeout, address: href(["jobs", approval.job], ofTenant(approval.tenant)), look: "Its job",
  actions: [actions.approve(approval), actions.reject(approval)],
});
const ofNotification = (each) => ({
  kind: "notification", id: `notification ${each.number}`, icon: "bell", tone: each.severity === "error" ? "bad" : "warn", title: each.title, at: each.at, told: "told ", text: each.message,
  address: ours(each), look: "Look", actions: [actions.ack(each)],
});

const SHOWN = 6;

const Headline = ({ needs }) => {
  const [isWhole, setWhole] = useState(false);
  if (needs.problem && !needs.things.length) return html`<${Trouble} problem=${needs.problem} />`;
  if (needs.isLoading && !needs.things.length) return html`<${Loading} rows=${2} />`;
  const { things } = needs;
  if (!things.length) {
    const bound = needs.health?.checks.find((check) => check.name === "workers")?.detail;
    return html`<section class="headline good" id="headline"><${Icon} name="check" /><div><h1>All moving</h1><p>Nothing needs you.${bound ? ` ${bound}` : ""}</p></div></section>`;
  }
  const shown = isWhole ? things : things.slice(0, SHOWN);
  return html`<section class="headline bad" id="headline">
    <div class="headline-title"><${Icon} name="hand" /><h1>${plural(things.length, "thing needs you", "things need you")}</h1></div>
    <ul class="needs">${shown.map((thing) => html`<${Need} key=${thing.id} thing=${thing} />`)}</ul>
    ${things.length > SHOWN && html`<button type="button" class="small" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Show fewer" : `Show all ${things.length}`}</button>`}
  </section>`;
};

const Need = ({ thing }) =>
  html`<li class="need ${thing.tone}" data-row>
    <${Icon} name=${thing.icon} />
    <div class="need-text"><p>${thing.title} ${thing.at && html`<span class="dim">${thing.told}<${When} at=${thing.at} /></span>`}</p>
      ${thing.text && html`<p class="dim">${oneLine(thing.text, 220)}</p>`}
      ${thing.until && html`<p class="dim">ends <${When} at=${thing.until} />, then: ${thing.then}</p>`}</div>
    <div class="need-acts">
      ${thing.actions && html`<${Acts} actions=${thing.actions} />`}
      ${thing.address && html`<a class="button small" href=${thing.address}>${thing.look ?? "Look"}</a>`}
    </div>
  </li>`;

// --- how many -----------------------------------------------------------------------------------------------------

const STATES = ["QUEUED", "RUNNING", "WAITING", "PAUSED", "FAILED", "COMPLETED"];

const Numbers = () => {
  const stats = useAsked(["stats"], {}, { wakes: () => true, pace: 2000 });
  if (!stats.data) return null;
  const { states, at_least: least, workers, blocked, scheduled } = stats.data;
  return html`<ul class="numbers">
    ${STATES.map((state) => html`<li key=${state}><a href=${href(["jobs"], { q: `state:${state}` })}><b>${atLeast(states[state] ?? 0, least.includes(state))}</b><span>${state.toLowerCase()}</span></a></li>`)}
    <li><a href=${href(["jobs"], { q: "state:SCHEDULED" })}><b>${count(scheduled)}</b><span>scheduled</span></a></li>
    <li><a href=${href(["jobs"], { q: "state:BLOCKED" })}><b>${count(blocked)}</b><span>blocked</span></a></li>
    <li><a href=${href(["workers"])}><b>${count(workers.alive)}</b><span>${workers.alive === 1 ? "worker" : "workers"}</span></a></li>
  </ul>`;
};

// --- charts -------------------------------------------------------------------------------------------------------

const RANGES = { "15m": [900, 60], "1h": [3600, 60], "24h": [86400, 900], "7d": [604800, 3600] };

const USUAL_RANGE = "1h";

const Charts = ({ range }) => {
  const [length, step] = RANGES[range];
  // Anew each minute: the question is the same within one.
  const minute = useMinute();
  const since = new Date(minute * 60_000 - length * 1000).toISOString();
  const series = useAsked(["series"], { since, step }, { every: 30_000, keep: true });
  const queues = useAsked(["queues"], { limit: 8 }, { wakes: () => true, pace: 3000 });
  return html`<section aria-label="Charts">
    <div class="section-head"><h2>How it goes</h2><div class="segments" role="group" aria-label="Range">${Object.keys(RANGES).map(
      (each) => html`<button type="button" key=${each} class="small" aria-pressed=${each === range} onClick=${() => requery({ range: each === USUAL_RANGE ? "" : each })}>${each}</button>`,
    )}</div></div>
    <${Answer} of=${series}>${(data) => {
      const { at, of } = table(data);
      const known = at.length > 0 && data.points.length > 0;
      return html`<div class="charts">
        <${Card} title="Throughput" note=${`per ${step === 60 ? "minute" : step === 900 ? "15 minutes" : "hour"}`}>
          ${known ? html`<${Chart} label="Jobs that ended, over time" at=${at} lines=${[
            { label: "completed", tone: "good", values: of("completed"), isArea: true },
            { label: "failed", tone: "bad", values: sums(of("failed"), of("timeout"), of("dead")) },
          ]} />` : html`<${NotYet} />`}<//>
        <${Card} title="Waiting by queue" note="now"><${Answer} of=${queues}>${(page) => html`<${Waiting} queues=${page.items} />`}<//><//>
        <${Card} title="Wait and run" note="p50 and p95">
          ${known ? html`<${Chart} label="How long jobs waited and ran, over time" unit="ms" at=${at} lines=${[
            { label: "wait p50", tone: "busy", values: gaps(of("wait_p50_ms")) },
            { label: "wait p95", tone: "busy", values: gaps(of("wait_p95_ms")), isDashed: true },
            { label: "run p50", tone: "accent", values: gaps(of("run_p50_ms")) },
            { label: "run p95", tone: "accent", values: gaps(of("run_p95_ms")), isDashed: true },
          ]} />` : html`<${NotYet} />`}<//>
        <${Card} title="What went wrong" note="failed, timed out, dead">
          ${known ? html`<${Chart} label="Jobs that failed, over time" at=${at} lines=${[
            { label: "failed or stuck", tone: "bad", values: of("failed"), isArea: true },
            { label: "timed out", tone: "warn", values: of("timeout") },
            { label: "dead", tone: "dim", values: of("dead") },
          ]} />` : html`<${NotYet} />`}<//>
      </div>`;
    }}<//>
  </section>`;
};

const useMinute = () => Math.floor(serverNow() / 60_000);

const NotYet = () => html`<${Empty} title="Nothing is counted yet" icon="clock">What ends is counted by the minute, one or two minutes later.<//>`;

// The points as columns, with zeros for steps in which nothing ended.
const table = (series) => {
  const first = Date.parse(series.since_at) / 1000;
  const last = Math.min(Date.parse(series.until_at), Date.parse(series.counted_until)) / 1000;
  const by = new Map(series.points.map((point) => [Date.parse(point.at) / 1000, point]));
  const at = [];
  for (let each = first; each < last; each += series.step) at.push(each);
  return { at, of: (name) => at.map((each) => by.get(each)?.[name] ?? (name.endsWith("_ms") ? null : 0)) };
};
const sums = (...columns) => columns[0].map((_, place) => columns.reduce((sum, column) => sum + (column[place] ?? 0), 0));
const gaps = (column) => column.map((value) => value ?? null);

const Waiting = ({ queues }) => {
  if (!queues.length) return html`<${Empty} title="No queue has jobs" icon="queue">A queue is there from its first job on.<//>`;
  const rows = queues.map((queue) => ({
    name: queue.name,
    href: href(["jobs"], { q: term("queue", queue.name) }),
    parts: [
      { label: "waiting", tone: "busy", number: queue.waiting },
      { label: "running", tone: "good", number: queue.running },
      { label: "scheduled", tone: "calm", number: queue.scheduled },
    ],
    told: `${count(queue.waiting)} waiting · ${count(queue.running)} running`,
  }));
  return html`<${Bars} label="Jobs by queue" rows=${rows} />`;
};

// --- what happens -------------------------------------------------------------------------------------------------

const Feed = () => {
  const [frozen, setFrozen] = useState(null);
  const events = (frozen ?? recent.value).slice(0, 50);
  return html`<${Card} title="Live" note="as it happens" actions=${html`<button type="button" class="small" aria-pressed=${frozen !== null} onClick=${() => setFrozen(frozen ? null : recent.value)}>${frozen ? "Go on" : "Hold still"}</button>`}>
    ${events.length ? html`<ol class="feed">${events.map((event) => html`<${Line} key=${event.cursor} event=${event} />`)}</ol>` : html`<${Empty} title="Quiet" icon="clock">What happens to jobs, workers and targets appears here.<//>`}
  <//>`;
};

const Line = ({ event }) =>
  html`<li class="feed-line">
    <time class="dim" datetime=${event.at} title=${exact(event.at)}>${clock(event.at)}</time>
    <span class="dot ${tone(event.kind)}"></span>
    <span class="feed-what">${event.job ? html`<${JobLink} id=${event.job} tenant=${event.tenant}>${event.workflow ?? event.job.slice(-8)}<//>` : html`<b>${subject(event)}</b>`} ${meaning(event.kind)}</span>
    <span class="dim feed-facts">${oneLine(facts(event), 140)}</span>
  </li>`;
