// A job's life as spans of time, from its history: pure, so that it can be read and tested without a page.
//
// lanes: [{label, spans: [{from, to, kind, text}], marks: [{at, kind, text}]}]; instants in ms.

const ENDS = new Set(["completed", "failed", "stuck", "timed_out", "cancelled", "interrupted", "retried", "lost", "given_back", "parked", "buried", "resolved"]);
const FINAL = new Set(["completed", "failed", "stuck", "timed_out", "cancelled", "buried", "resolved"]);
const MOST_ATTEMPTS = 12;

const WAITS = { event: "waits for an event", approval: "waits for a decision", children: "waits for its children", time: "waits for its time" };

export const lanes = (job, now) => {
  const line = { label: "in line", spans: [], marks: [] };
  const attempts = [];
  let since = null;
  let what = null;
  const rest = (at, kind, text) => ((since = at), (what = { kind, text }));
  const restEnds = (at) => {
    if (since !== null && at > since) line.spans.push({ from: since, to: at, ...what });
    since = null;
  };
  for (const event of job.history) {
    const at = Date.parse(event.at);
    const current = attempts.at(-1);
    if (event.kind === "claimed") {
      restEnds(at);
      attempts.push({ label: `attempt ${event.attempt ?? attempts.length + 1}`, worker: event.data.by, spans: [], marks: [], from: at, asked: null });
    } else if (event.kind === "requested" && current?.from != null) {
      current.asked ??= at;
      current.marks.push({ at, kind: "asked", text: `asked to stop (${event.data.request ?? "?"})` });
    } else if (ENDS.has(event.kind)) {
      if (current?.from != null) close(current, at, event);
      else restEnds(at);
      if (event.kind === "parked") rest(at, "parked", WAITS[event.data.wait] ?? "parked");
      else if (event.kind === "interrupted") rest(at, "paused", "interrupted");
      else if (event.kind === "retried" || event.kind === "lost" || event.kind === "given_back") rest(at, "backoff", event.data.delay ? `tries again ${Math.round(event.data.delay)} s later` : "waits for its next try");
      else if (FINAL.has(event.kind)) since = null;
    } else if (["submitted", "released", "woken", "resumed", "redriven", "hurried", "unheld", "held"].includes(event.kind)) {
      restEnds(at);
      rest(at, event.kind === "held" ? "held" : "queued", event.kind === "held" ? "held back" : "in the queue");
    }
  }
  const open = attempts.at(-1);
  if (open?.from != null) close(open, now, null);
  else if (since !== null) restEnds(now);
  const steps = { label: "steps", spans: [], marks: [] };
  for (const step of job.steps ?? []) {
    const to = Date.parse(step.at);
    steps.spans.push({ from: to - (step.duration_ms ?? 0), to, kind: "step", text: `${step.name} (${step.duration_ms} ms)`, name: step.name });
  }
  const shown = attempts.slice(-MOST_ATTEMPTS);
  return [line, ...shown, steps].filter((lane) => lane.spans.length || lane.marks.length);
};

const OUTCOMES = { completed: "done", parked: "done", resolved: "done", stuck: "stuck", failed: "failed", timed_out: "failed", retried: "failed", lost: "failed", buried: "failed" };

const close = (attempt, at, event) => {
  const end = event ? (OUTCOMES[event.kind] ?? "stopped") : "open";
  const until = attempt.asked ?? at;
  const told = event ? event.kind.replaceAll("_", " ") : "still runs";
  attempt.spans.push({ from: attempt.from, to: until, kind: attempt.asked ? "ran" : end, text: attempt.asked ? "ran" : `ran: ${told}` });
  if (attempt.asked) attempt.spans.push({ from: until, to: at, kind: end === "stuck" ? "stuck" : "grace", text: `after the request to stop: ${told}` });
  if (event) attempt.marks.push({ at, kind: end, text: told });
  attempt.from = null;
};

// Where the axis has its marks: [share, ms since the beginning].
export const ticks = (from, to, most = 5) => {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];
  const length = (to - from) / 1000;
  const step = steps.find((each) => length / each <= most) ?? length / most;
  const found = [];
  for (let at = 0; at <= length + step / 1000; at += step) found.push([(at * 1000) / (to - from), at]);
  return found;
};
