// Who asks, and what they may: buttons are shown by this; the server refuses by its own knowledge all the same.

import { Problem, ask, asker, BASE } from "./api.js";

const ROLES = ["reader", "submitter", "operator", "tenant-admin", "platform-admin"];

// Whom the operations that the page asks for need; tests/web compares it with the table of operations.
export const NEEDS = {
  "alerts.ack": "operator",
  "alerts.mute": "operator",
  "alerts.unmute": "operator",
  "approvals.approve": "operator",
  "approvals.reject": "operator",
  "blacklist.add": "tenant-admin",
  "blacklist.remove": "tenant-admin",
  "bulks.cancel": "operator",
  "bulks.start": "operator",
  "dead_letters.discard": "operator",
  "dead_letters.redrive": "operator",
  "dead_letters.resign": "tenant-admin",
  "events.send": "operator",
  "hooks.delete": "tenant-admin",
  "hooks.pause": "operator",
  "hooks.resume": "operator",
  "hooks.rotate": "tenant-admin",
  "jobs.cancel": "operator",
  "jobs.enqueue": "submitter",
  "jobs.interrupt": "operator",
  "jobs.release": "operator",
  "jobs.replay": "operator",
  "jobs.reprioritise": "operator",
  "jobs.resolve": "operator",
  "jobs.resume": "operator",
  "jobs.retry": "operator",
  "jobs.run_now": "operator",
  "jobs.skip": "operator",
  "keys.create": "tenant-admin",
  "keys.list": "tenant-admin",
  "keys.revoke": "tenant-admin",
  "keys.rotate": "tenant-admin",
  "notifications.ack": "operator",
  "quarantine.retry": "operator",
  "queues.limit": "operator",
  "queues.pause": "operator",
  "queues.unlimit": "operator",
  "queues.unpause": "operator",
  "schedules.delete": "operator",
  "schedules.pause": "operator",
  "schedules.resume": "operator",
  "schedules.run_now": "operator",
  "sessions.end": "tenant-admin",
  "sessions.list": "tenant-admin",
  "settings.reset": "platform-admin",
  "settings.set": "platform-admin",
  "targets.pause": "operator",
  "targets.unpause": "operator",
  "tenants.limit": "platform-admin",
  "tenants.list": "platform-admin",
  "tenants.pause": "platform-admin",
  "tenants.unlimit": "platform-admin",
  "tenants.unpause": "platform-admin",
  "tenants.weigh": "platform-admin",
  "webhooks.delete": "tenant-admin",
  "webhooks.enable": "operator",
  "webhooks.pause": "operator",
  "webhooks.replay": "operator",
  "webhooks.rotate": "tenant-admin",
  "webhooks.test": "operator",
  "workers.drain": "platform-admin",
  "workers.kill": "platform-admin",
  "workers.recycle": "platform-admin",
  "workflows.pause": "operator",
  "workflows.unpause": "operator",
};

// `more`: the role that this way of asking for it needs.
export const may = (operation, more = null) => {
  const role = asker.value?.role;
  return role != null && ROLES.indexOf(role) >= ROLES.indexOf(more ?? NEEDS[operation] ?? "platform-admin");
};

export const isReader = () => !may("jobs.cancel");

export const recognise = async () => {
  try {
    asker.value = await ask("GET", `${BASE}/session`);
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 401) asker.value = null;
    else throw problem;
  }
};

export const logIn = async (key) => {
  asker.value = await ask("POST", `${BASE}/session`, { key });
};

export const logOut = async () => {
  try {
    await ask("DELETE", `${BASE}/session`);
  } catch (problem) {
    if (![401, 404].includes(problem.status)) throw problem; // it had ended by itself
  }
  asker.value = null;
};
