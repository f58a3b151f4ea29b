// How far a bulk is, until it has ended.

import { useAsked } from "../lib/asked.js";
import { command, ofTenant } from "../lib/command.js";
import { html } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { Act, State } from "./basic.js";

const stop = (bulk) => ({
  operation: "bulks.cancel",
  label: "Stop it",
  path: ["bulks", bulk.number, "cancel"],
  query: { tenant: bulk.tenant },
  command: command("bulks cancel", [bulk.number], ofTenant(bulk.tenant)),
  done: (answer) => `bulk ${answer.number} is stopped; what it has done stays done`,
});

export const words = (filter) =>
  Object.entries(filter)
    .filter(([, value]) => value != null && value.length !== 0)
    .map(([name, value]) => `${name.replace("error_type", "error")}:${Array.isArray(value) ? value.join(",") : value}`)
    .join(" ") || "all";

export const Progress = ({ number, tenant }) => {
  const asked = useAsked(["bulks", number], { tenant }, { every: 1000, pace: 500 });
  const bulk = asked.data;
  if (!bulk) return null;
  const done = bulk.done + bulk.refused + bulk.moved_on;
  const all = bulk.looked_through ? bulk.matched : Math.max(bulk.expected ?? 0, bulk.matched);
  const share = bulk.state === "DONE" ? 100 : all ? Math.min(100, (100 * done) / all) : 0;
  return html`<div class="bulk" role="group" aria-label=${`Bulk ${number}`}>
    <p><b>${bulk.verb}</b> <span class="dim">${words(bulk.filter)}</span> <${State} state=${bulk.state} /></p>
    <div class="progress" role="progressbar" aria-label=${`Bulk ${number}`} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share)}><span style=${{ width: `${share}%` }}></span></div>
    <p class="dim">${count(bulk.done)} done · ${count(bulk.refused)} refused · ${count(bulk.moved_on)} moved on · ${count(bulk.left)}${bulk.looked_through || bulk.state !== "RUNNING" ? "" : "+"} left</p>
    ${bulk.error && html`<p class="error-text">${bulk.error}</p>`}
    ${bulk.refusals.length > 0 && html`<details><summary>First refusals</summary><ul>${bulk.refusals.slice(0, 10).map((each) => html`<li key=${each.job}><code>${each.job.slice(-8)}</code> ${each.reason}</li>`)}</ul></details>`}
    ${bulk.state === "RUNNING" && html`<${Act} action=${stop(bulk)} small=${true} />`}
  </div>`;
};
