// API keys, and the browsers that are logged in with them. A key is shown once.

import { asker } from "../lib/api.js";
import { command } from "../lib/command.js";
import { html, useState } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { href } from "../lib/router.js";
import { may } from "../lib/session.js";
import { Act, Acts, Card, Command, Empty, Pill, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";
import { Secret } from "../parts/secret.js";

const ROLES = ["reader", "submitter", "operator", "tenant-admin", "platform-admin", "worker"];
const TONES = { active: "good", expired: "calm", revoked: "bad" };

const create = (shown) => ({
  operation: "keys.create", label: "New key…", path: ["keys"],
  confirm: { title: "A new key", text: "It is shown once, right after it was made: nobody can show it again.", yes: "Make it" },
  fields: [
    { name: "name", label: "Whose it is", hint: "as the audit will say" },
    { name: "role", label: "Role", hint: "what it may ask", choices: ROLES, value: "reader" },
    { name: "tenant", label: "Tenant", hint: "whose jobs it sees; empty: the platform's", optional: true, value: asker.value?.tenant ?? "" },
    { name: "expires", label: "Expires", hint: "e.g. 90d; empty: when it is revoked", optional: true },
  ],
  body: ({ name, role, expires }) => ({ name, role, ...(expires ? { expires } : {}) }),
  query: ({ tenant }) => (tenant ? { tenant } : {}),
  command: ({ name, role, tenant, expires }) => command("keys create", [name ?? "NAME"], { role, tenant, expires }),
  done: "the key is made: copy it now", after: shown,
});
const revoke = (key) => ({
  operation: "keys.revoke", label: "Revoke", tone: "bad", method: "DELETE", path: ["keys", key.id],
  confirm: { title: `Revoke ${key.name}?`, text: "It stops working everywhere within 5 seconds, with every browser that is logged in by it. It cannot be taken back.", yes: "Revoke it" },
  command: command("keys revoke", [key.id]), done: `${key.name} is revoked`,
});
const rotate = (key, shown) => ({
  operation: "keys.rotate", label: "Rotate", path: ["keys", key.id, "rotate"],
  confirm: { title: `Rotate ${key.name}?`, text: "A new key with the same rights; the old one works for one more hour.", yes: "Rotate it" },
  body: {}, command: command("keys rotate", [key.id]), done: "the new key is made: copy it now", after: shown,
});
const end = (session) => ({
  operation: "sessions.end", label: "Log out", method: "DELETE", path: ["sessions", session.number],
  command: command("sessions end", [session.number]), done: `${session.by} is logged out`,
});

export const Keys = ({ query }) => {
  const isAll = query.get("all") === "yes";
  const [made, setMade] = useState(null);
  const pages = usePages(["keys"], isAll ? { ended: true } : {}, { keyOf: (each) => each.id });
  if (!may("keys.list")) return html`<${Screen} title="Keys"><${Empty} title="Your role may not see keys" icon="key">A tenant-admin or platform-admin may.<//><//>`;
  const columns = [
    ["Key", (each) => html`<b>${each.name}</b> <code class="dim">${each.id}</code>`],
    ["State", (each) => html`<${Pill} tone=${TONES[each.state]}>${each.state}<//>`, "narrow"],
    ["Role", (each) => each.role, "narrow"],
    ["Whose", (each) => each.tenant ?? html`<span class="dim">the platform's</span>`],
    ["Only", (each) => [each.queues && `queues ${each.queues.join(", ")}`, each.workflows && `workflows ${each.workflows.join(", ")}`].filter(Boolean).join("; ") || html`<span class="dim">–</span>`],
    ["Used", (each) => html`<${When} at=${each.last_used_at} none="never" />`, "narrow"],
    ["Expires", (each) => html`<${When} at=${each.expires_at} none="never" />`, "narrow"],
    ["", (each) => each.state === "active" && html`<${Acts} actions=${[rotate(each, setMade), revoke(each)]} />`, "right"],
  ];
  return html`<${Screen} title="Keys" lead="Who may ask, and what. Keys are stored as their hash alone." wide=${true} actions=${html`<${Act} action=${create(setMade)} primary=${true} />`}>
    <${Secret} text=${made?.key} what="key" seen=${() => setMade(null)} />
    <div class="tabs" role="group" aria-label="Which keys"><a class="button small" aria-current=${isAll ? undefined : "true"} href=${href(["keys"])}>Active</a><a class="button small" aria-current=${isAll ? "true" : undefined} href=${href(["keys"], { all: "yes" })}>All</a></div>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="There is no key" icon="key">Without one the server answers this machine alone. The first key makes it ask everybody for one: make a platform-admin first, or you lock yourself out of this page. <${Command} text="unstuck keys create NAME --role platform-admin" /><//>`}>
      ${(rows) => html`<${Table} label="Keys" columns=${columns} rows=${rows} keyOf=${(each) => each.id} />`}<//>
    <${Sessions} />
  <//>`;
};

const Sessions = () => {
  const pages = usePages(["sessions"], {}, { keyOf: (each) => each.number });
  return html`<${Card} title="Browsers that are logged in"><${Listed} pages=${pages} empty=${html`<p class="dim">None.</p>`}>${(rows) => html`<${Table} label="Sessions" rows=${rows} keyOf=${(each) => each.number} columns=${[
    ["Who", (each) => html`<b>${each.by}</b> <span class="dim">key ${each.key}</span>`],
    ["Role", (each) => each.role],
    ["From", (each) => each.address ?? html`<span class="dim">–</span>`],
    ["Since", (each) => html`<${When} at=${each.began_at} />`, "narrow"],
    ["Ends", (each) => html`<${When} at=${each.ends_at} />`, "narrow"],
    ["", (each) => html`<${Acts} actions=${[end(each)]} />`, "right"],
  ]} />`}<//><//>`;
};
