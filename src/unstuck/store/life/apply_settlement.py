"""Let the model decide what an attempt's end means for its job, and write what it says.

What may end a RUNNING job: the report of its worker (`settle`, which has a short cut for attempts that returned and
were asked nothing), the end of its worker's lease (`sweep.recover_lost`), the backstop (`sweep.convict_overdue`), a
worker that does not hold what the database grants it (`beat.give_back`), and the leave of its worker
(`beat.leave_behind`). All but that short cut come here. A request (cancel, interrupt, timeout, budget, drain) ends
nothing: it changes what the end means.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from unstuck.model.errors import InvalidInput
from unstuck.model.guard import harm_of
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import EVENT_OF, EventKind, JobState, Move, RequestKind
from unstuck.model.policy import Policy
from unstuck.model.settlement import (
    ErrorInfo,
    NotStarted,
    Outcome,
    Parked,
    Raised,
    Refused,
    Settlement,
    Standing,
    Stuck,
)
from unstuck.model.settlement import settle as decide
from unstuck.model.target import Turn, turn_after
from unstuck.model.waits import TOO_MANY_WAITS, WaitKind
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children, waits
from unstuck.store.guard import breaker, dead_letters, signing
from unstuck.store.life.changes import Changes, cleaned, done_of
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.targets import place_after, take_turn
from unstuck.store.port import Report
from unstuck.store.rows import ref_of, span

_UNSUCCESSFUL = frozenset({JobState.FAILED, JobState.TIMEOUT})


@dataclass(slots=True)
class Outcomes:
    """What became of each attempt, and whether an idle worker should look for work."""

    states: dict[AttemptRef, JobState]
    woke: bool = False
    #: Of those that parked: in how many seconds their time is up.
    ahead: dict[AttemptRef, float] = field(default_factory=dict)
    #: Against their workflows. The caller, which closed the attempts, has them counted last of all.
    marks: list[breaker.StuckMark] = field(default_factory=list)


def close(t: Transaction, tools: Settling, attempts: Sequence[tuple[Row, Report]], *, by: str, own: bool) -> Outcomes:
    """End attempts whose targets and running rows this transaction has locked. `own`: by the worker that has them."""
    changes = Changes()
    outcomes = Outcomes({})
    decided = [
        (row, report, decide(_standing(t, tools, row), report.outcome, tools.chance.fraction()))
        for row, report in _unless_too_many(t, attempts)
    ]
    parking = [waits.ParkingJob(row, s.wait, _policy(t, tools, row)) for row, _, s in decided if s.wait]
    parked = waits.ask(t, parking, changes.news)
    for row, report, settlement in decided:
        wait = parked.get(row["job"])
        _apply(changes, t, tools, row, report, settlement, wait, by, own)
        outcomes.states[report.ref] = settlement.state
        if wait is not None and wait["answer"] is None:
            outcomes.ahead[report.ref] = max(0, wait["until_at"] - row["now"]) / 1_000_000
        if (harm := harm_of(report.outcome, settlement)) is not None:
            outcomes.marks.append(breaker.StuckMark(row["job"], row["token"], harm))
    outcomes.woke = changes.write(t) or any(wait["kind"] == WaitKind.CHILDREN for wait in parked.values())
    if worn := [(row, s.error) for row, _, s in decided if _is_worn(t, tools, row, s)]:
        dead_letters.add(t, dead_letters.exhausted(t, worn))
    children.left(t, changes.ends)
    refused = [(row, report.outcome) for row, report, _ in decided if isinstance(report.outcome, Refused)]
    signing.tell_refused(t, refused, by)
    return outcomes


def _is_worn(t: Transaction, tools: Settling, row: Row, settlement: Settlement) -> bool:
    """Whether its end is a dead letter. Most ends are none by their state alone, and cost nothing here."""
    return settlement.state in _UNSUCCESSFUL and _policy(t, tools, row).dead_letter == "exhausted"


def _unless_too_many(t: Transaction, attempts: Sequence[tuple[Row, Report]]) -> list[tuple[Row, Report]]:
    """A backstop: the context of a handler refuses a wait too many while there is still somebody to tell."""
    parks = [(row, report.outcome.wait) for row, report in attempts if isinstance(report.outcome, Parked)]
    full = waits.full(t, parks)
    refusal = Raised(ErrorInfo(InvalidInput.__name__, TOO_MANY_WAITS), retry=False)
    return [(row, replace(report, outcome=refusal) if row["job"] in full else report) for row, report in attempts]


def _policy(t: Transaction, tools: Settling, row: Row) -> Policy:
    return tools.name_ids.policy(t, row["policy"])


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
    job, now, count = row["job"], row["now"], row["event_count"] + 1
    started = bool(row["started"]) or not isinstance(report.outcome, NotStarted | Refused)
    turn = _turn(settlement, started, _policy(t, tools, row))
    error_type, error_message = cleaned(settlement.error)
    duration = _duration(row, report)
    changes.closed.append(job)
    changes.keep_output(job, row["token"], report.output, settlement.error.stack if settlement.error else None)
    facts = _facts(row, settlement, by, own) | {"error_type": error_type, "error_message": error_message}
    facts |= {"duration_ms": duration, **(waits.asked_facts(wait) if wait else {})}
    changes.tell(job, count, now, EVENT_OF[settlement.move], row["run"], row["token"], facts)
    if wait is not None:
        count += _answered_early(changes, row, wait, settlement.wait.until if settlement.wait else None)
    if settlement.body_may_live:
        changes.body_marks.append(_body_mark(t, row, report.outcome, error_message or "its body may still live"))
    if settlement.state.is_final:
        ended = {"worker": row["worker"], "claimed_at": row["claimed_at"], "duration_ms": duration}
        ended |= {"error_type": error_type, "error_message": error_message}
        late = int(settlement.late)
        changes.ends.append(done_of(job, row, settlement.state, now, result=settlement.result, late=late, **ended))
    if row["target"] is not None:
        take_turn(changes, row["target"], job, turn, now)
    if settlement.state is not JobState.COMPLETED:
        state = JobState.QUEUED if wait and wait["answer"] else settlement.state
        rest = _rest(changes, t, tools, row, settlement, state, turn, count, error_type, error_message)
        changes.rests.append({**rest, "started": int(started), "span": report.span})


def _facts(row: Row, settlement: Settlement, by: str, own: bool) -> dict[str, Any]:
    """What the event says of the attempt's end, beside its error and duration."""
    return {
        "by": by,
        "claim": row["claim"] if own else None,
        "worker": row["worker_name"],
        "error_type": None,
        "error_message": None,
        "duration_ms": None,
        "request": row["request"],
        "delay": settlement.delay or None,
        "failure": settlement.failure or None,
        "loss": settlement.loss or None,
        "suspect": settlement.suspect or None,
        "alone": settlement.alone or None,
        "late": settlement.late or None,
    }


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


def _duration(row: Row, report: Report) -> int | None:
    """In milliseconds; None: no handler began, so nothing took any time."""
    if isinstance(report.outcome, Refused):
        return None
    return report.duration_ms if report.duration_ms is not None else _elapsed_ms(row)


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
    event_count: int,
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
        "event_count": event_count,
        "failures": row["failures"] + settlement.failure,
        "losses": row["losses"] + settlement.loss,
        "suspects": row["suspects"] + settlement.suspect,
        "alone": int(bool(row["alone"]) or settlement.alone),
        "available_at": available_at,
        "expires_at": expires_at,
        "error_type": error_type,
        "error_message": error_message,
    }


def report_of(row: Row, outcome: Outcome) -> Report:
    """A sweep's own word about an attempt."""
    return Report(ref_of(row), outcome)
