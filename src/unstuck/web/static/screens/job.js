// One job, now: why it does not run, what happened to it, what it was given and gave, and what can be done.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { command, ofTenant } from "../lib/command.js";
import { html, useEffect } from "../lib/dom.js";
import { facts, meaning, tone } from "../lib/events.js";
import { go, href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { count, oneLine, plural, pretty } from "../lib/text.js";
import { ms } from "../lib/time.js";
import { Acts, Answer, Card, Command, Copy, Empty, Facts, Folded, JobLink, Pill, State, Table, When } from "../parts/basic.js";
import { Logs } from "../parts/logs.js";
import { Live, Stack } from "../parts/stack.js";
import { Timeline } from "../parts/timeline.js";
import { Tree } from "../parts/tree.js";
import { Why } from "../parts/why.js";

const FINAL = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD"];

export const Job = ({ words: [, id], query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const isMine = (event) => event.job === id;
  const job = useAsked(["jobs", id], whose, { wakes: isMine });
  const why = useAsked(["jobs", id, "why"], whose, { wakes: isMine, every: 10_000 });
  // Enough of an id is enough to find it; the address that is shared has all of it.
  useEffect(() => {
    if (job.data && job.data.id !== id) go(href(["jobs", job.data.id], whose), { replace: true });
  }, [job.data?.id]);
  return html`<${Answer} of=${job} rows=${6}>${(data) => html`<${Whole} job=${data} why=${why} />`}<//>`;
};

const Whole = ({ job, why }) => {
  const isOver = FINAL.includes(job.state);
  return html`<div class="screen job">
    <header class="screen-head">
      <div>
        <p class="crumbs"><a href=${href(["jobs"])}>Jobs</a> / <a href=${href(["jobs"], { q: term("workflow", job.workflow) })}>${job.workflow}</a></p>
        <h1>${job.workflow} <${State} state=${job.shown_state} /></h1>
        <p class="dim"><code>${job.id}</code><${Copy} text=${job.id} label="Copy the id" /></p>
      </div>
      <${Acts} actions=${actions.possible(job)} small=${false} />
    </header>
    <${Answer} of=${why} rows=${1}>${(data) => html`<${Why} why=${data} job=${job} />`}<//>
    <${Questions} job=${job} />
    <div class="job-columns">
      <div class="job-main">
        <${Card} title="Timeline"><${Timeline} job=${job} /><//>
        <${Failure} job=${job} />
        ${job.state === "RUNNING" && html`<${Live} job=${job} />`}
        <${Data} job=${job} />
        <${Logs} key=${job.id} job=${job} isOver=${isOver} />
        <${Steps} job=${job} />
        ${job.partials > 0 && html`<${Partials} job=${job} isOver=${isOver} />`}
        ${(job.children.length > 0 || job.parent) && html`<${Tree} job=${job} />`}
        <${Attempts} job=${job} />
        <${History} job=${job} />
      </div>
      <aside class="job-side" aria-label="Facts">
        <${Card} title="Facts"><${JobFacts} job=${job} /><//>
        <${Card} title="As commands"><ul class="commands">${[["jobs show"], ["why"], ["jobs logs", { follow: true }]].map(([verb, flags]) => html`<li key=${verb}><${Command} text=${command(verb, [job.id], { ...flags, ...ofTenant(job.tenant) })} /></li>`)}</ul><//>
      </aside>
    </div>
  </div>`;
};

// --- what it asks -------------------------------------------------------------------------------------------------

const Questions = ({ job }) =>
  (job.waits ?? [])
    .filter((wait) => wait.kind === "approval" && !wait.answer)
    .map((wait) => {
      const approval = { ...wait, job: job.id, tenant: job.tenant };
      return html`<section class="card question" key=${wait.key} aria-label="A question">
        <p class="question-text">${wait.question}</p>
        <p class="dim">asked <${When} at=${wait.asked_at} />${wait.who.length ? ` of ${wait.who.join(", ")}` : ""}; ends <${When} at=${wait.until_at} />, then: ${wait.on_timeout}</p>
        <${Acts} actions=${[actions.approve(approval), actions.reject(approval)]} small=${false} />
      </section>`;
    });

// --- what went wrong ----------------------------------------------------------------------------------------------

const Failure = ({ job }) => {
  const last = job.attempt_list.at(-1);
  if (!job.error_type && !job.error_message) return null;
  const stack = last?.stack;
  return html`<${Card} title="Error" tone="bad" id="error" note=${last ? `attempt ${last.attempt} on ${last.worker}` : ""}>
    <p class="error-text"><b>${job.error_type}</b></p>
    ${job.error_message && html`<${Folded} text=${job.error_message} label="error message" kind="plain" />`}
    ${stack && html`<${Stack} text=${stack} />`}
    ${job.error_type && html`<p><a href=${href(["jobs"], { q: `${term("error", job.error_type)} ${term("workflow", job.workflow)}` })}>Others of ${job.workflow} with this error</a></p>`}
  <//>`;
};

// --- what it was given and gave -----------------------------------------------------------------------------------

const Data = ({ job }) => {
  const input = job.args.length && Object.keys(job.kwargs).length ? { args: job.args, kwargs: job.kwargs } : job.args.length ? job.args : job.kwargs;
  const hasResult = job.state === "COMPLETED" || job.result != null;
  return html`<div class="pair">
    <${Card} title="Input">${job.args.length || Object.keys(job.kwargs).length ? html`<${Folded} text=${pretty(input)} label="input" />` : html`<p class="dim">It was given no arguments.</p>`}<//>
    <${Card} title=${hasResult ? "Result" : job.progress != null ? "Progress" : "Result"}>
      ${hasResult ? html`<${Folded} text=${pretty(job.result)} label="result" />` : job.progress != null ? html`<${Meter} value=${job.progress} />` : html`<p class="dim">${FINAL.includes(job.state) ? "It has none." : "It is there when the job has completed."}</p>`}
    <//>
  </div>`;
};

const Meter = ({ value }) => {
  const { done, of } = value ?? {};
  if (!(of > 0)) return html`<${Folded} text=${pretty(value)} label="progress" />`;
  const share = Math.min(100, (100 * done) / of);
  return html`<div class="progress" role="progressbar" aria-label="Progress" aria-valuemin="0" aria-valuemax=${of} aria-valuenow=${done}><span style=${{ width: `${share}%` }}></span></div><p class="dim">${count(done)} of ${count(of)}</p>`;
};

const Steps = ({ job }) =>
  job.steps.length > 0 &&
  html`<${Card} title="Steps" note="finished: no later attempt does them again">
    <${Table} label="Steps" rows=${job.steps} keyOf=${(step) => `${step.name} ${step.ordinal} ${step.run}`} columns=${[
      ["Step", (step) => html`<b>${step.name}</b>${step.ordinal > 1 ? html` <span class="dim">#${step.ordinal}</span>` : ""}`],
      ["Took", (step) => ms(step.duration_ms), "narrow right"],
      ["Attempt", (step) => step.attempt, "narrow right"],
      ["When", (step) => html`<${When} at=${step.at} />`, "narrow"],
      ["Result", (step) => html`<code class="cell">${oneLine(JSON.stringify(step.result), 120)}</code>`],
    ]} />
  <//>`;

const Partials = ({ job, isOver }) => {
  const asked = useAsked(["jobs", job.id, "partials"], { tenant: job.tenant, limit: 100 }, { every: isOver ? undefined : 2000, wakes: (event) => event.job === job.id });
  return html`<${Card} title="Partial results" note=${count(job.partials)}><${Answer} of=${asked}>${(page) => html`
    <ol class="partials">${page.items.map((part) => html`<li key=${part.number}><span class="dim"><${When} at=${part.at} /> ${part.name}</span><${Folded} text=${pretty(part.value)} label=${`partial result ${part.number}`} /></li>`)}</ol>
    ${page.next && html`<p class="dim">The first 100 are shown; all: <code>${command("jobs partials", [job.id], ofTenant(job.tenant))}</code></p>`}`}<//><//>`;
};

// --- what happened ------------------------------------------------------------------------------------------------

const Attempts = ({ job }) =>
  job.attempt_list.length > 0 &&
  html`<${Card} title="Attempts" note=${job.attempts > job.attempt_list.length ? `the last ${job.attempt_list.length} of ${count(job.attempts)}` : plural(job.attempts, "attempt")}>
    <${Table} label="Attempts" rows=${[...job.attempt_list].reverse()} keyOf=${(attempt) => attempt.attempt} columns=${[
      ["Attempt", (attempt) => html`<b>${attempt.attempt}</b>${attempt.run > 1 ? html` <span class="dim">run ${attempt.run}</span>` : ""}`, "narrow"],
      ["Ended", (attempt) => html`<${Pill} tone=${attempt.outcome ? outcomeTone(attempt.outcome) : "busy"}>${attempt.outcome?.toLowerCase() ?? "running"}<//>`, "narrow"],
      ["Worker", (attempt) => html`<a href=${href(["workers"])}>${attempt.worker}</a>`],
      ["Began", (attempt) => html`<${When} at=${attempt.claimed_at} />`, "narrow"],
      ["Took", (attempt) => ms(attempt.duration_ms), "narrow right"],
      ["Error", (attempt) => html`<span class="error-text">${oneLine([attempt.error_type, attempt.error_message].filter(Boolean).join(": "), 140)}</span>`],
    ]} />
    ${job.attempt_list.some((attempt, place) => attempt.stack && place < job.attempt_list.length - 1) && html`<details><summary>Stacks of earlier attempts</summary>${job.attempt_list.slice(0, -1).filter((attempt) => attempt.stack).slice(-5).map((attempt) => html`<div key=${attempt.attempt}><p class="dim">attempt ${attempt.attempt}</p><${Stack} text=${attempt.stack} /></div>`)}</details>`}
  <//>`;

