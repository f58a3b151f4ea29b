// Workflows: what can run, how it goes, and what shuts it.

import { useAsked } from "../lib/asked.js";
import { html } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { term } from "../lib/search.js";
import { count, oneLine } from "../lib/text.js";
import { hourAgo, ms } from "../lib/time.js";
import { Answer, Empty, Pill, Screen, Table } from "../parts/basic.js";

// What ended in the last hour, by workflow.
export const useRates = (name) => {
  const since = hourAgo();
  const series = useAsked(["series"], name ? { since, step: 3600, workflow: name, per: "workflow" } : { since, step: 3600, per: "workflow", limit: 20 }, { every: 30_000, keep: true });
  const found = new Map();
  for (const point of series.data?.points ?? []) {
    const before = found.get(point.name) ?? { ended: 0, completed: 0, failed: 0, run: [], wait: [] };
    const add = (a, b) => b.map((number, place) => number + (a[place] ?? 0));
    found.set(point.name, {
      ended: before.ended + point.ended, completed: before.completed + point.completed, failed: before.failed + point.failed + point.timeout + point.dead,
      run: add(before.run, point.run), wait: add(before.wait, point.wait),
    });
  }
  return { rates: found, buckets: series.data?.buckets_ms ?? [] };
};

export const percentile = (buckets, numbers, share) => {
  const all = numbers.reduce((sum, number) => sum + number, 0);
  if (!all) return null;
  let seen = 0;
  for (const [place, number] of numbers.entries()) {
    seen += number;
    if (seen >= share * all) return buckets[place] ?? 1_800_001;
  }
  return null;
};

export const Workflows = () => {
  const asked = useAsked(["workflows"], {}, { wakes: (event) => event.kind.startsWith("pause.") || event.kind.startsWith("worker.") || event.kind.startsWith("blacklist."), pace: 2000 });
  const blacklist = useAsked(["blacklist"], {}, { wakes: (event) => event.kind.startsWith("blacklist.") });
  const { rates, buckets } = useRates();
  const shut = new Set((blacklist.data?.items ?? []).map((entry) => entry.workflow));
  const told = (name, part, share) => {
    const found = rates.get(name);
    const value = found ? percentile(buckets, found[part], share) : null;
    return value == null ? html`<span class="dim">–</span>` : `≤ ${ms(value)}`;
  };
  const columns = [
    ["Workflow", (each) => html`<a href=${href(["workflows", each.name])}><b>${each.name}</b></a>${each.doc && html`<span class="under dim">${oneLine(each.doc, 110)}</span>`}`, "what"],
    ["", (each) => html`${shut.has(each.name) && html`<${Pill} tone="bad">blacklisted<//>`}${each.pauses.length > 0 && html`<${Pill} tone="warn">paused<//>`}`, "narrow"],
    ["Queue", (each) => each.queue, "short"],
    ["Ended, 1 h", (each) => html`<a href=${href(["jobs"], { q: term("workflow", each.name) })}>${count(rates.get(each.name)?.ended ?? 0)}</a>`, "narrow right"],
    ["Failed", (each) => (rates.get(each.name)?.failed ? html`<b class="error-text">${count(rates.get(each.name).failed)}</b>` : html`<span class="dim">0</span>`), "narrow right"],
    ["Run p50", (each) => told(each.name, "run", 0.5), "narrow right"],
    ["Run p95", (each) => told(each.name, "run", 0.95), "narrow right"],
    ["Wait p95", (each) => told(each.name, "wait", 0.95), "narrow right"],
  ];
  return html`<${Screen} title="Workflows" lead="What workers have registered, and how it went in the last hour." wide=${true}>
    <${Answer} of=${asked}>${(page) => (page.items.length ? html`<${Table} label="Workflows" columns=${columns} rows=${page.items} keyOf=${(each) => each.name} open=${true} />` : html`<${Empty} title="No workflow is registered" icon="flow">A worker registers what its app has: <code>unstuck worker MODULE:APP</code><//>`)}<//>
    <p><a href=${href(["blacklist"])}>Blacklist</a></p>
  <//>`;
};
