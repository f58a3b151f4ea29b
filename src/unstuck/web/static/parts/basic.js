// The small things every screen is made of.

import { ofTenant } from "../lib/command.js";
import { commandOf, begin, copy } from "../lib/actions.js";
import { html, useState } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { may } from "../lib/session.js";
import { shortId, size } from "../lib/text.js";
import { exact, now, relative } from "../lib/time.js";
import { Icon } from "./icons.js";

export const When = ({ at, none = "–" }) =>
  at ? html`<time datetime=${at} title=${exact(at)}>${relative(at, now.value)}</time>` : html`<span class="dim">${none}</span>`;

const ICONS = {
  COMPLETED: "check", FAILED: "cross", TIMEOUT: "clock", CANCELLED: "stop", DEAD: "skull", STUCK: "stuck",
  RUNNING: "play", CANCELLING: "stop", WAITING: "hand", PAUSED: "pause", QUEUED: "line", SCHEDULED: "clock",
  RETRYING: "again", BLOCKED: "block", PENDING: "hold",
};

export const State = ({ state }) =>
  html`<span class="state" data-state=${state}><${Icon} name=${ICONS[state] ?? "dot"} />${state}</span>`;

export const Pill = ({ tone = "calm", children, title }) => html`<span class="pill ${tone}" title=${title}>${children}</span>`;

export const JobLink = ({ id, tenant, children }) =>
  html`<a class="mono" href=${href(["jobs", id], ofTenant(tenant))} title=${id}>${children ?? shortId(id)}</a>`;

// Shift and click copies the command instead of doing it.
export const Act = ({ action, small = false, primary = false, label }) => {
  if (!may(action.operation, action.role)) return null;
  const click = (event) => {
    event.stopPropagation();
    if (event.shiftKey) copy(commandOf(action), "Command copied");
    else begin(action);
  };
  const look = `${primary ? "primary" : ""} ${small ? "small" : ""} ${action.tone === "bad" ? "danger" : ""}`;
  const ask = action.confirm || action.fields;
  return html`<button type="button" class=${look} data-operation=${action.operation} onClick=${click}
    title=${`${ask ? "Asks first. " : ""}Shift+click copies: ${commandOf(action)}`}>${label ?? action.label}</button>`;
};

export const Acts = ({ actions, small = true }) => html`<span class="acts">${actions.map(
  (action) => html`<${Act} key=${action.label} action=${action} small=${small} />`,
)}</span>`;

export const Copy = ({ text, label = "Copy", what }) =>
  html`<button type="button" class="bare" onClick=${() => copy(text, what ?? "Copied")} aria-label=${`${label}: ${text.slice(0, 80)}`} title=${label}><${Icon} name="copy" /></button>`;

export const Command = ({ text }) =>
  html`<span class="command"><code>${text}</code><${Copy} text=${text} label="Copy the command" what="Command copied" /></span>`;

// --- what stands where there is nothing ---------------------------------------------------------------------------

export const Empty = ({ title, children, icon = "check" }) =>
  html`<div class="empty"><${Icon} name=${icon} /><p class="empty-title">${title}</p><div>${children}</div></div>`;

export const Loading = ({ rows = 3 }) =>
  html`<div class="loading" role="status" aria-label="Loading">${Array.from({ length: rows }, (_, place) => html`<div key=${place} class="bone"></div>`)}</div>`;

export const Trouble = ({ problem, again }) =>
  html`<div class="trouble" role="alert">
    <p class="trouble-title"><${Icon} name="cross" />${problem.title || "It did not work"}</p>
    <p>${problem.detail}</p>
    ${problem.remedy && html`<p class="dim">What to do: ${problem.remedy}</p>`}
    ${problem.request && html`<p class="dim">Request <code>${problem.request}</code></p>`}
    ${again && html`<button type="button" class="small" onClick=${again}>Try again</button>`}
  </div>`;

// Of an answer: what is there, what is missing, or what went wrong. Old data stays while the server is away.
export const Answer = ({ of, children, rows }) => {
  if (of.data !== undefined) return html`${of.problem && html`<${Trouble} problem=${of.problem} again=${of.reload} />`}${children(of.data)}`;
  return of.problem ? html`<${Trouble} problem=${of.problem} again=${of.reload} />` : html`<${Loading} rows=${rows} />`;
};

// --- text that may be long ----------------------------------------------------------------------------------------

const LINES = 40;
const CHARACTERS = 6000;
const MORE = 200_000;

export const Folded = ({ text, label = "text", kind = "code" }) => {
  const [shown, show] = useState(0);
  const whole = text ?? "";
  const most = shown ? shown : CHARACTERS;
  let cut = whole.length > most ? whole.slice(0, most) : whole;
  if (!shown) {
    const lines = cut.split("\n");
    if (lines.length > LINES) cut = lines.slice(0, LINES).join("\n");
  }
  const isCut = cut.length < whole.length;
  return html`<div class="folded">
    <pre class=${kind} tabindex="0" aria-label=${label}>${cut}${isCut ? "…" : ""}</pre>
    <span class="corner"><${Copy} text=${whole} label=${`Copy the ${label}`} /></span>
    ${(isCut || shown > 0) && html`<div class="folded-foot">
      ${isCut && html`<button type="button" class="small" onClick=${() => show(shown ? shown + MORE : MORE)}>Show more of ${size(whole.length)}</button>`}
      ${shown > 0 && html`<button type="button" class="small" onClick=${() => show(0)}>Fold</button>`}
    </div>`}
  </div>`;
};

// --- screens ------------------------------------------------------------------------------------------------------

export const Screen = ({ title, lead, actions, children, wide = false }) =>
  html`<div class="screen ${wide ? "wide" : ""}">
    <header class="screen-head">
      <div><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${actions && html`<div class="acts">${actions}</div>`}
    </header>
    ${children}
  </div>`;

export const Card = ({ title, note, actions, children, id, tone = "" }) =>
  html`<section class="card ${tone}" id=${id} aria-label=${typeof title === "string" ? title : undefined}>
    ${title && html`<header class="card-head"><h2>${title}</h2>${note && html`<span class="dim">${note}</span>`}${actions && html`<span class="acts">${actions}</span>`}</header>`}
    ${children}
  </section>`;

// Columns: [title, cell(row), class]. On a phone each row is a card, with the titles as labels.
export const Table = ({ label, columns, rows, keyOf, open = false }) =>
  html`<div class="table-frame" role="group" aria-label=${label} tabindex="0"><table>
    <thead><tr>${columns.map(([title, , look = ""], place) => html`<th key=${place} scope="col" class=${look}>${title || html`<span class="unseen">more</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr key=${keyOf(row)} data-row class=${row.$look ?? ""} onClick=${open ? opened : undefined}>
        ${columns.map(([title, cell, look = ""], place) => html`<td key=${place} data-title=${title} class=${look}>${cell(row)}</td>`)}
      </tr>`,
    )}</tbody>
  </table></div>`;

// A click beside a link in the row opens the row's own; who marks text, or presses a button, means something else.
const opened = (event) => {
  if (event.target.closest("a, button, input, select") || String(getSelection())) return;
  event.currentTarget.querySelector("a")?.click();
};

export const Facts = ({ facts }) =>
  html`<dl class="facts">${facts
    .filter(([, value]) => value != null && value !== "" && value !== false)
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
