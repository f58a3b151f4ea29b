"""Signing keys: which there are, who signs with them, what they verify. This and `sealing.py` know `cryptography`.

Keys come from a TOML file, from the environment or from code, and are in nobody's database. A process that only
verifies needs the public half of an Ed25519 key alone; the secret of an HMAC key both signs and verifies. Which
process should hold what: docs/signing.md.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from unstuck.model.errors import InvalidInput, InvalidSettings, NotStorable, quoted
from unstuck.model.payload import check_name
from unstuck.model.policy import Policy
from unstuck.model.signing import (
    DEFAULT_LIFE,
    LONGEST_LIFE,
    PURPOSES,
    Envelope,
    EnvelopeFacts,
    Purpose,
    SignatureProblem,
    check_policy,
    is_key_id,
    keeps_policy,
    policy_digest,
    signed_bytes,
    signed_head,
    signed_rest,
)
from unstuck.model.times import seconds
from unstuck.records import dataclass

if TYPE_CHECKING:
    import hashlib

Algorithm = Literal["hmac-sha256", "ed25519"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("hmac-sha256", "ed25519")
#: Bytes of an HMAC secret.
SHORTEST_SECRET: Final = 32
EVERY_TENANT: Final = "*"
#: Bytes that SHA-256 takes at a time.
_BLOCK: Final = 64
#: Seconds that a signature lives whose signer stores the job itself: nobody else is to send it.
OWN_LIFE: Final = 300.0
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key. It signs from `begin` to `end`, and what it signed is accepted until `overlap` seconds after. Of an
    Ed25519 key, `secret` is the private half, and None in a process that only verifies."""

    id: str
    algorithm: Algorithm
    tenant: str = EVERY_TENANT
    purposes: tuple[Purpose, ...] = ("submit",)
    begin: datetime | None = None
    end: datetime | None = None
    overlap: float = 0.0
    is_revoked: bool = False
    secret: bytes | None = field(default=None, repr=False)
    public: bytes | None = None

    def __post_init__(self) -> None:
        if problems := _problems(self):
            raise InvalidSettings([f"signing key {self.id}: {problem}" for problem in problems])

    @property
    def can_sign(self) -> bool:
        return self.secret is not None and not self.is_revoked

    def signs_for(self, tenant: str, purpose: Purpose) -> bool:
        return self.tenant in (EVERY_TENANT, tenant) and purpose in self.purposes

    def sign(self, text: bytes) -> bytes:
        assert self.secret is not None
        if self.algorithm == "hmac-sha256":
            return _hmac_sha256(self.secret, text)
        signature: bytes = _private_half(self.secret).sign(text)
        return signature

    def verifying(self, head: bytes) -> Callable[[bytes, bytes], bool]:
        """Whether a signature holds over a text of which this is the beginning, and the second argument the rest."""
        if self.algorithm == "hmac-sha256":
            assert self.secret is not None
            return _hmac_verifying(self.secret, head)
        public = self.public_half()
        return lambda signature, rest: _verifies_ed25519(public, signature, head + rest)

    def public_half(self) -> bytes:
        """Of an Ed25519 key."""
        return self.public if self.public is not None else _public_of(self.secret or b"")

    def for_verifying(self) -> SigningKey:
        """Of an Ed25519 key the public half alone; an HMAC key has no halves."""
        return self if self.algorithm != "ed25519" else replace(self, public=self.public_half(), secret=None)


