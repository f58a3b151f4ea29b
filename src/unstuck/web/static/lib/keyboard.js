// Keys: / search, j and k through rows, Enter opens, Esc leaves, ? explains, g and a letter goes somewhere.

import { signal } from "./dom.js";
import { go, href } from "./router.js";

export const isHelpShown = signal(false);

export const PLACES = {
  o: [], j: ["jobs"], a: ["approvals"], t: ["targets"], w: ["workers"], f: ["workflows"], q: ["queues"],
  s: ["schedules"], d: ["dead-letters"], n: ["notifications"], u: ["audit"],
};

let isGoing = false;

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

const step = (by) => {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  const link = row?.matches("a") ? row : row?.querySelector("a, button");
  link?.focus();
  row?.scrollIntoView({ block: "nearest" });
};

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape") {
    if (isHelpShown.value) isHelpShown.value = false;
    else if (isTyping(event.target)) event.target.blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (isGoing) {
    isGoing = false;
    if (PLACES[event.key]) event.preventDefault(), go(href(PLACES[event.key]));
    return;
  }
  const search = () => document.querySelector("[data-search]");
  if (event.key === "/") {
    event.preventDefault();
    if (search()) search().focus();
    else go(href(["jobs"]), { focus: "[data-search]" });
  } else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") isHelpShown.value = true;
  else if (event.key === "g") (isGoing = true), setTimeout(() => (isGoing = false), 1500);
});
