// Which screen stands at which address. The first words are also in web/files.py, which serves the page there.

import { Alerts } from "./screens/alerts.js";
import { Approvals } from "./screens/approvals.js";
import { Audit } from "./screens/audit.js";
import { Blacklist } from "./screens/blacklist.js";
import { Bulks } from "./screens/bulks.js";
import { DeadLetters } from "./screens/dead_letters.js";
import { Hooks } from "./screens/hooks.js";
import { Job } from "./screens/job.js";
import { Jobs } from "./screens/jobs.js";
import { Keys } from "./screens/keys.js";
import { Notifications } from "./screens/notifications.js";
import { Overview } from "./screens/overview.js";
import { Quarantine } from "./screens/quarantine.js";
import { Queues } from "./screens/queues.js";
import { Schedules } from "./screens/schedules.js";
import { Settings } from "./screens/settings.js";
import { Target } from "./screens/target.js";
import { Targets } from "./screens/targets.js";
import { Tenants } from "./screens/tenants.js";
import { Webhooks } from "./screens/webhooks.js";
import { Workers } from "./screens/workers.js";
import { Workflow } from "./screens/workflow.js";
import { Workflows } from "./screens/workflows.js";

// [screen of the word alone, screen of one thing]
export const ROUTES = {
  alerts: [Alerts],
  approvals: [Approvals],
  audit: [Audit],
  blacklist: [Blacklist],
  bulks: [Bulks, Bulks],
  "dead-letters": [DeadLetters, DeadLetters],
  hooks: [Hooks, Hooks],
  jobs: [Jobs, Job],
  keys: [Keys],
  notifications: [Notifications],
  quarantine: [Quarantine],
  queues: [Queues],
  schedules: [Schedules, Schedules],
  settings: [Settings],
  targets: [Targets, Target],
  tenants: [Tenants],
  webhooks: [Webhooks, Webhooks],
  workers: [Workers, Workers],
  workflows: [Workflows, Workflow],
};

// Addresses by which others know such screens, as notifications name them.
const PLATFORM = {
  diagnostics: (query) => (query.get("tab") === "quarantine" ? Quarantine : Blacklist),
  "dead-letters": () => DeadLetters,
};

export const screenAt = ({ words, query }) => {
  const [first, second] = words;
  if (!first) return Overview;
  if (first === "platform") return PLATFORM[second]?.(query) ?? null;
  return ROUTES[first]?.[words.length - 1] ?? null;
};
