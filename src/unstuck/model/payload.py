"""How values travel: JSON that both databases give back unchanged, and names that people may write."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from unstuck.model.errors import InvalidInput, NotStorable, quoted

MAX_PAYLOAD = 1 << 20
MAX_DEPTH = 100
MAX_DIGITS = 4000
MAX_NAME = 200
_TOO_LONG = 10**MAX_DIGITS
_TEXT = frozenset({str})
_LEAVES = frozenset({str, int, float, bool, type(None)})
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: Any, where: str, limit: int = MAX_PAYLOAD) -> str:
    """JSON text that both databases give back unchanged, or NotStorable that says what is wrong.

    Refused on both stores alike: NaN and infinities, NUL and lone surrogates in text, cycles, depth, keys that
    are not text or that collide, integers too long to read back, and anything above the size limit.
    """
    if (text := _encode_plain(value)) is not None:
        return text
    _inspect(value, where, 0)
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotStorable(where, str(error)) from None
    if len(text) > limit or len(text.encode()) > limit:
        raise NotStorable(where, f"it is {len(text.encode()):,} bytes of JSON; the limit is {limit:,}")
    return text


def _encode_plain(value: Any) -> str | None:
    """Of what is short and in ASCII, as most is, the text says enough: no integer in it is too long, no surrogate is
    there, and a NUL would be written out. None: look closely."""
    if not is_plain(value):
        return None
    try:
        text = _ENCODER.encode(value)
    except ValueError:
        return None
    return text if len(text) <= MAX_DIGITS and text.isascii() and "\\u0000" not in text else None


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether it is made of JSON's own types alone, with texts as keys. What is nested deeply is not said to be."""
    kind = type(value)
    if kind is dict:
        if not _TEXT.issuperset(map(type, value)):
            return False
        inside = value.values()
    elif kind is list or kind is tuple:
        inside = value
    else:
        return kind in _LEAVES
    if depth >= MAX_DEPTH:
        return False
    nested = [item for item in inside if type(item) not in _LEAVES]
    return not nested or all(is_plain(item, depth + 1) for item in nested)


def decode(text: str, where: str) -> Any:
    """JSON text from outside, held to the same rules as `encode`; duplicate keys are refused too."""
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, where), parse_constant=_refuse(where))
    except (ValueError, RecursionError) as error:
        raise NotStorable(where, f"it is not JSON we can read: {error}") from None
    _inspect(value, where, 0)
    return value


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = sorted({k for k, _ in pairs if sum(k == other for other, _ in pairs) > 1})
        raise NotStorable(where, f"the key {twice[0]!r} occurs twice")
    return found


def _refuse(where: str) -> Any:
    def constant(name: str) -> Any:
        raise NotStorable(where, f"{name} is not a number that JSON knows")

    return constant


def _inspect(value: Any, where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotStorable(where, f"it is nested deeper than {MAX_DEPTH} levels, or contains itself")
    match value:
        case str():
            check_text(value, where)
        case bool() | None:
            return
        case int():
            if abs(value) >= _TOO_LONG:
                raise NotStorable(where, f"an integer of more than {MAX_DIGITS} digits")
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise NotStorable(where, f"{value} is not a number that JSON knows")
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise NotStorable(where, f"the key {key!r} is not text")
                check_text(key, where)
                _inspect(item, where, depth + 1)
        case list() | tuple():
            for item in value:
                _inspect(item, where, depth + 1)
        case _:
            raise NotStorable(where, f"a value of type {type(value).__name__} has no place in JSON")


def check_text(text: str, where: str) -> None:
    if "\x00" in text:
        raise NotStorable(where, "text with a NUL character")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotStorable(where, "text with a lone surrogate") from None


def clean_text(text: str, limit: int) -> str:
    """Text from a handler (errors, output) made storable: never refused, always bounded."""
    if len(text) > limit:
        text = text[: limit // 2] + "\n… cut …\n" + text[-limit // 2 :]
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def check_name(name: str, kind: str) -> str:
    """A workflow, queue, tenant, target or key as people may write it."""
    if not isinstance(name, str) or not name or name != name.strip():
        raise InvalidInput(f"{kind} {quoted(name)} must be text that is not empty and has no spaces around it")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"{kind} {name[:40]!r}… has {len(name)} characters; the limit is {MAX_NAME}")
    if any(not c.isprintable() for c in name):
        raise InvalidInput(f"{kind} {name!r} contains characters that cannot be printed")
    if name == "*":
        raise InvalidInput(f"{kind} '*' means all of them where that is allowed; it cannot be the name of one")
    check_text(name, kind)
    return str.__str__(name)


def plain_text(value: Any) -> Any:
    """Text of a class of its own as text and nothing else: drivers and encoders know no other. The rest unchanged."""
    return str.__str__(value) if isinstance(value, str) else value


def check_person(by: Any) -> str | None:
    """The name of who asks, or None if it was left out."""
    said = check_wording(by, "by")
    if said is None:
        return None
    if not said.strip() or len(said) > MAX_NAME:
        raise InvalidInput(f"by={quoted(said)} is no name: 1 to {MAX_NAME} characters, or leave it out")
    check_text(said, "by")
    return said


def check_wording(value: Any, what: str) -> str | None:
    """Text that is looked for or written down as it is (who asked, and why); the store cleans and shortens it."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{what}={quoted(value)} is not text")
    text: str | None = plain_text(value)
    return text


def check_instant(value: Any, what: str) -> datetime:
    """In UTC; without a zone it is taken for UTC. Refused if it is none, or none that UTC has."""
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what}={quoted(value)} is not a datetime")
    try:
        return value.replace(tzinfo=UTC) if value.utcoffset() is None else value.astimezone(UTC)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{what}={quoted(value)} lies beyond what a calendar holds") from None
