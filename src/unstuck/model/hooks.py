"""Hooks: another system's call that starts a workflow; who signed it, whether it is new, and what it says.

Theory of operation. A hook has an address that nobody guesses and a secret that it shares with one sender. A
*delivery* is one call of it. `verified` says who sent it: its signature by one of the hook's secrets, over the bytes
that came and, where the scheme signs a time, over a time that is not long ago. It answers the key by which the same
delivery is known when it comes again. Then the *mapping* makes the arguments of the workflow from the delivery's
body, headers and query. Nothing here knows the time, or a database.

Schemes. `standard`: Standard Webhooks. `github`: X-Hub-Signature-256 over the body. `stripe`: Stripe-Signature, a
time and the body. `hmac`: any other header with an HMAC, told by `HmacRule`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from unstuck.model.errors import InvalidInput, NotStorable, quoted
from unstuck.model.payload import check_text, decode
from unstuck.records import dataclass

Scheme = Literal["standard", "github", "stripe", "hmac"]
#: "accepted": there is a job. "refused": there is none, the reason says why.
HookOutcome = Literal["accepted", "refused"]

#: What an address of a hook begins with, and how many characters follow: 120 bits that nobody guesses.
ID_BEGINNING: Final = "hk_"
ID_LENGTH: Final = 24
ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
#: A hook's job carries its name as a tag, which must not become too long for one.
MOST_NAME: Final = 100
TAG: Final = "hook:"
#: Bytes of a body, by default and at most.
USUAL_BYTES: Final = 1 << 20
MOST_BYTES: Final = 2 << 20
MOST_ARGUMENTS: Final = 100
MOST_PATH: Final = 20
#: Signatures that one delivery may carry: two secrets overlap during a rotation, at the sender as here.
MOST_SIGNATURES: Final = 10
#: Secrets that a hook may have at once.
MOST_SECRETS: Final = 5
SHORTEST_SECRET: Final = 16
LONGEST_SECRET: Final = 500
_PREFIX: Final = "whsec_"
MOST_ID: Final = 200
#: Headers that carry what opens other doors: they do not belong into the arguments of jobs.
SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-csrf-token"})
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_PLACE: Final = re.compile(r"[0-9]{1,6}", re.ASCII)


class DeliveryProblem(StrEnum):
    """Why a delivery is refused before its workflow is asked; the value stands in the log of deliveries."""

    UNSIGNED = "unsigned"
    WRONG_SIGNATURE = "wrong_signature"
    OUT_OF_TIME = "out_of_time"
    NO_ID = "no_id"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    PAUSED = "paused"
    UNREADABLE = "unreadable"
    MISFIT = "misfit"
    #: By a gate that every submit passes: the reason names it.
    NOT_ACCEPTED = "not_accepted"

    @property
    def is_about_sender(self) -> bool:
        """Nobody has shown to know the secret: such a delivery is told nothing, and the log keeps few of them."""
        return self in _OF_STRANGERS


_OF_STRANGERS = frozenset(
    {
        DeliveryProblem.UNSIGNED,
        DeliveryProblem.WRONG_SIGNATURE,
        DeliveryProblem.OUT_OF_TIME,
        DeliveryProblem.NO_ID,
        DeliveryProblem.TOO_LARGE,
        DeliveryProblem.TOO_SLOW,
    }
)


class DeliveryRefused(Exception):
    """No job is made of a delivery."""

    def __init__(self, problem: DeliveryProblem, sentence: str) -> None:
        super().__init__(sentence)
        self.problem = problem


# --- what a hook is -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HmacRule:
    """How a sender of the scheme `hmac` signs. `signed`: what the HMAC is over, with {body}, {time} and {id} for what
    the delivery and its headers say."""

    header: str = "X-Signature-256"
    prefix: str = ""
    algorithm: Literal["sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    signed: str = "{body}"
    time_header: str | None = None
    id_header: str | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> HmacRule:
        """InvalidInput says what cannot be."""
        known = {each.name for each in fields(cls)}
        if strays := sorted(set(map(str, said)) - known):
            raise InvalidInput(f"signature: there is no {strays[0]}; known: {', '.join(sorted(known))}")
        if wrong := [name for name, value in said.items() if not isinstance(value, str | None)]:
            raise InvalidInput(f"signature: {wrong[0]}={quoted(said[wrong[0]])} is not text")
        rule = cls(**{name: value for name, value in said.items() if value is not None})
        rule._check()
        return rule

    def _check(self) -> None:
        for name in ("header", "time_header", "id_header"):
            value = getattr(self, name)
            if value is not None and _HEADER.fullmatch(value) is None:
                raise InvalidInput(f"signature: {name}={quoted(value)} is not the name of a header")
        if self.algorithm not in ("sha256", "sha512"):
            raise InvalidInput(f"signature: algorithm={quoted(self.algorithm)} is not one of sha256, sha512")
        if self.encoding not in ("hex", "base64"):
            raise InvalidInput(f"signature: encoding={quoted(self.encoding)} is not one of hex, base64")
        if len(self.prefix) > 50 or len(self.signed) > 200:
            raise InvalidInput("signature: prefix has more than 50 characters, or signed more than 200")
        parts = set(re.findall(r"\{([^{}]*)\}", self.signed))
        if "body" not in parts or parts - {"body", "time", "id"}:
            problem = "must have {body} in it, and nothing else in braces than {time} and {id}"
            raise InvalidInput(f"signature: signed={quoted(self.signed)} {problem}")
        for part, header in (("time", self.time_header), ("id", self.id_header)):
            if part in parts and header is None:
                raise InvalidInput(f"signature: signed has {{{part}}} in it: say {part}_header, where it comes from")
        if self.time_header is not None and "time" not in parts:
            raise InvalidInput("signature: time_header is of no use unless {time} is signed: anybody could change it")

    def text(self, body: bytes, time: str, ident: str) -> bytes:
        said = {"{body}": body, "{time}": time.encode(), "{id}": ident.encode()}
        pieces = re.split(r"(\{body\}|\{time\}|\{id\})", self.signed)
        return b"".join(said.get(piece, piece.encode()) for piece in pieces)


@dataclass(frozen=True, slots=True)
class HookSpec:
    """What somebody wants to run when another system calls. `arguments`: for each argument of the workflow where its
    value comes from; see `sources`."""

    workflow: str
    scheme: Scheme = "standard"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    signature: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    priority: int = 0
    target: str | None = None
    tags: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    max_bytes: int = USUAL_BYTES

    def to_json(self) -> str:
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> HookSpec:
        """Tolerates options of a newer version."""
        known = {each.name for each in fields(cls)}
        facts = {name: value for name, value in json.loads(text).items() if name in known}
        return cls(**facts | {"tags": tuple(facts.get("tags", ()))})

    @property
    def rule(self) -> HmacRule:
        return HmacRule.of(self.signature)

    @property
    def signature_headers(self) -> frozenset[str]:
        """In lower case: those that hold a signature."""
        named = {
            "standard": "webhook-signature",
            "github": "x-hub-signature-256",
            "stripe": "stripe-signature",
        }
        return frozenset({named.get(self.scheme) or self.rule.header.lower()})


@dataclass(frozen=True, slots=True)
class HookRules:
    """The runtime settings of hooks; times in seconds."""

    most: int = 100
    window: float = 300.0
    kept: float = 7 * 86400.0


def checked(spec: HookSpec) -> HookSpec:
    """InvalidInput for what no hook can be, whatever its workflow."""
    if spec.scheme not in get_args(Scheme):
        raise InvalidInput(f"scheme={quoted(spec.scheme)} is not one of {', '.join(get_args(Scheme))}")
    if spec.scheme != "hmac" and spec.signature:
        raise InvalidInput(f"signature= says how senders of the scheme hmac sign; {spec.scheme} knows that by itself")
    if spec.scheme == "hmac":
        HmacRule.of(spec.signature)
    size = spec.max_bytes
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_BYTES:
        raise InvalidInput(f"max_bytes={quoted(size)} is not a whole number between 1 and {MOST_BYTES:,}")
    for name, source in sources(spec.arguments).items():
        header = source.path[0].lower() if source.kind == "header" else ""
        if header in SECRET_HEADERS | spec.signature_headers:
            raise InvalidInput(f"argument {name}: the header {header} is a secret; it does not belong into a job")
    return spec


# --- secrets ------------------------------------------------------------------------------------------------------


def spelled(scheme: Scheme, noise: bytes) -> str:
    """A new secret, as senders of this scheme are given it."""
    return _PREFIX + base64.b64encode(noise).decode() if scheme == "standard" else noise.hex()


def check_secret(scheme: Scheme, secret: Any) -> str:
    """One that the sender has made; it is repeated in no error."""
    if not isinstance(secret, str) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise InvalidInput(f"the secret is not text of {SHORTEST_SECRET} to {LONGEST_SECRET} characters")
    check_text(secret, "the secret")
    if scheme == "standard" and len(key_of(scheme, secret)) < SHORTEST_SECRET:
        raise InvalidInput(f"the secret is not {_PREFIX} and base64 of {SHORTEST_SECRET} bytes or more")
    return secret


def key_of(scheme: Scheme, secret: str) -> bytes:
    """What an HMAC is computed with; b"": the secret is none of this scheme."""
    if scheme != "standard":
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


# --- deliveries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """What came: `headers` by their names in lower case, the first of each; the body as it is."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Sequence[tuple[str, str]] = ()

    def header(self, name: str) -> str:
        return self.headers.get(name.lower(), "")

    @cached_property
    def value(self) -> Any:
        """The body: JSON, or the fields of a form. DeliveryRefused if it is neither."""
        try:
            text = self.body.decode()
        except UnicodeDecodeError:
            raise DeliveryRefused(DeliveryProblem.UNREADABLE, "the body is not text in UTF-8") from None
        if self.header("content-type").partition(";")[0].strip().lower() == "application/x-www-form-urlencoded":
            return self._form(text)
        try:
            return decode(text, "the body")
        except NotStorable as error:
            raise DeliveryRefused(DeliveryProblem.UNREADABLE, str(error)) from None

    @staticmethod
    def _form(text: str) -> dict[str, Any]:
        from urllib.parse import parse_qsl

        try:
            pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=1000)
        except ValueError as error:
            raise DeliveryRefused(DeliveryProblem.UNREADABLE, f"the body is no form: {error}") from None
        found: dict[str, Any] = {}
        for name, value in pairs:
            found[name] = value if name not in found else [*_listed(found[name]), value]
        return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def verified(spec: HookSpec, secrets: Iterable[str], delivery: Delivery, now: float, window: float) -> str:
    """The key by which it is known when it comes again. DeliveryRefused: nobody who knows a secret sent it, or long
    ago. `now`: Unix time, in seconds."""
    import hmac

    signed = _SIGNED[spec.scheme](spec, delivery)
    keys = [key for secret in secrets if (key := key_of(spec.scheme, secret))]
    # Every one is compared: how long it takes tells nothing about which of them is right.
    matches = [
        hmac.compare_digest(hmac.digest(key, signed.text, signed.algorithm), given)
        for key in keys
        for given in signed.signatures
    ]
    if not any(matches):
        raise DeliveryRefused(DeliveryProblem.WRONG_SIGNATURE, "its signature is by no secret of this hook")
    if signed.time is not None and abs(now - signed.time) > window:
        distance = f"{abs(now - signed.time):.0f} s {'ago' if now > signed.time else 'ahead'}"
        raise DeliveryRefused(DeliveryProblem.OUT_OF_TIME, f"it was signed {distance}; the limit is {window:g} s")
    return signed.key(_event_id(delivery) if spec.scheme == "stripe" else signed.ident)


