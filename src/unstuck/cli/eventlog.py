"""What a worker says while it runs: one line per noteworthy event, for people or for machines."""

from __future__ import annotations

import json
from typing import IO, Any

from unstuck import clock
from unstuck.cli.output import is_plain, rfc3339
from unstuck.telemetry import Subscriber

#: How people read the common events; any other is told by its name and facts.
SENTENCES = {
    "worker_started": "worker {worker} started: {slots} at once in {processes} processes",
    "imported": "app imported: {workflows} workflows; processes start by {mode} {reason}",
    "import_failed": "the app cannot be imported, next try in {again_in:.0f} s:\n{error}",
    "executor_killed": "process {executor} (pid {pid}) is killed: {reason}",
    "executor_draining": "process {executor} (pid {pid}) takes no more jobs: {reason}",
    "stuck": "job {job} ({workflow}) ignored its cancel for the whole grace: stuck",
    "recovered": "job {job} of lost worker {worker} recovered: {state}",
    "neighbour_gone": "worker {worker} (pid {pid}) on this host is gone: its jobs run again",
    "store_trouble": "the database does not answer ({loop}): {error}",
    "store_is_back": "the database is back",
    "lease_lost": "the lease was lost: everything is stopped",
    "begins_anew": "beginning anew with a new lease",
    "shutting_down": "shutting down ({phase}): {running} jobs still here",
    "worker_left": "worker {worker} has left",
}
#: Said all the time: only with --verbose, and to machines.
ROUTINE = {"duty_done", "claim_repeated", "stray_given_back"}
LOUD = {"died", "failed", "fenced", "stuck", "lost", "killed", "trouble", "stalled", "cannot", "revoked", "overdue"}


def json_log(stream: IO[str]) -> Subscriber:
    """JSON Lines: at, event, and the facts."""

    def write(name: str, facts: dict[str, object]) -> None:
        line = {"at": rfc3339(clock.wall()), "event": name, **facts}
        print(json.dumps(line, ensure_ascii=False, default=str), file=stream, flush=True)

    return write


def human_log(stream: IO[str], *, verbose: bool) -> Subscriber:
    colour = not is_plain(stream)

    def write(name: str, facts: dict[str, object]) -> None:
        if not verbose and name in ROUTINE:
            return
        at = clock.wall().astimezone().strftime("%H:%M:%S")
        text = sentence(name, facts)
        if colour and is_loud(name, facts):
            text = f"\x1b[31m{text}\x1b[0m"
        print(f"{at}  {text}", file=stream, flush=True)

    return write


def is_loud(name: str, facts: dict[str, Any]) -> bool:
    return not facts.get("expected") and not LOUD.isdisjoint(name.split("_"))


def sentence(name: str, facts: dict[str, Any]) -> str:
    if name == "executor_died":
        ended = "ended as asked" if facts.get("expected") else f"died: {facts.get('status')}"
        return f"process {facts.get('executor')} (pid {facts.get('pid')}) {ended}"
    try:
        return SENTENCES[name].format_map(facts).rstrip()
    except (KeyError, ValueError, TypeError):
        told = "  ".join(f"{k}={_short(v)}" for k, v in facts.items() if v not in (None, ""))
        return f"{name.replace('_', ' ')}  {told}".rstrip()


def _short(value: object, limit: int = 300) -> str:
    text = str(value).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"
