"""What is signed of a job, byte by byte, and what a signature can be refused for.

The signed text is a row of netstrings (`LENGTH:BYTES,`; the length counts bytes of UTF-8): first TAG and VERSION,
then the arguments of `signed_bytes` in their order. A field that is absent is empty; no name may be empty, so the
two cannot be confused. Numbers are decimal, times are microseconds of Unix time, time limits microseconds or
`unlimited`. Of the policy that the signer asks for, its SHA-256 in small hexadecimal letters is signed; the text
itself travels beside the signature and is stored as it came, like the payload. Nothing is ever encoded again, so
there is nothing to be canonical about: whoever can concatenate bytes can sign. docs/signing.md has the format for
other languages, with test vectors.

Which algorithm checks a signature is a fact of its key, never of the message.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, TypeGuard

from unstuck.model.errors import InvalidInput, InvalidPolicy, quoted
from unstuck.model.payload import check_text
from unstuck.model.policy import Policy, Timeout
from unstuck.records import dataclass

VERSION: Final = 1
TAG: Final = b"unstuck-job"
#: Seconds. A signature lives no longer than this, and its job's row is kept at least as long as it lives: a replay is
#: told of the job that the first one made.
LONGEST_LIFE: Final = 7 * 86400.0
DEFAULT_LIFE: Final = 86400.0
#: Characters of what is asked of a policy, and of the stored text of an envelope, in which quotes are written twice.
LONGEST_POLICY: Final = 16 << 10
LONGEST_ENVELOPE: Final = 64 << 10
#: How the id of a signing key is spelled.
_KEY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)

Purpose = Literal["submit", "spawn", "fire"]
#: Why a job exists: a caller submitted it; the engine made it (`Maker` in `model/job.py`) of one that was verified,
#: or of a row that nobody has signed: a schedule, a hook, what follows an end.
PURPOSES: Final[tuple[Purpose, ...]] = ("submit", "spawn", "fire")
_OF_VERIFIED: Final = frozenset({"parent", "replay"})


def purpose_of(made_by: str | None) -> Purpose:
    """Of the key that signs a job, by what made it."""
    if made_by is None:
        return "submit"
    return "spawn" if made_by in _OF_VERIFIED else "fire"


class SignatureProblem(StrEnum):
    """Why a signature is refused; the value stands in dead letters, events and metrics."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN_KEY = "unknown_key"
    FOREIGN_KEY = "foreign_key"
    WRONG_PURPOSE = "wrong_purpose"
    NOT_YET = "not_yet"
    KEY_ENDED = "key_ended"
    REVOKED = "revoked"
    EXPIRED = "expired"
    LIVES_TOO_LONG = "lives_too_long"
    TOO_EARLY = "too_early"
    ALTERED = "altered"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES: dict[SignatureProblem, str] = {
    SignatureProblem.MISSING: "a signature is required, and there is none",
    SignatureProblem.UNREADABLE: "its signature cannot be read",
    SignatureProblem.UNKNOWN_KEY: "nobody here knows the key that it names",
    SignatureProblem.FOREIGN_KEY: "its key signs for another tenant",
    SignatureProblem.WRONG_PURPOSE: "its key does not sign jobs of this origin",
    SignatureProblem.NOT_YET: "its key was not valid yet when it was accepted",
    SignatureProblem.KEY_ENDED: "its key had ended when it was accepted",
    SignatureProblem.REVOKED: "its key is revoked",
    SignatureProblem.EXPIRED: "the signature had expired when it was accepted",
    SignatureProblem.LIVES_TOO_LONG: "the signature would outlive the memory of its job's id",
    SignatureProblem.TOO_EARLY: "it was claimed before the time that is signed",
    SignatureProblem.ALTERED: "what is stored is not what was signed",
}


def signed_bytes(
    key: str,
    tenant: str,
    workflow: str,
    queue: str,
    target: str | None,
    priority: int,
    timeout: Timeout,
    not_before: int | None,
    expires_at: int,
    job: str,
    policy: str,
    payload: str,
) -> bytes:
    """What a signature is over. `timeout` as a policy has it; `policy`: the text of what the signer asks for of the
    job's policy, "" if nothing; times in microseconds."""
    head = signed_head(key, tenant, workflow, queue, target, priority, timeout, not_before)
    return head + signed_rest(expires_at, job, policy_digest(policy), payload)


def signed_rest(expires_at: int, job: str, digest: bytes, payload: str) -> bytes:
    """What follows the head; `digest` as `policy_digest` writes it."""
    until, ident, text = b"%d" % expires_at, job.encode(), payload.encode()
    return b"%d:%b,%d:%b,%b%d:%b," % (len(until), until, len(ident), ident, digest, len(text), text)


@functools.lru_cache(maxsize=1024, typed=True)
def signed_head(
    key: str,
    tenant: str,
    workflow: str,
    queue: str,
    target: str | None,
    priority: int,
    timeout: Timeout,
    not_before: int | None,
) -> bytes:
    """Up to the expiry: most jobs of a workflow have it in common."""
    fields = (
        str(VERSION),
        key,
        tenant,
        workflow,
        queue,
        target or "",
        str(priority),
        _time_limit(timeout),
        "" if not_before is None else str(not_before),
    )
    return b"".join(map(_netstring, (TAG, *(field.encode() for field in fields))))


