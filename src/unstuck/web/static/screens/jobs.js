// Jobs: one search line, the page of jobs that it means, and verbs over all of them.

import * as actions from "../lib/actions.js";
import { about, get } from "../lib/api.js";
import { useAsked } from "../lib/asked.js";
import { command, ofTenant } from "../lib/command.js";
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { go, href, requery } from "../lib/router.js";
import { meant, QUALIFIERS, STATES, term } from "../lib/search.js";
import { may } from "../lib/session.js";
import { atLeast, count, oneLine } from "../lib/text.js";
import { ms } from "../lib/time.js";
import { Empty, JobLink, Loading, Screen, State, Table, Trouble, When } from "../parts/basic.js";
import { Icon } from "../parts/icons.js";
import { Progress } from "../parts/bulk.js";
import { Renew } from "../parts/listed.js";

const TABS = [
  ["All", ""], ["Running", "state:RUNNING"], ["Queued", "state:QUEUED"], ["Waiting", "state:WAITING"], ["Blocked", "state:BLOCKED"],
  ["Failed", "state:FAILED"], ["Stuck", "error:ExecutionStuck"], ["Timed out", "state:TIMEOUT"], ["Completed", "state:COMPLETED"],
];

// Without the command that follows: the job's own page has a button for it.
const inShort = (meaning) => meaning.replace(/[;:][^;:]*:? ?unstuck [\s\S]*$/, "");

export const COLUMNS = [
  ["State", (job) => html`<${State} state=${job.shown_state} />`, "narrow"],
  ["Job", (job) => html`<${JobLink} id=${job.id} tenant=${job.tenant}><b class="workflow">${job.workflow}</b><span class="dim">${job.id.slice(-8)}</span><//>`, "job"],
  ["Target", (job) => (job.target ? html`<a href=${href(["targets", job.target])}>${job.target}</a>` : html`<span class="dim">–</span>`)],
  ["Queue", (job) => job.queue, "short less"],
  ["Submitted", (job) => html`<${When} at=${job.created_at} />`, "narrow"],
  ["Took", (job) => (job.duration_ms == null ? html`<span class="dim">–</span>` : ms(job.duration_ms)), "narrow right"],
  ["Tries", (job) => (job.attempts > 1 ? html`<b>${job.attempts}</b>` : String(job.attempts)), "narrow right less"],
  ["What", (job) => html`<span class=${job.error_type ? "error-text" : "dim"} title=${job.error_message ?? job.meaning}>${oneLine(job.error_type ? `${job.error_type}: ${job.error_message ?? ""}` : inShort(job.meaning), 90)}</span>`, "what"],
];

// Shown beside them, if the address says so.
const MORE = {
  worker: ["Worker", (job) => job.worker ?? html`<span class="dim">–</span>`, "short"],
  priority: ["Priority", (job) => String(job.priority), "narrow right"],
  tags: ["Tags", (job) => job.tags.join(", ") || html`<span class="dim">–</span>`],
  tenant: ["Tenant", (job) => job.tenant, "short"],
  due: ["Due", (job) => html`<${When} at=${job.available_at} />`, "narrow"],
  started: ["Started", (job) => html`<${When} at=${job.started_at} />`, "narrow"],
  ended: ["Ended", (job) => html`<${When} at=${job.finished_at} />`, "narrow"],
  key: ["Key", (job) => (job.key ? html`<code>${job.key}</code>` : html`<span class="dim">–</span>`)],
};

export const Jobs = ({ query }) => {
  const text = query.get("q") ?? "";
  const found = meant(text);
  const chosen = (query.get("columns") ?? "").split(",").filter((name) => name in MORE);
  return html`<${Screen} title="Jobs" wide=${true}>
    <${Search} text=${text} problems=${found.problems} />
    <div class="tabs" role="group" aria-label="Common searches">${TABS.map(
      ([label, q]) => html`<a key=${label} class="button small" aria-current=${q === text ? "true" : undefined} href=${href(["jobs"], { q, columns: chosen.join() })}>${label}</a>`,
    )}</div>
    ${found.problems.length ? html`<${Trouble} problem=${{ title: "This search cannot be read", detail: found.problems.join("; "), remedy: "correct it above, or begin with one of the searches" }} />` : html`<${List} key=${text} found=${found} chosen=${chosen} />`}
  <//>`;
};

// --- the search line ----------------------------------------------------------------------------------------------