def burn(body: bytes) -> None:
    """As much work as a verification is: who asks for a hook that is not there waits as long."""
    import hmac

    hmac.compare_digest(hmac.digest(b"nobody", body, "sha256"), bytes(32))


@dataclass(frozen=True, slots=True)
class _Signed:
    """What a delivery says is signed, and by what."""

    text: bytes
    signatures: Sequence[bytes]
    ident: str
    body: bytes
    time: int | None = None
    algorithm: str = "sha256"

    def key(self, ident: str) -> str:
        """Without an id of its own, the same bytes (and the same time, where one is signed) are the same delivery."""
        import hashlib

        if ident:
            return f"id:{ident}"
        return f"digest:{hashlib.sha256(self.body if self.time is None else self.text).hexdigest()}"


def _standard(spec: HookSpec, delivery: Delivery) -> _Signed:
    ident, time = _ident(delivery, "webhook-id", needed=True), _time(delivery.header("webhook-timestamp"))
    entries = _present(delivery, "webhook-signature").split(" ")
    given = [entry.partition(",")[2] for entry in entries if entry.startswith("v1,")]
    text = f"{ident}.{time}.".encode() + delivery.body
    return _Signed(text, _decoded(given, "base64"), ident, delivery.body, time)


def _github(spec: HookSpec, delivery: Delivery) -> _Signed:
    given = [_present(delivery, "x-hub-signature-256").removeprefix("sha256=")]
    ident = _ident(delivery, "x-github-delivery", needed=False)
    return _Signed(delivery.body, _decoded(given, "hex"), ident, delivery.body)


