// A list page by page, whatever it shows: loading, empty, in trouble, with what is new and what follows.

import { html } from "../lib/dom.js";
import { count, plural } from "../lib/text.js";
import { Loading, Trouble } from "./basic.js";

// What a list that does not jump could show instead of what it shows.
export const Renew = ({ pages, one = "new one", many = "new ones" }) => {
  const told = [pages.fresh > 0 && plural(pages.fresh, one, many), pages.gone > 0 && `${count(pages.gone)} gone`].filter(Boolean).join(", ");
  return told && html`<button type="button" class="small fresh" onClick=${pages.renew}>${told}: ${pages.fresh > 0 ? "show" : "tidy"}</button>`;
};

export const Listed = ({ pages, empty, children, head }) => {
  if (pages.rows === undefined) return pages.problem ? html`<${Trouble} problem=${pages.problem} again=${pages.reload} />` : html`<${Loading} rows=${5} />`;
  return html`
    ${pages.problem && html`<${Trouble} problem=${pages.problem} again=${pages.reload} />`}
    ${(head || pages.fresh > 0 || pages.gone > 0) && html`<div class="list-head">${head}<${Renew} pages=${pages} /></div>`}
    ${pages.rows.length ? children(pages.rows) : empty}
    ${pages.next && html`<div class="more"><button type="button" onClick=${pages.more} disabled=${pages.isMore}>${pages.isMore ? "…" : "Show more"}</button></div>`}`;
};
