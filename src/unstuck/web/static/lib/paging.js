// A list page by page, by the server's cursors. What is shown does not jump: rows are brought up to date where they
// stand, and what has come since is counted, for whoever wants to see it.

import { get, scoped } from "./api.js";
import { useEffect, useState } from "./dom.js";
import { useAsked } from "./asked.js";

export function usePages(words, query, { keyOf, wakes, pace = 2000, limit = 50 }) {
  const first = useAsked(words, { ...query, limit }, { wakes, pace });
  const key = JSON.stringify([words, scoped(words, query)]);
  const [shown, setShown] = useState({ key: null, rows: [], next: null, looked: 0 });
  const [isMore, setMore] = useState(false);
  const [problem, setProblem] = useState(null);

  useEffect(() => {
    if (!first.data) return;
    setShown((before) => {
      // A list that was empty or that shows all there is follows by itself: nothing jumps there.
      const isWhole = before.key === key && before.rows.length === 0;
      if (before.key !== key || isWhole) return { key, rows: first.data.items, next: first.data.next ?? null, looked: first.data.looked ?? 0, fresh: 0 };
      const now = new Map(first.data.items.map((row) => [keyOf(row), row]));
      const known = new Set(before.rows.map(keyOf));
      const fresh = first.data.items.filter((row) => !known.has(keyOf(row))).length;
      return { ...before, rows: merged(before.rows, now, keyOf, !first.data.next), fresh };
    });
  }, [first.data, key]);

  const more = async () => {
    if (!shown.next || isMore) return;
    setMore(true);
    setProblem(null);
    try {
      const page = await get(words, scoped(words, { ...query, limit, after: shown.next }));
      setShown((before) => (before.key === key ? { ...before, rows: [...before.rows, ...page.items], next: page.next ?? null, looked: before.looked + (page.looked ?? 0), isLong: true } : before));
    } catch (error) {
      setProblem(error);
    }
    setMore(false);
  };
  const renew = () => setShown({ key, rows: first.data?.items ?? [], next: first.data?.next ?? null, looked: first.data?.looked ?? 0, fresh: 0 });

  const isMine = shown.key === key;
  return {
    rows: isMine ? shown.rows : undefined,
    fresh: isMine ? (shown.fresh ?? 0) : 0,
    gone: isMine ? shown.rows.filter((row) => row.$look === "moved").length : 0,
    next: isMine ? shown.next : null,
    looked: shown.looked,
    more,
    isMore,
    renew,
    problem: first.problem ?? problem,
    isLoading: first.isLoading && !isMine,
    reload: first.reload,
  };
}

// Rows that stand between others of the newest page, and are no longer in it, have moved on: they stay where they
// stand, and are shown as such. Those below its end were only pushed off it, unless that page is all there is.
const merged = (rows, now, keyOf, isWhole) => {
  const last = isWhole ? rows.length : rows.findLastIndex((row) => now.has(keyOf(row)));
  return rows.map((row, place) => now.get(keyOf(row)) ?? (place < last ? { ...row, $look: "moved" } : row));
};
