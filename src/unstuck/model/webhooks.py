"""Webhooks: events of the feed that are sent to a URL. What a delivery says, how it is signed, and what follows from
each answer. Pure.

Theory of operation. A message is signed as Standard Webhooks says: HMAC-SHA256 over "id.timestamp.body", by every
secret that holds. Its id and body are the same at each try, and its timestamp is that of the try. An answer of 2xx
takes it; 410 disables the webhook at once; everything else, no answer too, is tried again: after 5 seconds, then four
times as long each time, up to 12 hours; later, if 429 or 503 asks for it (Retry-After), but not beyond that. A
message that fails delays only those that are about the same thing; a receiver that takes nothing at all rests as a
whole, and is disabled when it has taken nothing for four days.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from unstuck.model.errors import InvalidInput, quoted
from unstuck.records import dataclass

#: The kind of what a test sends.
TEST_KIND: Final = "webhook.test"
SECRET_PREFIX: Final = "whsec_"
#: Bytes of a secret.
SECRET_SIZE: Final = 32
#: Tries that fail in a row until a receiver rests as a whole: before that it may be the message.
PATIENCE: Final = 3
GROWTH: Final = 4.0
#: Added at most, of each rest.
JITTER: Final = 0.2
#: Of the tries of a delivery the last so many are kept.
MOST_ATTEMPTS: Final = 50
#: Characters of what a receiver answered that are kept, for its owner to see.
EXCERPT: Final = 1024
LONGEST_ERROR: Final = 500
#: Too Many Requests, Service Unavailable: with these a receiver may say for how long.
ASKS_FOR_TIME: Final = frozenset({429, 503})
#: Of the seconds that it asks for; more are more than the longest rest anyway.
_MOST_DIGITS: Final = 9
MOST_KINDS: Final = 100


class WebhookState(StrEnum):
    """`PAUSED`: what happens is kept for it. `DISABLED`: it is not; what waits stays."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"


