"""Settle: what workers report about the ends of their attempts (all other ends: see `apply_settlement`).

Theory of operation. Attempts that returned and were asked nothing close in one statement; its WHERE is the fence.
Everything else takes the general path: lock the running rows, read where each job stands, let the model decide, write
what it says. A report that finds no open attempt is either a repeat, which the history proves (the ending event
carries the claim id of the worker that wrote it; a sweep's does not), or stale. Nothing here waits for a target, a
running row or a jobs row of somebody else: such a report is BUSY, and all the others settle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import EVENT_OF, MOVES, JobState
from unstuck.model.payload import check_text
from unstuck.model.settlement import (
    ErrorInfo,
    Parked,
    Raised,
    Returned,
)
from unstuck.model.target import Turn
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.leaps import EVER
from unstuck.store.flow import waits
from unstuck.store.guard import breaker
from unstuck.store.life import fence
from unstuck.store.life.apply_settlement import Outcomes, close
from unstuck.store.life.changes import Changes
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.line import lock_of_jobs
from unstuck.store.order.targets import take_turn
from unstuck.store.port import HELD, Report, Settled, Verdict
from unstuck.store.rows import packed, ref_of

LONGEST_MS = 1 << 48

_STATE_OF = {EVENT_OF[move]: state for move, state in MOVES[JobState.RUNNING].items()}


def settle(
    t: Transaction, tools: Settling, worker: int, by: str, reports: Sequence[Report]
) -> tuple[list[Settled], bool]:
    """Answers in the order of the reports; of two reports about one attempt the first counts."""
    first: dict[AttemptRef, Report] = {}
    for report in reports:
        first.setdefault(report.ref, storable(report))
    # Before any running row is locked: whoever needs a target and a job takes them in this order.
    targets = lock_of_jobs(t, [ref.job for ref in first])
    closed, woke = _close_returned(t, worker, by, first.values(), targets)
    states: dict[AttemptRef, JobState] = dict.fromkeys(closed, JobState.COMPLETED)
    ahead: dict[AttemptRef, float] = {}
    if rest := [report for ref, report in first.items() if ref not in states]:
        outcomes = _settle_generally(t, tools, worker, by, rest, targets)
        states |= outcomes.states
        ahead = outcomes.ahead
        woke |= outcomes.woke
        breaker.count(t, outcomes.marks)
    # In this order: what is gone from the running rows by the first look has its end in the history by the second.
    busy = fence.held_by_others(t, [ref for ref in first if ref not in states], worker)
    if stale := [ref for ref in first if ref not in states and ref not in busy]:
        before = _settled_before(t, stale)
        states |= before
        ahead |= {ref: 0.0 for ref, state in before.items() if state is JobState.WAITING}
    refs = [report.ref for report in reports]
    return [waiting(ref) if ref in busy else _answer(ref, states.get(ref), ahead.get(ref)) for ref in refs], woke


def close_plainly(database: Database, worker: int, by: str, reports: Sequence[Report]) -> dict[AttemptRef, Settled]:
    """Attempts that returned without another word, by one statement that is its own transaction: most of all there
    are. What it does not close (stale, asked something, settled before, on a target, by a clock that has leapt) is
    not among the answers."""
    if database.one_table_per_statement:
        return {}
    first: dict[AttemptRef, Report] = {}
    for report in reports:
        first.setdefault(report.ref, report)
    plain = [report for report in first.values() if _is_plain(report)]
    if not plain:
        return {}
    rows = [_returned_columns(report, by) for report in sorted(plain, key=lambda r: r.ref.job)]
    earliest, latest = database.expected_now()
    closed = database.once(
        "settle_returned", worker=worker, rows=packed(rows), targets=[], earliest=earliest, latest=latest
    )
    if any(row["news"] for row in closed):
        database.hint()
    return {ref: Settled(ref, Verdict.DONE, JobState.COMPLETED) for ref in map(ref_of, closed)}


def _is_plain(report: Report) -> bool:
    if report.has_target or report.output:
        return False
    return isinstance(report.outcome, Returned) and storable(report) is report


def waiting(ref: AttemptRef, problem: str = HELD) -> Settled:
    return Settled(ref, Verdict.BUSY, problem=problem)


def _answer(ref: AttemptRef, state: JobState | None, ahead: float | None) -> Settled:
    return Settled(ref, Verdict.FENCED if state is None else Verdict.DONE, state, ahead)


def storable(report: Report) -> Report:
    """What no database could give back unchanged fails the job: it must never leave it RUNNING."""
    if report.duration_ms is not None and not 0 <= report.duration_ms <= LONGEST_MS:
        report = replace(report, duration_ms=None)
    match report.outcome:
        case Returned(result) if result is not None:
            if not isinstance(result, str):
                return refused(report, f"the result is a {type(result).__name__}, not JSON text")
            try:
                check_text(result, "the result")
            except Exception as problem:
                return refused(report, str(problem))
        case Parked(wait):
            try:
                waits.check(wait)
            except Exception as problem:
                error = ErrorInfo(type(problem).__name__, f"it cannot wait for this: {problem}")
                return replace(report, outcome=Raised(error, retry=False))
    return report


def refused(report: Report, problem: str) -> Report:
    error = ErrorInfo(ErrorType.RESULT_NOT_STORABLE, problem)
    return replace(report, outcome=Raised(error, retry=False))


# --- the fast path ------------------------------------------------------------------------------------------------


def _close_returned(
    t: Transaction, worker: int, by: str, reports: Iterable[Report], targets: list[int]
) -> tuple[list[AttemptRef], bool]:
    """One statement for a whole batch."""
    returned = sorted((r for r in reports if isinstance(r.outcome, Returned)), key=lambda r: r.ref.job)
    rows = [_returned_columns(report, by) for report in returned]
    if not rows:
        return [], False
    earliest, latest = EVER  # its answer carries `now`: a transaction by a clock that has leapt is undone
    closed = t.all(
        "settle_returned", worker=worker, rows=packed(rows), targets=targets, earliest=earliest, latest=latest
    )
    accepted = {ref_of(row) for row in closed}
    told = _close_by_steps(t, [row for row in rows if ref_of(row) in accepted]) if t.one_table_per_statement else 0
    done = [report for report in returned if report.ref in accepted]
    changes = Changes()
    for report in done:
        changes.keep_output(report.ref.job, report.ref.token, report.output)
    for row in closed:
        if row["target"] is not None:
            take_turn(changes, row["target"], row["job"], Turn.PASS, 0)
    woke = changes.write(t)
    return [report.ref for report in done], woke or told > 0 or any(row["news"] for row in closed)


def _returned_columns(report: Report, by: str) -> dict[str, Any]:
    ref = report.ref
    facts: dict[str, Any] = {"by": by, "claim": ref.claim}
    if report.duration_ms is not None:
        facts["duration_ms"] = report.duration_ms
    return {
        "job": ref.job,
        "token": ref.token,
        "claim": ref.claim,
        "result": report.outcome.result if isinstance(report.outcome, Returned) else None,
        "duration_ms": report.duration_ms,
        "data": packed(facts),
    }


def _close_by_steps(t: Transaction, rows: list[dict[str, Any]]) -> int:
    """SQLite has no writing CTEs: a statement per table, as safe as one under its single writer."""
    now = t.one("now")
    assert now is not None
    if not rows:
        return 0
    jobs = [row["job"] for row in rows]
    t.run("settle_returned_done", rows=packed(rows), now=now["now"])
    t.run("settle_returned_events", rows=packed(rows))
    t.run("close_attempts", jobs=jobs)
    return t.run("tell_dependants", jobs=jobs)


# --- the general path ---------------------------------------------------------------------------------------------


def _settle_generally(
    t: Transaction, tools: Settling, worker: int, by: str, reports: Sequence[Report], targets: list[int]
) -> Outcomes:
    keys = [{"job": r.ref.job, "token": r.ref.token, "claim": r.ref.claim} for r in reports]
    rows = t.all("lock_attempts", worker=worker, rows=packed(keys), targets=targets)
    locked = {ref_of(row): row for row in rows}
    open_ones = [(locked[report.ref], report) for report in reports if report.ref in locked]
    return close(t, tools, open_ones, by=by, own=True)


# --- repeats ------------------------------------------------------------------------------------------------------


def _settled_before(t: Transaction, refs: Sequence[AttemptRef]) -> dict[AttemptRef, JobState]:
    """The attempts of these that their own worker has already settled, and where each went."""
    rows = t.all("endings", rows=packed([{"job": ref.job, "token": ref.token} for ref in refs]))
    wanted = set(refs)
    found: dict[AttemptRef, JobState] = {}
    for row in rows:
        ref = AttemptRef(row["job"], row["token"], json.loads(row["data"]).get("claim", ""))
        if ref in wanted and row["kind"] in _STATE_OF:
            found.setdefault(ref, _STATE_OF[row["kind"]])
    return found
