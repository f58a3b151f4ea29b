"""The verbs of events, approvals, and of what a job has recorded."""

from __future__ import annotations

from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.keys import Within
from unstuck.model.news import Publication, check_publication
from unstuck.model.parts import MOST_PARTS, Part
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.waits import Answer, Child, Signalled, Spent, StepRecord, WaitRecord
from unstuck.store.database import Transaction
from unstuck.store.flow import children, parts, usage, waits
from unstuck.store.flow import steps as journals
from unstuck.store.guard import audit
from unstuck.store.life import news
from unstuck.store.port import Published
from unstuck.store.read import lookup
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlFlow(SqlVerbs):
    def signal(
        self,
        tenant: str,
        event: str,
        payload: str,
        by: str,
        *,
        job: str | None = None,
        topic: str | None = None,
        id: str | None = None,
    ) -> Signalled:
        if (job is None) == (topic is None):
            raise InvalidInput("an event is sent to a job or to a topic: one of the two")
        if job is not None and not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        waits.check_event(event, payload, topic, id)

        def work(t: Transaction) -> tuple[Signalled, bool]:
            sent = waits.signal(t, tenant, event, payload, by, job, topic, id)
            if not sent.is_repeat:
                subject = job if topic is None else f"topic {topic}"
                audit.note(
                    t, by, "events.send", subject or "", tenant, {"event": event, "answers": sent.job, "id": id}
                )
            return sent, sent.job is not None

        return self._transactions.waking(work)

    def publish(self, tenant: str, given: Publication, by: str, key: str, *, job: str | None = None) -> Published:
        check_publication(given)
        if not lookup.can_exist(tenant, job, key):
            raise UnknownJob(clean_text(job or "", MAX_NAME))

        def work(t: Transaction) -> Published:
            number = None if job is None else lookup.job_row(t, tenant, job)["number"]
            return news.publish(t, tenant, given, by, key, number)

        return self._database.write(work)

    def decide(
        self, tenant: str, job: str, answer: Answer, by: str, comment: str | None = None, *, key: str | None = None
    ) -> WaitRecord:
        if answer not in (Answer.APPROVED, Answer.REJECTED):
            raise InvalidInput(f"an approval is approved or rejected, not {answer}")
        if not lookup.can_exist(tenant, job, key):
            raise UnknownJob(clean_text(job, MAX_NAME))
        verb = "approvals.approve" if answer is Answer.APPROVED else "approvals.reject"

        def work(t: Transaction) -> tuple[WaitRecord, bool]:
            record = waits.decide(t, tenant, job, answer, by, comment, key)
            audit.note(t, by, verb, job, tenant, {"question": record.wait.name, "comment": comment})
            return record, True

        return self._transactions.waking(work)

    def open_waits(
        self,
        tenant: str | None = None,
        *,
        kind: str = "approval",
        after: str = "",
        limit: int = 100,
        within: Within | None = None,
    ) -> list[WaitRecord]:
        if not lookup.can_exist(tenant, kind, after):
            return []
        return self._database.read(lambda t: waits.page(t, tenant, kind, after, limit, within))

    def waits_of(self, tenant: str, job: str) -> list[WaitRecord]:
        return self._read_job(tenant, job, lambda t: waits.of_job(t, tenant, job))

    def steps_of(self, tenant: str, job: str) -> list[StepRecord]:
        return self._read_job(tenant, job, lambda t: journals.steps_of(t, tenant, job))

    def waits_page(self, tenant: str, job: str, skip: int = 0) -> list[WaitRecord]:
        return self._read_job(tenant, job, lambda t: waits.waits_page(t, tenant, job, skip))

    def steps_page(self, tenant: str, job: str, skip: int = 0) -> list[StepRecord]:
        return self._read_job(tenant, job, lambda t: journals.steps_page(t, tenant, job, skip))

    def parts_of(self, tenant: str, job: str, after: int = 0, limit: int = MOST_PARTS) -> list[Part]:
        return self._read_job(tenant, job, lambda t: parts.parts_of(t, tenant, job, after, limit))

    def usage_of(self, tenant: str, job: str) -> Spent:
        return self._read_job(tenant, job, lambda t: usage.usage_of(t, self._name_ids, tenant, job))

    def children_of(self, tenant: str, job: str) -> list[Child]:
        return self._read_job(tenant, job, lambda t: children.children_of(t, tenant, job))

    def parent_of(self, tenant: str, job: str) -> str | None:
        return self._read_job(tenant, job, lambda t: children.parent_of(t, tenant, job))
