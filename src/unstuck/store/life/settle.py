"""Settle: the one way an attempt ends, whoever ends it.

Theory of operation. Attempts that returned and were asked nothing close in one statement; its WHERE is the fence.
Everything else takes the general path: lock the running rows, read where each job stands, let the model decide, write
what it says. A report that finds no open attempt is either a repeat, which the history proves (the ending event
carries the claim id of the worker that wrote it; a sweep's does not), or stale. Nothing here waits for a target, a
running row or a jobs row of somebody else: such a report is BUSY, and all the others settle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unstuck.chance import Chance
from unstuck.model.errors import ErrorType, InvalidInput
from unstuck.model.guard import harm_of
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import EVENT_OF, MOVES, EventKind, JobState, Move, RequestKind
from unstuck.model.payload import check_text
from unstuck.model.policy import Policy
from unstuck.model.settlement import (
    ErrorInfo,
    NotStarted,
    Outcome,
    Parked,
    Raised,
    Returned,
    Settlement,
    Standing,
    Stuck,
)
from unstuck.model.settlement import settle as decide
from unstuck.model.target import Turn, turn_after
from unstuck.model.waits import TOO_MANY_WAITS, WaitKind
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.flow import children, waits
from unstuck.store.guard import breaker
from unstuck.store.life import fence
from unstuck.store.life.changes import Changes, cleaned, done_of
from unstuck.store.order.dimensions import Dimensions
from unstuck.store.order.line import lock_of_jobs
from unstuck.store.order.targets import place_after, take_turn
from unstuck.store.port import HELD, Report, Settled, Verdict
from unstuck.store.rows import packed, ref_of, span

LONGEST_MS = 1 << 48

_STATE_OF = {EVENT_OF[move]: state for move, state in MOVES[JobState.RUNNING].items()}


@dataclass(frozen=True, slots=True)
class Settling:
    """What every settle needs beside the transaction."""

    dimensions: Dimensions
    chance: Chance


@dataclass(slots=True)
class Outcomes:
    """What became of each attempt, and whether somebody idle should look for work."""

    states: dict[AttemptRef, JobState]
    woke: bool = False
    #: Of those that parked: in how many seconds their time is up.
    ahead: dict[AttemptRef, float] = field(default_factory=dict)
    #: Against their workflows: whoever closed the attempts has them counted, last of all.
    marks: list[breaker.StuckMark] = field(default_factory=list)


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
    are. What it does not close (stale, asked something, settled before, on a target) is not among the answers."""
    if database.dialect == "sqlite":
        return {}
    first: dict[AttemptRef, Report] = {}
    for report in reports:
        first.setdefault(report.ref, report)
    plain = [report for report in first.values() if _is_plain(report)]
    if not plain:
        return {}
    rows = [_returned_columns(report, by) for report in sorted(plain, key=lambda r: r.ref.job)]
    closed = database.once("settle_returned", worker=worker, rows=packed(rows), targets=[])
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
    closed = t.all("settle_returned", worker=worker, rows=packed(rows), targets=targets)
    accepted = {ref_of(row) for row in closed}
    told = _close_by_steps(t, [row for row in rows if ref_of(row) in accepted]) if t.split else 0
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


def close(t: Transaction, tools: Settling, attempts: Sequence[tuple[Row, Report]], *, by: str, own: bool) -> Outcomes:
    """End attempts whose targets and running rows this transaction has locked. `own`: by the worker that has them."""
    changes = Changes()
    outcomes = Outcomes({})
    decided = [
        (row, report, decide(_standing(t, tools, row), report.outcome, tools.chance.fraction()))
        for row, report in _unless_too_many(t, attempts)
    ]
    parked = waits.ask(t, [waits.ParkingJob(row, s.wait, _policy(t, tools, row)) for row, _, s in decided if s.wait])
    for row, report, settlement in decided:
        wait = parked.get(row["job"])
        _apply(changes, t, tools, row, report, settlement, wait, by, own)
        outcomes.states[report.ref] = settlement.state
        if wait is not None and wait["answer"] is None:
            outcomes.ahead[report.ref] = max(0, wait["until_at"] - row["now"]) / 1_000_000
        if (harm := harm_of(report.outcome, settlement)) is not None:
            outcomes.marks.append(breaker.StuckMark(row["job"], row["token"], harm))
    outcomes.woke = changes.write(t) or any(wait["kind"] == WaitKind.CHILDREN for wait in parked.values())
    children.left(t, changes.ends)
    return outcomes


def _unless_too_many(t: Transaction, attempts: Sequence[tuple[Row, Report]]) -> list[tuple[Row, Report]]:
    """A backstop: the context of a handler refuses a wait too many while there is still somebody to tell."""
    parks = [(row, report.outcome.wait) for row, report in attempts if isinstance(report.outcome, Parked)]
    full = waits.full(t, parks)
    refusal = Raised(ErrorInfo(InvalidInput.__name__, TOO_MANY_WAITS), retry=False)
    return [(row, replace(report, outcome=refusal) if row["job"] in full else report) for row, report in attempts]


def _policy(t: Transaction, tools: Settling, row: Row) -> Policy:
    return tools.dimensions.policy(t, row["policy"])


def _standing(t: Transaction, tools: Settling, row: Row) -> Standing:
    return Standing(
        policy=_policy(t, tools, row),
        failures=row["failures"],
        losses=row["losses"],
        suspects=row["suspects"],
        request=RequestKind(row["request"]) if row["request"] else None,
        request_reason=row["request_reason"],
        request_by=row["request_by"],
    )


