// What a screen asks the API for: kept up to date by events, never by a hurry of its own.
//
//   const jobs = useAsked([words, query], {wakes: (event) => event.job === id})
//
// It is asked again when an event wakes it (at most once per `pace`), when something may have been missed, every
// `every` ms if that is said, and after an action. While the tab is hidden nothing is asked. `keep`: what was asked
// before is shown until the answer to the new question is there.

import { get, scoped } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { generation, listen } from "./stream.js";

const all = new Set();
// After an action: everything that is shown, at once.
export const refresh = () => all.forEach((call) => call());

export function useAsked(words, query = {}, { wakes, every, pace = 1000, skip = false, keep = false } = {}) {
  const key = skip ? null : JSON.stringify([words, scoped(words, query)]);
  const [state, set] = useState({ data: undefined, problem: null, key: null });
  const wakesNow = useRef(wakes);
  wakesNow.current = wakes;
  const again = useRef(() => {});

  useEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    let isAsking = false;
    let isDue = false;
    let timer = null;
    let askedAt = 0;

    const load = async () => {
      if (isAsking || stop.signal.aborted) return void (isDue = true);
      if (document.hidden && askedAt) return void (isDue = true);
      isAsking = true;
      isDue = false;
      askedAt = Date.now();
      try {
        const [asked, asking] = JSON.parse(key);
        const data = await get(asked, asking, { signal: stop.signal });
        set({ data, problem: null, key });
      } catch (problem) {
        if (stop.signal.aborted) return;
        set((before) => ({ data: before.key === key ? before.data : undefined, problem, key }));
      } finally {
        isAsking = false;
        if (isDue) soon();
      }
    };
    const soon = () => {
      if (timer || stop.signal.aborted) return;
      timer = setTimeout(() => ((timer = null), load()), Math.max(50, askedAt + pace - Date.now()));
    };
    const shown = () => !document.hidden && (isDue || Date.now() - askedAt > 30_000) && load();

    load();
    again.current = load;
    all.add(load);
    const deaf = listen((events) => wakesNow.current && events.some(wakesNow.current) && soon());
    const first = generation.peek();
    const unsubscribe = generation.subscribe((number) => number !== first && soon());
    const interval = every ? setInterval(soon, every) : null;
    document.addEventListener("visibilitychange", shown);
    return () => {
      stop.abort();
      all.delete(load);
      deaf();
      unsubscribe();
      clearInterval(interval);
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, every, pace]);

  const isMine = state.key === key || (keep && state.data !== undefined);
  return {
    data: isMine ? state.data : undefined,
    problem: isMine ? state.problem : null,
    isLoading: !skip && (!isMine || (state.data === undefined && !state.problem)),
    reload: () => again.current(),
  };
}
