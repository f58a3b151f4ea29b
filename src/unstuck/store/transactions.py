"""Transactions: how a verb runs one, with what goes with it: a hint after the commit, a line of audit, name ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from unstuck.model.errors import StoreBusy
from unstuck.model.job import Alike, NewJob, patterns_of
from unstuck.store.database import Database, Row, T, Transaction
from unstuck.store.guard import audit, isolation
from unstuck.store.life import submit
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.name_ids import Numbers, StaleNames, WorkflowRules
from unstuck.store.port import EVERY, QuarantineDuty, Submitted

#: How often a verb looks again at what keeps moving under its eyes.
LOOKS = 100
BY_JANITOR = "janitor"
#: Patterns of jobs that are kept in mind: a program has few workflows, and makes patterns for single jobs besides.
MOST_KNOWN = 256


class _Known(NamedTuple):
    """What was found out about a pattern of jobs, and by which rules."""

    plain: submit.Plain
    rules: WorkflowRules


class Transactions:
    """One for all verbs of a store. Of any thread."""

    def __init__(self, database: Database, tools: Settling) -> None:
        self.database = database
        self.tools = tools
        self.name_ids = tools.name_ids
        #: Whether the last look at the routes met a limit: what ends may then be all that keeps it shut.
        self.has_limits = False
        self.door = submit.Door()
        #: By the identity of their patterns, which stay while they are known.
        self._plain: dict[int, _Known] = {}
        self._workers: dict[int, Row] = {}

    def waking(self, work: Callable[[Transaction], tuple[T, bool]], patience: float | None = None) -> T:
        """Once it is committed that a job became claimable, say so."""
        answer, woke = self.database.write(work, patience=patience)
        if woke:
            self.database.hint()
        return answer

    def hinting(self, moved: T) -> T:
        """Once something is committed that may let a job start, say so."""
        if moved:
            self.database.hint()
        return moved

    def audited(
        self,
        work: Callable[[Transaction], T],
        by: str,
        verb: str,
        subject: str,
        tenant: str = EVERY,
        detail: Mapping[str, Any] | None = None,
    ) -> T:
        """What an operator does and the line that says so are one transaction; what changed nothing leaves none."""

        def both(t: Transaction) -> T:
            answer = work(t)
            if answer is not False:
                audit.note(t, by, verb, subject, tenant, detail)
            return answer

        return self.database.write(both)

    def submit_at_once(self, jobs: Sequence[NewJob], patience: float | None = None) -> list[Submitted] | None:
        """In one round trip, where nothing asks for more. None: something does. They are checked in either case."""
        known = self._plain.get(id(jobs.pattern)) if isinstance(jobs, Alike) else None
        if known is None or not self._still_holds(known, jobs):
            submit.check(jobs)
            if self.door.is_watched:
                return None
            known = self._looked_up(jobs, patience) if submit.can_be_at_once(jobs) else None
        if known is None:
            return self._submit_alone(jobs, patience)
        stored = submit.at_once(self.database, jobs, known.plain)
        if stored is None and isinstance(jobs, Alike):
            self._plain.pop(id(jobs.pattern), None)
        return stored

    def _submit_alone(self, jobs: Sequence[NewJob], patience: float | None) -> list[Submitted] | None:
        if self.database.one_table_per_statement or not submit.can_be_alone(jobs):
            return None
        return submit.alone(self.database, jobs, self._numbers(jobs, patience))

    def _still_holds(self, known: _Known, jobs: Sequence[NewJob]) -> bool:
        return (
            not self.door.is_watched
            and self.name_ids.are_current(known.rules)
            and submit.is_one_chunk(jobs)
            and submit.are_clean(jobs)
        )

    def _looked_up(self, jobs: Sequence[NewJob], patience: float | None) -> _Known | None:
        numbers, rules = self._numbers(jobs, patience), self.name_ids.rules
        plain = submit.Plain.of(jobs, numbers)
        if plain is None:
            return None
        known = _Known(plain, rules)
        if isinstance(jobs, Alike) and numbers.terms and numbers.seen == rules.seen:
            if len(self._plain) >= MOST_KNOWN:
                self._plain = {}
            self._plain[id(plain.pattern)] = known
        return known

    def with_numbers(
        self, jobs: Sequence[NewJob], work: Callable[[Transaction, Numbers], T], patience: float | None = None
    ) -> T:
        """What these jobs refer to, and then the write. Names that grew old on the way are looked up once more."""
        for _ in range(LOOKS):
            try:
                return self._write_with_numbers(jobs, work, patience)
            except StaleNames:
                self.name_ids.forget()
        raise StoreBusy("the names of these jobs grew old on their way each time; nothing was written, try again")

    def _write_with_numbers(
        self, jobs: Sequence[NewJob], work: Callable[[Transaction, Numbers], T], patience: float | None
    ) -> T:
        numbers = self._numbers(jobs, patience)
        return self.database.write(lambda t: work(t, numbers), patience=patience)

    def _numbers(self, jobs: Sequence[NewJob], patience: float | None) -> Numbers:
        return self.name_ids.ensure(self.database, patterns_of(jobs), lambda t: submit.expect(t, jobs), patience)

    def known_worker(self, worker: int) -> Row | None:
        """Name and host of an incarnation never change. Its code version does with each import, and is what it
        registered last."""
        known = self._workers.get(worker)
        if (
            known is None
            and (known := self.database.read(lambda t: t.one("worker_named", worker=worker))) is not None
        ):
            self._workers[worker] = known
        return known

    def probe(self) -> None:
        """Write nothing, as every write does: fails when the store cannot be written to."""
        self.database.write(lambda t: t.run("probe"))

    def set_aside(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> frozenset[int]:
        return isolation.set_aside(self.database, duty, errors, by)

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        isolation.leave(self.database, duty, item)

    def duties_aside(self) -> frozenset[str]:
        """The duties for which anything is set aside: nearly always none."""
        return frozenset(row["duty"] for row in self.database.read(lambda t: t.all("quarantine_duties")))

    def quarantine_due(self, duty: QuarantineDuty, batch: int) -> list[int]:
        rows = self.database.read(lambda t: t.all("quarantine_due", duty=duty, batch=batch))
        return [row["item"] for row in rows]
