"""Waits: what parked jobs wait for, what answers them, and what came before anybody asked.

Theory of operation. A wait is a row; whoever first writes its answer, under that row's lock, has decided: an event, a
person, the end of the children, or time. Events and parks of one address exclude each other (an advisory lock; SQLite
has one writer): who parks then sees every event that was sent before, and who sends sees every wait that was asked
before, so no event passes a wait by. Who finds the address in use parks without a look at its events and leaves a
word in the inbox: whoever wakes jobs looks at them once the address is free. Who answers touches nothing but the row
and the inbox, and so can wait for nobody in a circle; the job itself is woken by whoever works off the inbox, or by
the janitor whose timer came due.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unstuck.model.children import MOST_CHILDREN
from unstuck.model.errors import ErrorType, InvalidInput, NotAsked, NotWaiting, StoreBusy, UnstuckError, told
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.payload import MAX_NAME, MAX_PAYLOAD, check_text, clean_text
from unstuck.model.policy import LONGEST, Policy
from unstuck.model.target import FIRST, place_of, turn_after
from unstuck.model.waits import (
    BY_SHELL,
    MOST_WAITS,
    Answer,
    Signalled,
    Wait,
    WaitKind,
    WaitRecord,
    spec_of,
    timeout_message,
)
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.life.changes import MAX_MESSAGE, Changes, ahead_of, done_of, rest_of
from unstuck.store.order.targets import take_turn
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import address_of, instant, packed, span, wait_of

if TYPE_CHECKING:
    from unstuck.store.life.settle import Settling

#: An event that nobody waited for in time is forgotten.
LETTER_LIFE = 86400.0
#: Who answers when nobody else did.
BY_TIME = "timeout"
BY_CHILDREN = "children"
MAX_KEY = 2 * MAX_NAME
MAX_QUESTION = 8 << 10
MOST_ASKED = 100
#: Waits that one transaction refuses, one after the other.
MOST_REFUSED = 10
#: When the last one of a page was asked, and the number of its job.
_CURSOR = re.compile("([0-9]{1,18}):([0-9]{1,18})")
#: The end of the year 9999, in microseconds: no later instant can be shown to anybody.
_LAST_INSTANT = 253_402_300_799_999_999


def check(wait: Wait) -> None:
    """What a handler asks for reaches us from its process: nothing that a database would refuse may get further."""
    _check_text(wait.key, "the wait's key", MAX_KEY)
    _check_text(wait.name, "the wait's name", MAX_QUESTION if wait.kind is WaitKind.APPROVAL else MAX_NAME)
    _check_text(wait.topic or "", "the topic", MAX_NAME)
    _check_text(wait.default or "", "the default", MAX_PAYLOAD)
    for one in wait.who:
        _check_text(one, "the one who is asked", MAX_NAME)
    for child in wait.children:
        _check_text(child, "the id of a child", MAX_NAME)
    if wait.timeout is not None and not 0 < wait.timeout <= LONGEST:
        raise InvalidInput(f"a wait of {wait.timeout!r} seconds must be above 0 and at most {LONGEST:g}")
    if wait.until is not None and not 0 <= wait.until <= _LAST_INSTANT:
        raise InvalidInput("the instant it waits for lies beyond what a calendar holds")
    if len(wait.children) > MOST_CHILDREN or len(wait.who) > MOST_ASKED:
        raise InvalidInput(f"it waits for more than {MOST_CHILDREN} children, or asks more than {MOST_ASKED} people")


def check_event(event: str, payload: str, topic: str | None) -> None:
    _check_text(event, "the event's name", MAX_NAME)
    _check_text(topic or "", "the topic", MAX_NAME)
    _check_text(payload, "the event's payload", MAX_PAYLOAD)


def _check_text(text: str, what: str, most: int) -> None:
    check_text(text, what)
    if len(text) > most:
        raise InvalidInput(f"{what} has {len(text):,} characters; the limit is {most:,}")


def _hold_address(t: Transaction, tenant: str, address: str) -> None:
    """Until the commit. No lock that others may hold while they want this one is asked for afterwards."""
    if not t.split:
        t.all("lock_addresses", keys=[_mutex(tenant, address)])


def _free_addresses(t: Transaction, addresses: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of (tenant, address) that nobody holds: ours until the commit. Who works for many waits for none."""
    wanted = {address: _mutex(*address) for address in addresses}
    if t.split or not wanted:
        return set(wanted)
    ours = {row["key"] for row in t.all("try_addresses", keys=sorted(set(wanted.values())))}
    return {address for address, key in wanted.items() if key in ours}


