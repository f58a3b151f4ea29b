"""Dead letters, as every face shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from msgspec import Meta

from unstuck.model.dead_letters import LISTED, SET_ASIDE, sentence_of
from unstuck.model.job import EventRecord, JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.redaction import Redaction
from unstuck.model.signing import Envelope
from unstuck.store.port import DeadLetter, Quarantined
from unstuck.views import View, loads
from unstuck.views.jobs import EventView, call_of

#: A code. Told as text: a newer version may know more of them.
LetterReason = Annotated[str, Meta(extra_json_schema={"enum": [*map(str, LISTED)]})]


class LetterView(View, frozen=True, kw_only=True):
    """A dead letter: `reason` says why it is one, `meaning` the same in a sentence, `message` what happened to this
    job. `key`: the id of the signing key that its signature names. `number` and `until_at` null: it is in quarantine
    (set_aside), and stays until it can be written."""

    number: int | None
    job: str
    run: int | None
    tenant: str
    queue: str | None
    workflow: str
    reason: LetterReason
    meaning: str
    message: str
    key: str | None
    since_at: datetime
    until_at: datetime | None

    @classmethod
    def of(cls, letter: DeadLetter, kept: float, **more: Any) -> Self:
        return cls(
            number=letter.number,
            job=letter.job,
            run=letter.run,
            tenant=letter.tenant,
            queue=letter.queue,
            workflow=letter.workflow,
            reason=letter.reason,
            meaning=sentence_of(letter.reason),
            message=letter.message,
            key=_key_of(letter.signature),
            since_at=letter.created_at,
            until_at=letter.created_at + timedelta(seconds=kept),
            **more,
        )

    @classmethod
    def aside(cls, found: Quarantined) -> LetterView:
        return cls(
            number=None,
            job=found.job or "",
            run=None,
            tenant=found.tenant,
            queue=None,
            workflow=found.workflow or "",
            reason=SET_ASIDE,
            meaning=sentence_of(SET_ASIDE),
            message=f"{found.duty}: {found.error}",
            key=None,
            since_at=found.since_at,
            until_at=None,
        )


def _key_of(signature: str | None) -> str | None:
    envelope = Envelope.of(signature) if signature else None
    return envelope.key if envelope else None


class LetterWhole(LetterView, frozen=True, kw_only=True):
    """With the whole envelope. `payload` is the text that was stored and signed, `signature` what came with it (its
    text, if that cannot be read); null where something of the job's data is hidden from the caller, as `args` and
    `kwargs` are in part."""

    state: JobState
    target: str | None
    priority: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    payload: str | None
    policy: Policy
    signature: Any
    created_at: datetime

    @classmethod
    def made(cls, letter: DeadLetter, record: JobRecord, kept: float, hide: Redaction, **more: Any) -> Self:
        args, kwargs = call_of(record, hide)
        return cls.of(
            letter,
            kept,
            state=record.state,
            target=record.target,
            priority=record.priority,
            args=tuple(args),
            kwargs=kwargs,
            payload=None if hide else record.payload,
            policy=record.policy,
            signature=loads(letter.signature),
            created_at=record.created_at,
            **more,
        )


class LetterStory(LetterWhole, frozen=True, kw_only=True):
    """With what happened to its job: the last 100 events."""

    history: tuple[EventView, ...]

    @classmethod
    def told(
        cls, letter: DeadLetter, record: JobRecord, kept: float, hide: Redaction, events: list[EventRecord]
    ) -> LetterStory:
        return cls.made(letter, record, kept, hide, history=tuple(map(EventView.of, events)))
