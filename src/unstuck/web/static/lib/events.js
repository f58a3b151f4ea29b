// What events mean, in words for people, and what each is about.

import { ms } from "./time.js";

const MEANINGS = {
  submitted: "submitted",
  released: "released",
  claimed: "claimed",
  given_back: "given back, at no cost",
  completed: "completed",
  retried: "failed, will be tried again",
  lost: "attempt lost, will run again",
  failed: "failed for good",
  stuck: "stuck: did not stop when asked",
  timed_out: "stopped at its time limit",
  cancelled: "cancelled",
  interrupted: "interrupted",
  parked: "parked",
  woken: "woken",
  held: "held",
  buried: "buried as a dead letter",
  resumed: "resumed: a new run",
  resolved: "resolved by a person",
  redriven: "redriven",
  requested: "asked to stop",
  hurried: "made due at once",
  reprioritised: "given another priority",
  skipped: "skipped: its target moves on",
  unheld: "no longer held",
  "worker.joined": "worker joined",
  "worker.left": "worker left",
  "worker.lost": "worker lost",
  "target.blocked": "target blocked",
  "target.freed": "target free again",
  "pause.begun": "paused",
  "pause.ended": "pause over",
  "blacklist.added": "workflow blacklisted",
  "blacklist.removed": "workflow off the blacklist",
  "approval.asked": "asks for an approval",
  "approval.decided": "approval decided",
  "notification.made": "notification",
  "security.signature_refused": "signature refused",
  "dead_letter.added": "dead letter",
  "alert.opened": "alert",
  "alert.closed": "alert is over",
  "schedule.fired": "schedule made a job",
  "schedule.not_fired": "a tick of the schedule made no job",
  "schedule.silent": "schedule fell silent",
  "schedule.paused": "schedule paused",
  "schedule.resumed": "schedule goes on",
};

const TONES = {
  completed: "good", resolved: "good", "target.freed": "good", "blacklist.removed": "good", "worker.joined": "good",
  "alert.closed": "good", "schedule.resumed": "good",
  claimed: "busy", woken: "busy", resumed: "busy",
  failed: "bad", stuck: "bad", timed_out: "bad", buried: "bad", "worker.lost": "bad", "target.blocked": "bad",
  "blacklist.added": "bad", "security.signature_refused": "bad", "dead_letter.added": "bad", "alert.opened": "bad", "schedule.silent": "bad",
  retried: "warn", lost: "warn", requested: "warn", parked: "warn", "approval.asked": "warn", "pause.begun": "warn",
  "notification.made": "warn", interrupted: "warn",
  "schedule.not_fired": "warn", "schedule.paused": "warn",
};

export const meaning = (kind) => MEANINGS[kind] ?? kind;
// Whom an event that is no job's is about.
export const subject = (event) => event.worker ?? event.target ?? event.data?.schedule ?? event.workflow ?? event.topic ?? "";
export const tone = (kind) => TONES[kind] ?? "calm";

const UNTOLD = new Set(["claim", "worker", "loss", "failure", "alone", "code_version", "key", "number", "suspect"]);

// The facts of an event that a reader wants, as one short text.
export const facts = (event) => {
  const data = event.data ?? {};
  if (event.kind === "parked" && data.wait) {
    const what = { event: `waits for event ${data.name}`, approval: `asks “${data.name}”` }[data.wait];
    return what ?? (data.wait === "children" ? "waits for its children" : "waits for its time");
  }
  if (event.kind === "woken" && data.wait) {
    const answer = [data.answer, data.by && `by ${data.by}`].filter(Boolean).join(" ");
    return { children: "its children have ended", time: "its time has come" }[data.wait] ?? `${data.wait} “${data.name}”: ${answer}`;
  }
  if (data.error_type || data.error_message) return [data.error_type, data.error_message].filter(Boolean).join(": ");
  if (data.question) return [`“${data.question}”`, data.answer, data.by && `by ${data.by}`].filter(Boolean).join(" ");
  if (["notification.made", "alert.opened"].includes(event.kind)) return data.message ?? data.title;
  if (event.kind === "alert.closed") return `${data.title}, after ${ms(data.open_ms)}`;
  return Object.entries(data)
    .filter(([name, value]) => !UNTOLD.has(name) && value != null && value !== "")
    .map(([name, value]) => {
      if (name === "duration_ms") return `${value} ms`;
      if (name === "delay") return `in ${Math.round(value * 10) / 10} s`;
      return `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`;
    })
    .join(", ");
};