class DeliveryState(StrEnum):
    """`FAILED`: it was tried for days, and is not tried any more."""

    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The runtime settings, in seconds."""

    most: int = 20
    most_waiting: int = 100_000
    first_retry: float = 5.0
    longest_retry: float = 12 * 3600.0
    give_up_after: float = 4 * 86400.0
    timeout: float = 10.0
    allow: tuple[str, ...] = ()

    def rest(self, failures: int, fraction: float) -> timedelta:
        """After so many failures in a row. `fraction`: from 0 to 1, by chance."""
        grown = self.first_retry * GROWTH ** min(max(0, failures - 1), 20)
        return timedelta(seconds=min(self.longest_retry, grown) * (1.0 + JITTER * fraction))

    def asked_rest(self, seconds: float | None) -> timedelta:
        """What a receiver asked for, no longer than the longest rest: it could ask for never."""
        return timedelta(seconds=min(self.longest_retry, max(0.0, seconds or 0.0)))


@dataclass(frozen=True, slots=True)
class WebhookFilter:
    """Which events are sent; None and (): all. As a reader of the feed asks for them, and by queue besides."""

    kinds: tuple[str, ...] = ()
    workflow: str | None = None
    queue: str | None = None
    target: str | None = None
    topic: str | None = None
    job: str | None = None

    def to_json(self) -> str:
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({name: value for name, value in said.items() if value})

    @classmethod
    def from_json(cls, text: str) -> WebhookFilter:
        """ValueError for what is none, because its row was damaged."""
        said = json.loads(text)
        if not isinstance(said, dict) or not set(said) <= {each.name for each in fields(cls)}:
            raise ValueError("not a filter")
        return cls(**{**said, "kinds": tuple(said.get("kinds", ()))})


# --- secrets ------------------------------------------------------------------------------------------------------


def spell_secret(secret: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def secret_bytes(text: str) -> bytes:
    """What is signed with. ValueError."""
    try:
        found = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("not a secret") from None
    if not text.startswith(SECRET_PREFIX) or not 24 <= len(found) <= 64:
        raise ValueError("not a secret")
    return found


def secret_place(tenant: str, name: str) -> str:
    """Whose it is: it opens for no other."""
    return f"webhooks/{tenant}/{name}"


def check_secret(text: Any) -> str:
    """One that the caller brings, from another system that signed before."""
    try:
        secret_bytes(text)
    except (ValueError, AttributeError, TypeError):
        # It is not repeated: it may be nearly one.
        raise InvalidInput(
            f"secret=… is not one as Standard Webhooks writes it: {SECRET_PREFIX} and 24 to 64 bytes in base64"
        ) from None
    return str(text)


# --- messages -----------------------------------------------------------------------------------------------------


def message_id(webhook: int, event: str) -> str:
    """The same for each try, and for a replay: by this a receiver knows what it has seen. `event`: the cursor of the
    event, or what is unique of a test."""
    return f"msg_{webhook}-{event}"


def body_of(kind: str, at: str, data: Mapping[str, Any]) -> str:
    return json.dumps({"type": kind, "timestamp": at, "data": data}, separators=(",", ":"))


def about_of(
    *,
    job: str | None,
    target: str | None = None,
    worker: str | None = None,
    topic: str | None = None,
    workflow: str | None = None,
    queue: str | None = None,
) -> str:
    """What an event is about: those about one thing are sent in their order."""
    named = {"job": job, "target": target, "worker": worker, "topic": topic, "workflow": workflow, "queue": queue}
    return next((f"{noun}:{name}" for noun, name in named.items() if name is not None), "")


def signed_headers(message: str, timestamp: int, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    import hmac

    signed = f"{message}.{timestamp}.".encode() + body
    signatures = [f"v1,{base64.b64encode(hmac.digest(secret, signed, 'sha256')).decode()}" for secret in secrets]
    return {
        "webhook-id": message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


# --- answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TryOutcome:
    """What came of one try. `status`: what the receiver answered; None: nothing, for the reason in `error`.
    `excerpt`: the beginning of its answer. `took_ms`: None where nobody was reached: how long that took would tell
    what is open there. `retry_after`: so many seconds the receiver asked for, with 429 or 503."""

    status: int | None = None
    error: str | None = None
    excerpt: str = ""
    took_ms: int | None = None
    retry_after: float | None = None

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        return self.status == 410

    @property
    def sentence(self) -> str:
        return self.error or f"it answered {self.status}"


def retry_after_of(status: int, said: str | None, now: datetime) -> float | None:
    """What the header Retry-After of an answer asks for: seconds, or an instant. None: nothing, or nothing readable;
    it is asked with 429 and 503 alone."""
    if status not in ASKS_FOR_TIME or not said:
        return None
    text = said.strip()
    if text.isascii() and text.isdigit():
        return float(text[:_MOST_DIGITS])
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    ahead = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, ahead)


@dataclass(frozen=True, slots=True)
class WebhookStanding:
    """How a webhook and one of its deliveries stand before a try. `failures`: tries in a row that failed, of any
    delivery; `failing_since`: the first of them. `tries`: those of the delivery; `tried_since`: the first."""

    failures: int = 0
    failing_since: datetime | None = None
    tries: int = 0
    tried_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class TryVerdict:
    """What follows. `next_at`: when the delivery is tried again; `rest_until`: until when nothing is sent there.
    `disabled`: why the webhook is from now on."""

    state: DeliveryState
    standing: WebhookStanding
    next_at: datetime | None = None
    rest_until: datetime | None = None
    disabled: str | None = None


def judge(
    outcome: TryOutcome, before: WebhookStanding, now: datetime, rules: WebhookRules, fraction: float
) -> TryVerdict:
    """What an answer means for its delivery and its webhook."""
    tried = replace(before, tries=before.tries + 1, tried_since=before.tried_since or now)
    if outcome.is_taken:
        return TryVerdict(DeliveryState.DELIVERED, replace(tried, failures=0, failing_since=None))
    after = replace(tried, failures=before.failures + 1, failing_since=before.failing_since or now)
    assert after.failing_since is not None
    assert after.tried_since is not None
    give_up = timedelta(seconds=rules.give_up_after)
    asked = now + rules.asked_rest(outcome.retry_after)
    next_at = max(now + rules.rest(after.tries, fraction), asked)
    if outcome.is_gone:
        return TryVerdict(DeliveryState.WAITING, after, next_at, disabled="the receiver answered 410: it is gone")
    if after.failures >= PATIENCE and now - after.failing_since >= give_up:
        days = f"{rules.give_up_after / 86400:g} days"
        why = f"it took nothing for {days}, {after.failures} tries in a row: {outcome.sentence}"
        return TryVerdict(DeliveryState.WAITING, after, next_at, disabled=why)
    # Who asks for time asks for all of it: what else waits is not sent meanwhile either.
    rest_until = asked if asked > now else None
    if after.failures >= PATIENCE:
        rest_until = max(now + rules.rest(after.failures - PATIENCE + 1, fraction), asked)
    if now - after.tried_since >= give_up:
        return TryVerdict(DeliveryState.FAILED, after, rest_until=rest_until)
    return TryVerdict(DeliveryState.WAITING, after, next_at, rest_until)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One try, as it is kept."""

    at: datetime
    status: int | None = None
    error: str | None = None
    excerpt: str = ""
    took_ms: int | None = None


def attempts_json(attempts: Sequence[DeliveryAttempt]) -> str:
    kept = attempts[-MOST_ATTEMPTS:]
    facts = [{each.name: getattr(one, each.name) for each in fields(one)} for one in kept]
    return json.dumps([{**one, "at": one["at"].isoformat()} for one in facts])


def attempts_of(text: str) -> tuple[DeliveryAttempt, ...]:
    """None of what cannot be read, because its row was damaged."""
    try:
        return tuple(DeliveryAttempt(**{**one, "at": datetime.fromisoformat(one["at"])}) for one in json.loads(text))
    except (ValueError, TypeError, KeyError):
        return ()


def check_kind_count(kinds: Sequence[str]) -> None:
    if len(kinds) > MOST_KINDS:
        raise InvalidInput(f"kinds={quoted(list(kinds)[:3])}… are more than {MOST_KINDS}; leave them out for all")


@dataclass(frozen=True, slots=True)
class WebhookSpec:
    """What a person says of a webhook."""

    url: str
    wanted: WebhookFilter = field(default_factory=WebhookFilter)