def _apply(
    changes: Changes,
    t: Transaction,
    tools: Settling,
    row: Row,
    report: Report,
    settlement: Settlement,
    wait: Row | None,
    by: str,
    own: bool,
) -> None:
    job, now, n = row["job"], row["now"], row["event_count"] + 1
    started = bool(row["started"]) or not isinstance(report.outcome, NotStarted)
    turn = _turn(settlement, started, _policy(t, tools, row))
    error_type, error_message = cleaned(settlement.error)
    duration = report.duration_ms if report.duration_ms is not None else _elapsed_ms(row)
    changes.closed.append(job)
    changes.keep_output(job, row["token"], report.output, settlement.error.stack if settlement.error else None)
    changes.tell(
        job,
        n,
        now,
        EVENT_OF[settlement.move],
        row["run"],
        row["token"],
        {
            "by": by,
            "claim": row["claim"] if own else None,
            "worker": row["worker_name"],
            "error_type": error_type,
            "error_message": error_message,
            "duration_ms": duration,
            "request": row["request"],
            "delay": settlement.delay or None,
            "failure": settlement.failure or None,
            "loss": settlement.loss or None,
            "suspect": settlement.suspect or None,
            "alone": settlement.alone or None,
            "late": settlement.late or None,
            **(waits.asked_facts(wait) if wait else {}),
        },
    )
    if wait is not None:
        n += _answered_early(changes, row, wait, settlement.wait.until if settlement.wait else None)
    if settlement.hold:
        changes.body_marks.append(_body_mark(t, row, report.outcome, error_message or "its body may still live"))
    if settlement.state.is_final:
        changes.ends.append(
            done_of(
                job,
                row,
                settlement.state,
                now,
                worker=row["worker"],
                claimed_at=row["claimed_at"],
                duration_ms=duration,
                result=settlement.result,
                error_type=error_type,
                error_message=error_message,
                late=int(settlement.late),
            )
        )
    if row["target"] is not None:
        take_turn(changes, row["target"], job, turn, now)
    if settlement.state is not JobState.COMPLETED:
        state = JobState.QUEUED if wait and wait["answer"] else settlement.state
        rest = _rest(changes, t, tools, row, settlement, state, turn, n, error_type, error_message)
        changes.rests.append({**rest, "started": int(started)})


def _turn(settlement: Settlement, started: bool, policy: Policy) -> Turn:
    if settlement.wait is not None and settlement.wait.release_target:
        return Turn.PASS
    return turn_after(settlement.state, started=started, policy=policy)


def _answered_early(changes: Changes, row: Row, wait: Row, appointed: int | None) -> int:
    """It goes on at once if its answer was there before it asked; else its time runs. How many events that makes."""
    if wait["answer"] is None:
        timer = {"kind": "wait", "due_at": wait["until_at"], "job": row["job"], "route": row["route"]}
        changes.timers.append({**timer, "appointed": appointed})
        return 0
    facts = waits.answered_facts(wait)
    changes.tell(row["job"], row["event_count"] + 2, row["now"], EventKind.WOKEN, row["run"], row["token"], facts)
    return 1


def _elapsed_ms(row: Row) -> int:
    since: int = row["started_at"] or row["claimed_at"]
    return int(max(0, row["now"] - since) // 1000)


def _body_mark(t: Transaction, row: Row, outcome: Outcome, reason: str) -> dict[str, Any]:
    pid = outcome.pid if isinstance(outcome, Stuck) else None
    return {
        "job": row["job"],
        "target": row["target"],
        "worker": row["worker"],
        "pid": pid or _pid_of(t, row["worker"], row["uid"]),
        "since_at": row["now"],
        "reason": reason,
    }


def _pid_of(t: Transaction, worker: int, uid: str) -> int | None:
    """The executor that runs a job, by its worker's last beat: all that a sweep can know about it."""
    row = t.one("worker_info", worker=worker)
    executors = json.loads(row["info"]).get("executors") if row else None
    for executor in executors if isinstance(executors, list) else ():
        if isinstance(executor, dict) and _runs(executor, uid):
            pid = executor.get("pid")
            return pid if isinstance(pid, int) else None
    return None


def _runs(executor: dict[str, Any], uid: str) -> bool:
    jobs = executor.get("jobs")
    return isinstance(jobs, list) and any(isinstance(one, dict) and one.get("job") == uid for one in jobs)


def _rest(
    changes: Changes,
    t: Transaction,
    tools: Settling,
    row: Row,
    settlement: Settlement,
    state: JobState,
    turn: Turn,
    n: int,
    error_type: str | None,
    error_message: str | None,
) -> dict[str, Any]:
    """The jobs row at its new rest; of an ended job it keeps the counts, its state is in done."""
    available_at = expires_at = None
    if state is JobState.QUEUED:
        available_at = row["now"] + span(settlement.delay)
        stay = _policy(t, tools, row).expires_after
        expires_at = None if stay is None else available_at + span(stay)
        changes.queue(
            row["job"],
            row["now"],
            available_at,
            expires_at,
            route=row["route"],
            target=row["target"],
            place=place_after(turn, row["priority"]),
        )
    if settlement.move is Move.GIVE_BACK:
        # Nothing happened to the job itself: what it last failed of stays readable.
        error_type, error_message = row["error_type"], row["error_message"]
    return {
        "job": row["job"],
        "state": JobState.QUEUED if state.is_final else state,
        "run": row["run"],
        "token": row["token"],
        "event_count": n,
        "failures": row["failures"] + settlement.failure,
        "losses": row["losses"] + settlement.loss,
        "suspects": row["suspects"] + settlement.suspect,
        "alone": int(bool(row["alone"]) or settlement.alone),
        "available_at": available_at,
        "expires_at": expires_at,
        "error_type": error_type,
        "error_message": error_message,
    }


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


def report_of(row: Row, outcome: Outcome) -> Report:
    """A sweep's own word about an attempt."""
    return Report(ref_of(row), outcome)
