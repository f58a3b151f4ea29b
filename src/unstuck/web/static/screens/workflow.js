// One workflow: how it goes, its breaker, what it takes, and a form to run it.

import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { count, plural, pretty } from "../lib/text.js";
import { duration, ms } from "../lib/time.js";
import { Acts, Answer, Card, Facts, Folded, JobLink, Pill, Screen, When } from "../parts/basic.js";
import { RunForm } from "../parts/run_form.js";
import { whyListed } from "./blacklist.js";
import { percentile, useRates } from "./workflows.js";

export const Workflow = ({ words: [, name], query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const asked = useAsked(["workflows", name], whose, { wakes: (event) => event.workflow === name && event.kind.includes("."), pace: 2000 });
  return html`<${Answer} of=${asked}>${(workflow) => html`<${Whole} workflow=${workflow} />`}<//>`;
};

const Whole = ({ workflow }) => {
  const { rates, buckets } = useRates(workflow.name);
  const rate = rates.get(workflow.name);
  const told = (part, share) => (rate ? ms(percentile(buckets, rate[part], share)) : "–");
  const isPaused = workflow.pauses.length > 0;
  return html`<${Screen} title=${workflow.name} lead=${workflow.doc}
    actions=${html`<${Acts} small=${false} actions=${[isPaused ? actions.unpause("workflow", workflow.name) : actions.pause("workflow", workflow.name)]} />`}>
    <div class="pair">
      <${Card} title="In the last hour"><${Facts} facts=${[
        ["Ended", html`<a href=${href(["jobs"], { q: term("workflow", workflow.name) })}>${count(rate?.ended ?? 0)}</a>`],
        ["Succeeded", rate?.ended ? `${Math.round((1000 * rate.completed) / rate.ended) / 10} %` : "–"],
        ["Run p50 / p95 / p99", `${told("run", 0.5)} / ${told("run", 0.95)} / ${told("run", 0.99)}`],
        ["Wait p50 / p95 / p99", `${told("wait", 0.5)} / ${told("wait", 0.95)} / ${told("wait", 0.99)}`],
      ]} /><p class="dim">Percentiles are upper bounds of their bucket.</p><//>
      <${Breaker} name=${workflow.name} />
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

// The breaker: the stuck runs of the window that counts, as dots that age out, and whether it has tripped.
const Breaker = ({ name }) => {
  const settings = useAsked(["settings"], {}, {});
  const blacklist = useAsked(["blacklist"], {}, { wakes: (event) => event.kind.startsWith("blacklist.") });
  const history = useAsked(["blacklist", "history"], { workflow: name, limit: 10 }, { wakes: (event) => event.kind.startsWith("blacklist.") });
  const stuck = useAsked(["jobs"], { workflow: name, error_type: "ExecutionStuck", limit: 20 }, { wakes: (event) => event.kind === "stuck" && event.workflow === name });
  const value = (part) => settings.data?.items.find((each) => each.name.includes("breaker") && each.name.includes(part))?.value;
  const threshold = value("threshold");
  const entry = blacklist.data?.items.find((each) => each.workflow === name);
  const items = stuck.data?.items ?? [];
  return html`<${Card} title="Breaker" tone=${entry ? "bad" : ""} note=${entry ? "open" : "closed"} actions=${html`<${Acts} actions=${[entry ? actions.lift(entry) : actions.blacklist(name)]} />`}>
    <p>${entry ? html`<${Pill} tone="bad">on the blacklist<//> since <${When} at=${entry.blacklisted_at} />: ${whyListed(entry)}` : html`<${Pill} tone="good">runs<//> ${threshold != null ? `${plural(threshold, "stuck run")} within ${duration((value("window") ?? 0) * 60)} shut it out` : ""}`}</p>
    <p class="dots" aria-label=${plural(items.length, "stuck run")}>${items.length ? items.map((job) => html`<${JobLink} key=${job.id} id=${job.id} tenant=${job.tenant}><span class="dot bad"></span><${When} at=${job.finished_at} /><//>`) : html`<span class="dim">No run of it is known to have got stuck.</span>`}</p>
    ${(history.data?.items.length ?? 0) > 0 && html`<details><summary>Trips and lifts</summary><ul>${history.data.items.map((each) => html`<li key=${each.number}><${When} at=${each.blacklisted_at} /> ${whyListed(each)}${each.removed_at && html`; lifted <${When} at=${each.removed_at} /> by ${each.removed_by}`}</li>`)}</ul></details>`}
  <//>`;
};
