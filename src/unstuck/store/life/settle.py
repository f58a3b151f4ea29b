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


def close_plainly(database: Database, worker: int, by: str, reports: Iterable[Report]) -> set[AttemptRef]:
    """Attempts that returned without another word, by one statement that is its own transaction: most of all there
    are. No two reports are of one attempt. What it does not close (stale, asked something, settled before, on a
    target, by a clock that has leapt) is not in the answer."""
    if database.one_table_per_statement:
        return set()
    plain = _by_job(report for report in reports if _is_plain(report))
    if not plain:
        return set()
    (answer,) = database.once("settle_returned", **_question(worker, by, plain, [], database.expected_now()))
    if answer["is_news"]:
        database.hint()
    return {plain[place - 1].ref for place in answer["places"]}


def _is_plain(report: Report) -> bool:
    """Of every attempt that ends: ASCII is looked at here and now, all else as carefully as what is not plain."""
    outcome, took = report.outcome, report.duration_ms
    if type(outcome) is not Returned or report.has_target or report.output or type(outcome.result) is not str:
        return False
    if outcome.result.isascii() and "\x00" not in outcome.result and took is not None and 0 <= took <= LONGEST_MS:
        return True
    return storable(report) is report


def waiting(ref: AttemptRef, problem: str = HELD) -> Settled:
    return Settled(ref, Verdict.BUSY, problem=problem)


def _answer(ref: AttemptRef, state: JobState | None, ahead: float | None) -> Settled:
    return Settled(ref, Verdict.FENCED if state is None else Verdict.DONE, state, ahead)


def storable(report: Report) -> Report:
    """What no database could give back unchanged fails the job: it must never leave it RUNNING."""
    if report.duration_ms is not None and not 0 <= report.duration_ms <= LONGEST_MS:
        report = replace(report, duration_ms=None)
    outcome = report.outcome
    if isinstance(outcome, Returned):
        result = outcome.result
        if result is not None and not isinstance(result, str):
            return refused(report, f"the result is a {type(result).__name__}, not JSON text")
        try:
            check_text(result or "", "the result")
        except Exception as problem:
            return refused(report, str(problem))
    elif isinstance(outcome, Parked):
        try:
            waits.check(outcome.wait)
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
    """One statement for a whole batch; SQLite has no writing CTEs."""
    returned = _by_job(report for report in reports if isinstance(report.outcome, Returned))
    if not returned:
        return [], False
    close_all = _close_by_steps if t.one_table_per_statement else _close_at_once
    done, woke = close_all(t, worker, by, returned, targets)
    changes = Changes()
    for report, target in done:
        changes.keep_output(report.ref.job, report.ref.token, report.output)
        if target is not None:
            take_turn(changes, target, report.ref.job, Turn.PASS, 0)
    woke = changes.write(t) or woke
    return [report.ref for report, _ in done], woke


def _by_job(reports: Iterable[Report]) -> list[Report]:
    return sorted(reports, key=lambda report: report.ref)


#: Those that were closed, each with its target; and whether somebody waited for one of them.
_Closed = tuple[list[tuple[Report, int | None]], bool]


def _close_at_once(t: Transaction, worker: int, by: str, returned: list[Report], targets: list[int]) -> _Closed:
    # Its answer carries `now`: a transaction by a clock that has leapt is undone.
    (answer,) = t.all("settle_returned", **_question(worker, by, returned, targets, EVER))
    found = zip(answer["places"], answer["targets"], strict=True)
    return [(returned[place - 1], target) for place, target in found], answer["is_news"]


def _question(
    worker: int, by: str, returned: list[Report], targets: list[int], now: tuple[int, int]
) -> dict[str, Any]:
    """The reports column by column: typed arrays cost the database less than half of what JSON does."""
    jobs, tokens, claims = zip(*[report.ref for report in returned], strict=True)
    return {
        "worker": worker,
        "by": packed(by),
        "jobs": list(jobs),
        "tokens": list(tokens),
        "claims": list(claims),
        "results": [_result_of(report) for report in returned],
        "durations": [report.duration_ms for report in returned],
        "targets": targets,
        "earliest": now[0],
        "latest": now[1],
    }


def _close_by_steps(t: Transaction, worker: int, by: str, returned: list[Report], targets: list[int]) -> _Closed:
    """A statement per table, as safe as one under SQLite's single writer. Targets are not locked there."""
    found = t.all("settle_returned", worker=worker, jobs=[report.ref.job for report in returned])
    open_ones = {ref_of(row): row["target"] for row in found}
    done = [(report, open_ones[report.ref]) for report in returned if report.ref in open_ones]
    if not done:
        return [], False
    now = t.one("now")
    assert now is not None
    rows = [(report.ref.job, report.duration_ms, _result_of(report)) for report, _ in done]
    jobs = packed([job for job, _, _ in rows])
    t.run("settle_returned_done", rows=packed(rows), now=now["now"])
    t.run("settle_returned_events", jobs=jobs, by=by)
    t.run("close_attempts", jobs=jobs)
    told = t.run("tell_dependants", jobs=jobs)
    return done, told > 0


def _result_of(report: Report) -> str | None:
    return report.outcome.result if isinstance(report.outcome, Returned) else None


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