def _problems(key: SigningKey) -> list[str]:
    found = []
    if not is_key_id(key.id):
        found.append(f"id={quoted(key.id)} is not 1 to 64 letters, digits, points, dashes or underscores")
    if key.algorithm not in ALGORITHMS:
        return [*found, f"algorithm={quoted(key.algorithm)} is not one of {', '.join(ALGORITHMS)}"]
    if key.algorithm == "hmac-sha256":
        if key.secret is None or len(key.secret) < SHORTEST_SECRET:
            found.append(f"its secret is missing or shorter than {SHORTEST_SECRET} bytes")
        if key.public is not None:
            found.append("an hmac-sha256 key has no public half")
    else:
        if key.secret is None and key.public is None:
            found.append("an ed25519 key needs its public or its private half")
        if any(half is not None and len(half) != 32 for half in (key.secret, key.public)):
            found.append("the halves of an ed25519 key are 32 bytes")
        elif key.secret is not None and key.public is not None and _public_of(key.secret) != key.public:
            found.append("public is not the public half of private")
    if not key.purposes or any(purpose not in PURPOSES for purpose in key.purposes):
        found.append(f"purposes={quoted(key.purposes)} are not among {', '.join(PURPOSES)}")
    if key.tenant != EVERY_TENANT:
        try:
            check_name(key.tenant, "tenant")
        except (InvalidInput, NotStorable) as error:
            found.append(str(error))
    if key.begin is not None and key.end is not None and key.end <= key.begin:
        found.append("it ends before it begins")
    if not 0 <= key.overlap <= 366 * 86400:
        found.append(f"overlap={key.overlap:g} is not between 0 seconds and a year")
    return found


def _hmac_sha256(secret: bytes, text: bytes) -> bytes:
    """As RFC 2104 has it; by what is prepared of the key in a third of the time of `hmac.digest`."""
    begun, ended = _hmac_states(secret)
    inner, outer = begun.copy(), ended.copy()
    inner.update(text)
    outer.update(inner.digest())
    return outer.digest()