def _mutex(tenant: str, address: str) -> int:
    digest = hashlib.blake2b(f"{tenant}\0{address}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# --- park ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParkingJob:
    """A running job whose row is locked, and what it parks for."""

    row: Row
    wait: Wait
    policy: Policy

    @property
    def address(self) -> str | None:
        return address_of(self.row["uid"], self.wait.topic) if self.wait.kind is WaitKind.EVENT else None

    @property
    def place(self) -> tuple[int, int, str]:
        return self.row["job"], self.row["run"], self.wait.key

    @property
    def wanted_event(self) -> dict[str, Any]:
        """What would answer it."""
        whose = {"job": self.row["job"], "tenant": self.row["tenant"], "run": self.row["run"]}
        return {**whose, "address": self.address, "event": self.wait.name}


def full(t: Transaction, parks: Sequence[tuple[Row, Wait]]) -> set[int]:
    """Those of these running jobs whose run has had all its waits. Each attempt asks once at most, so there is
    nothing to count before a job has had that many attempts."""
    many = [
        {"job": row["job"], "run": row["run"], "key": wait.key} for row, wait in parks if row["token"] > MOST_WAITS
    ]
    found = t.all("count_waits", rows=packed(many), most=MOST_WAITS) if many else ()
    return {row["job"] for row in found if row["waits"] >= MOST_WAITS}


def ask(t: Transaction, askings: Sequence[ParkingJob]) -> dict[int, Row]:
    """Write down what these jobs wait for, with the answers that have come early: the wait of each job, as a row."""
    if not askings:
        return {}
    free = _free_addresses(t, [(one.row["tenant"], one.address) for one in askings if one.address])
    places = [dict(zip(("job", "run", "key"), one.place, strict=True)) for one in askings]
    # The same key twice in one run is the same wait: what answered it then answers it now.
    known = {(row["job"], row["run"], row["key"]): row for row in t.all("waits_asked", rows=packed(places))}
    fresh = [one for one in askings if one.place not in known]
    events = [one for one in fresh if one.address]
    unclaimed = _take_unclaimed(t, [one.wanted_event for one in events if (one.row["tenant"], one.address) in free])
    ahead = ahead_of(t) if any(one.wait.until is not None for one in fresh) else 0
    asked = {
        one.row["job"]: known.get(one.place) or _columns(one, unclaimed.get(one.row["job"]), ahead) for one in askings
    }
    if fresh:
        t.run("add_waits", rows=packed([asked[one.row["job"]] for one in fresh]))
    if late := [one.row["job"] for one in events if (one.row["tenant"], one.address) not in free]:
        _announce(t, late)  # to be compared with the unclaimed events there are once their address is free
    gathers = [one for one in askings if one.wait.kind is WaitKind.CHILDREN]
    children.watch(t, {one.row["job"]: one.wait for one in gathers if asked[one.row["job"]]["answer"] is None})
    return asked


def _columns(one: ParkingJob, event_row: Row | None, ahead: int) -> dict[str, Any]:
    row, wait = one.row, one.wait
    until = wait.until + ahead if wait.until is not None else row["now"] + span(wait.limit(one.policy))
    return {
        "job": row["job"],
        "run": row["run"],
        "key": wait.key,
        "tenant": row["tenant"],
        "kind": wait.kind,
        "name": wait.name,
        "address": one.address,
        "spec": packed(spec_of(wait)),
        "token": row["token"],
        "asked_at": row["now"],
        "until_at": until,
        "answer": Answer.EVENT if event_row else None,
        "payload": event_row["payload"] if event_row else None,
        "answered_at": row["now"] if event_row else None,
        "by": event_row["by"] if event_row else None,
        "comment": None,
    }


def _without_job(wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name != "job"}


def _take_unclaimed(t: Transaction, wanted: Sequence[dict[str, Any]]) -> dict[int, Row]:
    """For each of these jobs, whose addresses are ours, the oldest unclaimed event for it, if there is one."""
    if t.split:
        taken = {one["job"]: t.one("take_unclaimed_event", **_without_job(one)) for one in wanted}
        return {job: event_row for job, event_row in taken.items() if event_row is not None}
    turns: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for one in wanted:
        place = (one["tenant"], one["address"], one["event"])
        rows.append({**one, "turn": turns[place]})
        turns[place] += 1
    return {row["job"]: row for row in t.all("take_unclaimed_events", rows=packed(rows))} if rows else {}


def asked_facts(wait: Row) -> dict[str, Any]:
    """What the history says of a job that parks."""
    return {**_named(wait), "until": instant(wait["until_at"]).isoformat()}


def answered_facts(wait: Row) -> dict[str, Any]:
    """What the history says of a job that goes on; the answer itself may be large, and stays with the wait."""
    said = {"answer": wait["answer"], "by": wait["by"] or "janitor", "comment": wait["comment"]}
    at = wait["answered_at"]
    return {**_named(wait), **said, "answered_at": None if at is None else instant(at).isoformat()}


def _named(wait: Row) -> dict[str, Any]:
    return {"wait": wait["kind"], "name": wait["name"] or None, "key": wait["key"]}


# --- answers ------------------------------------------------------------------------------------------------------


def signal(
    t: Transaction, tenant: str, event: str, payload: str, by: str, job: str | None, topic: str | None
) -> Signalled:
    """The oldest wait for it is answered; else it stays unclaimed, under this number; 0 if it was answered."""
    address = address_of(job or "", topic)
    _hold_address(t, tenant, address)
    by = clean_text(by, MAX_NAME)
    while True:
        # Again after each miss: a wait that went while we reached for it may have gone with its run.
        run = None if job is None else _run_to_come(t, tenant, job)
        found = t.one("oldest_wait", tenant=tenant, address=address, event=event, run=run)
        if found is None:
            break
        answer = {"answer": Answer.EVENT, "payload": payload, "by": by, "comment": None}
        if t.run("answer_wait", job=found["job"], run=found["run"], key=found["key"], **answer):
            _announce(t, [found["job"]])
            return Signalled(found["uid"], 0)
    sent = {"tenant": tenant, "address": address, "event": event, "payload": payload, "run": run, "by": by}
    kept = t.one("add_unclaimed_event", **sent, life=span(LETTER_LIFE))
    assert kept is not None
    return Signalled(None, int(kept["id"]))


def _run_to_come(t: Transaction, tenant: str, uid: str) -> int:
    """The run that an event sent now is meant for: of a paused job the one that its resume opens."""
    row = job_row(t, tenant, uid)
    state = JobState(row["state"])
    if state.is_final:
        raise NotWaiting(f"job {uid} has ended ({state}): it waits for no event any more")
    return int(row["run"]) + (state is JobState.PAUSED)


def _announce(t: Transaction, jobs: Iterable[int]) -> None:
    t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in jobs]))


