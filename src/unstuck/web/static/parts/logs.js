// What a job says: all of it once it has ended, as it comes while it runs. So many lines are kept on the page.

import { about, address, get } from "../lib/api.js";
import { command, ofTenant } from "../lib/command.js";
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { clock, exact } from "../lib/time.js";
import { Card, Copy, Trouble } from "./basic.js";

const MOST = 1000;
// About 32 KB of an attempt are told while it runs (executor/capture.py); with the frames of records it may be less.
const TOLD = 16_000;
const LEVELS = ["debug", "info", "warning", "error"];

export const Logs = ({ job, isOver }) => {
  const [level, setLevel] = useState("");
  const { pieces, problem, isCut, said } = usePieces(job, isOver, level);
  const [isFollowing, setFollowing] = useState(true);
  const frame = useRef(null);
  useEffect(() => {
    if (isFollowing && frame.current) frame.current.scrollTop = frame.current.scrollHeight;
  }, [pieces.length, isFollowing]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = frame.current;
    setFollowing(scrollHeight - scrollTop - clientHeight < 40);
  };
  return html`<${Card} title="Logs" id="logs" note=${isOver ? "" : isFollowing ? "following" : "scroll down to follow"} actions=${html`
    <label class="inline"><span class="unseen">Level</span><select value=${level} onChange=${(event) => setLevel(event.target.value)}>
      <option value="">everything</option>${LEVELS.map((each) => html`<option key=${each} value=${each}>${each} and above</option>`)}</select></label>
    ${pieces.length > 0 && html`<${Copy} text=${pieces.map((piece) => piece.text).join("\n")} label="Copy the logs" />`}`}>
    ${problem && html`<${Trouble} problem=${problem} />`}
    ${pieces.length
      ? html`<div class="logs" ref=${frame} onScroll=${scrolled} tabindex="0" role="log" aria-label="Logs">${isCut && html`<p class="dim">Earlier lines are left out: <code>${command("jobs logs", [job.id], ofTenant(job.tenant))}</code></p>`}${pieces.map(
          (piece, place) => html`<div key=${place} class="log" data-level=${piece.level ?? ""}><span class="dim" title=${piece.at ? exact(piece.at) : undefined}>${piece.at ? clock(piece.at) : ""}</span><span class="log-level">${piece.level && piece.level !== "info" ? piece.level : ""}</span><pre>${told(piece)}</pre></div>`,
        )}</div>`
      : html`<p class="dim">${isOver ? "It said nothing." : "Nothing yet."}</p>`}
    ${!isOver && said > TOLD && html`<p class="dim">While it runs the first 32 KB of an attempt are shown here. The end of what it says follows when it has ended.</p>`}
  <//>`;
};

// The level stands beside it.
const told = ({ text, level }) => (text ?? "").slice(level && text?.startsWith(`${level.toUpperCase()} `) ? level.length + 1 : 0).trimEnd();

const usePieces = (job, isOver, level) => {
  const [state, set] = useState({ pieces: [], problem: null, isCut: false });
  useEffect(() => {
    const stop = new AbortController();
    const query = about({ level, tenant: job.tenant });
    set({ pieces: [], problem: null, isCut: false });
    if (isOver) all(job.id, query, stop.signal, set);
    else follow(job.id, query, stop.signal, set);
    return () => stop.abort();
  }, [job.id, isOver, level]);
  return state;
};

const kept = (pieces) => ({ pieces: pieces.slice(-MOST), isCut: pieces.length > MOST, problem: null });

const all = async (id, query, stop, set) => {
  const pieces = [];
  let after;
  try {
    do {
      const page = await get(["jobs", id, "logs"], { ...query, after, limit: 100 }, { signal: stop });
      pieces.push(...page.items);
      after = page.next;
    } while (after && pieces.length < 5 * MOST);
    set(kept(pieces));
  } catch (problem) {
    if (!stop.aborted) set({ pieces, problem, isCut: false });
  }
};

// A stream of logs begins anew whenever it is opened.
const follow = (id, query, stop, set) => {
  let pieces = [];
  let said = 0; // by the last attempt
  let timer = null;
  const show = () => {
    timer ??= setTimeout(() => {
      timer = null;
      if (pieces.length > 2 * MOST) pieces = pieces.slice(-MOST - 1);
      set({ ...kept(pieces), said });
    }, 150);
  };
  const source = new EventSource(address(["jobs", id, "logs"], query));
  source.onopen = () => ((pieces = []), (said = 0));
  source.onmessage = ({ data }) => {
    if (!data) return;
    const piece = JSON.parse(data);
    said = (piece.attempt === pieces.at(-1)?.attempt ? said : 0) + (piece.text?.length ?? 0);
    pieces.push(piece);
    show();
  };
  source.addEventListener("end", () => source.close());
  stop.addEventListener("abort", () => (clearTimeout(timer), source.close()));
};
