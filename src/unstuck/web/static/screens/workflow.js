// One workflow: how it goes, its breaker, what it takes, and a form to run it.

import * as actions from "../lib/actions.js";
import { about } from "../lib/api.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { count, plural, pretty } from "../lib/text.js";
import { duration, ms, now } from "../lib/time.js";
import { Acts, Answer, Card, Facts, Folded, JobLink, Pill, Screen, When } from "../parts/basic.js";
import { RunForm } from "../parts/run_form.js";
import { whyListed } from "./blacklist.js";
import { percentile, useRates } from "./workflows.js";

// What may count against it.
const HARMFUL = new Set(["stuck", "lost", "retried", "failed"]);

export const Workflow = ({ words: [, name], query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const asked = useAsked(["workflows", name], whose, { wakes: (event) => event.workflow === name && (event.kind.includes(".") || HARMFUL.has(event.kind)), every: 30_000, pace: 2000 });
  return html`<${Answer} of=${asked}>${(workflow) => html`<${Whole} workflow=${workflow} />`}<//>`;
};

const Whole = ({ workflow }) => {
  const { rates, buckets } = useRates(workflow.name);
  const rate = rates.get(workflow.name);
  const told = (part, share) => (rate ? ms(percentile(buckets, rate[part], share)) : "–");
  const isPaused = workflow.pauses.length > 0;
  return html`<${Screen} title=${workflow.name} lead=${workflow.doc}
    actions=${html`<${Acts} small=${false} actions=${[isPaused ? actions.unpause("workflow", workflow.name, about().tenant, workflow.pauses) : actions.pause("workflow", workflow.name, about().tenant)]} />`}>
    <div class="pair">
      <${Card} title="In the last hour"><${Facts} facts=${[
        ["Ended", html`<a href=${href(["jobs"], { q: term("workflow", workflow.name) })}>${count(rate?.ended ?? 0)}</a>`],
        ["Succeeded", rate?.ended ? `${Math.round((1000 * rate.completed) / rate.ended) / 10} %` : "–"],
        ["Run p50 / p95 / p99", `${told("run", 0.5)} / ${told("run", 0.95)} / ${told("run", 0.99)}`],
        ["Wait p50 / p95 / p99", `${told("wait", 0.5)} / ${told("wait", 0.95)} / ${told("wait", 0.99)}`],
      ]} /><p class="dim">Percentiles are upper bounds of their bucket.</p><//>
      <${Breaker} workflow=${workflow} />
    </div>
    <${Card} title="Run it" id="run"><${RunForm} workflow=${workflow} /><//>
    <div class="pair">
      <${Card} title="How it runs"><${Facts} facts=${[
        ["Queue", workflow.queue], ["Target", workflow.target], ["Code", html`<code>${workflow.code_version}</code>`], ["Registered", html`<${When} at=${workflow.registered_at} />`],
        ["Time limit", workflow.policy.timeout === "unlimited" ? "none" : ms((workflow.policy.timeout ?? 0) * 1000)], ["Grace", ms((workflow.policy.grace ?? 0) * 1000)],
        ["Retries", String(workflow.policy.retries ?? 0)], ["Isolation", workflow.policy.isolation], ["At once", workflow.concurrency != null && String(workflow.concurrency)], ["Rate", workflow.rate],
        ["Redacted", workflow.redact.length > 0 && workflow.redact.join(", ")],
        ["Paused", isPaused && workflow.pauses.map((pause) => `by ${pause.by}${pause.reason ? `: ${pause.reason}` : ""}`).join("; ")],
        ["Limits", workflow.limits.length > 0 && workflow.limits.map((limit) => `${limit.concurrency ?? "any"} at once${limit.rate ? `, ${limit.rate} per ${limit.per} s` : ""}`).join("; ")],
      ]} /><//>
      <${Card} title="What it takes"><${Folded} text=${pretty(workflow.schema)} label="schema" /><//>
    </div>
  <//>`;
};

// The breaker: what counts against the workflow in its window, as dots that fade until they have left it.
const HARMS = { stuck: "got stuck", freeze: "froze its process", crash: "took its process down", loss: "was lost with its worker" };

const Breaker = ({ workflow }) => {
  const { name, breaker } = workflow;
  const wakes = (event) => event.kind.startsWith("blacklist.");
  const blacklist = useAsked(["blacklist"], {}, { wakes });
  const history = useAsked(["blacklist", "history"], { workflow: name, limit: 10 }, { wakes });
  const entry = blacklist.data?.items.find((each) => each.workflow === name);
  const lasts = breaker.window * 1000;
  const marks = breaker.marks.filter((mark) => Date.parse(mark.until_at) > now.value);
  const left = (mark) => Math.max(0.25, (Date.parse(mark.until_at) - now.value) / lasts);
  const rule = breaker.threshold ? `${plural(breaker.threshold, "run")} that got stuck within ${duration(breaker.window)} shut it out` : "However many of its runs get stuck, they do not shut it out";
  return html`<${Card} title="Breaker" id="breaker" tone=${entry ? "bad" : ""} note=${entry ? "open" : "closed"} actions=${html`<${Acts} actions=${[entry ? actions.lift(entry) : actions.blacklist(name, about().tenant)]} />`}>
    <p>${entry ? html`<${Pill} tone="bad">on the blacklist<//> ${entry.tenant === "*" ? "for every tenant " : ""}since <${When} at=${entry.blacklisted_at} />: ${whyListed(entry)}` : html`<${Pill} tone="good">runs<//> ${rule}.`}</p>
    <p><b>${breaker.threshold ? `${count(breaker.number)} of ${count(breaker.threshold)}` : count(breaker.number)}</b> ${breaker.number === 1 ? "counts" : "count"} now${marks.length > breaker.number ? html` <span class="dim">(one freeze alone counts nothing: another job may have caused it)</span>` : ""}</p>
    <ul class="dots" aria-label="What counts against it">${marks.map(
      (mark, place) => html`<li key=${place}><span class="dot bad" style=${{ opacity: left(mark) }}></span>${mark.job ? html`<${JobLink} id=${mark.job} />` : html`<span class="dim">a job that is forgotten</span>`} ${HARMS[mark.harm] ?? mark.harm} <${When} at=${mark.at} /><span class="dim">, counts no more <${When} at=${mark.until_at} /></span></li>`,
    )}</ul>
    ${(history.data?.items.length ?? 0) > 0 && html`<details><summary>Trips and lifts</summary><ul>${history.data.items.map((each) => html`<li key=${each.number}><${When} at=${each.blacklisted_at} /> ${whyListed(each)}${each.removed_at && html`; lifted <${When} at=${each.removed_at} /> by ${each.removed_by}`}</li>`)}</ul></details>`}
  <//>`;
};