def decide(
    t: Transaction, tenant: str, uid: str, answer: Answer, by: str, comment: str | None, key: str | None
) -> WaitRecord:
    """A person's word on the open approval; the first counts, also against a deadline or a cancel."""
    row = job_row(t, tenant, uid)
    said = clean_text(comment, MAX_MESSAGE) if comment else None
    decided = t.all(
        "decide_wait", job=row["number"], key=key, answer=answer, by=clean_text(by, MAX_NAME), comment=said
    )
    if not decided:
        raise NotWaiting(_why_not(t, job_row(t, tenant, uid), key))
    record = wait_of({**decided[0], "uid": uid, "workflow": row["workflow"]})
    if record.wait.who and by.removesuffix(BY_SHELL) not in record.wait.who:
        raise NotAsked(uid, record.wait.name, record.wait.who, by)
    _announce(t, [row["number"]])
    return record


def _why_not(t: Transaction, job: Row, key: str | None) -> str:
    uid, state = job["uid"], JobState(job["state"])
    asked = [wait_of(row) for row in t.all("job_waits", tenant=job["tenant"], uid=uid)]
    if asked and state is JobState.WAITING and (last := asked[-1]).answer is None:
        if last.wait.kind is WaitKind.APPROVAL:
            return f"job {uid} waits for another approval, {last.wait.key!r}: {last.wait.name!r}"
        return f"job {uid} waits for no approval, but for {_what(last.wait)}"
    decided = [record for record in asked if record.wait.kind is WaitKind.APPROVAL and key in (None, record.wait.key)]
    if decided and decided[-1].answer is not None:
        last = decided[-1]
        return f"{last.wait.name!r} of job {uid} is decided already: {last.answer} by {last.by or 'nobody'}"
    return f"job {uid} is {state} and waits for no approval"