const Search = ({ text, problems }) => {
  const [typed, setTyped] = useState(text);
  const [isOpen, setOpen] = useState(false);
  const input = useRef(null);
  const workflows = useAsked(["workflows"], {}, { skip: !isOpen });
  useEffect(() => setTyped(text), [text]);
  const search = (value) => {
    const { job } = meant(value);
    if (job && !value.trim().includes(" ")) go(href(["jobs", value.trim()]));
    else requery({ q: value.trim() }, { replace: false });
  };
  const submit = (event) => {
    event.preventDefault();
    setOpen(false);
    search(typed);
  };
  const choose = (whole) => {
    const words = typed.split(/\s+/).filter(Boolean);
    const last = words.at(-1) ?? "";
    const isPart = !typed.endsWith(" ") && whole.toLowerCase().startsWith(last.toLowerCase());
    const next = [...(isPart ? words.slice(0, -1) : words), whole].join(" ");
    setTyped(next);
    input.current.focus();
    if (!whole.endsWith(":") && !whole.endsWith(".")) search(next);
  };
  return html`<form class="search" role="search" onSubmit=${submit} onFocusOut=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <${Icon} name="search" />
    <input ref=${input} data-search type="search" aria-label="Search jobs" aria-invalid=${problems.length ? "true" : undefined} autocomplete="off" spellcheck=${false}
      placeholder="state:FAILED workflow:deliver older:10m, or the id of a job" value=${typed}
      onFocus=${() => setOpen(true)} onInput=${(event) => (setTyped(event.target.value), setOpen(true))} />
    <kbd class="hint">/</kbd>
    <button type="submit" class="primary">Search</button>
    ${isOpen && html`<${Suggestions} typed=${typed} workflows=${workflows.data?.items ?? []} choose=${choose} />`}
  </form>`;
};

const Suggestions = ({ typed, workflows, choose }) => {
  const last = typed.endsWith(" ") ? "" : (typed.split(/\s+/).at(-1) ?? "");
  const [name, part] = last.includes(":") ? [last.slice(0, last.indexOf(":")), last.slice(last.indexOf(":") + 1)] : [null, last];
  const fits = (value) => value.toLowerCase().includes(part.toLowerCase());
  let found;
  if (name === "state" || name === "is") found = STATES.filter(fits).map((state) => [term("state", state), ""]);
  else if (name === "workflow") found = workflows.map((each) => each.name).filter(fits).slice(0, 12).map((each) => [term("workflow", each), ""]);
  else if (name === "error") found = ["ExecutionStuck", "TimeoutError", "ProcessDied", "BudgetExceeded"].filter(fits).map((each) => [term("error", each), ""]);
  else if (name !== null) found = [];
  else found = QUALIFIERS.filter(([each]) => each.startsWith(part)).map(([each, text]) => [each.endsWith(".") ? each : `${each}:`, text]);
  if (!found.length) return null;
  return html`<ul class="suggestions">${found.map(
    ([whole, text]) => html`<li key=${whole}><button type="button" class="bare" onClick=${() => choose(whole)}><code>${whole}</code><span class="dim">${text}</span></button></li>`,
  )}</ul>`;
};

// --- the list -----------------------------------------------------------------------------------------------------

const List = ({ found, chosen }) => {
  const pages = usePages(["jobs"], found.query, { keyOf: (job) => job.id, wakes: (event) => event.number != null });
  const isFiltered = Object.keys(found.query).length > 0;
  if (pages.rows === undefined) return pages.problem ? html`<${Trouble} problem=${pages.problem} again=${pages.reload} />` : html`<${Loading} rows=${8} />`;
  return html`
    <div class="list-head">
      <span class="dim">${pages.rows.length ? `${count(pages.rows.length)}${pages.next ? "+" : ""} shown` : ""}${found.query.argument && pages.looked ? `, looked at ${count(pages.looked)}` : ""}</span>
      <${Renew} pages=${pages} one="new job" many="new jobs" />
      <span class="list-menus">${isFiltered && html`<${Verbs} found=${found} />`}<${Columns} chosen=${chosen} /></span>
    </div>
    ${pages.problem && html`<${Trouble} problem=${pages.problem} again=${pages.reload} />`}
    ${pages.rows.length ? html`<${Table} label="Jobs" columns=${[...COLUMNS.slice(0, -1), ...chosen.map((name) => MORE[name]), COLUMNS.at(-1)]} rows=${pages.rows} keyOf=${(job) => job.id} open=${true} />` : html`<${None} isFiltered=${isFiltered} next=${pages.next} />`}
    ${pages.next && html`<div class="more"><button type="button" onClick=${pages.more} disabled=${pages.isMore}>${pages.isMore ? "…" : "Show more"}</button></div>`}
    <${Running} />`;
};

