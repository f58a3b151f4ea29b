"""Gate: a session of the database holds a row, a table or a lock that the next move of this job needs."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import ending_session
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import HELD_TOO_LONG, Lock, Locker, LockKind
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import lasting

#: What is held, and what comes of it.
_HELD_THINGS: dict[LockKind, tuple[str, str]] = {
    "ready": ("its row in unstuck_ready is", "every claim passes over it"),
    "job": ("its row in unstuck_jobs is", "nothing can be written about it"),
    "attempt": ("its row in unstuck_running is", "what becomes of its attempt cannot be written"),
    "worker": ("the row of its worker {name} is", "that worker's lease cannot be renewed"),
    "timer": ("its timer is", "every sweep passes over it"),
    "wait": ("what it waits for is", "no answer to it can be written"),
    "line": ("its place in the line of target {name} is", "it cannot get its turn"),
    "inbox": ("the word in unstuck_inbox that tells of it is", "nobody looks at it"),
    "target": ("target {name} is", "the turn on it passes to nobody"),
    "limit": ("the limit of {name} is", "nothing can be counted against it, and nothing of it starts"),
    "workflow": ("the row of workflow {name} is", "no worker can register it"),
    "table": ("table {name} is", "nothing can be written there"),
    "guard": ("the guard of the blacklist is", "no claim gets past it"),
}
_EVERY_START = {"unstuck_ready", "unstuck_running", "unstuck_events"}
_TABLES: dict[JobState, set[str]] = {
    JobState.QUEUED: _EVERY_START,
    JobState.PENDING: {"unstuck_jobs", "unstuck_dependencies", "unstuck_events"},
    JobState.WAITING: {"unstuck_jobs", "unstuck_waits", "unstuck_timers", "unstuck_events"},
    JobState.RUNNING: {"unstuck_running", "unstuck_done", "unstuck_jobs", "unstuck_workers", "unstuck_events"},
    JobState.PAUSED: {"unstuck_jobs", "unstuck_events"},
}
_THINGS: dict[JobState, set[LockKind]] = {
    JobState.PENDING: {"job", "inbox"},
    JobState.WAITING: {"job", "wait", "inbox"},
    JobState.RUNNING: {"job", "attempt", "worker", "target"},
    JobState.PAUSED: {"job"},
}


@rule(
    Code.ROW_LOCKED,
    "a session of the database has held a row, table or lock that it needs for longer than a second",
    Actor.OPERATOR,
    "SELECT pg_terminate_backend(PID)",
    of=list(_TABLES),
)
def row_locked(view: WhyView) -> Iterator[Finding]:
    for lock in view.facts.locks:
        if not is_needed(view, lock):
            continue
        (thing, then), by = _HELD_THINGS[lock.what], lock.by
        mode = f" in {lock.mode}" if lock.mode else ""
        yield Finding(
            f"{thing.format(name=lock.name)} held by {session_named(by)}{mode}{_for_how_long(view, by)}; until its "
            f"transaction ends {then}. Commit or roll back there; ending that session is the last resort",
            by.since_at,
            remedy=ending_session(by.pid),
            details={
                "what": lock.what,
                "name": lock.name,
                "table": lock.table,
                "pid": by.pid,
                "application": by.application,
                "user": by.user,
                "doing": by.doing,
            },
        )


def is_needed(view: WhyView, lock: Lock) -> bool:
    """Whether what its next move needs is held: a queued job needs other rows than one that runs."""
    state = view.job.state
    if state is not JobState.QUEUED:
        return lock.name in _TABLES[state] if lock.what == "table" else lock.what in _THINGS[state]
    facts = view.facts
    if facts.due_at is not None:
        is_due = facts.due_at <= view.now
        return is_due and (lock.what == "timer" or (lock.what == "table" and lock.name == "unstuck_timers"))
    things: set[str] = {"ready", "limit", "guard"} | ({"workflow"} if not view.facts.is_served else set())
    tables = _EVERY_START
    if not facts.is_ready:
        things |= {"line", "inbox", "target"}
        tables = tables | {"unstuck_line", "unstuck_targets", "unstuck_inbox"}
    return lock.name in tables if lock.what == "table" else lock.what in things


def session_named(by: Locker) -> str:
    """A session of the database, as far as it lets itself be known."""
    if by.pid is None:
        return "a prepared transaction"
    known = [by.application, by.user and f"user {by.user}", by.doing]
    rest = ", ".join(word for word in known if word)
    return f"session {by.pid}{f' ({rest})' if rest else ''}"


def _for_how_long(view: WhyView, by: Locker) -> str:
    if by.since_at is None:
        return " (for how long, the database does not tell this user)"
    return f" for {lasting(view.now - by.since_at)} (more than {HELD_TOO_LONG:g}s, and ours take milliseconds)"
