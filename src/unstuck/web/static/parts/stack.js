// A stack, with the line where the job is, or was, marked: the innermost frame of its own part.

import { post } from "../lib/api.js";
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { Card, Copy, Trouble } from "./basic.js";

const FRAME = /^\s*File "(.*)", line (\d+)(?:, in (.*))?/;
const OURS = /[\\/]unstuck[\\/](executor|worker)[\\/]/;

export const stuckLine = (lines) => {
  let found = -1;
  for (const [place, line] of lines.entries()) {
    const frame = FRAME.exec(line);
    if (frame && !OURS.test(frame[1])) found = place;
    // The first part is the job's own; what other threads do stands below it.
    if (found >= 0 && place > found && line.trim() === "") break;
  }
  return found;
};

export const Stack = ({ text, label = "stack" }) => {
  const lines = text.trimEnd().split("\n").slice(0, 400);
  const at = stuckLine(lines);
  const isMarked = (place) => place === at || (place === at + 1 && at >= 0 && !FRAME.test(lines[place]) && lines[place]?.trim());
  return html`<div class="folded">
    <pre class="code stack" tabindex="0" aria-label=${label}>${lines.map(
      (line, place) => html`<span key=${place} class=${isMarked(place) ? "here" : ""}>${line}${"\n"}</span>`,
    )}</pre>
    <span class="corner"><${Copy} text=${text} label="Copy the stack" /></span>
    ${at >= 0 && html`<p class="folded-foot dim">the marked line is where it ${label === "live stack" ? "is" : "was"}</p>`}
  </div>`;
};

// Where a running job is right now: asked of its worker, again every two seconds if somebody wants to watch.
export const Live = ({ job }) => {
  const [shown, setShown] = useState(null);
  const [problem, setProblem] = useState(null);
  const [isFollowing, setFollowing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const same = useRef({ text: "", since: 0 });
  const look = async () => {
    setBusy(true);
    try {
      const stack = await post(["jobs", job.id, "stack"], { timeout: 5 }, { tenant: job.tenant });
      if (stack.stack !== same.current.text) same.current = { text: stack.stack, since: Date.now() };
      setShown(stack);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  useEffect(() => {
    if (!isFollowing) return undefined;
    const timer = setInterval(() => !document.hidden && look(), 2000);
    return () => clearInterval(timer);
  }, [isFollowing, job.id]);
  const lasts = shown && isFollowing ? Math.round((Date.now() - same.current.since) / 1000) : 0;
  return html`<${Card} title="Live stack" id="live-stack" note=${shown ? `${shown.source === "live" ? "as its worker showed it" : "as an attempt left it"}${shown.pid ? `, process ${shown.pid}` : ""}${lasts > 3 ? `; the same for ${lasts} s` : ""}` : "where it is in its code"}
    actions=${html`<button type="button" class="small" onClick=${look} disabled=${isBusy}>${isBusy ? "…" : shown ? "Look again" : "Show where it is"}</button>
      ${shown && html`<button type="button" class="small" aria-pressed=${isFollowing} onClick=${() => setFollowing(!isFollowing)}>${isFollowing ? "Stop following" : "Follow"}</button>`}`}>
    ${problem && html`<${Trouble} problem=${problem} />`}
    ${shown ? html`<${Stack} text=${shown.stack} label=${shown.source === "live" ? "live stack" : "stack"} />` : !problem && html`<p class="dim">Its worker is asked, and answers also while the job holds the interpreter.</p>`}
  <//>`;
};
