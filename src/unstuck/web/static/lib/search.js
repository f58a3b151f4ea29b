// The one search line of jobs: `state:FAILED workflow:deliver older:10m arg.city:Oslo`, and what it asks for.

import { serverNow, seconds } from "./time.js";

export const STATES = [
  "PENDING", "QUEUED", "SCHEDULED", "RETRYING", "BLOCKED", "RUNNING", "CANCELLING", "WAITING", "PAUSED", "STUCK",
  "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD",
];

export const QUALIFIERS = [
  ["state", "a state, e.g. state:FAILED; may be repeated"],
  ["workflow", "of this workflow"],
  ["queue", "of this queue"],
  ["target", "on this target"],
  ["error", "with this error, e.g. error:ExecutionStuck"],
  ["tag", "with this tag"],
  ["older", "submitted longer ago than, e.g. older:10m"],
  ["newer", "submitted within, e.g. newer:1h"],
  ["arg.", "called with, e.g. arg.city:Oslo"],
];

const FLAGS = { state: "state", workflow: "workflow", queue: "queue", target: "target", error: "error", tag: "tag" };
const NAMES = { workflow: "workflow", queue: "queue", target: "target", error: "error_type", tag: "tag" };

// Words, or "words in quotes" behind their qualifier.
const TERM = /(?:([\w.-]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;

export const parse = (text) => {
  const found = { terms: [], problems: [] };
  for (const [whole, name, quoted, plain] of text.matchAll(TERM)) {
    const value = quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1");
    found.terms.push({ name: name ?? null, value, whole });
  }
  return found;
};

export const quote = (value) => (/[\s":]/.test(value) || !value ? `"${value.replace(/(["\\])/g, "\\$1")}"` : value);
export const term = (name, value) => `${name}:${quote(value)}`;

// The query for the API and the flags for the command line. An id, or its beginning, is `job`.
export const meant = (text) => {
  const { terms } = parse(text);
  const query = {};
  const flags = {};
  const problems = [];
  let job = null;
  const once = (key, name, value) => {
    if (query[key] !== undefined) problems.push(`${name}: can be said once`);
    query[key] = value;
  };
  for (const { name, value } of terms) {
    if (name === null) {
      if (/^(?=.*\d)[0-9a-f][0-9a-f-]{3,35}$/i.test(value)) job = value; // "feed" is a workflow
      else once("workflow", "workflow", value), (flags.workflow = value);
    } else if (name === "state" || name === "is") {
      const state = value.toUpperCase();
      if (!STATES.includes(state)) problems.push(`there is no state ${value}; there are: ${STATES.join(", ")}`);
      else (query.state = [...(query.state ?? []), state]), (flags.state = query.state);
    } else if (name === "older" || name === "newer") {
      const length = seconds(value);
      if (length === null) problems.push(`${name}:${value} is no duration like 10m, 2h or 1d`);
      else once(name === "older" ? "before" : "since", name, instant(length)), (flags[name] = value);
    } else if (name.startsWith("arg.") && name.length > 4) {
      once("argument", "arg", JSON.stringify([name.slice(4), asJson(value)]));
      flags.argument = `${name.slice(4)}=${value}`;
    } else if (NAMES[name]) {
      once(NAMES[name], name, value);
      flags[FLAGS[name]] = value;
    } else problems.push(`there is no qualifier ${name}:; there are ${QUALIFIERS.map(([each]) => each).join(", ")}`);
  }
  return { query, flags, job, problems };
};

// To the second: nobody means less.
const instant = (length) => new Date(Math.floor((serverNow() - length * 1000) / 1000) * 1000).toISOString();

const asJson = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
