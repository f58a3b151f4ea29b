// The frame around every screen: navigation, the state of the connection, who asks, and what is asked of them.

import { tell } from "../lib/actions.js";
import { asker, get, tenant } from "../lib/api.js";
import { useAsked } from "../lib/asked.js";
import { html, useEffect, useState } from "../lib/dom.js";
import { isHelpShown } from "../lib/keyboard.js";
import { href, next, place, requery } from "../lib/router.js";
import { logOut, may } from "../lib/session.js";
import { heardAt, link } from "../lib/stream.js";
import { count } from "../lib/text.js";
import { theme, turn } from "../lib/theme.js";
import { now } from "../lib/time.js";
import { screenAt } from "../routes.js";
import { Empty, Trouble } from "./basic.js";
import { Dialog } from "./dialog.js";
import { Help } from "./help.js";
import { Icon } from "./icons.js";
import { LogIn } from "./log_in.js";
import { Toasts } from "./toasts.js";

const NAVIGATION = [
  [null, [], "Overview", "home"],
  ["jobs", ["jobs"], "Jobs", "jobs"],
  ["approvals", ["approvals"], "Approvals", "approve"],
  ["targets", ["targets"], "Targets", "target"],
  ["workers", ["workers"], "Workers", "worker"],
  ["workflows", ["workflows"], "Workflows", "flow"],
  ["queues", ["queues"], "Queues", "queue"],
  ["schedules", ["schedules"], "Schedules", "clock"],
  ["hooks", ["hooks"], "Hooks", "receive"],
  ["webhooks", ["webhooks"], "Webhooks", "send"],
  ["dead-letters", ["dead-letters"], "Dead letters", "skull"],
  ["alerts", ["alerts"], "Alerts", "stuck"],
  ["notifications", ["notifications"], "Notifications", "bell"],
  ["audit", ["audit"], "Audit", "audit"],
  ["settings", ["settings"], "Settings", "gear"],
  ["keys", ["keys"], "Keys", "key", "keys.list"],
];
// On a phone these stand at the foot; the others behind the menu.
const FIRST = 4;

export const App = ({ problem, again }) => {
  const who = asker.value;
  if (problem && !who) return html`<main class="alone" id="main" tabindex="-1"><${Trouble} problem=${problem} again=${again} /></main>`;
  if (who === undefined) return html`<main class="alone" id="main" tabindex="-1" aria-busy="true"></main>`;
  if (who === null) return html`<${LogIn} /><${Toasts} />`;
  return html`<${Frame} />`;
};