def _stripe(spec: HookSpec, delivery: Delivery) -> _Signed:
    pairs = [part.strip().partition("=") for part in _present(delivery, "stripe-signature").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == "v1"]
    time = _time(times[0] if len(times) == 1 else "")
    text = f"{time}.".encode() + delivery.body
    return _Signed(text, _decoded(given, "hex"), "", delivery.body, time)


def _event_id(delivery: Delivery) -> str:
    """Of Stripe it stands in the body, which is signed: read once that is known."""
    try:
        found = delivery.value.get("id") if isinstance(delivery.value, dict) else None
    except DeliveryRefused:
        return ""
    return found if isinstance(found, str) and 0 < len(found) <= MOST_ID else ""


def _hmac(spec: HookSpec, delivery: Delivery) -> _Signed:
    rule = spec.rule
    given = _present(delivery, rule.header)
    if not given.startswith(rule.prefix):
        raise DeliveryRefused(DeliveryProblem.WRONG_SIGNATURE, f"{rule.header} does not begin with {rule.prefix}")
    ident = "" if rule.id_header is None else _ident(delivery, rule.id_header, needed="{id}" in rule.signed)
    time = None if rule.time_header is None else _time(delivery.header(rule.time_header))
    text = rule.text(delivery.body, "" if time is None else str(time), ident)
    signatures = _decoded([given.removeprefix(rule.prefix)], rule.encoding)
    return _Signed(text, signatures, ident, delivery.body, time, rule.algorithm)


