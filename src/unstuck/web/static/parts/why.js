// Why is this job not running: the verdict, then each reason with since when, until when, who acts, and the button
// that helps. What `unstuck why` says, and nothing else.

import * as actions from "../lib/actions.js";
import { html } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { Acts, Card, Command, JobLink, When } from "./basic.js";
import { Icon } from "./icons.js";

const CALM = new Set(["running", "claimable", "ended", "runs_alone", "others_first", "lower_priority", "workers_full"]);
const ENGINE = new Set(["the engine", "nobody"]);

// The actions that a reason offers, by its code.
const HELP = {
  held: (job) => [actions.release(job)],
  waiting_dependencies: (job) => [actions.release(job, true)],
  scheduled: (job) => [actions.runNow(job)],
  retry_backoff: (job) => [actions.runNow(job)],
  paused: (job) => [actions.resume(job)],
  queue_paused: (job, { details }) => [actions.unpause("queue", job.queue, details.tenant ?? job.tenant)],
  workflow_paused: (job, { details }) => [actions.unpause("workflow", job.workflow, details.tenant ?? job.tenant)],
  target_paused: (job) => [actions.unpause("target", job.target, job.tenant)],
  tenant_paused: (job) => [actions.unpause("tenant", job.tenant)],
  quarantined: (job) => [actions.retryAside(job.id, job.tenant)],
  lower_priority: (job) => [actions.reprioritise(job)],
  blacklisted: (job, { details }) => [
    actions.lift({ workflow: details.workflow ?? job.workflow, tenant: details.tenant ?? job.tenant, reason: details.reason ?? "", blacklisted_by: details.by }),
  ],
  waiting_event: (job, _, whole) => (whole?.waits ?? []).filter((wait) => wait.kind === "event" && !wait.answer && wait.event).map((wait) => actions.sendEvent(job, wait.event)),
  waiting_approval: (job, _, whole) =>
    (whole?.waits ?? [])
      .filter((wait) => wait.kind === "approval" && !wait.answer)
      .flatMap((wait) => [actions.approve({ ...wait, tenant: job.tenant }), actions.reject({ ...wait, tenant: job.tenant })]),
  target_blocked: (job, _, whole) => {
    if (!whole?.blocked_by) return [];
    const blocker = { id: whole.blocked_by, tenant: job.tenant, workflow: "the job that blocks it", target: job.target };
    return [actions.resume(blocker), actions.skip(blocker)];
  },
  ended: (job) => (job.is_blocker ? [actions.resume(job), actions.skip(job), actions.resolve(job)] : ["FAILED", "TIMEOUT", "CANCELLED"].includes(job.state) ? [actions.resume(job), actions.retry(job)] : []),
  dead: (job, { details }) => {
    const letter = { job: job.id, tenant: job.tenant, reason: details.reason };
    return letter.reason ? [actions.resign(letter), actions.redrive(letter), actions.discard(letter)] : []; // it may be gone
  },
};

const LINKS = {
  target_blocked: (job) => [href(["targets", job.target]), `target ${job.target}`],
  target_busy: (job) => [href(["targets", job.target]), `target ${job.target}`],
  no_worker: () => [href(["workers"]), "workers"],
  worker_lacks_code: () => [href(["workers"]), "workers"],
  app_not_loaded: () => [href(["workers"]), "workers"],
  workers_full: () => [href(["workers"]), "workers"],
  workers_draining: () => [href(["workers"]), "workers"],
  concurrency_limit: (job) => [href(["jobs"], { q: `state:RUNNING ${term("workflow", job.workflow)}` }), "what runs"],
};

export const Why = ({ why, job }) => {
  const [first] = why.reasons;
  const isCalm = why.is_runnable || (first && CALM.has(first.code) && !["FAILED", "TIMEOUT"].includes(why.state));
  const tone = isCalm ? "good" : first?.code === "waiting_approval" ? "warn" : first && ENGINE.has(first.actor) && why.state !== "FAILED" ? "busy" : "bad";
  return html`<${Card} tone=${`why ${tone}`} id="why">
    <p class="verdict"><${Icon} name=${{ good: "check", busy: "clock", warn: "hand", bad: "stuck" }[tone]} />${why.verdict}</p>
    <ul class="reasons">${why.reasons.map((reason, place) => html`<${Reason} key=${place} reason=${reason} job=${job} isOnly=${why.reasons.length === 1 && why.verdict.includes(reason.sentence)} />`)}</ul>
  <//>`;
};

const Reason = ({ reason, job, isOnly }) => {
  const help = HELP[reason.code]?.(job, reason, job) ?? [];
  const [address, name] = LINKS[reason.code]?.(job) ?? [];
  return html`<li class="reason" data-code=${reason.code}>
    ${!isOnly && html`<p>${reason.sentence}</p>`}
    <p class="reason-facts dim">
      <code>${reason.code}</code>
      ${reason.since_at && html`<span>since <${When} at=${reason.since_at} /></span>`}
      ${reason.until_at && html`<span>until <${When} at=${reason.until_at} /></span>`}
      <span>${reason.actor === "nobody" ? "nobody has to act" : html`acts: <b>${reason.actor}</b>`}</span>
      ${job.blocked_by && reason.code === "target_blocked" && html`<span>blocked by <${JobLink} id=${job.blocked_by} tenant=${job.tenant} /></span>`}
      ${address && html`<a href=${address}>${name}</a>`}
    </p>
    <div class="reason-help"><${Acts} actions=${help} />${reason.remedy && html`<${Command} text=${reason.remedy} />`}</div>
  </li>`;
};
