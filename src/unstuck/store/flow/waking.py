"""Waking: parked jobs whose wait is answered, whose time has passed, or whose children can never end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from unstuck.model.errors import ErrorType, StoreBusy, UnstuckError
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.payload import clean_text
from unstuck.model.target import FIRST, place_of, turn_after
from unstuck.model.waits import (
    Answer,
    WaitKind,
    timeout_message,
)
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.flow.waits import (
    abandon,
    announce,
    answered_facts,
    decided_news,
    drop_timers,
    free_addresses,
    key_of,
    named,
    take_unclaimed,
)
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE, Changes, done_of, rest_of
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.targets import take_turn
from unstuck.store.rows import packed, span, wait_of

#: Written as the answerer of a wait that no event and no person answered.
BY_TIME = "timeout"
BY_CHILDREN = "children"
#: Waits that one transaction refuses, one after the other.
MOST_REFUSED = 10


def wake(t: Transaction, tools: Settling, jobs: Iterable[int], *, is_careful: bool = False) -> tuple[int, bool]:
    """Those of these jobs that are WAITING and whose answer is there go on. How many, and whether an idle
    worker should look: for work, or for what is left in the inbox. `is_careful`: jobs in quarantine are left to the
    duty that tries them again."""
    parked = [row["number"] for row in t.all("waiting_jobs", jobs=sorted(jobs))]
    if is_careful and parked:
        aside = {row["item"] for row in t.all("lock_quarantined", duty="wait", items=parked)}
        parked = [job for job in parked if job not in aside]
    if not parked:
        return 0, False
    locked = [row["id"] for row in t.all("lock_jobs", jobs=parked)]
    busy = set(parked).difference(locked)
    rows = {row["number"]: row for row in t.all("waiting_jobs", jobs=locked)} if locked else {}
    asked = t.all("open_waits_of", jobs=list(rows)) if rows else []
    held, later = _answer_gathers(t, [row for row in asked if row["kind"] == WaitKind.CHILDREN])
    busy |= held | later | _answer_events(t, [row for row in asked if row["kind"] == WaitKind.EVENT])
    if busy:
        announce(t, sorted(busy))
    still = {row["job"] for row in t.all("open_waits_of", jobs=[row["job"] for row in asked])} if asked else set()
    changes = Changes()
    _wake_all(changes, t, tools, [row for job, row in rows.items() if job not in still], is_locked=False)
    return len(changes.events), changes.write(t) or bool(later)


def _answer_gathers(t: Transaction, gathers: Sequence[Row]) -> tuple[set[int], set[int]]:
    """Gathers none of whose children is waited for any more. Their jobs are locked: nobody else answers them. The
    second set: jobs whose wait is locked all the same, and those that are too many for one transaction."""
    if not gathers:
        return set(), set()
    waiting = {row["job"] for row in t.all("who_waits", jobs=[row["job"] for row in gathers])}
    over = {row["job"]: (row, wait_of(row).wait) for row in gathers if row["job"] not in waiting}
    if not over:
        return set(), set()
    chosen = children.fitting(t, {job: wait.children for job, (_, wait) in over.items()})
    ends = children.ends(t, chosen)
    # One was resumed since its end was told: it is waited for again.
    children.watch(t, {job: over[job][1] for job, told in ends.items() if told is None})
    answers = [
        {**key_of(over[job][0]), "answer": Answer.ENDED, "payload": told, "by": BY_CHILDREN}
        for job, told in ends.items()
        if told is not None
    ]
    written = {row["job"] for row in t.all("answer_waits", rows=packed(answers))} if answers else set()
    return {row["job"] for row in answers}.difference(written), set(over).difference(chosen)


def _answer_events(t: Transaction, events: Sequence[Row]) -> set[int]:
    """Waits whose address was in use when they were asked: the events that came before them. Whose address still
    is."""
    if not events:
        return set()
    free = free_addresses(t, [(row["tenant"], row["address"]) for row in events])
    ours = [row for row in events if (row["tenant"], row["address"]) in free]
    unclaimed = take_unclaimed(
        t,
        [{**{name: row[name] for name in ("job", "run", "tenant", "address")}, "event": row["name"]} for row in ours],
    )
    answers = [
        {**key_of(row), "answer": Answer.EVENT, "payload": event_row["payload"], "by": event_row["by"]}
        for row in ours
        if (event_row := unclaimed.get(row["job"]))
    ]
    if answers and len(t.all("answer_waits", rows=packed(answers))) < len(answers):
        raise StoreBusy("somebody holds a wait whose event has come; nothing was written")  # the event must stay
    return {row["job"] for row in events}.difference(row["job"] for row in ours)


def gathering(t: Transaction, jobs: Sequence[int]) -> set[int]:
    """Those of these jobs that are WAITING for their children."""
    found = t.all("open_waits_of", jobs=list(jobs)) if jobs else []
    return {row["job"] for row in found if row["kind"] == WaitKind.CHILDREN}


def _wake_all(changes: Changes, t: Transaction, tools: Settling, rows: Sequence[Row], *, is_locked: bool) -> None:
    """Jobs whose rows are locked and whose waits are answered. `is_locked`: their targets are, too."""
    if not rows:
        return
    answers = {row["job"]: row for row in t.all("last_waits_of", jobs=[row["number"] for row in rows])}
    drop_timers(t, answers.values())
    for row in rows:
        job, now = row["number"], row["now"]
        changes.tell(
            job, row["event_count"] + 1, now, EventKind.WOKEN, row["run"], row["token"], answered_facts(answers[job])
        )
        stay = tools.name_ids.policy(t, row["policy"]).expires_after
        expires_at = None if stay is None else now + span(stay)
        changes.rests.append(rest_of(row, JobState.QUEUED, available_at=now, expires_at=expires_at))
        changes.queue(
            job,
            now,
            now,
            expires_at,
            route=row["route"],
            target=row["target_number"],
            place=FIRST if row["is_head"] else place_of(row["priority"]),
            is_locked=is_locked,
        )


@dataclass(frozen=True, slots=True)
class RefusedWaits:
    failed: set[int] = field(default_factory=set)
    #: Their targets are in use at this instant: to be looked at again.
    busy: list[int] = field(default_factory=list)
    woke: bool = False


def refuse(t: Transaction, tools: Settling, jobs: Iterable[int]) -> RefusedWaits:
    """These jobs, whose rows are locked, have just parked for their children: those whose wait could never end fail.
    Each was looked at before it parked, but two such looks may have passed each other; of two parks the later one is
    looked at here when both are there to be seen."""
    refused = RefusedWaits()
    rows = {row["number"]: row for row in t.all("waiting_jobs", jobs=sorted(jobs))} if jobs else {}
    gathers = {row["job"]: row for row in t.all("open_waits_of", jobs=list(rows))} if rows else {}
    for _ in range(MOST_REFUSED):
        problems = _never_end(t, gathers)
        if not problems:
            return refused
        # The youngest first, done with before the next: with its end the others, which wait for it, may go on.
        job = max(problems)
        row, gather = rows[job], gathers.pop(job)
        if row["is_head"] and not t.all("lock_free_targets", targets=[row["target_number"]]):
            refused.busy.append(job)
            continue
        refused = replace(refused, woke=_end_refused(t, tools, row, gather, problems[job]) or refused.woke)
        refused.failed.add(job)
    return replace(refused, busy=[*refused.busy, *gathers], woke=True)


def _never_end(t: Transaction, gathers: Mapping[int, Row]) -> dict[int, UnstuckError]:
    still_open: dict[int, list[int]] = defaultdict(list)
    for row in t.all("dependencies_of", jobs=list(gathers)) if gathers else ():
        if row["state"] is None and row["uid"] is not None:
            still_open[row["job"]].append(row["on_job"])
    asked = [
        children.Gather(job, still_open[job], wait_of(row).wait.release_target)
        for job, row in gathers.items()
        if still_open[job]
    ]
    return children.problems(t, asked) if asked else {}


def _end_refused(t: Transaction, tools: Settling, row: Row, gather: Row, problem: UnstuckError) -> bool:
    abandon(t, row["number"], row["run"])
    changes = Changes()
    message = clean_text(str(problem), MAX_MESSAGE)
    _fail(changes, t, tools, row, {**named(gather), "by": BY_CHILDREN}, type(problem).__name__, message)
    woke = changes.write(t)
    children.left(t, changes.ends)
    return woke


def due(t: Transaction, after: tuple[int, int], batch: int) -> list[Row]:
    """Timers of waits that came due, those behind (due_at, job) `after`; what is set aside is left out."""
    return t.all("due_wait_timers", after_at=after[0], after_job=after[1], batch=batch)


def due_of(t: Transaction, jobs: Sequence[int]) -> list[tuple[int, int]]:
    return [(row["due_at"], row["job"]) for row in t.all("due_timers_of_waits", jobs=list(jobs))]


def expire(t: Transaction, tools: Settling, timers: Sequence[tuple[int, int]]) -> tuple[int, bool]:
    """By these timers, (due_at, job), waits end whose time has passed: how many jobs moved, and whether an idle
    worker should look. A timer of an earlier wait finds nothing that is due, and goes. Where somebody holds the job,
    its target or its wait, the timer stays for another time."""
    locked = [row["id"] for row in t.all("lock_free_targets_of", jobs=sorted({job for _, job in timers}))]
    given = packed([{"due_at": at, "job": job} for at, job in timers])
    due = t.all("due_waits", timers=given, targets=locked)
    if not due:
        return 0, False
    rows = {row["number"]: row for row in due if row["state"] == JobState.WAITING}
    # In a statement of its own: only behind the locks is it sure what each of them waits for.
    found = {row["job"]: row for row in t.all("open_waits_of", jobs=list(rows))} if rows else {}
    # By its timer too, which goes now: a clock that was set back must not leave a wait without one.
    late = [wait for job, wait in found.items() if wait["until_at"] <= max(rows[job]["now"], rows[job]["due_at"])]
    written = t.all("answer_waits", rows=packed([_by_time(wait) for wait in late])) if late else []
    answered = {row["job"]: row for row in written}
    news.tell(t, [decided_news(row) for row in written if row["kind"] == WaitKind.APPROVAL])
    # Somebody else's answer, whose entry in the inbox is on its way (another one does no harm); or he still holds it.
    not_ours = {wait["job"] for wait in late}.difference(answered)
    held = {row["job"] for row in t.all("open_waits_of", jobs=sorted(not_ours))} if not_ours else set()
    if decided := sorted((not_ours - held) | set(rows).difference(found)):
        announce(t, decided)
    changes = Changes()
    failed = {job: wait for job, wait in answered.items() if wait["answer"] == Answer.TIMEOUT}
    for job, message in _lateness(t, failed).items():
        facts = {**named(failed[job]), "by": "janitor"}
        _fail(changes, t, tools, rows[job], facts, ErrorType.WAIT_TIMEOUT, message)
    _wake_all(changes, t, tools, [rows[job] for job in answered if job not in failed], is_locked=True)
    gathers = [job for job, wait in answered.items() if wait["kind"] == WaitKind.CHILDREN]
    if gathers:
        t.run("drop_dependencies", jobs=gathers)
    if gone := [{"due_at": row["due_at"], "job": row["number"]} for row in due if row["number"] not in held]:
        t.run("take_timers", kind="wait", rows=packed(gone))
    woke = changes.write(t)
    children.left(t, changes.ends)
    return len(answered), woke or bool(decided or changes.ends)


def next_end(t: Transaction) -> float | None:
    """In how many seconds the first timer of a wait comes due."""
    first = t.one("next_timer", kind="wait")
    return None if first is None else max(0, first["ahead"]) / 1_000_000


def _by_time(row: Row) -> dict[str, Any]:
    """What the end of its time means was agreed when it was asked."""
    wait = wait_of(row).wait
    said = {**key_of(row), "payload": None, "by": BY_TIME}
    match wait.on_timeout:
        case _ if wait.kind is WaitKind.TIME:
            return {**said, "answer": Answer.DUE}
        case "default":
            return {**said, "answer": Answer.DEFAULT, "payload": wait.default}
        case "approve":
            return {**said, "answer": Answer.APPROVED}
        case "reject":
            return {**said, "answer": Answer.REJECTED}
        case _:
            return {**said, "answer": Answer.TIMEOUT}


def _lateness(t: Transaction, failed: Mapping[int, Row]) -> dict[int, str]:
    """Nobody came, and nothing else was agreed: what each is told."""
    records = {job: wait_of(row) for job, row in failed.items()}
    missing = _missing(t, [job for job, record in records.items() if record.wait.kind is WaitKind.CHILDREN])
    limits = {job: (row["until_at"] - row["asked_at"]) / 1_000_000 for job, row in failed.items()}
    return {
        job: clean_text(timeout_message(record, limits[job], missing[job]), MAX_MESSAGE)
        for job, record in records.items()
    }


def _fail(
    changes: Changes, t: Transaction, tools: Settling, row: Row, facts: dict[str, Any], error_type: str, message: str
) -> None:
    """A job that waits ends. Its row is locked, and its target where it is the head."""
    job, now = row["number"], row["now"]
    error = {"error_type": error_type, "error_message": message}
    changes.tell(job, row["event_count"] + 1, now, EventKind.FAILED, row["run"], row["token"], {**facts, **error})
    changes.rests.append(rest_of(row, JobState.QUEUED))  # of an ended job only done says the state
    changes.ends.append(done_of(job, row, JobState.FAILED, now, **error))
    if row["is_head"]:
        policy = tools.name_ids.policy(t, row["policy"])
        turn = turn_after(JobState.FAILED, started=bool(row["started"]), policy=policy)
        take_turn(changes, row["target_number"], job, turn, now)


def _missing(t: Transaction, jobs: Sequence[int]) -> dict[int, tuple[str, ...]]:
    missing: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for row in t.all("dependencies_of", jobs=list(jobs)) if jobs else ():
        if row["state"] is None and row["uid"] is not None:
            missing[row["job"]] += (row["uid"],)
    return missing
