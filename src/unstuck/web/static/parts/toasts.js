// What was done, or refused: at the edge of the page, until it is read.

import { asking, copy, dismiss, toasts } from "../lib/actions.js";
import { html } from "../lib/dom.js";
import { isHelpShown } from "../lib/keyboard.js";
import { Icon } from "./icons.js";

// What stands beside an open dialog can neither be read nor pressed: then the dialog has them.
export const Toasts = ({ isInDialog = false }) =>
  (isInDialog || !(asking.value || isHelpShown.value)) &&
  html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map(
    (each) => html`<div class="toast ${each.tone}" key=${each.id}>
      <${Icon} name=${each.tone === "bad" ? "cross" : "check"} />
      <div class="toast-text"><p>${each.text}</p>${each.detail && html`<p class="dim">${each.detail}</p>`}</div>
      ${each.link && html`<a href=${each.link}>Open</a>`}
      ${each.command && html`<button type="button" class="small" onClick=${() => copy(each.command, "Command copied")} title=${each.command}>Copy command</button>`}
      <button type="button" class="bare" aria-label="Dismiss" onClick=${() => dismiss(each.id)}><${Icon} name="cross" /></button>
    </div>`,
  )}</div>`;