const outcomeTone = (outcome) => ({ COMPLETED: "good", PARKED: "calm", GIVEN_BACK: "calm", CANCELLED: "warn", INTERRUPTED: "warn" })[outcome.toUpperCase()] ?? "bad";

const History = ({ job }) => html`<${Card} title="History" note=${job.events > job.history.length ? `the last ${job.history.length} of ${count(job.events)} events` : plural(job.history.length, "event")}>
  <ol class="history">${[...job.history].reverse().slice(0, 200).map(
    (event) => html`<li key=${event.number}><span class="dot ${tone(event.kind)}"></span><${When} at=${event.at} /><b>${meaning(event.kind)}</b>${event.attempt != null && html`<span class="dim">attempt ${event.attempt}</span>`}<span class="dim history-facts">${oneLine(facts(event), 260)}</span></li>`,
  )}</ol>
  ${job.history.length === 0 && html`<${Empty} title="Nothing yet" />`}
<//>`;

const JobFacts = ({ job }) => {
  const used = Object.entries(job.usage?.used ?? {});
  return html`<${Facts} facts=${[
    ["Queue", html`<a href=${href(["jobs"], { q: term("queue", job.queue) })}>${job.queue}</a>`],
    ["Target", job.target && html`<a href=${href(["targets", job.target])}>${job.target}</a>`],
    ["Tenant", job.tenant !== "default" && job.tenant],
    ["Submitted", html`<${When} at=${job.created_at} />`],
    ["Due", job.state === "QUEUED" && html`<${When} at=${job.available_at} />`],
    [job.attempts > 1 ? "Last started" : "Started", job.started_at && html`<${When} at=${job.started_at} />`],
    ["Ended", job.finished_at && html`<${When} at=${job.finished_at} />`],
    ["Ran", job.duration_ms != null && ms(job.duration_ms)],
    ["From begin to end", job.total_ms != null && ms(job.total_ms)],
    ["Worker", job.worker && html`<a href=${href(["workers"])}>${job.worker}</a>`],
    ["Last heartbeat", job.state === "RUNNING" && job.heartbeat_at && html`<${When} at=${job.heartbeat_at} />`],
    ["Attempts", `${job.attempts}${job.failures ? `, ${job.failures} failed` : ""}${job.losses ? `, ${job.losses} lost` : ""}`],
    ["Run", job.run > 1 && String(job.run)],
    ["Priority", job.priority !== 0 && String(job.priority)],
    ["Tags", job.tags.length > 0 && job.tags.join(", ")],
    ["Key", job.key && html`<code>${job.key}</code>`],
    ["Limit key", job.limit_key],
    ["Parent", job.parent && html`<${JobLink} id=${job.parent} tenant=${job.tenant} />`],
    ["Copy of", job.replay_of && html`<${JobLink} id=${job.replay_of} tenant=${job.tenant} />`],
    ["Signed by", job.signed_by],
    ["Trace", job.trace && html`<code>${job.trace}</code>`],
    ["Waits for", job.waits_for.length > 0 && html`${job.waits_for.map((each) => html`<span key=${each.job}><${JobLink} id=${each.job} tenant=${job.tenant} /> ${each.state ?? ""} </span>`)}`],
    ["Used", used.length > 0 && used.map(([unit, number]) => `${count(number)}${job.usage.budget[unit] != null ? ` of ${count(job.usage.budget[unit])}` : ""} ${unit}`).join(", ")],
    ["Time limit", job.policy?.timeout != null && (job.policy.timeout === "unlimited" ? "none" : ms(job.policy.timeout * 1000))],
    ["Grace", job.policy?.grace != null && ms(job.policy.grace * 1000)],
  ]} />`;
};
