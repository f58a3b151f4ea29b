// The audit: who did what, to what, from where.

import { html, useEffect, useState } from "../lib/dom.js";
import { usePages } from "../lib/paging.js";
import { requery } from "../lib/router.js";
import { oneLine } from "../lib/text.js";
import { Empty, Screen, Table, When } from "../parts/basic.js";
import { Listed } from "../parts/listed.js";

const COLUMNS = [
  ["When", (each) => html`<${When} at=${each.at} />`, "narrow"],
  ["Who", (each) => html`<b>${each.by}</b>${each.key && html` <span class="dim">key ${each.key}</span>`}`],
  ["Did", (each) => html`<code>${each.verb}</code>`, "narrow"],
  ["To", (each) => html`<span class="mono">${each.subject}</span>`],
  ["More", (each) => html`<span class="dim">${oneLine(Object.entries(each.detail).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", "), 160)}</span>`, "what"],
  ["From", (each) => html`<span class="dim">${each.address ?? "–"}</span>`, "narrow"],
];

export const Audit = ({ query }) => {
  const wanted = { verb: query.get("verb") ?? "", subject: query.get("subject") ?? "" };
  const [texts, setTexts] = useState(wanted);
  useEffect(() => setTexts(wanted), [wanted.verb, wanted.subject]);
  const asked = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
  const pages = usePages(["audit"], asked, { keyOf: (each) => each.number, wakes: (event) => event.data?.by != null || event.by != null, pace: 3000 });
  const submit = (event) => (event.preventDefault(), requery(texts, { replace: false }));
  return html`<${Screen} title="Audit" lead="Every change by a person or a key. Nobody can take a line out." wide=${true}>
    <form class="filters" onSubmit=${submit} role="search">
      ${[["verb", "Verb", "keys, jobs.cancel"], ["subject", "Subject", "whom or what it was about"]].map(([name, label, hint]) => html`<label key=${name} class="inline"><span>${label}</span><input value=${texts[name]} placeholder=${hint} onInput=${(event) => setTexts({ ...texts, [name]: event.target.value })} ...${name === "verb" ? { "data-search": true } : {}} /></label>`)}
      <button type="submit" class="primary">Search</button></form>
    <${Listed} pages=${pages} empty=${html`<${Empty} title="Nothing was changed" icon="audit">What people and keys change stands here, for good.<//>`}>
      ${(rows) => html`<${Table} label="Audit" columns=${COLUMNS} rows=${rows} keyOf=${(each) => each.number} />`}<//>
  <//>`;
};