@functools.lru_cache(maxsize=256)
def _hmac_states(secret: bytes) -> tuple[hashlib._Hash, hashlib._Hash]:
    import hashlib

    block = (hashlib.sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    return inner, outer


def _hmac_verifying(secret: bytes, head: bytes) -> Callable[[bytes, bytes], bool]:
    from hmac import compare_digest

    begun, ended = _hmac_states(secret)
    begun = begun.copy()
    begun.update(head)

    def holds(signature: bytes, rest: bytes) -> bool:
        inner, outer = begun.copy(), ended.copy()
        inner.update(rest)
        outer.update(inner.digest())
        return compare_digest(outer.digest(), signature)

    return holds


def _public_of(secret: bytes) -> bytes:
    public: bytes = _private_half(secret).public_key().public_bytes_raw()
    return public


@functools.lru_cache(maxsize=256)
def _private_half(secret: bytes) -> Any:
    """Loading it takes as long as signing with it."""
    return _ed25519().Ed25519PrivateKey.from_private_bytes(secret)


@functools.lru_cache(maxsize=256)
def _public_half(public: bytes) -> Any:
    return _ed25519().Ed25519PublicKey.from_public_bytes(public)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InvalidSettings(['a signing key is ed25519: pip install "unstuck[ed25519]"']) from None
    return ed25519


def _verifies_ed25519(public: bytes, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        _public_half(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


# --- many keys -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """Where a signature is required: of one tenant, queue or workflow, or everywhere."""

    kind: Literal["tenant", "queue", "workflow", "*"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @classmethod
    def of(cls, text: str) -> SignatureRule:
        kind, _, name = text.strip().partition(":")
        if kind == "*" and not name:
            return cls("*")
        if kind not in ("tenant", "queue", "workflow"):
            raise InvalidInput(
                f"require_signature={quoted(text)} is not tenant:NAME, queue:NAME, workflow:NAME or * for all jobs"
            )
        return cls(kind, check_name(name, kind))  # type: ignore[arg-type]


@dataclass(slots=True)
class StoredCall:
    """A job as it is stored, or is to be: what its signature is held against."""

    job: str
    tenant: str
    workflow: str
    queue: str
    target: str | None
    priority: int
    payload: str
    policy: Policy
    purpose: Purpose = "submit"
    #: When it may start, in microseconds; None: at once, or nobody said.
    not_before: int | None = None

    def signed_bytes(self, envelope: EnvelopeFacts) -> bytes:
        return signed_bytes(
            envelope.key,
            self.tenant,
            self.workflow,
            self.queue,
            self.target,
            self.priority,
            self.policy.timeout,
            envelope.not_before,
            envelope.expires_at,
            self.job,
            envelope.policy,
            self.payload,
        )


class SigningKeys:
    """The signing keys of a process, and where it requires signatures. Falsy: it has nothing to do with them.
    `may_lack_keys`: of a process that only submits, and whose supervisor keeps the keys; what must be signed is then
    refused there one by one, and nothing is refused at its start."""

    def __init__(
        self, keys: Iterable[SigningKey] = (), required: Iterable[SignatureRule] = (), *, may_lack_keys: bool = False
    ) -> None:
        self._keys: dict[str, SigningKey] = {}
        #: Of each key, from when and until when it accepts what it signed: asked for every job that is verified.
        self._spans: dict[str, tuple[float, float]] = {}
        for key in keys:
            if key.id in self._keys:
                raise InvalidSettings([f"signing key {key.id} is there twice"])
            self._keys[key.id] = key
            self._spans[key.id] = _span(key)
        self.required = frozenset(required)
        self._may_lack_keys = may_lack_keys
        if self.required and not self._keys and not may_lack_keys:
            rules = ", ".join(sorted(map(str, self.required)))
            problem = f"a signature is required ({rules}), and there is no signing key: set signing_keys"
            raise InvalidSettings([problem])

    @classmethod
    def of(cls, source: str | None, required: Iterable[str] = (), *, may_lack_keys: bool = False) -> SigningKeys:
        """As settings name them: `signing_keys` and `require_signature`."""
        problems: list[str] = []
        rules = []
        for text in required:
            try:
                rules.append(SignatureRule.of(text))
            except InvalidInput as error:
                problems.append(str(error))
        if problems:
            raise InvalidSettings(problems)
        return cls(read_keys(source) if source else (), rules, may_lack_keys=may_lack_keys)

    def __bool__(self) -> bool:
        return bool(self._keys or self.required)

    def __iter__(self) -> Iterator[SigningKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, ident: str) -> SigningKey | None:
        return self._keys.get(ident)

    def requires(self, tenant: str, queue: str, workflow: str) -> bool:
        if not self.required:
            return False
        rules = (
            SignatureRule("*"),
            SignatureRule("tenant", tenant),
            SignatureRule("queue", queue),
            SignatureRule("workflow", workflow),
        )
        return not self.required.isdisjoint(rules)

    def also_requiring(self, workflows: Collection[str]) -> SigningKeys:
        """With what the code of an app requires besides; refuses what could then never run."""
        if not workflows:
            return self
        rules = {*self.required, *(SignatureRule("workflow", name) for name in workflows)}
        return SigningKeys(self, rules, may_lack_keys=self._may_lack_keys)

    # --- signing ----------------------------------------------------------------------------------------------------

    def signer(self, tenant: str, purpose: Purpose, now: datetime) -> SigningKey | None:
        """The key that signs now: of those that may, the one that began last."""
        able = [key for key in self if key.can_sign and key.signs_for(tenant, purpose) and _is_signing(key, now)]
        return max(able, key=lambda key: (key.begin or _EPOCH, key.id), default=None)

    def sign(
        self, key: SigningKey, call: StoredCall, now: datetime, *, policy: str = "", life: float = DEFAULT_LIFE
    ) -> Envelope:
        """`policy`: what of the job's policy is asked for, as JSON text."""
        check_policy(policy)
        expires_at = micros(now + timedelta(seconds=min(life, LONGEST_LIFE)))
        bare = Envelope(key.id, expires_at, b"", not_before=call.not_before, policy=policy)
        return replace(bare, signature=key.sign(call.signed_bytes(bare)))

    def sign_all(
        self,
        key: SigningKey,
        call: StoredCall,
        jobs: Sequence[str],
        payloads: Sequence[str],
        now: datetime,
        *,
        policy: str,
    ) -> tuple[list[str], int]:
        """The envelopes of calls that differ in job and payload alone, as whoever signs and accepts them at once
        stores them; and when they expire."""
        check_policy(policy)
        expires_at, accepted_at = micros(now + timedelta(seconds=OWN_LIFE)), micros(now)
        bare = Envelope(key.id, expires_at, b"", call.not_before, policy, accepted_at)
        begin = bare.text().removesuffix('"}')
        each, texts = replace(call), []
        for each.job, each.payload in zip(jobs, payloads, strict=True):
            signature = base64.b64encode(key.sign(each.signed_bytes(bare))).decode()
            texts.append(f'{begin}{signature}"}}')
        return texts, expires_at

    # --- verifying --------------------------------------------------------------------------------------------------

    def problem_at_door(
        self, call: StoredCall, envelope: Envelope | None, now: datetime, revoked: Collection[str] = ()
    ) -> SignatureProblem | None:
        """What keeps a job from being accepted now; one that is accepted has its `accepted_at` from then on."""
        if envelope is None:
            return self._if_missing(call)
        return _verdict(self._judge(call, envelope, revoked), call, replace(envelope, accepted_at=micros(now)))

    def problem_at_claim(
        self,
        call: StoredCall,
        envelope: EnvelopeFacts | None,
        now: datetime,
        revoked: Collection[str] = (),
        *,
        is_first: bool = True,
    ) -> SignatureProblem | None:
        """What keeps a stored job from running. Its key and its expiry are judged as of its acceptance, so that no
        accepted job dies because it waited; revocation as of the first claim of each run. A key that its file revokes
        is so at every claim: which one is the first is the database's word, and no database can undo the file.
        Who has not started before its signed time cannot have been claimed before it either, unless somebody changed
        its row."""
        if envelope is None:
            return self._if_missing(call)
        return _verdict(self.judge_at_claim(call, envelope, now, revoked, is_first=is_first), call, envelope)

    def judge_at_claim(
        self,
        call: StoredCall,
        envelope: EnvelopeFacts,
        now: datetime,
        revoked: Collection[str] = (),
        *,
        is_first: bool = True,
    ) -> Judge | SignatureProblem:
        """Of all jobs of this kind in one claim; or what keeps every one of them from running."""
        if envelope.not_before is not None and micros(now) < envelope.not_before:
            return SignatureProblem.TOO_EARLY
        return self._judge(call, envelope, revoked if is_first else ())

    def _judge(self, call: StoredCall, envelope: EnvelopeFacts, revoked: Collection[str]) -> Judge | SignatureProblem:
        """`revoked`: by the database."""
        if (key := self.get(envelope.key)) is None:
            return SignatureProblem.UNKNOWN_KEY
        head = signed_head(
            key.id,
            call.tenant,
            call.workflow,
            call.queue,
            call.target,
            call.priority,
            call.policy.timeout,
            envelope.not_before,
        )
        problem = _problem_of_kind(key, call, envelope.policy, revoked)
        return Judge(key.verifying(head), policy_digest(envelope.policy), problem, self._spans[key.id])

    def _if_missing(self, call: StoredCall) -> SignatureProblem | None:
        is_required = self.requires(call.tenant, call.queue, call.workflow)
        return SignatureProblem.MISSING if is_required else None


class Judge:
    """Of jobs of one kind: they differ in id and payload, their envelopes in times and signature. What else there is
    to say of them, `of_all`, is known before, and said of none whose signature does not hold."""

    __slots__ = ("_digest", "_holds", "_of_all", "_span")

    def __init__(
        self,
        holds: Callable[[bytes, bytes], bool],
        digest: bytes,
        of_all: SignatureProblem | None,
        span: tuple[float, float],
    ) -> None:
        self._holds = holds
        self._digest = digest
        self._of_all = of_all
        self._span = span

    def problem(self, job: str, payload: str, envelope: EnvelopeFacts) -> SignatureProblem | None:
        if not self._holds(envelope.signature, signed_rest(envelope.expires_at, job, self._digest, payload)):
            return SignatureProblem.ALTERED
        return self._of_all or _problem_of_times(self._span, envelope)


def _verdict(judge: Judge | SignatureProblem, call: StoredCall, envelope: EnvelopeFacts) -> SignatureProblem | None:
    return judge.problem(call.job, call.payload, envelope) if isinstance(judge, Judge) else judge


def _problem_of_kind(
    key: SigningKey, call: StoredCall, policy: str, revoked: Collection[str]
) -> SignatureProblem | None:
    if policy and not keeps_policy(policy, call.policy):
        return SignatureProblem.ALTERED
    if key.tenant not in (EVERY_TENANT, call.tenant):
        return SignatureProblem.FOREIGN_KEY
    if call.purpose not in key.purposes:
        return SignatureProblem.WRONG_PURPOSE
    if key.is_revoked or key.id in revoked:
        return SignatureProblem.REVOKED
    return None


#: Of a process that has nothing to do with signatures.
NO_KEYS: Final = SigningKeys()


def _is_signing(key: SigningKey, now: datetime) -> bool:
    return (key.begin is None or key.begin <= now) and (key.end is None or now < key.end)


def _span(key: SigningKey) -> tuple[float, float]:
    begin = -math.inf if key.begin is None else micros(key.begin)
    return begin, math.inf if key.end is None else micros(key.end) + round(key.overlap * 1_000_000)


def _problem_of_times(span: tuple[float, float], envelope: EnvelopeFacts) -> SignatureProblem | None:
    accepted = envelope.accepted_at
    if accepted is None:
        return SignatureProblem.UNREADABLE
    begin, end = span
    if accepted < begin:
        return SignatureProblem.NOT_YET
    if accepted >= end:
        return SignatureProblem.KEY_ENDED
    if envelope.expires_at <= accepted:
        return SignatureProblem.EXPIRED
    if envelope.expires_at - accepted > LONGEST_LIFE * 1_000_000:
        return SignatureProblem.LIVES_TOO_LONG
    return None


def micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


# --- where keys come from ------------------------------------------------------------------------------------------


_FIELDS: Final = frozenset(
    {"id", "algorithm", "tenant", "purposes", "begin", "end", "overlap", "revoked", "secret", "private", "public"}
)


def read_keys(source: str | Path) -> list[SigningKey]:
    """Of a file, or of its text: `[[key]]` tables of TOML. InvalidSettings names every problem, and no secret."""
    import tomllib

    text = source if isinstance(source, str) and "[[key]]" in source else _file_text(Path(source))
    try:
        found = tomllib.loads(text).get("key", [])
    except (ValueError, RecursionError) as error:
        raise InvalidSettings([f"the signing keys are not TOML: {error}"]) from None
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise InvalidSettings(["there is no signing key: each stands under [[key]], with id, algorithm and secret"])
    problems: list[str] = []
    keys = []
    for each in found:
        try:
            keys.append(_key_of(each))
        except InvalidSettings as error:
            problems += error.problems
    if problems:
        raise InvalidSettings(problems)
    return keys


def _file_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError) as error:
        raise InvalidSettings([f"the signing keys in {path} cannot be read: {error}"]) from None


def _key_of(facts: Mapping[str, Any]) -> SigningKey:
    ident = facts.get("id")
    problems = [f"there is no {name}; known: {', '.join(sorted(_FIELDS))}" for name in sorted(facts.keys() - _FIELDS)]

    def taken(name: str, read: Callable[[Any], Any]) -> Any:
        if facts.get(name) is None:
            return None
        try:
            return read(facts[name])
        except (ValueError, TypeError) as error:
            problems.append(f"{name}: {error}")
            return None

    algorithm = facts.get("algorithm", "hmac-sha256")
    secret = taken("secret" if algorithm == "hmac-sha256" else "private", _bytes)
    if (stray := "private" if algorithm == "hmac-sha256" else "secret") in facts:
        problems.append(f"{stray} is no field of an {quoted(algorithm)} key")
    public = taken("public", _bytes)
    begin, end = taken("begin", _moment), taken("end", _moment)
    overlap = taken("overlap", seconds)
    if problems:
        raise InvalidSettings([f"signing key {quoted(ident)}: {problem}" for problem in problems])
    purposes = facts.get("purposes", ["submit"])
    return SigningKey(
        id=ident if isinstance(ident, str) else "",
        algorithm=algorithm,
        tenant=facts.get("tenant", EVERY_TENANT),
        purposes=tuple(purposes) if isinstance(purposes, list) else (purposes,),
        begin=begin,
        end=end,
        overlap=0.0 if overlap is None else float(overlap),
        is_revoked=facts.get("revoked") is True,
        secret=secret,
        public=public,
    )


def _bytes(value: Any) -> bytes:
    """Base64; what is wrong with a secret is said without it."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ValueError("this is not base64") from None


def _moment(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(f"{quoted(value)} is not an instant with a time zone, like 2026-11-18T00:00:00Z")
    return value
