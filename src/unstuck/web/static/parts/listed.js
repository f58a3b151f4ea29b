// A list page by page, whatever it shows: loading, empty, in trouble, with what is new and what follows.

import { html } from "../lib/dom.js";
import { plural } from "../lib/text.js";
import { Loading, Trouble } from "./basic.js";

export const Listed = ({ pages, empty, children, head }) => {
  if (pages.rows === undefined) return pages.problem ? html`<${Trouble} problem=${pages.problem} again=${pages.reload} />` : html`<${Loading} rows=${5} />`;
  return html`
    ${pages.problem && html`<${Trouble} problem=${pages.problem} again=${pages.reload} />`}
    ${(head || pages.fresh > 0) && html`<div class="list-head">${head}${pages.fresh > 0 && html`<button type="button" class="small fresh" onClick=${pages.renew}>${plural(pages.fresh, "new one", "new ones")}: show</button>`}</div>`}
    ${pages.rows.length ? children(pages.rows) : empty}
    ${pages.next && html`<div class="more"><button type="button" onClick=${pages.more} disabled=${pages.isMore}>${pages.isMore ? "…" : "Show more"}</button></div>`}`;
};
