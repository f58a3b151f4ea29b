// Dead letters: jobs that were never run, or never will be, each with its reason and what can be done.

import { ofTenant } from "../lib/command.js";
import * as actions from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { facts, meaning, tone } from "../lib/events.js";
import { usePages } from "../lib/paging.js";
import { href, requery } from "../lib/router.js";
import { atLeast, oneLine, pretty } from "../lib/text.js";
import { Acts, Answer, Card, Empty, Facts, Folded, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const REASONS = [
  "exhausted", "set_aside", "missing", "altered", "unreadable", "unknown_key", "foreign_key", "wrong_purpose", "not_yet", "too_early",
  "expired", "lives_too_long", "key_ended", "revoked",
];
const possible = (letter) => [actions.redrive(letter), ...(actions.isUnsigned(letter) ? [actions.resign(letter)] : []), actions.discard(letter)];

const COLUMNS = [
  ["Job", (each) => html`<a href=${href(["dead-letters", each.job], ofTenant(each.tenant))}><b class="workflow">${each.workflow}</b><span class="dim">${each.job.slice(-8)}</span></a>`, "job"],
  ["Reason", (each) => html`<${Pill} tone="bad" title=${each.meaning}>${each.reason}<//>`, "narrow"],
  ["What happened", (each) => html`<span class="error-text">${oneLine(each.message, 140)}</span>`, "what"],
  ["Since", (each) => html`<${When} at=${each.since_at} />`, "narrow"],
  ["Kept until", (each) => html`<${When} at=${each.until_at} none="it can be written" />`, "narrow"],
  ["", (each) => html`<${Acts} actions=${possible(each)} />`, "right"],
];

export const DeadLetters = ({ words, query }) => (words[0] === "dead-letters" && words[1] ? html`<${Letter} id=${words[1]} query=${query} />` : html`<${All} query=${query} />`);

const All = ({ query }) => {
  const reason = query.get("reason") ?? "";
  const wanted = reason ? { reason } : {};
  const pages = usePages(["dead-letters"], wanted, { keyOf: (each) => each.job, wakes: (event) => ["dead_letter.added", "redriven", "buried"].includes(event.kind) });
  const counted = useAsked(["dead-letters", "count"], wanted, { wakes: (event) => ["dead_letter.added", "redriven"].includes(event.kind), pace: 3000 });
  return html`<${Screen} title="Dead letters" lead="Jobs that the engine gave up on, kept for a person: a bad signature, no try left, or something that cannot be written." wide=${true}>
    <p><label class="inline"><span>Reason</span><select value=${reason} onChange=${(event) => requery({ reason: event.target.value }, { replace: false })}>
      <option value="">every reason</option>${REASONS.map((each) => html`<option key=${each} value=${each}>${each.replaceAll("_", " ")}</option>`)}</select></label></p>
    <${Listed} pages=${pages} head=${counted.data && html`<span class="dim">${atLeast(counted.data.number, !counted.data.exact)} in all</span>`} empty=${html`<${Empty} title="No dead letters">Nothing was given up on.<//>`}>
      ${(rows) => html`<${Table} label="Dead letters" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.job} open=${true} />`}<//>
  <//>`;
};

const Letter = ({ id, query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const asked = useAsked(["dead-letters", id], whose, { wakes: (event) => event.job === id });
  return html`<${Answer} of=${asked}>${(letter) => html`<${Screen} title=${html`${letter.workflow} <${Pill} tone="bad">${letter.reason}<//>`} lead=${letter.meaning} actions=${html`<${Acts} small=${false} actions=${possible(letter)} />`}>
    <${Card} tone="why bad"><p class="verdict">${letter.message}</p><p class="dim">since <${When} at=${letter.since_at} />; ${letter.until_at ? html`forgotten <${When} at=${letter.until_at} />` : "kept until it can be written"}. <${JobLink} id=${letter.job} tenant=${letter.tenant}>Its job<//></p><//>
    <div class="pair">
      <${Card} title="What it was given"><${Folded} text=${pretty(letter.args.length ? { args: letter.args, kwargs: letter.kwargs } : letter.kwargs)} label="arguments" /><//>
      <${Card} title="Envelope"><${Facts} facts=${[["Queue", letter.queue], ["Target", letter.target], ["Priority", String(letter.priority)], ["Key", letter.key], ["Submitted", html`<${When} at=${letter.created_at} />`]]} />${letter.signature == null ? html`<p class="dim">It is not signed.</p>` : html`<${Folded} text=${pretty(letter.signature)} label="signature" />`}<//>
    </div>
    <${Card} title="History"><ol class="history">${[...letter.history].reverse().map((event) => html`<li key=${event.number}><span class="dot ${tone(event.kind)}"></span><${When} at=${event.at} /><b>${meaning(event.kind)}</b><span class="dim history-facts">${oneLine(facts(event), 260)}</span></li>`)}</ol><//>
  <//>`}<//>`;
};
