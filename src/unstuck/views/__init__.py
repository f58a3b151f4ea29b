"""Views: what every face answers with, finished for reading. The return types in Python, the body of --json and HTTP.

Stable keys, one name for one thing. Additions are fine, changes are not.

- A job's id is `id` where the object is a job (a job, a child, a branch of a tree) and `job` where it is about one (a
  wait, an event, a stack); where its part has a word of its own, that: `parent`, `replay_of`, `head`, `blocked_by`.
- Others go by their names: `name` where the object is the thing, else its noun (`workflow`, `queue`, `tenant`,
  `worker`, `target`). What is counted has a `number`; an attempt is called by its own, `attempt`, everywhere.
- Instants are UTC and end in `_at`: `at` when it happened, `since_at` and `until_at` from when to when; the end of
  something that is renewed ends in `_until` (`lease_until`).
- Who did it is `by`, beside `at` or `since_at`; where more than one thing is done to it, `set_by` beside `set_at`.
- Durations that were measured are whole milliseconds and end in `_ms`; those that were chosen are seconds.
- States are upper case, other closed sets lower case. What a job, an app or an operator chose (arguments, results,
  payloads, details) is given as it is. `null`: there is none; keys are never left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from unstuck.model.redaction import REDACTED, Redaction

V_co = TypeVar("V_co", covariant=True)


class View(Struct, frozen=True, kw_only=True):
    """One answer. Its fields are the keys of its JSON, in their order."""


class Page(View, Generic[V_co], frozen=True, kw_only=True):
    """A part of a list. `next` is the cursor (`after=…`) of what follows; None: nothing does, as far as is known."""

    items: tuple[V_co, ...]
    next: str | None = None

    def __iter__(self) -> Iterator[V_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> V_co:
        return self.items[place]


def plain(value: Any) -> Any:
    """A view as JSON has it: objects, lists, and instants as RFC 3339 says them."""
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, datetime):
        return rfc3339(value)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def as_json(value: Any) -> str:
    """The text of what `plain` gives, in one pass: a page of views is two thousand values, and most need no look."""
    return _ENCODER.encode(value)


def _one_level(value: Any) -> Any:
    """Of what JSON does not know itself."""
    if isinstance(value, Struct):
        return asdict(value)
    return rfc3339(value) if isinstance(value, datetime) else plain(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_one_level)


def rfc3339(at: datetime | None) -> str | None:
    """UTC, milliseconds, Z: what every language can read."""
    if at is None:
        return None
    in_utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    return in_utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text} is not a number that JSON knows")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON knows")


#: What it reads can be written as JSON again: Python would take NaN and 1e999, and write what others cannot read.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


def loads(text: str | None) -> Any:
    """JSON as it was stored. What cannot be read, because its row was damaged, is shown as it is."""
    try:
        return None if text is None else _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def shown(name: str, text: str | None, hide: Redaction) -> Any:
    """The same of what is known by a name, without what is hidden; of a damaged row nobody can tell what that is."""
    if not hide:
        return loads(text)
    try:
        return None if text is None else hide.named(name, _DECODER.decode(text))
    except (ValueError, RecursionError):
        return REDACTED
