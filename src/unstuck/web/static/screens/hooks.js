// Hooks: other systems' calls that start a workflow, and what was done about each.

import { leave } from "../lib/actions.js";
import { useAsked } from "../lib/asked.js";
import { command, ofTenant } from "../lib/command.js";
import { html, useState } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { plural, pretty } from "../lib/text.js";
import { Acts, Answer, Card, Empty, Facts, Folded, JobLink, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";
import { Secret } from "../parts/secret.js";

const verb = (hook, name, label, done, more = {}) => ({
  operation: `hooks.${name}`, label, path: ["hooks", hook.name, name], query: { tenant: hook.tenant }, body: {},
  command: command(`hooks ${name}`, [hook.name], ofTenant(hook.tenant)), done, ...more,
});
const rotate = (hook, shown) => verb(hook, "rotate", "Rotate", "the new secret is made: copy it now", {
  confirm: { title: `Give ${hook.name} a new secret?`, text: "It is shown once. For one more day the old secret is accepted beside it.", yes: "Rotate it" }, after: shown,
});
const remove = (hook) => ({
  operation: "hooks.delete", label: "Delete", tone: "bad", method: "DELETE", path: ["hooks", hook.name], query: { tenant: hook.tenant },
  confirm: { title: `Delete hook ${hook.name}?`, text: "Its address answers no more. Its jobs stay.", yes: "Delete it" },
  command: command("hooks delete", [hook.name], ofTenant(hook.tenant)), done: `${hook.name} is deleted`,
  leads: () => leave("hooks"),
});
const usual = (hook) => [hook.paused ? verb(hook, "resume", "Resume", `${hook.name} accepts deliveries again`) : verb(hook, "pause", "Pause", `${hook.name} is paused; senders are told to come again`)];
const state = (hook) => (hook.paused ? html`<${Pill} tone="warn">PAUSED<//>` : html`<${Pill} tone="good">ACTIVE<//>`);

const COLUMNS = [
  ["Hook", (each) => html`<a href=${href(["hooks", each.name], ofTenant(each.tenant))}><b>${each.name}</b></a>`],
  ["State", state, "narrow"],
  ["Starts", (each) => html`<a href=${href(["workflows", each.workflow])}>${each.workflow}</a>`],
  ["Called at", (each) => html`<code>POST ${each.path}</code>`, "what"],
  ["Signed", (each) => each.scheme, "narrow"],
  ["", (each) => html`<${Acts} actions=${usual(each)} />`, "right"],
];

export const Hooks = ({ words: [, name], query }) => (name ? html`<${One} name=${name} query=${query} />` : html`<${All} />`);

const All = () => {
  const pages = usePages(["hooks"], {}, { keyOf: (each) => each.id, wakes: (event) => event.kind === "submitted", pace: 3000 });
  return html`<${Screen} title="Hooks" lead="Calls of other systems that start a workflow. Each is signed, and answered once its job is durable." wide=${true}>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="No other system starts anything here" icon="receive">Make one: <code>unstuck hooks create NAME WORKFLOW --scheme github</code><//>`}>
      ${(rows) => html`<${Table} label="Hooks" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.id} open=${true} />`}<//>
  <//>`;
};

const DELIVERIES = [
  ["Came", (each) => html`<${When} at=${each.last_at} />${each.calls > 1 ? ` ${plural(each.calls, "call")}` : ""}`, "narrow"],
  ["Delivery", (each) => html`<code>${each.delivery ?? "–"}</code>`],
  ["Answered", (each) => html`<${Pill} tone=${each.status < 300 ? "good" : "bad"}>${each.status} ${each.outcome}<//>`, "narrow"],
  ["From", (each) => each.address ?? html`<span class="dim">–</span>`, "narrow"],
  ["Reason", (each) => each.reason ?? "", "what"],
];

const One = ({ name, query }) => {
  const whose = query.get("tenant") ? { tenant: query.get("tenant") } : {};
  const [made, setMade] = useState(null);
  const hook = useAsked(["hooks", name], whose, { every: 30_000 });
  const pages = usePages(["hooks", name, "deliveries"], whose, { keyOf: (each) => each.number, wakes: (event) => event.kind === "submitted", pace: 3000 });
  return html`<${Answer} of=${hook}>${(each) => html`<${Screen} title=${html`${each.name} ${state(each)}`} lead=${each.pause_reason ?? ""} actions=${html`<${Acts} small=${false} actions=${[...usual(each), rotate(each, setMade), remove(each)]} />`}>
    <${Secret} text=${made?.secret} seen=${() => setMade(null)} />
    <${Card} title="What it does"><${Facts} facts=${[["Called at", html`<code>POST ${each.path}</code>`], ["Starts", html`<a href=${href(["workflows", each.workflow])}>${each.workflow}</a>`], ["Signed", each.scheme], ["Queue", each.queue], ["Target", each.target], ["Secrets", plural(each.secrets.length, "secret") + (each.sealed ? ", sealed" : ", in clear text: set sealing_keys, then rotate")], ["Made", html`<${When} at=${each.created_at} /> by ${each.created_by}`], ["Paused", each.paused_at && html`<${When} at=${each.paused_at} /> by ${each.paused_by}`]]} />
      <${Folded} text=${pretty(each.arguments)} label="arguments, and where each is found" /><//>
    <${Card} title="Deliveries" note="the newest first"><${Listed} pages=${pages} empty=${html`<${Empty} title="Nobody has called yet" icon="receive" />`}>${(rows) => html`<${Table} label="Deliveries" keyOf=${(row) => row.number} rows=${rows} columns=${[...DELIVERIES.slice(0, 3), ["Job", (row) => (row.job ? html`<${JobLink} id=${row.job} tenant=${each.tenant} />` : html`<span class="dim">–</span>`)], ...DELIVERIES.slice(3)]} />`}<//><//>
  <//>`}<//>`;
};
