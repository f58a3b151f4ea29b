// A key or secret that was just made: shown once, until whoever asked for it has it.

import { html } from "../lib/dom.js";
import { Card, Copy } from "./basic.js";

export const Secret = ({ text, what = "secret", seen }) =>
  text && html`<${Card} tone="good" title="Copy it now: it is not shown again"><p class="secret"><code>${text}</code><${Copy} text=${text} label="Copy the ${what}" /></p><button type="button" class="small" onClick=${seen}>I have it</button><//>`;