def _what(wait: Wait) -> str:
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.name!r}" + (f" on topic {wait.topic!r}" if wait.topic else "")
        case WaitKind.CHILDREN:
            return f"{len(wait.children)} children to end"
        case WaitKind.TIME:
            return "a time"
        case WaitKind.APPROVAL:
            return f"the approval {wait.name!r}"


# --- wake ---------------------------------------------------------------------------------------------------------


def wake(t: Transaction, tools: Settling, jobs: Iterable[int], *, is_careful: bool = False) -> tuple[int, bool]:
    """Those of these jobs that are WAITING and whose answer is there go on. How many, and whether somebody idle
    should look: for work, or for what is left in the inbox. `is_careful`: those set aside are left to who tries them
    again."""
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
        _announce(t, sorted(busy))
    still = {row["job"] for row in t.all("open_waits_of", jobs=[row["job"] for row in asked])} if asked else set()
    changes = Changes()
    _wake_all(changes, t, tools, [row for job, row in rows.items() if job not in still], is_locked=False)
    return len(changes.events), changes.write(t) or bool(later)


def _answer_gathers(t: Transaction, gathers: Sequence[Row]) -> tuple[set[int], set[int]]:
    """Gathers none of whose children is waited for any more. Their jobs are locked: nobody else answers them. Whose
    row somebody holds all the same, and who are too many for one transaction."""
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
        {**_place(over[job][0]), "answer": Answer.ENDED, "payload": told, "by": BY_CHILDREN}
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
    free = _free_addresses(t, [(row["tenant"], row["address"]) for row in events])
    ours = [row for row in events if (row["tenant"], row["address"]) in free]
    unclaimed = _take_unclaimed(
        t,
        [{**{name: row[name] for name in ("job", "run", "tenant", "address")}, "event": row["name"]} for row in ours],
    )
    answers = [
        {**_place(row), "answer": Answer.EVENT, "payload": event_row["payload"], "by": event_row["by"]}
        for row in ours
        if (event_row := unclaimed.get(row["job"]))
    ]
    if answers and len(t.all("answer_waits", rows=packed(answers))) < len(answers):
        raise StoreBusy("somebody holds a wait whose event has come; nothing was written")  # the event must stay
    return {row["job"] for row in events}.difference(row["job"] for row in ours)


def _place(wait: Row) -> dict[str, Any]:
    return {"job": wait["job"], "run": wait["run"], "key": wait["key"]}


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
        stay = tools.dimensions.policy(t, row["policy"]).expires_after
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


# --- waits that could never end -----------------------------------------------------------------------------------


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
    _fail(changes, t, tools, row, {**_named(gather), "by": BY_CHILDREN}, type(problem).__name__, message)
    woke = changes.write(t)
    children.left(t, changes.ends)
    return woke


def drop_timers(t: Transaction, waits: Iterable[Row]) -> None:
    if rows := [{"due_at": wait["until_at"], "job": wait["job"]} for wait in waits]:
        t.run("take_timers", kind="wait", rows=packed(rows))


# --- time ---------------------------------------------------------------------------------------------------------


def due(t: Transaction, after: tuple[int, int], batch: int) -> list[Row]:
    """Timers of waits that came due, those behind (due_at, job) `after`; what is set aside is left out."""
    return t.all("due_wait_timers", after_at=after[0], after_job=after[1], batch=batch)


def due_of(t: Transaction, jobs: Sequence[int]) -> list[tuple[int, int]]:
    return [(row["due_at"], row["job"]) for row in t.all("due_timers_of_waits", jobs=list(jobs))]


