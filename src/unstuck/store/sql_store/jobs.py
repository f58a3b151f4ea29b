"""The verbs of callers: submit jobs, read them, ask something of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from unstuck.model.errors import StoreBusy, UnknownJob
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, NewJob, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import Move
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.redaction import Redactions
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import pending
from unstuck.store.flow import steps as journals
from unstuck.store.guard import audit
from unstuck.store.life import submit, worker_orders
from unstuck.store.life.control import Again, Control
from unstuck.store.port import (
    ATTEMPTS_PAGE,
    EVERY,
    HISTORY_PAGE,
    Holder,
    JobFilter,
    JobPage,
    OrderKind,
    SeenJob,
    Submitted,
    WorkerOrder,
)
from unstuck.store.read import lookup
from unstuck.store.rows import attempts_of, event_of, instant, job_of, redactions_of, ref_of, terms_of, workflow_of
from unstuck.store.sql_store.verbs import SqlVerbs
from unstuck.store.transactions import LOOKS

#: No job has had so many attempts; a larger number may be none that a database can hold.
_MOST_TOKENS = 1 << 60


class SqlJobs(SqlVerbs):
    def submit(self, jobs: Sequence[NewJob], patience: float | None = None) -> list[Submitted]:
        if not jobs:
            return []
        if (stored := self._transactions.submit_at_once(jobs, patience)) is not None:
            return stored
        answers = self._transactions.with_numbers(
            jobs,
            lambda t, numbers: submit.submit(t, jobs, numbers, self._key_life, self._transactions.door),
            patience,
        )
        self._database.hint()  # of a repeat too: the first call may have lost its answer, and then said nothing
        return answers

    def workflow(self, name: str, tenant: str = EVERY) -> WorkflowRecord | None:
        if not lookup.can_exist(name, tenant):
            return None
        row = self._database.read(lambda t: t.one("workflow", name=name, tenant=tenant))
        return None if row is None else workflow_of(row)

    def workflows(self, tenant: str = EVERY) -> list[WorkflowRecord]:
        return [workflow_of(row) for row in self._database.read(lambda t: t.all("workflows", tenant=tenant))]

    def redactions(self, tenant: str | None = None) -> Redactions:
        return redactions_of(self._database.read(lambda t: t.all("redactions", tenant=tenant)))

    def cancel(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        step = partial(Control.stop, move=Move.CANCEL, reason=reason)
        return self._control(tenant, job, by, "jobs.cancel", step, reason=reason)

    def interrupt(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        step = partial(Control.stop, move=Move.INTERRUPT, reason=reason)
        return self._control(tenant, job, by, "jobs.interrupt", step, reason=reason)

    def resume(self, tenant: str, job: str, by: str, *, from_start: bool = False) -> JobRecord:
        def step(verb: Control, t: Transaction) -> JobRecord | Again:
            record = verb.resume(t, from_start)
            if from_start and not isinstance(record, Again):
                journals.start_over(t, record.number)
            return record

        record = self._control(tenant, job, by, "jobs.resume", step, from_start=from_start or None)
        self._database.hint()
        return record

    def resolve(self, tenant: str, job: str, by: str, result: str) -> JobRecord:
        return self._control(tenant, job, by, "jobs.resolve", lambda verb, t: verb.resolve(t, result))

    def run_now(self, tenant: str, job: str, by: str) -> JobRecord:
        record = self._control(tenant, job, by, "jobs.retry", lambda verb, t: verb.run_now(t))
        self._database.hint()
        return record

    def reprioritise(self, tenant: str, job: str, priority: int, by: str) -> JobRecord:
        submit.check_priority(priority)
        record = self._control(
            tenant, job, by, "jobs.reprioritise", lambda verb, t: verb.reprioritise(t, priority), priority=priority
        )
        self._database.hint()
        return record

    def release(self, tenant: str, job: str, by: str, *, force: bool = False) -> JobRecord:
        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))

        def work(t: Transaction) -> tuple[JobRecord, bool]:
            released = pending.release(t, self._name_ids, tenant, job, by, force)
            audit.note(t, by, "jobs.release", job, tenant, {"force": force or None})
            return released

        return self._transactions.waking(work)

    def skip(self, tenant: str, job: str, by: str) -> JobRecord:
        record = self._control(tenant, job, by, "jobs.skip", lambda verb, t: verb.skip(t))
        self._database.hint()
        return record

    def give_order(self, worker: int, kind: OrderKind, subject: str, by: str) -> WorkerOrder:
        return self._transactions.audited(
            lambda t: worker_orders.give(t, worker, kind, subject, by), by, f"workers.{kind}", subject or str(worker)
        )

    def order(self, number: int) -> WorkerOrder | None:
        return self._database.read(lambda t: worker_orders.given(t, number))

    def holder(self, tenant: str, job: str) -> Holder | None:
        if not lookup.can_exist(tenant, job):
            return None
        row = self._database.read(lambda t: t.one("holder", tenant=tenant, uid=job))
        return None if row is None else Holder(row["worker"], ref_of(row))

    def get(self, tenant: str, job: str) -> JobRecord | None:
        def work(t: Transaction) -> JobRecord | None:
            row = t.one("job", tenant=tenant, uid=job)
            return None if row is None else job_of(row, self._name_ids.policy(t, row["policy"]))

        return self._database.read(work) if lookup.can_exist(tenant, job) else None

    def get_many(self, jobs: Sequence[str]) -> dict[str, SeenJob]:
        def work(t: Transaction) -> dict[str, SeenJob]:
            rows = t.all("jobs_by_id", uids=list(jobs))
            return {row["uid"]: seen(t, row) for row in rows}

        def seen(t: Transaction, row: Row) -> SeenJob:
            record = job_of(row, self._name_ids.policy(t, row["policy"]))
            return SeenJob(record, instant(row["now"]), bool(row["is_redacted"]))

        return self._database.read(work) if jobs else {}

    def find(self, tenant: str | None, prefix: str, limit: int = 5, within: Within | None = None) -> list[str]:
        if not lookup.can_exist(tenant, prefix):
            return []
        facts = {"tenant": tenant, "prefix": prefix, "beyond": prefix + "\U0010ffff", "most": limit} | terms_of(
            within
        )
        return [row["uid"] for row in self._database.read(lambda t: t.all("find", **facts))]

    def owner(self, job: str) -> str | None:
        row = self._database.read(lambda t: t.one("owner", uid=job)) if lookup.can_exist(job) else None
        return None if row is None else str(row["tenant"])

    def history(self, tenant: str, job: str, after: int = 0, limit: int = HISTORY_PAGE) -> list[EventRecord]:
        if not lookup.can_exist(tenant, job):
            return []
        facts = {"tenant": tenant, "uid": job, "after": after, "most": limit}
        return [event_of(row) for row in self._database.read(lambda t: t.all("history", **facts))]

    def attempts(self, tenant: str, job: str, after: int = 0, limit: int = ATTEMPTS_PAGE) -> list[AttemptRecord]:
        def work(t: Transaction) -> tuple[list[Row], list[Row]]:
            return t.all("events_of_attempts", **facts), t.all("outputs", **facts)

        behind = min(after, _MOST_TOKENS)
        facts = {"tenant": tenant, "uid": job, "after": behind, "upto": behind + limit}

        if not lookup.can_exist(tenant, job):
            return []
        events, outputs = self._database.read(work)
        return attempts_of([event_of(row) for row in events], outputs)

    def progress_of(self, tenant: str, job: str) -> str | None:
        if not lookup.can_exist(tenant, job):
            return None
        row = self._database.read(lambda t: t.one("progress_of", tenant=tenant, uid=job))
        return None if row is None else str(row["value"])

    def progress_of_jobs(self, tenant: str, jobs: Sequence[str], longest: int) -> dict[str, str]:
        if not jobs or not lookup.can_exist(tenant, *jobs):
            return {}
        asked = {"tenant": tenant, "uids": list(jobs), "longest": longest}
        rows = self._database.read(lambda t: t.all("progress_of_jobs", **asked))
        return {row["uid"]: row["value"] for row in rows}

    def jobs(self, tenant: str | None, filter: JobFilter, limit: int = 50, after: str | None = None) -> JobPage:
        if not lookup.can_match(tenant, filter):
            return JobPage(())
        return self._database.read(lambda t: lookup.page(t, self._name_ids, tenant, filter, limit, after))

    def _control(
        self,
        tenant: str,
        job: str,
        by: str,
        name: str,
        step: Callable[[Control, Transaction], JobRecord | Again],
        **detail: Any,
    ) -> JobRecord:
        """A job that keeps moving under our eyes is looked at again, each time in a new transaction."""

        def work(t: Transaction) -> JobRecord | Again:
            record = step(verb, t)
            if not isinstance(record, Again):
                audit.note(t, by, name, job, tenant, detail)
            return record

        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        verb = Control(self._name_ids, tenant, job, by)
        for _ in range(LOOKS):
            record = self._database.write(work)
            if not isinstance(record, Again):
                return record
        raise StoreBusy(f"job {job} kept moving between states; nothing was written, try again")
