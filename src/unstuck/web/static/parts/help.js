// What keys do, and where the rest is.

import { html } from "../lib/dom.js";
import { isHelpShown } from "../lib/keyboard.js";
import { Modal } from "./dialog.js";

const KEYS = [
  ["/", "search jobs"],
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["Esc", "leave a field, close a dialog"],
  ["g, then o j a t w f q s d n u", "go to overview, jobs, approvals, targets, workers, workflows, queues, schedules, dead letters, notifications, audit"],
  ["Shift + click on a button", "copy its command instead of doing it"],
  ["?", "this help"],
];

export const Help = () =>
  html`<${Modal} title="Keys" close=${() => (isHelpShown.value = false)}>
    <dl class="keys">${KEYS.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <p class="dim">Whatever the page does, the command line does, too: every change can be copied as its command. Times are relative; hold the pointer over one for the exact instant.</p>
    <div class="modal-foot"><button type="button" class="primary" onClick=${() => (isHelpShown.value = false)}>Close</button></div>
  <//>`;
