// Times: one clock for the whole page, by the server's time, and how instants and durations are told.

import { signal } from "./dom.js";

// The server's clock less ours, in ms; told by the `Date` of its answers, to the second.
let skew = 0;
export const now = signal(Date.now());
export const serverNow = () => Date.now() + skew;
// To the minute, so that a question that begins there is the same for a minute; on a page left open it moves on.
export const hourAgo = () => new Date(Math.floor(serverNow() / 60_000 - 60) * 60_000).toISOString();

export const heardDate = (text) => {
  const told = Date.parse(text ?? "");
  if (Number.isNaN(told)) return;
  const found = told + 500 - Date.now();
  if (Math.abs(found - skew) > 2000) skew = Math.abs(found) > 2000 ? found : 0;
};

setInterval(() => {
  if (!document.hidden) now.value = serverNow();
}, 1000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = serverNow();
});

const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];

// 95 -> "1m 35s"; two units at most.
export const duration = (seconds) => {
  if (seconds == null || Number.isNaN(seconds)) return "–";
  if (seconds < 0.001) return "0 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}s`;
  let left = Math.round(seconds);
  const parts = [];
  for (const [length, name] of UNITS) {
    const whole = Math.floor(left / length);
    if (whole) parts.push(`${whole}${name}`);
    else if (parts.length) break;
    left -= whole * length;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
};

export const ms = (value) => (value == null ? "–" : duration(value / 1000));

export const relative = (instant, at) => {
  const seconds = (Date.parse(instant) - at) / 1000;
  if (Number.isNaN(seconds)) return String(instant);
  const length = Math.abs(seconds);
  const told = length < 1.5 ? "now" : length < 60 ? `${Math.round(length)}s` : coarse(length);
  if (told === "now") return told;
  return seconds > 0 ? `in ${told}` : `${told} ago`;
};

// One unit, two below three of the larger: nobody needs the seconds of an hour.
const coarse = (seconds) => {
  for (const [length, name] of UNITS.slice(0, 3)) {
    if (seconds >= length) {
      const whole = Math.floor(seconds / length);
      const [below, belowName] = UNITS[UNITS.findIndex((unit) => unit[0] === length) + 1];
      const rest = Math.floor((seconds - whole * length) / below);
      return whole < 3 && rest ? `${whole}${name} ${rest}${belowName}` : `${whole}${name}`;
    }
  }
  return `${Math.round(seconds)}s`;
};

export const exact = (instant) => {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return String(instant);
  const local = date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  return `${local}\n${date.toISOString()}`;
};

export const clock = (instant) => new Date(instant).toLocaleTimeString("en-GB");

// "10m", "90s", "2h", "1d" -> seconds; null: it is none.
export const seconds = (text) => {
  const found = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?$/.exec(text.trim());
  if (!found) return null;
  return Number(found[1]) * { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[found[2] ?? "s"];
};
