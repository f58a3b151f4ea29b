// The page: who asks is found out first, then the screen that the address names is drawn, inside the frame.

import { html, render } from "./lib/dom.js";
import "./lib/keyboard.js";
import { recognise } from "./lib/session.js";
import { App } from "./parts/frame.js";

const draw = (problem) => render(html`<${App} problem=${problem} again=${begin} />`, document.getElementById("app"));

const begin = async () => {
  try {
    draw(null);
    await recognise();
  } catch (problem) {
    draw(problem);
    setTimeout(begin, 5000);
  }
};

begin();
