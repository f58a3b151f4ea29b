// Approvals: what people are asked, with how long they have, and what happens if nobody answers.

import * as actions from "../lib/actions.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { now } from "../lib/time.js";
import { Acts, Empty, JobLink, Screen, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const THEN = { approve: "it counts as a yes", reject: "it counts as a no", fail: "the job fails", default: "the job goes on with its default" };

export const Approvals = () => {
  const pages = usePages(["approvals"], {}, { keyOf: (each) => each.cursor, wakes: (event) => event.kind.startsWith("approval.") || ["parked", "woken", "cancelled"].includes(event.kind), pace: 800 });
  return html`<${Screen} title="Approvals" lead="Questions that jobs ask of people. While it waits, a job takes no slot.">
    <${Listed} pages=${pages} empty=${html`<${Empty} title="Nobody is asked anything" icon="approve">A job asks with <code>ctx.approval("deploy?")</code>; it stands here until somebody decides.<//>`}>
      ${(rows) => html`<ul class="cards">${rows.map((each) => html`<${Question} key=${each.cursor} approval=${each} />`)}</ul>`}
    <//>
  <//>`;
};

const Question = ({ approval }) => {
  const from = Date.parse(approval.asked_at);
  const to = Date.parse(approval.until_at);
  const share = Math.min(100, Math.max(0, (100 * (now.value - from)) / (to - from)));
  return html`<li class="card question ${approval.$look ?? ""}" data-row>
    <p class="question-text">${approval.question}</p>
    <p class="dim"><${JobLink} id=${approval.job} tenant=${approval.tenant}>${approval.workflow} ${approval.job.slice(-8)}<//> asked <${When} at=${approval.asked_at} />${approval.who.length ? ` of ${approval.who.join(", ")}` : ""}</p>
    <div class="progress ${share > 80 ? "bad" : ""}" role="progressbar" aria-label="Time that has passed" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share)}><span style=${{ width: `${share}%` }}></span></div>
    <p class="dim">ends <${When} at=${approval.until_at} />, and then ${THEN[approval.on_timeout] ?? approval.on_timeout}</p>
    <${Acts} actions=${[actions.approve(approval), actions.reject(approval)]} small=${false} />
  </li>`;
};