_SIGNED = {"standard": _standard, "github": _github, "stripe": _stripe, "hmac": _hmac}


def _present(delivery: Delivery, header: str) -> str:
    found = delivery.header(header)
    if not found:
        raise DeliveryRefused(DeliveryProblem.UNSIGNED, f"there is no header {header}")
    return found


def _ident(delivery: Delivery, header: str, *, needed: bool) -> str:
    found = delivery.header(header).strip()
    if (needed and not found) or len(found) > MOST_ID or not found.isprintable():
        problem = f"the header {header} is missing, or not 1 to {MOST_ID} characters that can be printed"
        raise DeliveryRefused(DeliveryProblem.NO_ID, problem)
    return found


def _time(text: str) -> int:
    if _SECONDS.fullmatch(text) is None or text != str(int(text)):
        raise DeliveryRefused(DeliveryProblem.OUT_OF_TIME, "the time that it signs is not seconds of Unix time")
    return int(text)


def _decoded(given: Sequence[str], encoding: str) -> list[bytes]:
    """What is none is left out: it matches nothing."""
    found = []
    for text in given[:MOST_SIGNATURES]:
        try:
            found.append(bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            continue
    return found


# --- the mapping --------------------------------------------------------------------------------------------------

SourceKind = Literal["body", "raw", "header", "query", "delivery", "value"]
_SOURCES: Final = "body, body.NAME, raw, header.NAME, query.NAME or delivery"


class ArgumentSource(NamedTuple):
    """Where the value of an argument comes from. `raw`: the text of the body as it came; `delivery`: its id."""

    kind: SourceKind
    path: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it can be nothing but text."""
        return self.kind in ("raw", "header", "query", "delivery")

    def __str__(self) -> str:
        return ".".join((self.kind, *self.path))


def sources(mapping: Any) -> dict[str, ArgumentSource]:
    """{"repo": "body.repository.name", "who": {"from": "header.x-user", "default": "nobody"}, "n": {"value": 3}}. A
    path may be a list, for names with points in them. InvalidInput."""
    if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
        raise InvalidInput(
            f'arguments={quoted(mapping)} is not a mapping like {{"repo": "body.repository.full_name"}}'
        )
    if len(mapping) > MOST_ARGUMENTS:
        raise InvalidInput(f"arguments names {len(mapping)} arguments; the limit is {MOST_ARGUMENTS}")
    return {name: _source(name, said) for name, said in mapping.items()}


def _source(name: str, said: Any) -> ArgumentSource:
    if not isinstance(said, Mapping):
        return _path(name, said)
    if set(said) == {"value"}:
        return ArgumentSource("value", default=said["value"], has_default=True)
    if "from" not in said or set(said) - {"from", "default"}:
        problem = 'is none of "body.NAME", {"from": "body.NAME", "default": …} and {"value": …}'
        raise InvalidInput(f"argument {name}: {quoted(dict(said))} {problem}")
    found = _path(name, said["from"])
    return found._replace(default=said["default"], has_default=True) if "default" in said else found


def _path(name: str, said: Any) -> ArgumentSource:
    parts = said.split(".") if isinstance(said, str) else said
    if not isinstance(parts, list | tuple) or not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidInput(f"argument {name}: {quoted(said)} is not {_SOURCES}")
    kind, path = parts[0], tuple(parts[1:])
    if kind in ("header", "query") and len(path) > 1:  # their names may have points in them
        path = (".".join(path),)
    wants = {"body": range(MOST_PATH + 1), "header": (1,), "query": (1,), "raw": (0,), "delivery": (0,)}
    if kind not in wants or len(path) not in wants[kind]:
        raise InvalidInput(f"argument {name}: {quoted(said)} is not {_SOURCES}")
    return ArgumentSource(cast("SourceKind", kind), path)


def found_at(source: ArgumentSource, delivery: Delivery, ident: str) -> tuple[bool, Any]:
    """Whether it is there, and its value. DeliveryRefused, if the body is needed and cannot be read."""
    match source.kind:
        case "value":
            return True, source.default
        case "delivery":
            return True, ident
        case "raw":
            return True, _text_of(delivery.body)
        case "header":
            name = source.path[0].lower()
            return name in delivery.headers, delivery.headers.get(name)
        case "query":
            values = [value for name, value in delivery.query if name == source.path[0]]
            return bool(values), values[0] if values else None
        case _:
            return _walked(delivery.value, source.path)


def _text_of(body: bytes) -> str:
    try:
        text = body.decode()
        check_text(text, "the body")
    except (UnicodeDecodeError, NotStorable):
        raise DeliveryRefused(DeliveryProblem.UNREADABLE, "the body is not text in UTF-8") from None
    return text


def _walked(value: Any, path: Sequence[str]) -> tuple[bool, Any]:
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _PLACE.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, None
    return True, value
