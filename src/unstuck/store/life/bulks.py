"""Bulks: one verb over all the jobs that a filter wants, a batch at a time, by whichever worker has time for it.

Theory of operation. A look reads the next jobs that match, without a lock, and then writes in one transaction how far
it came and which jobs it found, if nobody has looked further meanwhile. Each job found is a row of the bulk until the
transaction that moves the job takes that row away and counts it: so a job is moved once, whoever dies, and however
many workers carry the bulk on. They take turns by the bulk's row, which every such transaction locks first; a cancel
of the bulk needs it too, and nothing of the bulk commits behind it.

A transaction moves several jobs. So it takes all that their verbs will need before it moves the first, in the order
of `store/lock_order.py`, and waits for nobody: a job of which another session holds a row is passed over, and comes
again in later turns. Then it asks once more which jobs the filter wants: the look may be old. What the database
refuses is found by bisection, and is refused alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, NamedTuple

from unstuck.model.bulk import BulkOptions, BulkState, BulkVerb, Counted, Refusal
from unstuck.model.call import WantedArgument
from unstuck.model.dead_letters import sentence_of
from unstuck.model.errors import (
    BulkEnded,
    Conflict,
    IllegalMove,
    NeedsSignature,
    NoDeadLetter,
    OtherCount,
    StoreBusy,
    UnknownBulk,
    UnknownJob,
)
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import MOVES, JobState, Move, parse_shown
from unstuck.model.payload import clean_text
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import pending
from unstuck.store.flow import steps as journals
from unstuck.store.guard import audit, dead_letters, isolation
from unstuck.store.guard.bisection import AWAY
from unstuck.store.life.changes import MAX_MESSAGE, moment
from unstuck.store.life.control import Again, Control
from unstuck.store.order.line import lock_free
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import HELD, BulkRecord, Enough, JobFilter, LetterTerms, NewBulk
from unstuck.store.read import lookup
from unstuck.store.rows import instant, instant_or_none, packed, span
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit

#: Counting ends here; so it does where a list would.
MOST_COUNTED = 10_000
#: Jobs that one transaction moves.
AT_ONCE = 25
#: Jobs that a look goes through for each that it may find: a batch that was too much for one call makes it shorter.
CANDIDATES = 40
#: Bulks that one turn carries on.
MOST_BULKS = 100
#: A job that somebody holds for so many seconds, each time a turn comes to it, is refused.
HELD_FOR = 600.0
MOST_REASONS = 5
UNREADABLE = (ValueError, TypeError, AttributeError)
_LAST = 1 << 62
#: Before this instant only those were tried that nobody has tried.
_NEW = 1


# --- what people ask ----------------------------------------------------------------------------------------------


def count(t: Transaction, tenant: str, filter: JobFilter) -> Counted:
    found = lookup.matching(t, tenant, filter, MOST_COUNTED)
    return Counted(len(found.jobs), is_exact=found.looked_to is None)


def expect(t: Transaction, new: NewBulk) -> None:
    """OtherCount if the asker has seen another number of jobs. Not of a repeat: they may have moved since, by this
    very bulk. A read by itself: counting takes longer than anybody should keep others from writing."""
    if new.expected is None or t.one("bulk_by_key", key=new.key) is not None:
        return
    found = count(t, new.tenant, new.filter)
    if found.number > new.expected or (found.is_exact and found.number != new.expected):
        raise OtherCount(new.expected, found.number, is_exact=found.is_exact)


def start(t: Transaction, new: NewBulk) -> BulkRecord:
    """One that was started already is that one."""
    row = t.one("bulk_by_key", key=new.key)
    if row is not None:
        return record_of(row)
    told = clean_text(new.options.reason, MAX_MESSAGE) if new.options.reason else None
    filter = _filter_facts(new.filter)
    t.run(
        "start_bulk",
        key=new.key,
        tenant=new.tenant,
        verb=new.verb.value,
        filter=packed(filter),
        reason=told,
        from_start=int(new.options.from_start),
        force=int(new.options.force),
        by=clean_text(new.by, 200),
        expected=new.expected,
    )
    row = t.one("bulk_by_key", key=new.key)
    assert row is not None
    asked = {"verb": new.verb.value, "filter": filter, "reason": told, "expected": new.expected}
    options = {"from_start": new.options.from_start or None, "force": new.options.force or None}
    audit.note(t, new.by, "bulks.start", str(row["id"]), new.tenant, {**asked, **options})
    return record_of(row)


def cancel(t: Transaction, tenant: str, number: int, by: str) -> BulkRecord:
    """Waits for the transaction that carries it on at this moment, if there is one."""
    row = t.one("bulk", number=number)
    if row is None or row["tenant"] != tenant:
        raise UnknownBulk(number)
    is_ended = t.run("end_bulk", number=number, state=BulkState.CANCELLED, by=clean_text(by, 200), error=None) == 1
    row = t.one("bulk", number=number)
    assert row is not None
    if is_ended:
        t.run("forget_bulk_jobs", number=number)
        done = {"verb": row["verb"], "done": row["done"], "left": record_of(row).left}
        audit.note(t, by, "bulks.cancel", str(number), tenant, done)
    elif row["state"] != BulkState.CANCELLED:
        raise BulkEnded(number, row["state"])
    return record_of(row)


def one(t: Transaction, tenant: str, number: int) -> BulkRecord | None:
    row = t.one("bulk", number=number)
    return None if row is None or row["tenant"] != tenant else record_of(row)


def page(
    t: Transaction, tenant: str | None, state: BulkState | None, before: int | None, limit: int
) -> list[BulkRecord]:
    rows = t.all("bulks", tenant=tenant, state=state, before=before or _LAST, most=limit)
    return [record_of(row) for row in rows]


def record_of(row: Row) -> BulkRecord:
    return BulkRecord(
        number=row["id"],
        tenant=row["tenant"],
        verb=BulkVerb(row["verb"]),
        filter=_readable(row["filter"]),
        options=_options_of(row),
        by=row["by"],
        state=BulkState(row["state"]),
        began_at=instant(row["began_at"]),
        matched=row["matched"],
        done=row["done"],
        refused=row["refused"],
        moved_on=row["moved_on"],
        reasons=tuple(Refusal(*reason) for reason in json.loads(row["reasons"])),
        expected=row["expected"],
        is_looked_through=row["cursor"] >= row["upto"],
        carried_at=instant(row["carried_at"]),
        ended_at=instant_or_none(row["ended_at"]),
        ended_by=row["ended_by"],
        error=row["error"],
    )


def _options_of(row: Row) -> BulkOptions:
    return BulkOptions(row["reason"], from_start=bool(row["from_start"]), force=bool(row["force"]))


_TEXTS = ("workflow", "queue", "error_type", "target", "tag")
_INSTANTS = ("before", "since")


def _filter_facts(filter: JobFilter) -> dict[str, Any]:
    """All that it says, without the order in which a list would show it."""
    facts: dict[str, Any] = {"states": list(filter.states)} if filter.states else {}
    facts |= {name: text for name in _TEXTS if (text := getattr(filter, name)) is not None}
    facts |= {"argument": list(filter.argument)} if filter.argument is not None else {}
    if (letter := filter.letter) is not None:
        facts["letter"] = [letter.reason, *(at and at.isoformat() for at in (letter.before, letter.since))]
    return facts | {name: at.isoformat() for name in _INSTANTS if (at := getattr(filter, name)) is not None}


def _filter_of(text: str) -> JobFilter:
    facts: dict[str, Any] = json.loads(text)
    facts |= {name: datetime.fromisoformat(facts[name]) for name in _INSTANTS if name in facts}
    if "argument" in facts:
        facts["argument"] = WantedArgument(*facts["argument"])
    if "letter" in facts:
        reason, *made = facts["letter"]
        facts["letter"] = LetterTerms(reason, *(at and datetime.fromisoformat(at) for at in made))
    states = tuple(parse_shown(word) for word in facts.pop("states", ()))
    return JobFilter(states=states, newest_first=False, **facts)


def _readable(text: str) -> JobFilter:
    """Of a row that was damaged, nothing: who reads it must still see the others; the bulk itself fails."""
    try:
        return _filter_of(text)
    except UNREADABLE:
        return JobFilter()


# --- what janitors do ---------------------------------------------------------------------------------------------


class BulkSweep:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database

    def carry(self, batch: int, enough: Enough) -> int:
        """Round by round a batch of each, those first that have waited longest. One that fails keeps no other from
        its turn."""
        moved, problem = 0, None
        rows = self._database.read(lambda t: t.all("running_bulks", most=MOST_BULKS))
        running, began = [row["id"] for row in rows], rows[0]["now"] if rows else 0
        while running and not problem:
            left = []
            for number in running:
                try:
                    some, has_more = self._carry_on(number, batch, began, enough)
                except AWAY:
                    raise
                except StoreBusy:
                    continue  # another worker has it
                except Exception as error:
                    problem = error
                    continue
                moved += some
                if has_more:
                    left.append(number)
                if enough():
                    return moved
            running = left
        if problem is not None:
            raise problem
        return moved

    def _carry_on(self, number: int, batch: int, began: int, enough: Enough) -> tuple[int, bool]:
        """One batch: a look, unless an earlier one has left some, and all that it found; behind the last look also
        what was held, each once in a turn, which `began` then. How many jobs were moved, and whether this turn can
        do more for it."""
        row, has_new = self._database.read(
            lambda t: (t.one("bulk", number=number), t.one("has_new_bulk_jobs", number=number) is not None)
        )
        if row is None or row["state"] != BulkState.RUNNING:
            return 0, False
        looked = self._look(row, batch) if not has_new and row["cursor"] < row["upto"] else 0
        is_last = row["cursor"] + looked >= row["upto"]
        moved = 0
        while jobs := self._due(number, began if is_last else _NEW):
            some = self._move(number, jobs)
            if some is None:
                return moved, False  # another worker has it, or somebody ended it
            moved += some
            if enough():
                return moved, True
        if is_last:
            self._finish(number, row["verb"])
        return moved, not is_last and bool(moved or looked)

    def _finish(self, number: int, verb: str) -> None:
        """Unless some of its jobs are still held."""
        if self._database.write(lambda t: t.run("finish_bulk", number=number), patience=isolation.PATIENCE) == 1:
            emit("bulk_done", bulk=number, verb=verb)

    def _look(self, row: Row, batch: int) -> int:
        """How much further it came; 0: another worker was quicker, or it cannot go on."""
        number, seen, upto = row["id"], row["cursor"], row["upto"]
        try:
            filter = _filter_of(row["filter"])
        except UNREADABLE as problem:
            self._fail(number, f"its filter cannot be read: {problem!r}")
            return 0
        budget = batch * CANDIDATES
        found = self._database.read(lambda t: lookup.matching(t, row["tenant"], filter, batch, seen, upto, budget))
        looked_to = upto if found.looked_to is None else found.looked_to

        def advance(t: Transaction) -> bool:
            is_ours = t.run("advance_bulk", number=number, looked_to=looked_to, found=len(found.jobs), seen=seen) == 1
            if is_ours and found.jobs:
                t.run("add_bulk_jobs", number=number, jobs=found.jobs)
            return is_ours

        is_ours = self._database.write(advance, patience=isolation.PATIENCE)
        return looked_to - seen if is_ours else 0

    def _fail(self, number: int, problem: str) -> None:
        told = clean_text(problem, MAX_MESSAGE)

        def end(t: Transaction) -> None:
            if t.run("end_bulk", number=number, state=BulkState.FAILED, by=None, error=told) == 1:
                t.run("forget_bulk_jobs", number=number)

        self._database.write(end, patience=isolation.PATIENCE)
        emit("bulk_failed", level=logging.WARNING, bulk=number, problem=told)

    def _due(self, number: int, before: int) -> list[int]:
        rows = self._database.read(lambda t: t.all("due_bulk_jobs", number=number, before=before, most=AT_ONCE))
        return [row["job"] for row in rows]

    def _move(self, number: int, jobs: Sequence[int]) -> int | None:
        """How many of them need no more; None: this is not for us, nothing was written for some of them."""
        name_ids, steps = self._transactions.name_ids, list[BulkStep | None]()

        def act(some: Sequence[int], patience: float) -> None:
            step = self._database.write(lambda t: move(t, name_ids, number, some), patience=patience)
            steps.append(step)
            self._transactions.hinting(step is not None and step.woke)

        failed = isolation.in_parts(jobs, act)
        if failed:
            steps.append(self._database.write(lambda t: set_back(t, number, failed), patience=isolation.PATIENCE))
        written = [step for step in steps if step is not None]
        return sum(len(step.over) for step in written) if len(written) == len(steps) else None


@dataclass(slots=True)
class BulkStep:
    """What one transaction does about jobs of a bulk. `over`: those that it need not come back to."""

    now: int
    over: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    done: int = 0
    moved_on: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    woke: bool = False

    def refuse(self, job: int, uid: str, why: str) -> None:
        self.over.append(job)
        self.refusals.append(Refusal(uid, clean_text(why, 500)))

    def pass_by(self, job: int) -> None:
        self.over.append(job)
        self.moved_on += 1

    def keep(self, t: Transaction, job: int, held_at: int | None, why: str) -> None:
        """For a later turn, unless it was held for too long."""
        if held_at is not None and self.now - held_at >= span(HELD_FOR):
            self.refuse(job, _uid_of(t, job), why)
        else:
            self.kept.append(job)

    def write(self, t: Transaction, bulk: Row) -> None:
        number = bulk["id"]
        if self.over:
            t.run("drop_bulk_jobs", number=number, jobs=self.over)
        if self.kept:
            t.run("keep_bulk_jobs", number=number, jobs=self.kept, now=self.now)
        reasons = [*json.loads(bulk["reasons"]), *self.refusals][:MOST_REASONS]
        t.run(
            "count_bulk",
            number=number,
            done=self.done,
            refused=len(self.refusals),
            moved_on=self.moved_on,
            reasons=packed(reasons),
        )


def move(t: Transaction, name_ids: NameIds, number: int, jobs: Sequence[int]) -> BulkStep | None:
    """None: another worker carries this bulk on, or it has ended."""
    bulk = t.one("lock_bulk", number=number)
    if bulk is None or bulk["state"] != BulkState.RUNNING:
        return None
    step = BulkStep(moment(t))
    held_at = {row["job"]: row["held_at"] for row in t.all("bulk_jobs", number=number, jobs=list(jobs))}
    held = hold(t, sorted(held_at))
    wanted = lookup.still_matching(t, bulk["tenant"], _filter_of(bulk["filter"]), held.jobs)
    # What waits comes first: its wait is locked before places in ready are, as the order of locks wants it.
    for row in sorted(wanted, key=lambda row: (row["state"] != JobState.WAITING, row["number"])):
        if row["state"] == JobState.RUNNING and row["number"] not in held.attempts:
            continue
        _move_one(t, name_ids, step, bulk, row)
    seen = {row["number"] for row in wanted}
    for job in sorted(held_at.keys() - set(step.over)):
        if job in held.gone or (job in held.jobs and job not in seen):
            step.pass_by(job)
        else:
            step.keep(t, job, held_at[job], HELD)
    step.write(t, bulk)
    return step


def set_back(t: Transaction, number: int, failed: dict[int, Exception]) -> BulkStep | None:
    """These failed alone: what met a lock comes again, what the database refuses is refused."""
    bulk = t.one("lock_bulk", number=number)
    if bulk is None or bulk["state"] != BulkState.RUNNING:
        return None
    step = BulkStep(moment(t))
    for row in t.all("bulk_jobs", number=number, jobs=list(failed)):
        job, problem = row["job"], failed[row["job"]]
        if isinstance(problem, StoreBusy):
            step.keep(t, job, row["held_at"], isolation.problem_of(problem))
        else:
            step.refuse(job, _uid_of(t, job), isolation.problem_of(problem))
    step.write(t, bulk)
    return step


def _uid_of(t: Transaction, job: int) -> str:
    rows = t.all("places_of_jobs", jobs=[job])
    return rows[0]["uid"] if rows else str(job)


def _move_one(t: Transaction, name_ids: NameIds, step: BulkStep, bulk: Row, row: Row) -> None:
    """Every verb refuses before it writes: what it says no to leaves nothing behind."""
    try:
        after, woke = _do(t, name_ids, bulk, row)
    except (UnknownJob, NoDeadLetter):
        step.pass_by(row["number"])
    except Conflict as refusal:
        step.refuse(row["number"], row["uid"], str(refusal))
    else:
        if not isinstance(after, Again):
            step.over.append(row["number"])
            step.done += 1
            step.woke |= woke


def _do(t: Transaction, name_ids: NameIds, bulk: Row, row: Row) -> tuple[JobRecord | Again, bool]:
    """The job after it, and whether an idle worker should look for work."""
    tenant, uid, by, options = bulk["tenant"], row["uid"], bulk["by"], _options_of(bulk)
    verb = Control(name_ids, tenant, uid, by, bulk["id"])
    match BulkVerb(bulk["verb"]):
        case BulkVerb.CANCEL:
            return verb.stop(t, Move.CANCEL, options.reason), True  # of a target the next one may go
        case BulkVerb.INTERRUPT:
            return verb.stop(t, Move.INTERRUPT, options.reason), True
        case BulkVerb.RESUME:
            return _resume(t, verb, from_start=options.from_start), True
        case BulkVerb.RETRY if row["state"] == JobState.QUEUED:
            return verb.run_now(t), True
        case BulkVerb.RETRY if row["state"] == JobState.DEAD:
            return _redrive(t, verb, tenant, uid, is_forced=options.force), True
        case BulkVerb.RETRY:
            state = JobState(row["state"])
            if Move.RESUME not in MOVES[state]:
                raise IllegalMove(uid, state, Move.RETRY, MOVES[state])
            return _resume(t, verb, from_start=True), True
        case BulkVerb.RELEASE:
            return pending.release(t, name_ids, tenant, uid, by, options.force, bulk["id"])
        case BulkVerb.SKIP:
            return verb.skip(t), True


def _resume(t: Transaction, verb: Control, *, from_start: bool) -> JobRecord | Again:
    record = verb.resume(t, from_start)
    if from_start and not isinstance(record, Again):
        journals.start_over(t, record.number)
    return record


def _redrive(t: Transaction, verb: Control, tenant: str, uid: str, *, is_forced: bool) -> JobRecord | Again:
    letter = None if is_forced else dead_letters.one(t, tenant, uid)
    if letter is not None:
        raise NeedsSignature(uid, letter.reason, sentence_of(letter.reason))
    return verb.redrive(t, None, None)


class Held(NamedTuple):
    """Of some jobs, those whose rows this transaction holds, the attempts among them, and those that are gone."""

    jobs: list[int]
    attempts: set[int]
    gone: set[int]


def hold(t: Transaction, jobs: Sequence[int]) -> Held:
    """Lock all that a verb may need of each of these jobs, and wait for none."""
    places = t.all("places_of_jobs", jobs=list(jobs))
    gone = set(jobs).difference(row["id"] for row in places)
    if t.one_table_per_statement:
        found = [row["id"] for row in places]
        return Held(found, set(found), gone)  # one writer: there is nobody to lock out
    locked = set(lock_free(t, [row["target"] for row in places])[0])
    free = [row["id"] for row in places if row["target"] is None or row["target"] in locked]
    attempts = {row["job"] for row in t.all("lock_free_attempts", jobs=free)} if free else set()
    held = [row["id"] for row in t.all("lock_jobs", jobs=free)] if free else []
    return Held(held, attempts, gone)
