"""Steps: what handlers have finished, kept once under the fence, and read back by every later attempt.

Theory of operation. A batch locks the attempts that are still open, as output does, and inserts: the fence holds
until the commit, and a step that is there already stays what it is. Of an attempt that another transaction holds
nothing is written: BUSY, come again. On PostgreSQL one statement does all this for nearly every step. The journal is
read in pages that are bounded in rows and bytes; nobody but the attempt that reads it can write to it, so a page may
go on by counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from unstuck.model.errors import InvalidInput, NotStorable
from unstuck.model.job import AttemptRef
from unstuck.model.payload import MAX_NAME, check_text
from unstuck.model.waits import MOST_STEPS, Journal, StepRecord
from unstuck.store.database import SLOW_SHARE, Database, Row, Transaction
from unstuck.store.flow import children, parts, usage
from unstuck.store.flow.pages import CHUNK_ROWS, PAGE_BYTES, PAGE_ROWS, rows_behind
from unstuck.store.guard import isolation
from unstuck.store.life import fence
from unstuck.store.port import NewStep, Verdict
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import instant, packed, ref_of, wait_of

T = TypeVar("T")

MAX_STEP = 8 << 20
LONGEST_MS = 1 << 48
CHUNK_CHARACTERS = 4 << 20


# --- record -------------------------------------------------------------------------------------------------------


def check(steps: Sequence[NewStep]) -> None:
    """Before anything is written: both databases refuse the same things with the same words."""
    for step in steps:
        check_text(step.name, "the name of a step")
        if not 0 < len(step.name) <= MAX_NAME:
            raise InvalidInput(f"the name of a step has {len(step.name)} characters; 1 to {MAX_NAME} are allowed")
        if not 1 <= step.ordinal <= MOST_STEPS:
            raise InvalidInput(f"step {step.name!r}: {step.ordinal} is not an ordinal from 1 to {MOST_STEPS:,}")
        check_text(step.result, f"the result of step {step.name!r}")
        if len(step.result) > MAX_STEP:
            problem = f"it is {len(step.result):,} characters of JSON; the limit is {MAX_STEP:,}"
            raise NotStorable(f"the result of step {step.name!r}", problem)


def record(database: Database, steps: Sequence[NewStep]) -> list[Verdict]:
    """Answers in the order of the steps; of two with one name and ordinal the first counts."""
    plain = _record_plainly(database, steps)
    rest = [step for step in steps if step.ref not in plain]
    verdicts = database.write(lambda t: _record(t, rest), patience=isolation.IMPATIENCE) if rest else {}
    return [Verdict.DONE if step.ref in plain else verdicts[step.ref] for step in steps]


def _record_plainly(database: Database, steps: Sequence[NewStep]) -> set[AttemptRef]:
    """By one statement that is its own transaction, as most are; the attempts whose steps it has recorded."""
    if database.one_table_per_statement or sum(len(step.result) for step in steps) > CHUNK_CHARACTERS:
        return set()
    rows = [{"token": step.ref.token, "claim": step.ref.claim, **_columns(step)} for step in _firsts(steps)]
    slow = database.store_call * SLOW_SHARE
    done = database.once("record_steps", stop_after=slow, rows=packed(rows), most=MOST_STEPS + 1)
    return {ref_of(row) for row in done}


def _record(t: Transaction, steps: Sequence[NewStep]) -> dict[AttemptRef, Verdict]:
    verdicts = fence.verdicts(t, [step.ref for step in steps])
    accepted = [step for step in steps if verdicts[step.ref] is Verdict.DONE]
    _check_room(t, accepted)
    for chunk in _chunks(accepted):
        t.run("add_steps", rows=packed([_columns(step) for step in chunk]))
    if accepted:
        t.run("forgive_losses", jobs=sorted({step.ref.job for step in accepted}))
    return verdicts


def _check_room(t: Transaction, steps: Sequence[NewStep]) -> None:
    """A backstop: the context of a handler counts more exactly. One above the limit is let pass: the last step,
    repeated because its answer was lost, is no step too many."""
    jobs = sorted({step.ref.job for step in steps})
    rows = t.all("count_steps", jobs=jobs, most=MOST_STEPS + 1) if jobs else ()
    full = {row["job"] for row in rows if row["steps"] > MOST_STEPS}
    for step in steps:
        if step.ref.job in full:
            raise InvalidInput(f"step {step.name!r} is one too many: a job has {MOST_STEPS:,} steps at most")


def _firsts(steps: Sequence[NewStep]) -> list[NewStep]:
    """Sorted: two batches that hold the same steps never wait for each other in a circle."""
    first: dict[tuple[int, str, int], NewStep] = {}
    for step in steps:
        first.setdefault((step.ref.job, step.name, step.ordinal), step)
    return [step for _, step in sorted(first.items(), key=lambda item: item[0])]


def _chunks(steps: Sequence[NewStep]) -> Iterator[list[NewStep]]:
    chunk: list[NewStep] = []
    size = 0
    for step in _firsts(steps):
        if chunk and size + len(step.result) > CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(step)
        size += len(step.result)
    if chunk:
        yield chunk


def _columns(step: NewStep) -> dict[str, Any]:
    return {
        "job": step.ref.job,
        "name": step.name,
        "ordinal": step.ordinal,
        "duration_ms": min(max(0, step.duration_ms), LONGEST_MS),
        "result": step.result,
    }


# --- the journal --------------------------------------------------------------------------------------------------


def journal(t: Transaction, ref: AttemptRef, after: int) -> Journal | None:
    """Steps, then this run's answered waits, then children. The cursor says which of the three, and how many of it
    were given out."""
    attempt = t.one("attempt_run", job=ref.job, token=ref.token, claim=ref.claim)
    if attempt is None:
        return None
    page = _Page(t, ref.job, attempt["run"], after)
    steps = page.fill("journal_steps", _step)
    answered = page.fill("journal_waits", wait_of)
    spawned = page.fill("journal_children", children.child_of)
    used = usage.used(t, ref.job, attempt["run"]) if after == 0 else {}
    return Journal(steps, answered, spawned, used, page.next)


class _Page:
    """Filled from one source after the other, until it is full or nothing is left."""

    SOURCES = ("journal_steps", "journal_waits", "journal_children")

    def __init__(self, t: Transaction, job: int, run: int, after: int) -> None:
        if not 0 <= after < len(self.SOURCES) << 32:
            raise InvalidInput(f"{after} is not a place that a page of a journal gave out")
        self._t, self._job, self._run = t, job, run
        self._source, self._skip = divmod(after, 1 << 32)
        self._rows, self._bytes = PAGE_ROWS, PAGE_BYTES
        self.next: int | None = None

    def fill(self, statement: str, read: Callable[[Row], T]) -> tuple[T, ...]:
        place = self.SOURCES.index(statement)
        if self.next is not None or place < self._source:
            return ()
        skip = self._skip if place == self._source else 0
        found: list[T] = []
        while self._rows > 0 and self._bytes > 0:
            most = min(CHUNK_ROWS, self._rows) if self._t.one_table_per_statement else self._rows
            rows = self._t.all(statement, job=self._job, run=self._run, skip=skip, most=most, room=self._bytes)
            found += [read(row) for row in rows]
            skip += len(rows)
            self._rows -= len(rows)
            self._bytes -= sum(row["bytes"] for row in rows)
            if len(rows) < most and self._bytes > 0:
                return tuple(found)
        self.next = (place << 32) + skip
        return tuple(found)


def _step(row: Row) -> StepRecord:
    return StepRecord(
        name=row["name"],
        ordinal=row["ordinal"],
        result=row["result"],
        run=row["run"],
        token=row["token"],
        at=instant(row["at"]),
        duration_ms=row["duration_ms"],
    )


# --- what people read ---------------------------------------------------------------------------------------------


def steps_of(t: Transaction, tenant: str, uid: str) -> list[StepRecord]:
    """In the order they were finished."""
    return by_number(t, job_row(t, tenant, uid)["number"])


def steps_page(t: Transaction, tenant: str, uid: str, skip: int) -> list[StepRecord]:
    """Some of them in that order, behind the first `skip`. Nobody changes one that is there, and new ones come last,
    so a page may go on by counting."""
    job = job_row(t, tenant, uid)["number"]
    return [_step(row) for row in rows_behind(t, "steps_page", skip, job=job)]


def by_number(t: Transaction, job: int) -> list[StepRecord]:
    return [_step(step) for step in t.all("steps_of", job=job)]


def start_over(t: Transaction, job: int) -> None:
    """A resume from the start: no step counts as finished, no part as given, and no child as spawned."""
    t.run("drop_steps", job=job)
    parts.start_over(t, job)
    children.set_apart(t, job)
