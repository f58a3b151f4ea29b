// What happens, as it happens: one stream of the feed for all tabs of this browser.
//
// The tab that holds the lock reads the stream and tells the others by a channel: a browser has few connections to one
// server, and ten tabs would take them all. Where there are no locks (plain http from elsewhere), each reads its own.
// A stream that is cut goes on behind the last event that it told. Where streams do not come through, pages of
// events are asked for instead (long polls).

import { address, asker, about, get, tenant } from "./api.js";
import { effect, signal } from "./dom.js";

// "connecting", "live", "polling", "away"
export const link = signal("connecting");
export const heardAt = signal(Date.now());
// Grows whenever something may have been missed: what is shown is asked for again.
export const generation = signal(0);
// The last events of all, the newest first; so many are kept and no more.
export const recent = signal([]);
const MOST_RECENT = 200;

const listeners = new Set();
export const listen = (call) => {
  listeners.add(call);
  return () => listeners.delete(call);
};

let gathered = [];
let flushing = null;
const gather = (event) => {
  gathered.push(event);
  if (gathered.length > 2000) gathered.splice(0, 1000);
  flushing ??= setTimeout(flush, 250);
};

const flush = () => {
  flushing = null;
  const events = gathered;
  gathered = [];
  recent.value = [...events.slice(-MOST_RECENT).reverse(), ...recent.value].slice(0, MOST_RECENT);
  for (const call of listeners) call(events);
};

const heard = (message) => {
  heardAt.value = Date.now();
  if (message.link) link.value = message.link;
  if (message.event) gather(message.event);
  if (message.missed) generation.value += 1;
};

// --- who reads ----------------------------------------------------------------------------------------------------

let running = null;

const start = (whose) => {
  running?.stop();
  const stopped = new AbortController();
  running = { stop: () => stopped.abort() };
  link.value = "connecting";
  const name = `unstuck ${new URL(document.baseURI).pathname} ${whose}`;
  const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(name) : null;
  const tell = (message) => {
    heard(message);
    channel?.postMessage(message);
  };
  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.ask) {
        if (running?.isReader) channel.postMessage({ link: link.value });
      } else heard(data);
    };
    channel.postMessage({ ask: true });
  }
  const mine = running;
  const read = async () => {
    if (stopped.signal.aborted) return;
    mine.isReader = true;
    await follow(tell, stopped.signal);
  };
  stopped.signal.addEventListener("abort", () => channel?.close());
  if (navigator.locks) navigator.locks.request(name, { signal: stopped.signal }, read).catch(() => {});
  else read();
};

// As long as somebody is logged in, anew for each tenant.
effect(() => {
  if (asker.value) start(`${asker.value.key ?? ""} ${asker.value.tenant ?? tenant.value}`);
  else {
    running?.stop();
    running = null;
  }
});

// --- how ----------------------------------------------------------------------------------------------------------

const TRIES_BEFORE_POLLS = 4;
// The server says something every 15 s; a connection that is silent for longer leads nowhere.
const SILENT = 40_000;

const pause = (time, stop) =>
  new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", end); // it outlives the pause, by days
      done();
    };
    const timer = setTimeout(end, time);
    stop.addEventListener("abort", end);
  });

async function follow(tell, stop) {
  const cursor = { at: null };
  let failures = 0;
  while (!stop.aborted) {
    const opened = await stream(cursor, tell, stop);
    if (stop.aborted) return;
    failures = opened ? 0 : failures + 1;
    if (failures >= TRIES_BEFORE_POLLS) {
      const polled = await poll(cursor, tell, stop);
      if (polled) failures = TRIES_BEFORE_POLLS - 1;
    } else {
      tell({ link: failures > 1 ? "away" : "connecting" });
    }
    await pause(Math.min(1000 * 2 ** failures, 15_000) * (0.75 + Math.random() / 2), stop);
  }
}

// Until it ends; true: it was open.
const stream = (cursor, tell, stop) =>
  new Promise((done) => {
    let wasOpen = false;
    let watch = null;
    const source = new EventSource(address(["events"], about({ after: cursor.at ?? undefined })));
    const close = () => {
      clearTimeout(watch);
      stop.removeEventListener("abort", close);
      source.close();
      done(wasOpen);
    };
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(close, SILENT);
    };
    const note = (message) => {
      alive();
      if (message.lastEventId) cursor.at = message.lastEventId;
    };
    stop.addEventListener("abort", close);
    source.onopen = () => {
      // Whoever begins anew has not seen what happened meanwhile.
      tell({ link: "live", missed: !wasOpen && cursor.at == null });
      wasOpen = true;
      alive();
    };
    source.onmessage = (message) => {
      note(message);
      if (message.data) tell({ event: JSON.parse(message.data) });
      else tell({ link: "live" });
    };
    source.addEventListener("reset", (message) => {
      note(message);
      tell({ missed: true });
    });
    source.addEventListener("end", (message) => {
      note(message);
      const { reason } = JSON.parse(message.data || "{}");
      if (reason === "revoked") asker.value = null;
      close();
    });
    source.onerror = close;
    alive();
  });

// For a minute, then a stream is tried again.
async function poll(cursor, tell, stop) {
  const until = Date.now() + 60_000;
  try {
    if (cursor.at == null) tell({ missed: true });
    while (!stop.aborted && Date.now() < until) {
      const page = await get(["events"], about({ after: cursor.at ?? "now", wait: 20 }), { signal: stop });
      tell({ link: "polling" });
      for (const event of page.items) tell({ event });
      cursor.at = page.next ?? page.items.at(-1)?.cursor ?? cursor.at;
      if (cursor.at == null) await pause(2000, stop);
    }
    return true;
  } catch (problem) {
    if (problem.status === 410) {
      cursor.at = null;
      tell({ missed: true });
      return true;
    }
    tell({ link: "away" });
    return false;
  }
}
