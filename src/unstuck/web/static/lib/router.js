// Where we are: the path below the prefix under which the page is served, and its query. Every screen is an address
// that can be reloaded and shared; names in it may hold anything.

import { batch, signal } from "./dom.js";

const PREFIX = new URL(document.baseURI).pathname;

const decoded = (word) => {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
};

const read = () => {
  const words = location.pathname.slice(PREFIX.length).split("/").filter(Boolean).map(decoded);
  return { words, query: new URLSearchParams(location.search), key: location.pathname };
};

export const place = signal(read());

// href(["jobs", id], {tab: "logs"})
export const href = (words, query) => {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value != null && value !== "") asked.append(name, value);
  }
  const text = asked.toString();
  return PREFIX + words.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
};

// What has the focus once the next screen is drawn: readers of the screen hear where they are. null: nothing.
export const next = { focus: null };

export const go = (address, { replace = false, focus = "#main" } = {}) => {
  if (address === location.pathname + location.search) return;
  next.focus = replace ? null : focus;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  moved(!replace);
};

const moved = (isNew) => {
  const before = place.value.key;
  batch(() => (place.value = read()));
  if (isNew && before !== place.value.key) {
    scrollTo(0, 0);
  }
};

// The same screen with other words in its query; undefined takes one out.
export const requery = (changes, how = { replace: true }) => {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), how);
};

// A link that the server gave, as notifications have one: only below our own prefix.
export const ours = (link) => PREFIX + String(link).replace(/^\/+/, "");

addEventListener("popstate", () => moved(false));
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || anchor.target || anchor.hasAttribute("download")) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(anchor.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(PREFIX)) return;
  if (to.pathname.startsWith(`${PREFIX}api/`) || to.hash) return;
  event.preventDefault();
  go(to.pathname + to.search);
});
