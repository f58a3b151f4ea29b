// Workers, their processes, and the jobs in them: who is alive, who is full, who is stuck.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html, useState } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { count, oneLine, plural, size } from "../lib/text.js";
import { ms } from "../lib/time.js";
import { Acts, Answer, Card, Empty, Facts, JobLink, Pill, Screen, When } from "../parts/basic.js";
import { Live, Stack } from "../parts/stack.js";

const TONES = { active: "good", draining: "warn", starting: "busy", lost: "bad", offline: "bad", gone: "calm", recycling: "warn", exited: "calm" };
const PLACES = { thread: "in a thread", loop: "on the event loop", main: "on the main thread" };

export const Workers = ({ query }) => {
  const isAll = query.get("all") === "yes";
  const asked = useAsked(["workers"], { limit: 100, ...(isAll ? { ended: true } : {}) }, { wakes: (event) => event.kind.startsWith("worker.") || ["claimed", "stuck"].includes(event.kind), every: 3000, pace: 1500, keep: true });
  return html`<${Screen} title="Workers" lead="Each worker watches its processes; jobs run inside them. A process with a stuck job is emptied and replaced." wide=${true}>
    <div class="tabs" role="group" aria-label="Which workers">
      <a class="button small" aria-current=${isAll ? undefined : "true"} href=${href(["workers"])}>Alive</a>
      <a class="button small" aria-current=${isAll ? "true" : undefined} href=${href(["workers"], { all: "yes" })}>All</a></div>
    <${Answer} of=${asked}>${(page) =>
      page.items.length
        ? html`<ul class="cards">${page.items.map((worker) => html`<${Worker} key=${worker.number} worker=${worker} />`)}</ul>`
        : html`<${Empty} title="No worker is alive" icon="worker">Nothing runs without one. Start it where your code is: <code>unstuck worker MODULE:APP</code><//>`}<//>
  <//>`;
};

const Worker = ({ worker }) => {
  const [opened, setOpened] = useState(null);
  const isAlive = ["active", "draining"].includes(worker.state);
  return html`<li class="card worker" data-row>
    <header class="card-head"><h2>${worker.name} <${Pill} tone=${worker.state === "active" && !worker.ready ? "warn" : (TONES[worker.state] ?? "calm")}>${worker.state}${worker.state === "active" && !worker.ready ? ", not ready" : ""}<//></h2>
      <span class="dim">${worker.host}, pid ${worker.pid}</span>
      ${isAlive && worker.state === "active" && html`<${Acts} actions=${[actions.drain(worker)]} />`}</header>
    <div class="slots" role="img" aria-label=${`${worker.running} of ${worker.slots ?? "?"} slots busy`}>${slots(worker)}</div>
    <${Facts} facts=${[
      ["Running", `${count(worker.running)}${worker.slots == null ? "" : ` of ${count(worker.slots)} slots`}`],
      ["Queues", worker.queues.length ? worker.queues.join(", ") : "those of its app"],
      ["Heartbeat", html`<${When} at=${worker.heartbeat_at} />`],
      ["Started", html`<${When} at=${worker.started_at} />`],
      ["Code", worker.code_version && html`<code>${worker.code_version}</code>`],
      ["Key", worker.key],
    ]} />
    ${worker.import_error && html`<${Failing} what="Its app cannot be imported" error=${worker.import_error} />`}
    ${worker.start_error && html`<${Failing} what="Its processes cannot start" error=${worker.start_error} />`}
    ${worker.roles.map((role) => html`<p key=${role.name} class="error-text">${role.name} fails for ${ms(role.failing_ms)}: ${oneLine(role.error, 200)}</p>`)}
    ${worker.processes.map((process) => html`<${Process} key=${process.pid} process=${process} worker=${worker} opened=${opened} open=${setOpened} />`)}
    ${worker.recycled.length > 0 && html`<details><summary>${plural(worker.recycled.length, "process", "processes")} that went</summary><ul class="gone">${[...worker.recycled].reverse().map((gone, place) => html`<li key=${place}>pid ${gone.pid}, <${When} at=${gone.at} />: ${gone.reason} <span class="dim">after ${plural(gone.jobs_done, "job")}</span></li>`)}</ul></details>`}
  </li>`;
};

// A traceback ends with what it is about.
const Failing = ({ what, error }) => {
  const lines = error.trimEnd().split("\n");
  return html`<p class="error-text">${what}: ${oneLine(lines.at(-1), 400)}</p>
    ${lines.length > 1 && html`<details><summary>Where</summary><${Stack} text=${error} /></details>`}`;
};

const slots = (worker) => {
  const most = Math.min(worker.slots ?? worker.running, 60);
  const stuck = worker.processes.reduce((sum, process) => sum + process.jobs.filter((body) => body.stuck).length, 0);
  return Array.from({ length: most }, (_, place) => html`<i key=${place} class=${place < stuck ? "bad" : place < worker.running ? "good" : ""}></i>`);
};

const Process = ({ process, worker, opened, open }) => html`<div class="process">
  <p class="process-head"><b>process ${process.pid || "?"}</b> <${Pill} tone=${TONES[process.state] ?? "calm"}>${process.state}<//>
    <span class="dim">generation ${process.generation} · ${count(process.jobs_done)} done · ${process.memory ? size(process.memory) : "–"}${process.alone ? " · one job at a time" : ""}${process.silent_ms >= 1000 ? ` · silent for ${ms(process.silent_ms)}` : ""}${process.reason ? ` · ${process.reason}` : ""}</span>
    ${process.pid > 0 && ["active", "draining"].includes(process.state) && html`<${Acts} actions=${[...(process.state === "active" ? [actions.recycle(process, worker)] : []), actions.kill(process, worker)]} />`}</p>
  ${process.jobs.length > 0 && html`<ul class="bodies">${process.jobs.map((body) => html`<li key=${body.job} class=${body.stuck ? "bad" : ""}>
    <span class="body-line"><${JobLink} id=${body.job}>${body.workflow} ${body.job.slice(-8)}<//><span>${ms(body.elapsed_ms)}</span><span class="dim">${PLACES[body.on] ?? body.on}</span>
      ${body.stuck && html`<${Pill} tone="bad">stuck<//>`}${body.request && html`<${Pill} tone="warn">asked to stop (${body.request})${body.grace_left_ms != null ? `, ${ms(body.grace_left_ms)} left` : ""}<//>`}
      <button type="button" class="small" aria-expanded=${opened === body.job} onClick=${() => open(opened === body.job ? null : body.job)}>Stack</button></span>
    ${opened === body.job && html`<${Live} job=${{ id: body.job }} />`}
  </li>`)}${process.running > process.jobs.length && html`<li class="dim">${plural(process.running - process.jobs.length, "more job")}</li>`}</ul>`}
</div>`;