const Frame = () => {
  const [isOpen, setOpen] = useState(false);
  const at = place.value;
  const waiting = useWaiting();
  useEffect(() => setOpen(false), [at.key]);
  const Shown = screenAt(at);
  const title = NAVIGATION.find(([word]) => word === (at.words[0] ?? null))?.[2];
  useEffect(() => {
    document.title = `${at.words[1] ? `${at.words[1].slice(-8)} · ` : ""}${title ?? "unstuck"} · unstuck`;
  }, [at.key, title]);
  useEffect(() => {
    const wanted = next.focus && document.querySelector(next.focus);
    if (!wanted) return; // the screen that has it is not drawn yet
    wanted.focus({ preventScroll: true });
    next.focus = null;
  }, [at.key]);
  return html`
    <a class="skip-link" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to content</a>
    <div class="frame ${isOpen ? "open" : ""}">
      <${Rail} waiting=${waiting} isOpen=${isOpen} toggle=${() => setOpen(!isOpen)} />
      <div class="body">
        <${Connection} />
        <main id="main" tabindex="-1" key=${at.words.join("/")}>${
          Shown
            ? html`<${Shown} words=${at.words} query=${at.query} waiting=${waiting} />`
            : html`<${Empty} title="There is no such screen" icon="search"><a href=${href([])}>Go to the overview</a><//>`
        }</main>
      </div>
    </div>
    <${Dialog} />
    <${Toasts} />
    ${isHelpShown.value && html`<${Help} />`}`;
};

const Rail = ({ waiting, isOpen, toggle }) => {
  const numbers = Object.fromEntries(Object.entries(waiting).map(([word, asked]) => [word, asked.data?.items.length ?? 0]));
  const first = place.value.words[0] ?? null;
  return html`<nav class="rail" aria-label="Screens">
    <a class="brand" href=${href([])}><${Mark} /><span>unstuck</span></a>
    <ul>${NAVIGATION.filter(([, , , , needs]) => !needs || may(needs)).map(
      ([word, words, label, icon], at) => html`<li key=${label} class=${at < FIRST ? "first" : "later"}>
        <a href=${href(words)} aria-current=${word === first ? "page" : undefined}><${Icon} name=${icon} /><span>${label}</span>
          ${numbers[word] > 0 && html`<b class="badge">${count(Math.min(numbers[word], 99))}${numbers[word] > 99 ? "+" : ""}</b>`}</a></li>`,
    )}
      <li class="more"><button type="button" class="bare" aria-expanded=${isOpen} onClick=${toggle}><${Icon} name="menu" /><span>More</span></button></li>
    </ul>
    <${Foot} />
  </nav>`;
};

// What waits for people in the rooms beside this one: the rail counts it, the overview lists it, and it is asked once.
const useWaiting = () => ({
  approvals: useAsked(["approvals"], { limit: 100 }, { wakes: (event) => event.kind.startsWith("approval.") || event.kind === "parked" || event.kind === "woken", pace: 2000 }),
  notifications: useAsked(["notifications"], { limit: 100 }, { wakes: (event) => event.kind.startsWith("notification."), pace: 2000 }),
  targets: useAsked(["targets"], { blocked: true, limit: 100 }, { wakes: (event) => event.kind.startsWith("target."), pace: 2000 }),
});

const Foot = () => {
  const who = asker.value;
  return html`<div class="rail-foot">
    <${Whose} />
    <p class="who" title=${who.key ? `by key ${who.key}` : "this server needs no key"}><b>${who.by}</b><span class="dim">${who.role}</span></p>
    <div class="acts">
      <button type="button" class="bare" onClick=${turn} aria-label=${`Use the ${theme.value === "dark" ? "light" : "dark"} theme`} title="Dark or light"><${Icon} name=${theme.value === "dark" ? "sun" : "moon"} /></button>
      <button type="button" class="bare" onClick=${() => (isHelpShown.value = true)} aria-label="Keys and help" title="Keys and help (?)"><${Icon} name="help" /></button>
      ${who.csrf && html`<button type="button" class="small" onClick=${() => logOut().catch(tell)}>Log out</button>`}
    </div>
  </div>`;
};

// Whose things are shown, where the asker may choose.
const Whose = () => {
  const [names, setNames] = useState([]);
  const mayChoose = asker.value.tenant == null;
  useEffect(() => {
    if (mayChoose && may("tenants.list")) get(["tenants"], { limit: 100 }).then((page) => setNames(page.items.map((each) => each.name)), () => {});
  }, [mayChoose]);
  if (!mayChoose) return html`<p class="who dim">tenant <b>${asker.value.tenant}</b></p>`;
  const known = [...new Set(["default", ...names, ...(tenant.value && tenant.value !== "*" ? [tenant.value] : [])])];
  if (known.length < 2) return null;
  const choose = (event) => {
    requery({ tenant: event.target.value === "default" ? "" : event.target.value });
  };
  return html`<label class="whose"><span class="dim">Tenant</span>
    <select value=${tenant.value || "default"} onChange=${choose}>${known.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>`;
};

const LINKS = {
  live: ["good", "Live"],
  polling: ["warn", "Live, by polling"],
  connecting: ["warn", "Connecting…"],
  away: ["bad", "The server is away; trying again"],
};

const Connection = () => {
  const [tone, text] = LINKS[link.value];
  const silent = Math.round((now.value - heardAt.value) / 1000);
  return html`<div class="connection ${tone}" role="status" data-link=${link.value}><i></i><span>${text}</span>
    ${link.value === "away" && silent > 5 && html`<span class="dim">last heard ${silent} s ago. Jobs go on without this page.</span>`}</div>`;
};

const Mark = () => html`<svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M9 8v9a7 7 0 0 0 14 0V8" /><path class="thin" d="m18.500 12.500 4.500-5 4.500 5" /></svg>`;