const Columns = ({ chosen }) => {
  const [isOpen, setOpen] = useState(false);
  const turn = (name) => requery({ columns: (chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]).join() });
  return html`<span class="menu-frame" onFocusOut=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <button type="button" class="small" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Columns <${Icon} name="down" /></button>
    ${isOpen && html`<ul class="menu">${Object.entries(MORE).map(([name, [title]]) => html`<li key=${name}><button type="button" class="bare" aria-pressed=${chosen.includes(name)} onClick=${() => turn(name)}><${Icon} name=${chosen.includes(name) ? "check" : "dot"} />${title}</button></li>`)}</ul>`}
  </span>`;
};

const None = ({ isFiltered, next }) => {
  if (next) return html`<${Empty} title="None among these" icon="search">A search by argument looks at some thousand jobs at a time: there are more to look at.<//>`;
  if (isFiltered) return html`<${Empty} title="No job is like that" icon="search">Take something out of the search, or <a href=${href(["jobs"])}>show all jobs</a>. Jobs that ended long ago are forgotten.<//>`;
  return html`<${Empty} title="No jobs yet" icon="jobs">Enqueue one: <code>unstuck enqueue WORKFLOW --app MODULE:APP</code>, or run one from <a href=${href(["workflows"])}>Workflows</a>.<//>`;
};

// --- verbs over the filter ----------------------------------------------------------------------------------------

const VERBS = [
  ["retry", "Retry", "from their start"], ["resume", "Resume", "finished steps are kept"], ["cancel", "Cancel", "for good"],
  ["interrupt", "Pause", "until they are resumed"], ["release", "Release", "those that were held"], ["skip", "Skip", "targets go on without them"],
];
const MANY = 100;

const Verbs = ({ found }) => {
  const [isOpen, setOpen] = useState(false);
  if (!may("bulks.start")) return null;
  const start = async (verb, label) => {
    setOpen(false);
    const counted = await get(["bulks", "count"], about(found.query)).catch(actions.tell);
    if (counted) actions.begin(bulk(verb, label, found, counted));
  };
  return html`<span class="menu-frame" onFocusOut=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <button type="button" class="small" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Act on all that match <${Icon} name="down" /></button>
    ${isOpen && html`<ul class="menu">${VERBS.map(([verb, label, text]) => html`<li key=${verb}><button type="button" class="bare" onClick=${() => start(verb, label)}><b>${label}</b><span class="dim">${text}</span></button></li>`)}</ul>`}
  </span>`;
};

const bulk = (verb, label, found, counted) => {
  const number = atLeast(counted.number, !counted.exact);
  const { argument, ...query } = found.query;
  const whose = about();
  return {
    operation: "bulks.start",
    label,
    tone: ["cancel", "skip"].includes(verb) ? "bad" : "",
    path: ["bulks"],
    query: whose,
    confirm: {
      title: `${label} ${number} ${counted.number === 1 ? "job" : "jobs"}?`,
      text: counted.number ? "Workers do it, some hundred at a time; jobs that have moved on by then are left alone. It can be stopped on its way, but what is done stays done." : "No job matches now. Nothing would happen.",
      yes: `${label} ${number}`,
    },
    proof: counted.number > MANY ? String(counted.number) : null,
    fields: ["cancel", "interrupt"].includes(verb) ? [{ name: "reason", label: "Reason", hint: "kept in each history", optional: true }] : undefined,
    body: (values) => ({
      verb, ...query, ...(argument ? { argument: JSON.parse(argument) } : {}), ...(counted.exact ? { expected: counted.number } : {}), ...(values.reason ? { reason: values.reason } : {}),
    }),
    command: (values) => command(`jobs ${verb}`, [], { ...found.flags, ...(values.reason ? { reason: values.reason } : {}), ...ofTenant(whose.tenant), yes: true }),
    done: (answer) => `bulk ${answer.number} is under way: ${verb} ${number} jobs`,
  };
};

// Bulks under way, or that ended a moment ago.
const Running = () => {
  const bulks = useAsked(["bulks"], { state: "RUNNING", limit: 5 }, { every: 5000 });
  const items = bulks.data?.items ?? [];
  if (!items.length) return null;
  return html`<div class="bulk-dock">${items.map((each) => html`<${Progress} key=${each.number} number=${each.number} tenant=${each.tenant} />`)}</div>`;
};
