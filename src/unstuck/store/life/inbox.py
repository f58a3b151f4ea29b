"""Inbox: what others only announced, because they must wait for nobody: lines that grew, jobs that ended.

Theory of operation. Entries are taken, and what they ask for is done, in one transaction; what is locked at that
instant is put back, so nothing waits and nothing is lost. A transaction that fails leaves its entries where they are:
then they are tried by their numbers, in halves, and what a single entry asks for in its parts. What fails alone moves
from the inbox to quarantine, so that the inbox itself never jams, and is tried again from there (see `isolation`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreBusy, StoreUnavailable
from unstuck.records import dataclass
from unstuck.store.database import Database, Row, StoreSlow, Transaction
from unstuck.store.flow import pending, waking
from unstuck.store.guard import quarantine
from unstuck.store.guard.bisection import AWAY, bisect_batch
from unstuck.store.guard.isolation import IMPATIENCE, PATIENCE, Isolation, set_aside
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order import targets
from unstuck.store.port import Ingested, QuarantineDuty
from unstuck.store.rows import packed
from unstuck.telemetry import emit

BY = "inbox"
MOST = 1000
#: Seconds. A worker ingests before it claims, and must get to its claim; one transaction of many takes half of that.
WITHIN = 0.5
#: Of a store call, for one statement: as everywhere else.
STOP_SHARE = 0.8
#: About as long as a settle keeps a target locked.
A_MOMENT = 0.01

_pause = threading.Event().wait

Errors = dict[QuarantineDuty, dict[int, str]]


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A target whose line grew, or a job that has news."""

    seq: int
    target: int | None
    job: int | None


# --- in one transaction -------------------------------------------------------------------------------------------


def ingest(
    t: Transaction, tools: Settling, after: int, batch: int, *, is_careful: bool = False
) -> tuple[Ingested, bool]:
    """`is_careful`: something is set aside, and left out here."""
    return _work_off(t, tools, t.all("take_inbox", after=after, batch=batch), after, is_careful=is_careful)


def _ingest_these(t: Transaction, tools: Settling, entries: Sequence[InboxEntry]) -> tuple[Ingested, bool]:
    """Those of them that are still there."""
    found = t.all("take_entries", entries=[entry.seq for entry in entries])
    return _work_off(t, tools, found, 0, is_careful=True)


def _work_off(
    t: Transaction, tools: Settling, entries: Sequence[Row], after: int, *, is_careful: bool
) -> tuple[Ingested, bool]:
    """Targets first: their locks come before those of running attempts and jobs, which dependants need."""
    if not entries:
        return Ingested(0, 0, after), False
    woken, held = targets.ingest(t, [entry["target"] for entry in entries], is_careful=is_careful)
    news = sorted({entry["job"] for entry in entries if entry["job"] is not None})
    moved, woke = pending.settle_news(t, tools, news, is_careful=is_careful) if news else (0, False)
    last = max(entry["seq"] for entry in entries)
    return Ingested(len(entries), woken + moved, last, held), woken > 0 or woke


# --- batch after batch --------------------------------------------------------------------------------------------


