// The HTTP API, and nothing else: what is asked, what is answered, and what a refusal says.

import { signal } from "./dom.js";
import { heardDate } from "./time.js";

export const BASE = `${new URL(document.baseURI).pathname}api/v1`;
const PATIENCE = 30_000;

// Who asks (AskerView); undefined: not asked yet, null: nobody, log in first.
export const asker = signal(undefined);
// About whose things is asked, where the asker may choose; "": the server's default, "*": everybody's.
export const tenant = signal(new URLSearchParams(location.search).get("tenant") ?? "");

export class Problem extends Error {
  constructor({ status = 0, code = "", title = "", detail = "", remedy = "", errors = [], request_id: request = "" }) {
    super(detail || title);
    Object.assign(this, { status, code, title, detail, remedy, errors, request });
  }
}

// path: words, each quoted. query: a list repeats its name.
export const address = (words, query = {}) => {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one != null && one !== "") asked.append(name, one);
    }
  }
  const text = asked.toString();
  return `${BASE}/${words.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
};

export const about = (query = {}) => {
  const mayChoose = asker.value && asker.value.tenant == null;
  return mayChoose && tenant.value ? { tenant: tenant.value, ...query } : query;
};

// What is the platform's is nobody's in particular.
const PLATFORM = new Set(["alerts/rules", "settings", "signing", "tenants", "workers"]);
export const scoped = (words, query) => (PLATFORM.has(words[0]) || PLATFORM.has(words.join("/")) ? (query ?? {}) : about(query));

export const get = (words, query, options) => ask("GET", address(words, query), undefined, options);
export const post = (words, body, query) => ask("POST", address(words, query), body ?? {});

export async function ask(method, url, body, { signal: stop } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && asker.value?.csrf) headers["X-CSRF-Token"] = asker.value.csrf;
  const timeout = AbortSignal.timeout(PATIENCE);
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: stop ? AbortSignal.any([stop, timeout]) : timeout,
      credentials: "same-origin",
    });
  } catch (error) {
    if (stop?.aborted) throw error;
    throw new Problem({
      title: error.name === "TimeoutError" ? "The server did not answer in time" : "The server cannot be reached",
      detail: "nothing is lost: jobs go on without this page",
      remedy: "check that `unstuck server` runs; the page tries again by itself",
    });
  }
  heardDate(answer.headers.get("date"));
  const told = await read(answer);
  if (answer.ok) return told;
  const problem = new Problem(told?.code ? told : { status: answer.status, title: answer.statusText });
  if (answer.status === 401 && !url.endsWith("/session")) asker.value = null;
  throw problem;
}

const read = async (answer) => {
  const text = await answer.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem({
      status: answer.status,
      title: "Something else than the API answered",
      detail: `there is no JSON in the answer (status ${answer.status})`,
      remedy: "look at what stands between this browser and the server: a proxy, a log-in page",
    });
  }
};
