"""Sweep: what passing time does to jobs, in small transactions that lock before they decide and wait for nobody: a
job whose row is locked comes with the next sweep. The caller finds the jobs, and decides about one that cannot be
moved (see `isolation`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unstuck.model import settlement
from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.names import KEPT
from unstuck.model.offers import is_unheard
from unstuck.model.settlement import Blame, ErrorInfo, Outcome, Stuck
from unstuck.model.target import FIRST, place_of, turn_after
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.guard import alerts, breaker
from unstuck.store.life.apply_settlement import Outcomes, close, report_of
from unstuck.store.life.changes import Changes, done_of, moment
from unstuck.store.life.offers import UNHEARD
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.line import end_stays, lock_of_jobs
from unstuck.store.order.targets import take_turn
from unstuck.store.port import FIRST_ENDED, Ended, NameKind, Recovered
from unstuck.store.rows import packed, span

#: A worker that had announced its end, or fenced itself because the store was away, costs its jobs nothing.
_UNCHARGED = frozenset({"draining", "fenced", "gone"})

#: All that goes with a job, beside its own row; PostgreSQL's forget_jobs names the same.
FORGOTTEN = (
    *("events", "outputs", "progress", "past_runs", "tags"),
    *("steps", "waits", "unclaimed_of_jobs", "children", "usage", "parts", "dead_letters"),
)

MARK_AGE = 3600.0  # a listener renews its mark with every wait: what is older by this has no listener


class LostAttempt(NamedTuple):
    """An attempt of a worker that is gone."""

    worker: int
    job: int


class Timer(NamedTuple):
    due_at: int
    job: int


class Queued(NamedTuple):
    """A job in the queue, or an attempt: whatever its job alone names."""

    job: int


def recover_lost(
    t: Transaction, tools: Settling, lost_grace: float, worker: int, attempts: Sequence[LostAttempt]
) -> tuple[list[Recovered], bool]:
    """Attempts of one worker, if its lease is still over behind the lock. What another transaction holds comes next
    time."""
    if t.one("lock_lost_worker", worker=worker, grace=span(lost_grace)) is None:
        return [], False
    jobs = [attempt.job for attempt in attempts]
    rows = t.all("attempts_of_worker", worker=worker, jobs=jobs, targets=lock_of_jobs(t, jobs))
    outcomes = close(t, tools, [(row, report_of(row, _lost(row))) for row in rows], by="recovery", own=False)
    alerts.note_recoveries(t, [row for row in rows if row["worker_state"] not in _UNCHARGED])
    breaker.count(t, outcomes.marks)
    return _recovered(rows, outcomes), outcomes.woke


def _lost(row: Row) -> Outcome:
    if is_unheard(row["claim"]):
        return settlement.NotStarted(UNHEARD)
    why = row["worker_reason"] or "its lease ended"
    blame: Blame = "uncharged" if row["worker_state"] in _UNCHARGED else "worker"
    message = f"worker {row['worker_name']} on {row['host']} was lost: {why}"
    return settlement.Lost(ErrorInfo(ErrorType.WORKER_LOST, message), blame)


def convict_overdue(
    t: Transaction, tools: Settling, kill_grace: float, lease: float, attempts: Sequence[Queued]
) -> tuple[list[Recovered], bool]:
    jobs = [attempt.job for attempt in attempts]
    margin = span(kill_grace + lease)
    rows = t.all("overdue_attempts", margin=margin, jobs=jobs, targets=lock_of_jobs(t, jobs))
    outcomes = close(
        t, tools, [(row, report_of(row, _stuck(t, tools, row))) for row in rows], by="backstop", own=False
    )
    breaker.count(t, outcomes.marks)
    return _recovered(rows, outcomes), outcomes.woke


def _stuck(t: Transaction, tools: Settling, row: Row) -> Stuck:
    grace = tools.name_ids.policy(t, row["policy"]).grace
    message = f"Execution did not respond to cancellation within {grace:g} seconds. Worker process recycled."
    no_stack = f"no stack: judged by the janitor, because worker {row['worker_name']} did not"
    return Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, message, no_stack))


def _recovered(rows: list[Row], outcomes: Outcomes) -> list[Recovered]:
    states = {ref.job: state for ref, state in outcomes.states.items()}
    return [
        Recovered(row["uid"], row["worker_name"], states[row["job"]], (row["now"] - row["beat_at"]) / 1_000_000)
        for row in rows
    ]


def release_due(t: Transaction, timers: Sequence[Timer]) -> tuple[list[int], bool]:
    """Delayed starts and retries whose time has come go to ready, or to the line of their target."""
    rows = packed([timer._asdict() for timer in timers])
    if not t.one_table_per_statement:
        released = [row["job"] for row in t.all("release_due", rows=rows, first=FIRST)]
        return released, bool(released)
    released = [row["job"] for row in t.all("take_timers", kind="start", rows=rows)]
    t.run("release_due", jobs=released)
    t.run("line_due", jobs=released, first=FIRST)
    t.run("announce_due", jobs=released)
    return released, bool(released)


def expire_stays(t: Transaction, tools: Settling, timers: Sequence[Timer]) -> tuple[list[bool], bool]:
    """Jobs that stayed QUEUED too long fail: of each timer that was worked off whether its job did, and whether
    an idle worker should look for work: a head that fails frees its target, and dependants go on.

    A timer of an earlier stay, left by a transaction that could not wait for it, finds another expires_at and goes.
    """
    jobs = [timer.job for timer in timers]
    rows = t.all("expiring_jobs", rows=packed([timer._asdict() for timer in timers]), targets=lock_of_queued(t, jobs))
    late = [row for row in rows if row["expires_at"] is not None and row["expires_at"] <= row["now"]]
    taken = take_from_queue(t, late)
    changes = Changes()
    for row in late:
        if row["job"] in taken:
            _expire(changes, t, tools, row)
            taken.discard(row["job"])
    woke = changes.write(t)
    children.left(t, changes.ends)
    t.run("take_timers", kind="expire", rows=packed([{"due_at": r["due_at"], "job": r["job"]} for r in rows]))
    if len(rows) < len(timers):
        t.run("drop_orphan_timers", kind="expire")
    ended = {end["job"] for end in changes.ends}
    return [row["job"] in ended for row in rows], woke


def lock_of_queued(t: Transaction, jobs: Sequence[int]) -> list[int]:
    """The targets of jobs at rest that nobody else holds."""
    if t.one_table_per_statement:
        return []  # one writer: there is nobody to lock out
    return [row["id"] for row in t.all("lock_targets_of_queued", jobs=sorted(jobs))]


def take_from_queue(t: Transaction, rows: list[Row]) -> set[int]:
    """The timers first: one that fires at this instant moves its job on, where the later statements find it."""
    if not rows:
        return set()
    timers = [{"due_at": row["available_at"], "job": row["job"]} for row in rows]
    places = [{"route": row["route"], "rank": row["rank"], "job": row["job"]} for row in rows]
    taken = {row["job"] for row in t.all("take_timers", kind="start", rows=packed(timers))}
    if lined := [row for row in rows if row["target"] is not None]:
        stands = [
            {"target": row["target"], "place": place, "job": row["job"]}
            for row in lined
            for place in (place_of(row["priority"]), FIRST)
        ]
        taken |= {row["job"] for row in t.all("take_line_rows", rows=packed(stands))}
    taken |= {row["job"] for row in t.all("take_ready_rows", rows=packed(places))}
    end_stays(t, [(row["expires_at"], row["job"]) for row in rows if row["job"] in taken])
    return taken


def _expire(changes: Changes, t: Transaction, tools: Settling, row: Row) -> None:
    waited = (row["now"] - row["available_at"]) / 1_000_000
    error = {
        "error_type": ErrorType.QUEUE_TIMEOUT,
        "error_message": f"nobody took it from the queue for {waited:.3g} seconds",
    }
    fail_in_queue(changes, t, tools, row, error)


def fail_in_queue(changes: Changes, t: Transaction, tools: Settling, row: Row, error: dict[str, str]) -> None:
    """A job that was taken out of the queue ends FAILED; its jobs row and its target are locked."""
    now = row["now"]
    changes.tell(
        row["job"],
        row["event_count"] + 1,
        now,
        EventKind.FAILED,
        row["run"],
        row["token"],
        {"by": "janitor", **error},
    )
    changes.ends.append(done_of(row["job"], row, JobState.FAILED, now, **error))
    if row["is_head"]:
        policy = tools.name_ids.policy(t, row["policy"])
        turn = turn_after(JobState.FAILED, started=bool(row["started"]), policy=policy)
        take_turn(changes, row["target"], row["job"], turn, now)


def ended_before(t: Transaction, retention: float, after: Ended, limit: int) -> list[Ended]:
    rows = t.all("ended_before", retention=span(retention), at=after.at, job=after.job, most=limit)
    return [Ended(row["finished_at"], row["job"]) for row in rows]


def count_ended(t: Transaction, seconds: float, most: int) -> int:
    row = t.one("count_ended", span=span(seconds), most=most)
    return int(row["ended"]) if row else 0


def forget_ended(t: Transaction, retention: float, batch: int) -> int:
    oldest = ended_before(t, retention, FIRST_ENDED, batch)
    return forget_jobs(t, [place.job for place in oldest], retention) if oldest else 0


def forget_jobs(t: Transaction, jobs: list[int], retention: float) -> int:
    """All of a job's rows in one transaction, the done row first: a reader that does not find it needs none of the
    others."""
    if not t.one_table_per_statement:
        t.all("lock_briefly")
    found = [row["job"] for row in t.all("forgettable", jobs=jobs, retention=span(retention))]
    if not found:
        return 0
    gone = [row["job"] for row in t.all("forget_done", jobs=found, retention=span(retention))]
    if t.one_table_per_statement:
        for table in FORGOTTEN:
            t.run(f"forget_{table}", jobs=gone)
    return t.run("forget_jobs", jobs=gone)


def forget_workers(t: Transaction, retention: float, batch: int, past: int) -> int:
    t.run("forget_listeners", age=span(MARK_AGE), batch=batch)
    return t.run("forget_workers", retention=span(retention), batch=batch, past=past)


def forget_names(t: Transaction, kind: NameKind, before: int, batch: int, past: int) -> int:
    before = min(before, moment(t) - span(KEPT))
    if not t.one_table_per_statement:
        row = t.one(f"forget_{kind}", before=before, batch=batch, past=past)
        return int(row["looked"]) if row else 0
    kept = t.run(f"keep_{kind}", before=before, batch=batch, past=past)
    return kept + t.run(f"forget_{kind}", before=before, batch=batch - kept, past=past)
