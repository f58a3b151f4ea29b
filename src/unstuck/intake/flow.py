"""Flow: what callers may ask of a job that waits or has ended: send it an event, decide its approval, run it again.

Everything is checked before the store is asked; the store alone decides who comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unstuck.chance import Chance, SystemChance
from unstuck.intake.arguments import encode_result
from unstuck.intake.signing import SigningDoor
from unstuck.intake.submit import Submitter
from unstuck.model.errors import (
    IllegalMove,
    InvalidInput,
    NotStorable,
    NotWaiting,
    OutcomeUnknown,
    UnknownJob,
)
from unstuck.model.job import DEFAULT_TENANT, JobRecord, NewJob
from unstuck.model.lifecycle import MOVES
from unstuck.model.news import publication
from unstuck.model.payload import MAX_PAYLOAD, check_name, check_person, check_text, check_wording
from unstuck.model.trace import TraceContext
from unstuck.model.waits import Answer, Signalled, WaitKind, WaitRecord
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.port import Published, Store, Submitted
from unstuck.tracing import TracedSubmit

LONGEST_COMMENT = 4000


class FlowVerbs:
    """The verbs of one tenant; `by` goes into history and audit where a verb names nobody."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str = DEFAULT_TENANT,
        by: str = "app",
        chance: Chance | None = None,
        signing: Callable[[], SigningKeys] = lambda: NO_KEYS,
    ) -> None:
        self._signing = signing
        self._store = store
        self._tenant = tenant
        self._by = by
        self._chance = chance or SystemChance()

    def signal(
        self,
        event: str,
        payload: Any = None,
        *,
        job: str | None = None,
        topic: str | None = None,
        id: str | None = None,
        by: str | None = None,
    ) -> Signalled:
        """Answer one wait for this event, or leave it for one that comes. UnknownJob; NotWaiting for an ended job.
        The same event under the same `id` counts once, however often it is sent."""
        name, who = check_name(event, "event"), self._who(by)
        if (job is None) == (topic is None):
            raise InvalidInput("an event is sent to a job or to a topic: name one of the two")
        where = None if topic is None else check_name(topic, "topic")
        text, ident = _payload(name, payload), None if id is None else check_name(id, "id")
        try:
            return self._store.signal(self._tenant, name, text, who, job=job, topic=where, id=ident)
        except OutcomeUnknown as lost:
            if ident is not None:
                return self._store.signal(self._tenant, name, text, who, job=job, topic=where, id=ident)
            # Sent twice it would answer two waits: whether that is worse than never is for the caller to say.
            lost.add_note(f"event {name} may have been sent: look what the job does before you send it again")
            raise

    def publish(
        self,
        kind: str,
        data: Any = None,
        *,
        topic: Any = None,
        ttl: Any = None,
        job: str | None = None,
        id: Any = None,
    ) -> Published:
        """Tell it in the feed. The same `id` again tells nothing; one that was left out is made up, so that a repeat
        of ours does not either."""
        given = publication(kind, {} if data is None else data, topic, ttl)
        key = self._chance.job_id() if id is None else check_name(id, "id")
        try:
            return self._store.publish(self._tenant, given, self._by, key, job=job)
        except OutcomeUnknown:
            return replace(self._store.publish(self._tenant, given, self._by, key, job=job), is_repeat=False)

    def approve(
        self, job: str, *, by: str | None = None, comment: str | None = None, key: str | None = None
    ) -> WaitRecord:
        """NotWaiting when no approval of it is open; `key` names the one that is meant."""
        return self._decide(job, Answer.APPROVED, by, comment, key)

    def reject(
        self, job: str, *, by: str | None = None, comment: str | None = None, key: str | None = None
    ) -> WaitRecord:
        return self._decide(job, Answer.REJECTED, by, comment, key)

    def replay(
        self,
        job: str,
        *,
        by: str | None = None,
        budget: Mapping[str, float] | None = None,
        trace: str | None = None,
    ) -> Submitted:
        """A new job with the workflow, arguments and policy of one that has ended. `budget`: the units in which it
        may use more, or less, than that one. `trace`: what it is asked for in, where that is not what is current.
        Where a signature is required this process signs it, by a key for what the engine makes. SignatureRefused
        without one, or if that job's own does not hold."""
        who, record = self._who(by), self._get(job)
        if not record.state.is_final:
            raise IllegalMove(job, record.state, "replay", MOVES[record.state])
        door = SigningDoor(self._signing(), self._store)
        new = door.replayed(self._again(record, who, budget or {}), record)
        if trace is not None:
            new.trace = trace
            return self._submitted(new)
        with TracedSubmit(new.queue, new.workflow) as around:
            new.trace = around.trace
            stored = self._submitted(new)
            around.name_jobs([stored.id])
            return stored

    # --- steps --------------------------------------------------------------------------------------------------
    def _decide(self, job: str, answer: Answer, by: str | None, comment: str | None, key: str | None) -> WaitRecord:
        who, said, which = self._who(by), _comment(comment), _key(key) or self._open_key(job)
        try:
            return self._store.decide(self._tenant, job, answer, who, said, key=which)
        except OutcomeUnknown:
            return self._decide_again(job, answer, who, said, which)

    def _decide_again(self, job: str, answer: Answer, who: str, comment: str | None, key: str | None) -> WaitRecord:
        """The answer was lost. An approval that was decided just as we asked shows that the question had arrived."""
        try:
            return self._store.decide(self._tenant, job, answer, who, comment, key=key)
        except NotWaiting:
            asked = [w for w in self._approvals(job) if key is None or w.wait.key == key]
            if not asked or (asked[-1].answer, asked[-1].by, asked[-1].comment) != (answer, who, comment):
                raise
            return asked[-1]

    def _open_key(self, job: str) -> str | None:
        """Named before the store is asked: a repeat must not decide the next question of the same job."""
        return next((w.wait.key for w in self._approvals(job) if w.answer is None), None)

    def _approvals(self, job: str) -> list[WaitRecord]:
        return [w for w in self._store.waits_of(self._tenant, job) if w.wait.kind is WaitKind.APPROVAL]

    def _submitted(self, job: NewJob) -> Submitted:
        [stored] = Submitter(self._store, chance=self._chance).submit([job])
        return stored

    def _again(self, record: JobRecord, who: str, budget: Mapping[str, float]) -> NewJob:
        policy = record.policy
        if budget:
            policy = policy.with_(f"the replay of {record.id}", {"budget": dict(policy.budget) | dict(budget)})
        return NewJob(
            id=self._chance.job_id(),
            tenant=record.tenant,
            queue=record.queue,
            workflow=record.workflow,
            payload=record.payload,
            policy=policy,
            priority=record.priority,
            target=record.target,
            tags=record.tags,
            limit_key=record.limit_key,
            replay_of=record.id,
            replay_by=who,
            made_by="replay",
            span=_last_span(record),
        )

    def _get(self, job: str) -> JobRecord:
        record = self._store.get(self._tenant, job)
        if record is None:
            raise UnknownJob(job)
        return record

    def _who(self, by: str | None) -> str:
        """The name of the person who decides; left out, it is the program's."""
        return check_person(by) or self._by


def _last_span(record: JobRecord) -> str | None:
    """What a replay's first attempt links to: the last attempt of the job that it repeats, or, if that completed or
    there was none, its enqueue."""
    known = TraceContext.read(record.span or record.trace)
    return None if known is None else known.parent


def _payload(event: str, value: Any) -> str:
    where = f"the payload of event {event}"
    try:
        text = encode_result(value)
    except NotStorable as error:
        raise NotStorable(where, error.problem) from None
    if (size := len(text.encode())) > MAX_PAYLOAD:
        raise NotStorable(where, f"it is {size:,} bytes of JSON; the limit is {MAX_PAYLOAD:,}")
    return text


def _comment(given: str | None) -> str | None:
    said = check_wording(given, "comment")
    if said is None or not said.strip():
        return None
    if len(said) > LONGEST_COMMENT:
        raise InvalidInput(f"the comment has {len(said):,} characters; the limit is {LONGEST_COMMENT:,}")
    check_text(said, "the comment")
    return said


def _key(given: str | None) -> str | None:
    said = check_wording(given, "key")
    if said is not None and not said:
        raise InvalidInput("key='' names no approval; leave it out for the one that is open")
    return said