@functools.lru_cache(maxsize=1024)
def policy_digest(policy: str) -> bytes:
    import hashlib

    return _netstring(hashlib.sha256(policy.encode()).hexdigest().encode())


def _netstring(field: bytes) -> bytes:
    return b"%d:%b," % (len(field), field)


def _time_limit(timeout: Timeout) -> str:
    return timeout if isinstance(timeout, str) else str(round(timeout * 1_000_000))


class EnvelopeFacts(Protocol):
    """What of an envelope is held against a job, however it was read."""

    @property
    def key(self) -> str: ...
    @property
    def expires_at(self) -> int: ...
    @property
    def signature(self) -> bytes: ...
    @property
    def not_before(self) -> int | None: ...
    @property
    def policy(self) -> str: ...
    @property
    def accepted_at(self) -> int | None: ...


@dataclass(slots=True)
class Envelope:
    """What travels and is stored beside a signed job: whose key, until when, what of the policy, the signature.
    `accepted_at`: when the door took it; None: it stands before the door."""

    key: str
    expires_at: int
    signature: bytes
    not_before: int | None = None
    policy: str = ""
    accepted_at: int | None = None

    @property
    def kept_until(self) -> int:
        """So long its job's row stays, that who sends it again finds it. What would live longer runs nowhere, and who
        accepts it without keys does not know that."""
        longest = (self.accepted_at or 0) + round(LONGEST_LIFE * 1_000_000)
        return min(self.expires_at, longest)

    def facts(self) -> dict[str, Any]:
        """As it travels."""
        return {
            "version": VERSION,
            "key": self.key,
            "expires_at": self.expires_at,
            "not_before": self.not_before,
            "policy": self.policy,
            "signature": base64.b64encode(self.signature).decode(),
        }

    def text(self) -> str:
        """As it is stored; the signature comes last."""
        facts = self.facts()
        signature = facts.pop("signature")
        stored = {**facts, "accepted_at": self.accepted_at, "signature": signature}
        return json.dumps(stored, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def of(cls, text: str) -> Envelope | None:
        """As it was stored; None if it cannot be read, be it ever so slightly."""
        try:
            facts = json.loads(text) if len(text) <= LONGEST_ENVELOPE else None
            return envelope(facts)
        except (ValueError, RecursionError, InvalidInput):
            return None


#: The year 9999, in microseconds of Unix time.
_LAST: Final = 253_370_764_800_000_000
_FIELDS: Final = frozenset({"version", "key", "expires_at", "not_before", "policy", "accepted_at", "signature"})


def is_key_id(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and _KEY_ID.fullmatch(text) is not None


def envelope(facts: Any) -> Envelope:
    """Checked field by field; InvalidInput says which is wrong."""
    if not isinstance(facts, Mapping):
        raise InvalidInput(f"signature={quoted(facts)} is not an object with version, key, expires_at and signature")
    if strays := sorted(map(str, facts.keys() - _FIELDS)):
        raise InvalidInput(f"signature: there is no field {strays[0]}; known: {', '.join(sorted(_FIELDS))}")
    if facts.get("version") != VERSION or type(facts["version"]) is not int:
        raise InvalidInput(f"signature: version={quoted(facts.get('version'))} is not {VERSION}")
    key, policy = facts.get("key"), facts.get("policy") or ""
    if not is_key_id(key):
        raise InvalidInput(f"signature: key={quoted(key)} is not the id of a signing key")
    if not isinstance(policy, str):
        raise InvalidInput(f"signature: policy={quoted(policy)} is not a text of JSON")
    check_policy(policy)
    expires_at = _instant(facts, "expires_at")
    if expires_at is None:
        raise InvalidInput("signature: expires_at is missing: until when, in microseconds of Unix time")
    return Envelope(
        key=key,
        expires_at=expires_at,
        signature=_signature(facts.get("signature")),
        not_before=_instant(facts, "not_before"),
        policy=policy,
        accepted_at=_instant(facts, "accepted_at"),
    )


def check_policy(text: str) -> None:
    """Before it is signed or accepted: what is longer could not be read at the claim."""
    if len(text) > LONGEST_POLICY:
        raise InvalidInput(f"the signed policy has {len(text):,} characters; the limit is {LONGEST_POLICY:,}")
    check_text(text, "the signed policy")


def _instant(facts: Mapping[str, Any], name: str) -> int | None:
    value = facts.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LAST:
        raise InvalidInput(f"signature: {name}={quoted(value)} is not a number of microseconds of Unix time")
    return value


def _signature(value: Any) -> bytes:
    try:
        found = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        found = b""
    if not 32 <= len(found) <= 64:
        raise InvalidInput(f"signature: signature={quoted(value)} is not base64 of 32 or 64 bytes")
    return found


@functools.lru_cache(maxsize=1024)
def keeps_policy(text: str, stored: Policy) -> bool:
    """Whether a job's stored policy is what its signer asked for, as far as the signer said anything."""
    if not text:
        return True
    try:
        asked = json.loads(text)
        return isinstance(asked, dict) and stored.with_("the signed policy", asked) == stored
    except (ValueError, RecursionError, TypeError, InvalidPolicy):
        return False
