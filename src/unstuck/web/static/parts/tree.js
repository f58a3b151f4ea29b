// A job and those it spawned, below the job that spawned it.

import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { oneLine, shortId } from "../lib/text.js";
import { Answer, Card, JobLink, State } from "./basic.js";

export const Tree = ({ job }) => {
  const asked = useAsked(["jobs", job.id, "tree"], { tenant: job.tenant, limit: 200 }, { wakes: (event) => event.number != null, pace: 2000 });
  return html`<${Card} title="Children" id="children">
    ${job.parent && html`<p>Spawned by <${JobLink} id=${job.parent} tenant=${job.tenant} /></p>`}
    <${Answer} of=${asked}>${(branch) => html`<ul class="tree"><${Branch} branch=${branch} tenant=${job.tenant} isRoot=${true} /></ul>`}<//>
  <//>`;
};

const Branch = ({ branch, tenant, isRoot }) => html`<li>
  <span class="branch"><${State} state=${branch.state} />${isRoot ? html`<b>${branch.workflow}</b>` : html`<${JobLink} id=${branch.id} tenant=${tenant}><b>${branch.name ?? branch.workflow}</b><//> <code class="dim">${shortId(branch.id)}</code>`}
    ${branch.name && branch.name !== branch.workflow && html`<span class="dim">${branch.workflow}</span>`}
    ${branch.error_type && html`<span class="error-text">${oneLine(`${branch.error_type}: ${branch.error_message ?? ""}`, 100)}</span>`}</span>
  ${(branch.children.length > 0 || branch.left_out > 0) && html`<ul>${branch.children.map((each) => html`<${Branch} key=${each.id} branch=${each} tenant=${tenant} />`)}${branch.left_out > 0 && html`<li class="dim">${branch.left_out} more</li>`}</ul>`}
</li>`;
