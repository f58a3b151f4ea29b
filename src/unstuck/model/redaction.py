"""Redaction: what of a workflow's data only admins see, by the names that its code gives (`redact=["card"]`).

A plain name stands for that key at any depth, and for the argument, step, partial result or event of that name; a
dotted one for a path from the top. Pure: who may see it is decided in `operations/`, and it is hidden in `views/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_name
from unstuck.records import dataclass

#: In place of a value.
REDACTED: Final = "[redacted]"
MOST_NAMES: Final = 100

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is hidden of one workflow's data. `places`: how each of its versions names positional arguments."""

    names: frozenset[str] = frozenset()
    places: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names)

    def __or__(self, other: Redaction) -> Redaction:
        return Redaction(self.names | other.names, (*self.places, *other.places))

    def value(self, value: Any) -> Any:
        return self._shown(value, self._paths) if self.names else value

    def named(self, name: str, value: Any) -> Any:
        """What has a name of its own, beside those inside it."""
        return self.value(self.value({name: value})[name])

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if not self.names:
            return args, kwargs
        return [self._placed(place, value) for place, value in enumerate(args)], self.value(kwargs)

    def covers(self, path: str) -> bool:
        """Whether what is found there is hidden."""
        parts = path.split(".")
        above = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        return bool(self.names & {*parts, *above})

    @property
    def _paths(self) -> frozenset[Path]:
        return frozenset(tuple(name.split(".")) for name in self.names)

    def _placed(self, place: int, value: Any) -> Any:
        """Every name that a version has for this place counts. What no version has a name for is hidden."""
        names = {places[place] for places in self.places if place < len(places)}
        for name in names:
            value = self.value({name: value})[name]
        return value if names else REDACTED

    def _shown(self, value: Any, paths: frozenset[Path]) -> Any:
        if isinstance(value, Mapping):
            return {key: self._inside(key, each, paths) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._shown(each, paths) for each in value]
        return value

    def _inside(self, key: str, value: Any, paths: frozenset[Path]) -> Any:
        if key in self.names or (key,) in paths:
            return REDACTED
        return self._shown(value, frozenset(path[1:] for path in paths if path[0] == key))


NOTHING: Final = Redaction()


class Redactions(dict[str, Redaction]):
    """By workflow; of one that is not here nothing is hidden. `whose`: the same, told by whose rows say so; "*" are
    those of all tenants."""

    def __init__(self, found: Mapping[str, Redaction] | None = None) -> None:
        super().__init__(found or {})
        self.whose: dict[str, Redactions] = {}

    def add(self, tenant: str, workflow: str, hidden: Redaction) -> None:
        for place in (self, self.whose.setdefault(tenant, Redactions())):
            place[workflow] = place[workflow] | hidden

    def of(self, tenant: str | None) -> Redactions:
        """What holds for one tenant's jobs; None: for anybody's."""
        if tenant is None or not self.whose:
            return self
        shared, own = (self.whose.get(name, Redactions()) for name in ("*", tenant))
        return Redactions({name: shared[name] | own[name] for name in {*shared, *own}}) if own else shared

    def __missing__(self, workflow: str) -> Redaction:
        return NOTHING

    def covers(self, path: str, workflow: str | None) -> bool:
        """Whether somebody who looks there, in one workflow's data or in everybody's, would see what is hidden."""
        return any(each.covers(path) for each in (self.values() if workflow is None else (self[workflow],)))


def check_redact(given: Any) -> tuple[str, ...]:
    """The names, sorted, each once; InvalidInput for what is no list of names."""
    if given is None:
        return ()
    if isinstance(given, str):
        raise InvalidInput(f"redact={quoted(given)} is a text; write a list of names: redact=[{quoted(given)}]")
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"redact={quoted(given)} is not a list of names")
    names = sorted({_checked(name) for name in given})
    if len(names) > MOST_NAMES:
        raise InvalidInput(f"redact has {len(names)} names; the limit is {MOST_NAMES}")
    return tuple(names)


def _checked(name: Any) -> str:
    text = check_name(name, "redact")
    if not all(text.split(".")):
        raise InvalidInput(f"redact: {quoted(text)} is neither a name nor a path like customer.iban")
    return text