class Inbox:
    """Shared by threads without a lock: what it remembers only makes it quicker."""

    def __init__(self, database: Database, tools: Settling) -> None:
        self._database = database
        self._tools = tools
        self._isolation = Isolation(database)
        self._most = MOST
        self._is_something_aside = False
        self._was_held = False

    def ingest(self, after: int, batch: int) -> Ingested:
        """Up to `batch` entries, for a short while."""
        until = boot() + WITHIN
        done = Ingested(0, 0, after)
        while done.entries < batch:
            asked = min(batch - done.entries, self._most)
            found = self._some(done.last, asked)
            done = _sum(done, found)
            if found.entries < asked or boot() >= until:
                break
        return self._once_more(done)

    def _once_more(self, done: Ingested) -> Ingested:
        """A settle that has a target lets it go within a moment, and may have been too early for what came meanwhile:
        nobody would look at it until the next poll. Not again and again for one that does not let go."""
        was_held, self._was_held = self._was_held, done.held > 0
        if was_held or not done.held:
            return done
        _pause(A_MOMENT)
        again = self._some(done.last, self._most)
        self._was_held = again.held > 0
        return replace(_sum(done, again), held=again.held)

    def _some(self, after: int, batch: int) -> Ingested:
        """What is too slow for one call would never be done: fewer next time, down to one; if that one is too slow
        too, for a store that answers others, it is the one to blame. Fewer than there are: each try takes a call's
        time, in which `why` knows of nothing."""
        began = boot()
        try:
            found = self._batch(after, batch)
        except Exception as problem:
            self._most = max(1, batch // 4)
            is_too_much = isinstance(problem, StoreUnavailable) or (
                boot() - began >= WITHIN and not self._is_held(problem)
            )
            if isinstance(problem, SchemaMismatch | OutcomeUnknown):
                raise
            if is_too_much and batch > 1 and (there := len(self._entries(after, batch))) > 1:
                self._most = max(1, there // 4)
                raise
            emit("store.ingest.refused", entries=batch, problem=str(problem)[:200])
            self._is_something_aside = True
            if isinstance(problem, StoreUnavailable):
                self._database.write(lambda t: t.run("probe"))
                return self._each(after, [(entry, problem) for entry in self._entries(after, 1)])
            return self._in_halves(after, batch)
        self._most = min(MOST, 2 * batch) if boot() - began < WITHIN / 2 else max(1, batch // 2)
        return found

    def _is_held(self, problem: Exception) -> bool:
        """Another transaction holds a row that one of the entries needs, however few there are. SQLite has no such
        rows."""
        is_lock = isinstance(problem, StoreBusy) and not isinstance(problem, StoreSlow)
        return is_lock and self._database.dialect != "sqlite"

    def _batch(self, after: int, batch: int) -> Ingested:
        is_careful = self._is_something_aside
        done, woke = self._write(lambda t: ingest(t, self._tools, after, batch, is_careful=is_careful), PATIENCE)
        if woke:
            self._database.hint()
        return done

    def _write(self, work: Callable[[Transaction], tuple[Ingested, bool]], patience: float) -> tuple[Ingested, bool]:
        """Few locks here cannot be skipped (a place in a line, a dependency), and the wait for them is short.
        What takes long for another reason has the time that it always has; but not on SQLite, where no other can
        write meanwhile."""
        if self._database.dialect == "sqlite":
            return self._database.write(work, patience=patience)
        return self._database.write(work, patience=patience, stop_after=STOP_SHARE * self._database.store_call)

    # --- what fails -----------------------------------------------------------------------------------------------

    def _in_halves(self, after: int, batch: int) -> Ingested:
        done = Ingested(0, 0, after)
        woke = False

        def write(some: Sequence[InboxEntry]) -> None:
            nonlocal done, woke
            found, has_woken = self._write(lambda t: _ingest_these(t, self._tools, some), IMPATIENCE)
            done, woke = _sum(done, found), woke or has_woken

        failed = bisect_batch(self._entries(after, batch), write, within=2 * WITHIN)
        if woke:
            self._database.hint()
        return _sum(done, self._each(after, list(failed.items())))

    def _entries(self, after: int, batch: int) -> list[InboxEntry]:
        rows = self._database.read(lambda t: t.all("inbox_entries", after=after, batch=batch))
        return [InboxEntry(row["seq"], row["target"], row["job"]) for row in rows]

    def _each(self, after: int, failed: Sequence[tuple[InboxEntry, Exception]]) -> Ingested:
        moved = sum(self._alone(entry, problem) for entry, problem in failed)
        return Ingested(len(failed), moved, max((entry.seq for entry, _ in failed), default=after))

    def _alone(self, entry: InboxEntry, problem: Exception) -> int:
        """All that it asks for, each for itself; then it goes, and what failed is set aside."""
        errors: Errors = {}
        moved, later = 0, list[int]()
        if entry.target is not None:
            errors["target"] = {entry.target: quarantine.reason(problem)}
        elif (job := entry.job) is not None:
            concerned = self._database.read(lambda t: pending.concerned_by(t, [job]))
            if isinstance(problem, StoreUnavailable):  # too slow: each by an entry of its own
                later = [one for one in concerned if one != job]
                if job in concerned or not later:
                    errors["dependants" if job in concerned else "wait"] = {job: quarantine.reason(problem)}
            else:
                some, later = concerned[: pending.MOST_AT_ONCE], concerned[pending.MOST_AT_ONCE :]
                moved, errors["dependants"] = self._isolation.each(some, self._look_at)
                awake, errors["wait"] = self._isolation.each([job], self._wake)
                moved += awake
        self._leave(entry, errors, later)
        return moved

    def _leave(self, entry: InboxEntry, errors: Errors, later: Sequence[int]) -> None:
        """First what failed is set aside. What cannot even be, and an entry that cannot be taken out, stay in the
        inbox and come with the next sweep: nobody else waits for them."""
        untold = [set_aside(self._database, duty, said, BY) for duty, said in errors.items() if said]
        if any(untold):
            return

        def work(t: Transaction) -> None:
            if later:
                t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in later]))
            t.all("take_entries", entries=[entry.seq])

        try:
            self._database.write(work)
        except AWAY:
            raise
        except Exception as error:
            emit("store.ingest.kept", level=logging.WARNING, entry=entry.seq, problem=quarantine.reason(error)[:200])

    def _look_at(self, t: Transaction, jobs: Sequence[int]) -> tuple[int, bool]:
        return pending.look_at(t, self._tools, jobs)

    def _wake(self, t: Transaction, jobs: Sequence[int]) -> tuple[int, bool]:
        return waking.wake(t, self._tools, jobs)

    # --- what had failed ------------------------------------------------------------------------------------------

    def try_again(self, aside: Collection[str], batch: int) -> int:
        """`aside`: the duties for which anything is set aside."""
        self._is_something_aside = bool(aside)
        moved = 0
        if "target" in aside:
            moved += self._isolation.try_again("target", self._tend_target, BY, batch)
        if "dependants" in aside:
            moved += self._isolation.try_again("dependants", self._look_at, BY, batch)
        if "wait" in aside:
            moved += self._isolation.try_again("wait", self._end_wait, BY, batch)
        return moved

    def _tend_target(self, t: Transaction, numbers: Sequence[int]) -> tuple[int, bool]:
        over, _ = targets.end_pauses(t, numbers)
        ready, _ = targets.ingest(t, numbers)
        return over + ready, over + ready > 0

    def _end_wait(self, t: Transaction, jobs: Sequence[int]) -> tuple[int, bool]:
        """By its answer, or by time."""
        late, is_late = waking.expire(t, self._tools, waking.due_of(t, jobs))
        awake, woke = self._wake(t, jobs)
        return late + awake, is_late or woke


def _sum(one: Ingested, other: Ingested) -> Ingested:
    return Ingested(
        one.entries + other.entries, one.woken + other.woken, max(one.last, other.last), one.held + other.held
    )