def expire(t: Transaction, tools: Settling, timers: Sequence[tuple[int, int]]) -> tuple[int, bool]:
    """By these timers, (due_at, job), waits end whose time has passed: how many jobs moved, and whether somebody idle
    should look. A timer of an earlier wait finds nothing that is due, and goes. Where somebody holds the job, its
    target or its wait, the timer stays for another time."""
    locked = [row["id"] for row in t.all("lock_free_targets_of", jobs=sorted({job for _, job in timers}))]
    named = packed([{"due_at": at, "job": job} for at, job in timers])
    due = t.all("due_waits", timers=named, targets=locked)
    if not due:
        return 0, False
    rows = {row["number"]: row for row in due if row["state"] == JobState.WAITING}
    # In a statement of its own: only behind the locks is it sure what each of them waits for.
    found = {row["job"]: row for row in t.all("open_waits_of", jobs=list(rows))} if rows else {}
    # By its timer too, which goes now: a clock that was set back must not leave a wait without one.
    late = [wait for job, wait in found.items() if wait["until_at"] <= max(rows[job]["now"], rows[job]["due_at"])]
    written = t.all("answer_waits", rows=packed([_by_time(wait) for wait in late])) if late else []
    answered = {row["job"]: row for row in written}
    # Somebody else's answer, whose entry in the inbox is on its way (another one does no harm); or he still holds it.
    not_ours = {wait["job"] for wait in late}.difference(answered)
    held = {row["job"] for row in t.all("open_waits_of", jobs=sorted(not_ours))} if not_ours else set()
    if decided := sorted((not_ours - held) | set(rows).difference(found)):
        _announce(t, decided)
    changes = Changes()
    failed = {job: wait for job, wait in answered.items() if wait["answer"] == Answer.TIMEOUT}
    for job, message in _lateness(t, failed).items():
        facts = {**_named(failed[job]), "by": "janitor"}
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
    said = {**_place(row), "payload": None, "by": BY_TIME}
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
        policy = tools.dimensions.policy(t, row["policy"])
        turn = turn_after(JobState.FAILED, started=bool(row["started"]), policy=policy)
        take_turn(changes, row["target_number"], job, turn, now)


def _missing(t: Transaction, jobs: Sequence[int]) -> dict[int, tuple[str, ...]]:
    missing: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for row in t.all("dependencies_of", jobs=list(jobs)) if jobs else ():
        if row["state"] is None and row["uid"] is not None:
            missing[row["job"]] += (row["uid"],)
    return missing


# --- stopped, resumed ---------------------------------------------------------------------------------------------


def abandon(t: Transaction, job: int, run: int) -> None:
    """It is cancelled or interrupted while it waits, and its row is locked: nothing may wake or fail it any more."""
    t.run("drop_wait_timers", job=job, run=run)
    t.run("drop_open_wait", job=job, run=run)
    t.run("forget_dependencies", job=job)


def begin_run(t: Transaction, row: Row, run: int) -> None:
    """What was sent to earlier runs is not for this one."""
    t.run("drop_unclaimed_events", tenant=row["tenant"], address=address_of(row["uid"], None), run=run)


# --- what people read ---------------------------------------------------------------------------------------------


def of_job(t: Transaction, tenant: str, uid: str) -> list[WaitRecord]:
    job_row(t, tenant, uid)
    return [wait_of(row) for row in t.all("job_waits", tenant=tenant, uid=uid)]


def page(t: Transaction, tenant: str | None, kind: str, after: str, limit: int) -> list[WaitRecord]:
    """The oldest first. A cursor says itself where it points to: the wait it was given for may be gone by now."""
    begin = _place_of(after)
    if tenant is None:
        rows = t.all("open_waits_everywhere", kind=kind, most=limit, **begin)
    else:
        rows = t.all("open_waits", tenant=tenant, kind=kind, most=limit, **begin)
    return [replace(wait_of(row), cursor=f"{row['asked_at']}:{row['job']}") for row in rows]


def _place_of(cursor: str) -> dict[str, int]:
    if not cursor:
        return {"after_at": 0, "after_job": 0}
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput(f"after={told(repr(cursor))} is not where a page ended; take it from the last one shown")
    return {"after_at": int(found[1]), "after_job": int(found[2])}
