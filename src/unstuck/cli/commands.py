"""The table of commands: what `unstuck --help` shows and which module serves each, without importing any.

Help must cost little more than starting Python; so the first word is looked up here, and only the one module that
serves it is imported.
"""

from __future__ import annotations

# A name that type checkers take for true, without the price of importing `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from unstuck.cli.parser import Command


class CommandEntry:
    """One line of the overview. A plain class: `typing` and `dataclasses` would double the price of help."""

    def __init__(self, name: str, module: str, summary: str, section: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary
        self.section = section


COMMANDS = [
    CommandEntry("demo", "demo", "see it work: a living example on a SQLite file", "Start here"),
    CommandEntry("dev", "dev", "worker, server and reload on code change, while you write an app", "Start here"),
    CommandEntry("worker", "worker", "run the jobs of an app", "Run"),
    CommandEntry("server", "server", "answer HTTP: everything that can be asked, under /api/v1", "Run"),
    CommandEntry("enqueue", "enqueue", "ask for a workflow to run", "Run"),
    CommandEntry(
        "jobs",
        "jobs",
        "list, show, history, steps, partials, tree, wait, logs, cancel, resume, …",
        "Look and act",
    ),
    CommandEntry("bulks", "bulks", "verbs over many jobs at once: how far they are; cancel them", "Look and act"),
    CommandEntry("approvals", "approvals", "what jobs ask of people: list, approve, reject", "Look and act"),
    CommandEntry(
        "events", "events", "what happens to all jobs, in order: list, follow; send one to a job", "Look and act"
    ),
    CommandEntry("why", "why", "why a job is not running, who must act, and the command to type", "Look and act"),
    CommandEntry("stack", "stack", "where a running job is now, or where a stuck or failed one was", "Look and act"),
    CommandEntry(
        "webhooks",
        "webhooks",
        "what happens, sent to a URL: create, test, pause, replay, rotate, …",
        "Look and act",
    ),
    CommandEntry("deliveries", "deliveries", "what was sent to webhooks, and what came of each try", "Look and act"),
    CommandEntry(
        "top", "top", "all of it live: queues, running jobs, workers, what needs you; keys to act", "Look and act"
    ),
    CommandEntry("stats", "stats", "how many jobs are in which state", "Look and act"),
    CommandEntry(
        "series", "series", "what ended, minute by minute: how, after which wait, how long it ran", "Look and act"
    ),
    CommandEntry("workers", "workers", "who runs jobs, in which processes; recycle and drain them", "Look and act"),
    CommandEntry("workflows", "workflows", "what can be run; pause and limit it", "Look and act"),
    CommandEntry("schedules", "schedules", "what runs by the clock: create, pause, run-now, backfill, next", "Order"),
    CommandEntry("hooks", "hooks", "webhooks in: other systems' calls that start a workflow", "Order"),
    CommandEntry("targets", "targets", "where jobs run one at a time: whose turn it is, what blocks", "Order"),
    CommandEntry("queues", "queues", "what waits where, and who serves it; pause and limit them", "Order"),
    CommandEntry("tenants", "tenants", "whose jobs: weights, pauses and limits", "Order"),
    CommandEntry("limits", "limits", "every limit that stands; limits of keys", "Order"),
    CommandEntry("pauses", "pauses", "everything that somebody paused", "Order"),
    CommandEntry("blacklist", "blacklist", "workflows that are shut out: list, add, remove, history", "Guard"),
    CommandEntry("settings", "settings", "what holds for every worker at once: the breaker's threshold, …", "Guard"),
    CommandEntry("alerts", "alerts", "what is wrong now, and was: list, show, ack, mute, rules", "Guard"),
    CommandEntry("notifications", "notifications", "news for whoever runs this", "Guard"),
    CommandEntry(
        "dead-letters",
        "dead_letters",
        "what never ran, or ran out of tries: show, resign, redrive, discard, …",
        "Guard",
    ),
    CommandEntry("quarantine", "quarantine", "what could not be written and waits alone: list, retry", "Guard"),
    CommandEntry("keys", "keys", "who may ask over HTTP: create, list, show, revoke, rotate", "Guard"),
    CommandEntry("sessions", "sessions", "the browsers that somebody has logged in with a key: list, end", "Guard"),
    CommandEntry(
        "signing",
        "signing",
        "keys that sign jobs: new-key, keys, sign, verify, revoke, unrevoke, revocations",
        "Guard",
    ),
    CommandEntry("audit", "audit", "who did what, and when", "Guard"),
    CommandEntry("health", "health", "is everything as it should be? for people and probes", "Operate"),
    CommandEntry("doctor", "doctor", "what is wrong with this installation, why, and what helps; --fix", "Operate"),
    CommandEntry("db", "db", "the database's schema: migrate, current, check", "Operate"),
    CommandEntry("config", "config", "the settings in effect, and where each came from", "Operate"),
    CommandEntry("bench", "bench", "measure this machine: enqueue and drain no-op jobs", "Operate"),
    CommandEntry("completion", "completion", "tab completion for bash, zsh or fish", "Operate"),
    CommandEntry("version", "version", "which version this is", "Operate"),
]

NAMES = {command.name: command for command in COMMANDS}


def load(module: str) -> Command:
    """The command that a module of this room serves."""
    from importlib import import_module

    command: Command = import_module(f"unstuck.cli.{module}").app
    return command


def overview() -> str:
    """What `unstuck --help` prints."""
    lines = [
        "Usage: unstuck COMMAND [ARGS]…",
        "",
        "  Durable jobs that never get stuck: one SQLite file to begin with, PostgreSQL when you outgrow it.",
    ]
    section = ""
    for command in COMMANDS:
        if command.section != section:
            section = command.section
            lines += ["", f"{section}:"]
        lines.append(f"  {command.name:<13} {command.summary}")
    return "\n".join([*lines, "", *_FOOTER])


_FOOTER = [
    "Everywhere:",
    "  --database  sqlite:///FILE or postgresql://…   (UNSTUCK_DATABASE; ./unstuck.db if nothing says otherwise)",
    "  --app       module:app                         (UNSTUCK_APP)",
    "  --json      for programs: stable keys, one object, or one per line for lists",
    "  --help      what a command takes: unstuck jobs --help, unstuck jobs show --help",
    "",
    "Exit codes: 0 ok · 1 failed · 2 usage · 3 not found · 4 conflict · 5 permission · 6 no database · 7 timed out",
    "            8 job cancelled · 9 job stuck · 10 unhealthy · 70 a bug of ours · 130 Ctrl-C · 143 TERM",
]
