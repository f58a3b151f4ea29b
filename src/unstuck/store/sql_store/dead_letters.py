"""The verbs of dead letters."""

from __future__ import annotations

from unstuck.model.errors import NoDeadLetter
from unstuck.model.job import JobRecord
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.store.database import Transaction
from unstuck.store.guard import dead_letters
from unstuck.store.life.control import Again, Control
from unstuck.store.port import DeadLetter, LetterFilter
from unstuck.store.read import lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.jobs import SqlJobs


class SqlDeadLetters(SqlJobs):
    def dead_letters(
        self, tenant: str | None, filter: LetterFilter, *, before: int | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        if not lookup.can_exist(tenant, filter.workflow, filter.queue, filter.terms.reason):
            return []
        return self._database.read(lambda t: dead_letters.page(t, tenant, filter, before, limit))

    def dead_letter(self, tenant: str, job: str) -> DeadLetter | None:
        if not lookup.can_exist(tenant, job):
            return None
        return self._database.read(lambda t: dead_letters.one(t, tenant, job))

    def redrive(
        self, tenant: str, job: str, by: str, *, signature: str | None = None, signed_until: int | None = None
    ) -> JobRecord:
        def step(verb: Control, t: Transaction) -> JobRecord | Again:
            return verb.redrive(t, signature, signed_until)

        verb = "dead_letters.redrive" if signature is None else "dead_letters.resign"
        record = self._control(tenant, job, by, verb, step)
        self._database.hint()
        return record

    def discard_letter(self, tenant: str, job: str, by: str) -> DeadLetter:
        if not lookup.can_exist(tenant, job):
            raise NoDeadLetter(clean_text(job, MAX_NAME))
        return self._database.write(lambda t: dead_letters.discard(t, tenant, job, by))

    def forget_dead_letters(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_old_letters", retention=span(retention), batch=batch, past=past)
        )
