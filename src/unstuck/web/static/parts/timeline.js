// The timeline of one job: what it waited for, each attempt with its grace, its steps.

import { html } from "../lib/dom.js";
import { lanes, ticks } from "../lib/timeline.js";
import { duration, now } from "../lib/time.js";

const FINAL = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD"];
const LEGEND = [
  ["queued", "in the queue"], ["backoff", "waits for its next try"], ["parked", "parked"], ["ran", "ran"], ["open", "runs"], ["grace", "grace: asked to stop"],
  ["stuck", "stuck"], ["failed", "failed"], ["done", "done"], ["step", "step"],
];

export const Timeline = ({ job }) => {
  const isOver = FINAL.includes(job.state);
  const rows = lanes(job, now.value);
  const from = Date.parse(job.created_at);
  const last = Math.max(from + 1, ...rows.flatMap((lane) => lane.spans.map((span) => span.to)));
  const to = isOver ? last : Math.max(last, now.value);
  const share = (at) => `${Math.min(100, Math.max(0, (100 * (at - from)) / (to - from)))}%`;
  const kinds = new Set(rows.flatMap((lane) => lane.spans.map((span) => span.kind)));
  return html`<div class="timeline">
    <div class="timeline-axis" aria-hidden="true">${ticks(from, to, innerWidth > 760 ? 5 : 3).map(([at, seconds]) => html`<span key=${at} style=${{ left: `${at * 100}%` }}>${at ? duration(seconds) : "0"}</span>`)}</div>
    <ul>${rows.map(
      (lane) => html`<li key=${lane.label} class="lane">
        <span class="lane-name" title=${lane.worker}>${lane.label}</span>
        <span class="lane-track">${lane.spans.map(
          (span, place) => html`<span key=${place} class="span" data-kind=${span.kind} style=${{ left: share(span.from), width: `max(3px, ${(100 * (span.to - span.from)) / (to - from)}%)` }}
            title=${`${span.text}: ${duration((span.to - span.from) / 1000)}`}><span>${span.to - span.from > (to - from) / 8 ? span.name : ""}</span></span>`,
        )}${lane.marks.map((mark, place) => html`<span key=${`m${place}`} class="mark" data-kind=${mark.kind} style=${{ left: share(mark.at) }} title=${mark.text}></span>`)}</span>
        <span class="unseen">${lane.spans.map((span) => `${span.text} for ${duration((span.to - span.from) / 1000)}`).join(", ")}</span>
      </li>`,
    )}</ul>
    <p class="legend" aria-hidden="true">${LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => html`<span key=${kind}><i data-kind=${kind}></i>${text}</span>`)}</p>
  </div>`;
};
