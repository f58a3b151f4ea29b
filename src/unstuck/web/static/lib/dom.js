// What the page is made of, in one place. `html` makes elements of templates; every text in it is text and nothing
// else, and shows what would not be seen (text.js): no screen has to remember that.

import htm from "../vendor/htm.js";
import { Fragment, h, render } from "../vendor/preact.js";
import { visible } from "./text.js";

const TITLES = ["title", "aria-label", "placeholder", "alt"];

const shown = (child) => (typeof child === "string" ? visible(child) : Array.isArray(child) ? child.map(shown) : child);

const element = (type, properties, ...children) => {
  if (properties && typeof type === "string") {
    for (const name of TITLES) {
      if (typeof properties[name] === "string") properties = { ...properties, [name]: visible(properties[name]) };
    }
  }
  return h(type, properties, ...children.map(shown));
};

export const html = htm.bind(element);
export { Fragment, render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";
