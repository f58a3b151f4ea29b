// Notifications: what the engine wants people to know, until one of them has taken note.

import * as actions from "../lib/actions.js";
import { html } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href, ours } from "../lib/router.js";
import { Acts, Empty, Pill, Screen, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

export const Notifications = ({ query }) => {
  const isAll = query.get("all") === "yes";
  const pages = usePages(["notifications"], isAll ? { acked: true } : {}, { keyOf: (each) => each.number, wakes: (event) => event.kind === "notification.made", pace: 800 });
  return html`<${Screen} title="Notifications" lead="What the engine wants people to know.">
    <div class="tabs" role="group" aria-label="Which notifications">
      <a class="button small" aria-current=${isAll ? undefined : "true"} href=${href(["notifications"])}>Open</a>
      <a class="button small" aria-current=${isAll ? "true" : undefined} href=${href(["notifications"], { all: "yes" })}>All</a></div>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="No news">When a workflow is blacklisted, a worker lost or something set aside, it stands here.<//>`}>
      ${(rows) => html`<ul class="cards">${rows.map((each) => html`<li key=${each.number} data-row class="card note ${each.severity === "error" ? "bad" : "warn"} ${each.$look ?? ""}">
        <header class="card-head"><h2>${each.title}</h2><span class="dim">told <${When} at=${each.at} />${each.tenant !== "*" ? ` · ${each.tenant}` : ""}${each.workflow ? ` · ${each.workflow}` : ""}</span>
          <span class="acts">${each.acked_at ? html`<${Pill}>noted by ${each.acked_by}<//>` : html`<${Acts} actions=${[actions.ack(each)]} />`}<a class="button small" href=${ours(each)}>Look</a></span></header>
        <p>${each.message}</p></li>`)}</ul>`}<//>
  <//>`;
};
