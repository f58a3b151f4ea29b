// Webhooks: where events are sent, whether their receivers take them, and what came of each delivery.

import { asker, tenant } from "../lib/api.js";
import { leave } from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { command, ofOwner } from "../lib/command.js";
import { html, useState } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { plural } from "../lib/text.js";
import { serverNow } from "../lib/time.js";
import { Acts, Answer, Card, Empty, Facts, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";
import { Secret } from "../parts/secret.js";

const TONES = { ACTIVE: "good", PAUSED: "warn", DISABLED: "bad" };
const ENDS = { DELIVERED: "good", FAILED: "bad", WAITING: "calm" };

const verb = (webhook, name, label, done, more = {}) => ({
  operation: `webhooks.${name}`, label, path: ["webhooks", webhook.name, name], query: { tenant: webhook.tenant }, body: {},
  command: command(`webhooks ${name}`, [webhook.name], ofOwner(webhook.tenant)), done, ...more,
});
const replay = (webhook) => verb(webhook, "replay", "Replay…", (answer) => `${plural(answer.reopened, "delivery", "deliveries")} and what the feed has since then are sent again`, {
  confirm: { title: `Send again to ${webhook.name}?`, text: "What happened since then is sent once more, each event under the id that it had: a receiver that goes by it takes none twice.", yes: "Send again" },
  fields: [{ name: "since", label: "Since", hint: "an instant; at first an hour ago", value: `${new Date(serverNow() - 3600_000).toISOString().slice(0, 19)}Z` }],
  body: ({ since }) => ({ since }), command: ({ since }) => command("webhooks replay", [webhook.name], { since, ...ofOwner(webhook.tenant) }),
});
const rotate = (webhook, shown) => verb(webhook, "rotate", "Rotate", "the new secret is made: copy it now", {
  confirm: { title: `Give ${webhook.name} a new secret?`, text: "It is shown once. For one more day the old secret signs beside it.", yes: "Rotate it" }, after: shown,
});
const remove = (webhook) => ({
  operation: "webhooks.delete", label: "Delete", tone: "bad", method: "DELETE", path: ["webhooks", webhook.name], query: { tenant: webhook.tenant },
  confirm: { title: `Delete webhook ${webhook.name}?`, text: "Nothing is sent there any more; what waits is forgotten with all its deliveries.", yes: "Delete it" },
  command: command("webhooks delete", [webhook.name], ofOwner(webhook.tenant)), done: `${webhook.name} is deleted`,
  leads: () => leave("webhooks"),
});
const usual = (webhook) => [
  ...(webhook.state === "ACTIVE" ? [verb(webhook, "test", "Test", (answer) => `a test is on its way: delivery ${answer.number}`)] : []),
  webhook.state === "ACTIVE" ? verb(webhook, "pause", "Pause", `${webhook.name} is paused; what happens meanwhile waits`) : verb(webhook, "enable", "Enable", `${webhook.name} is sent to again`),
];

const wanted = (each) => [...each.kinds, ...["workflow", "queue", "target", "topic", "job"].filter((name) => each[name]).map((name) => `${name} ${each[name]}`)].join(", ");

const COLUMNS = [
  ["Webhook", (each) => html`<a href=${href(["webhooks", each.name], each.tenant === "*" ? { of: "*" } : ofOwner(each.tenant))}><b>${each.name}</b></a> ${each.tenant === "default" ? "" : html`<span class="dim">${each.tenant === "*" ? "the platform's" : each.tenant}</span>`}`],
  ["State", (each) => html`<${Pill} tone=${TONES[each.state]}>${each.state}<//>`, "narrow"],
  ["Goes to", (each) => html`<code>${each.url}</code><span class="under dim">${wanted(each) || "everything"}</span>`, "what"],
  ["Waiting", (each) => (each.waiting ? html`${String(each.waiting)} <span class="dim">since <${When} at=${each.waiting_since_at} /></span>` : html`<span class="dim">none</span>`), "narrow"],
  ["Last try", (each) => html`<${When} at=${each.tried_at} none="none yet" />${each.failures > 0 && html` <${Pill} tone="bad">${plural(each.failures, "failure")}<//>`}<span class="under error-text">${each.failures > 0 ? each.last_error : ""}</span>`, "narrow"],
  ["", (each) => html`<${Acts} actions=${usual(each)} />`, "right"],
];

export const Webhooks = ({ words: [, name], query }) => (name ? html`<${One} name=${name} query=${query} />` : html`<${All} />`);

// Where nobody has said whose, the platform's stand beside those of tenants.
const All = () => {
  const pages = usePages(["webhooks"], asker.value.tenant == null && !tenant.value ? { tenant: "*" } : {}, { keyOf: (each) => each.number, wakes: () => true, pace: 3000 });
  return html`<${Screen} title="Webhooks" lead="Events sent to a URL as they happen, signed, in order per job, until they are taken." wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="Nothing is sent anywhere" icon="send">Make one: <code>unstuck webhooks create NAME https://… --kind completed</code><//>`}>
      ${(rows) => html`<${Table} label="Webhooks" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.number} open=${true} />`}<//>
  <//>`;
};

const DELIVERIES = [
  ["Delivery", (each) => html`<code>${each.number}</code> <${When} at=${each.at} />`, "narrow"],
  ["Event", (each) => html`${each.kind}${each.job && html` <${JobLink} id=${each.job} tenant=${each.tenant} />`}`],
  ["State", (each) => html`<${Pill} tone=${ENDS[each.state]}>${each.state}<//>`, "narrow"],
  ["Tries", (each) => html`${String(each.tries)}${each.next_at && html` <span class="dim">${each.rest_until_at ? "rests, next" : "next"} <${When} at=${each.next_at} /></span>`}`, "narrow"],
  ["Came of it", (each) => html`${each.last_status ?? ""} <span class="error-text">${each.last_error ?? ""}</span>`, "what"],
];

const One = ({ name, query }) => {
  const owner = query.get("of") ?? query.get("tenant");
  const whose = owner ? { tenant: owner } : {};
  const [made, setMade] = useState(null);
  const webhook = useAsked(["webhooks", name], whose, { wakes: () => true, every: 30_000, pace: 3000 });
  const pages = usePages(["deliveries"], { ...whose, webhook: name }, { keyOf: (each) => each.number, wakes: () => true, pace: 3000 });
  return html`<${Answer} of=${webhook}>${(each) => html`<${Screen} title=${html`${each.name} <${Pill} tone=${TONES[each.state]}>${each.state}<//> ${each.failures > 0 && html`<${Pill} tone="bad">${plural(each.failures, "failure")}<//>`}`} lead=${each.state_reason ?? ""} actions=${html`<${Acts} small=${false} actions=${[...usual(each), replay(each), rotate(each, setMade), remove(each)]} />`}>
    <${Secret} text=${made?.secret} seen=${() => setMade(null)} />
    <${Card} title="Where it goes"><${Facts} facts=${[["URL", html`<code>${each.url}</code>`], ["Events", wanted(each) || "everything"], ["Waiting", each.waiting && String(each.waiting)], ["Last taken", html`<${When} at=${each.taken_at} none="never" />`], ["Failing since", each.failing_since_at && html`<${When} at=${each.failing_since_at} />: ${each.last_error ?? ""}`], ["Rests until", each.rest_until_at && html`<${When} at=${each.rest_until_at} />`], ["Secret", each.sealed ? "sealed" : "in clear text: set sealing_keys, then rotate it"], ["Old secret until", each.old_secret_until_at && html`<${When} at=${each.old_secret_until_at} />`], ["Made", html`<${When} at=${each.created_at} /> by ${each.created_by}`]]} /><//>
    <${Card} title="Deliveries" note="the newest first"><${Listed} pages=${pages} empty=${html`<${Empty} title="Nothing was sent yet" icon="send">Test sends something now.<//>`}>${(rows) => html`<${Table} label="Deliveries" columns=${DELIVERIES} rows=${rows} keyOf=${(row) => row.number} />`}<//><//>
  <//>`}<//>`;
};
