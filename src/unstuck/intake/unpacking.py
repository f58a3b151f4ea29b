"""How a payload becomes arguments again, known once per workflow instead of found out for each job."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

_READER = msgspec.json.Decoder()
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_AT_MOST = 1 << 63  # of the integers that need no more than a look; msgspec knows about larger ones

#: How the value of one parameter is made from what was stored.
Make = Callable[[Any], Any]


def read(payload: str) -> Any:
    """As `json.loads` reads it, in a fifth of its time; what it refuses, such as a number too large for a float, is
    left to that."""
    try:
        return _READER.decode(payload)
    except msgspec.DecodeError:
        return json.loads(payload)


class Unpacking:
    """Arguments as `Signature.bind` would place them, but for calls that do not fit: the signature itself has the
    words for those."""

    def __init__(self, parameters: Sequence[inspect.Parameter], makes: Mapping[str, Make]) -> None:
        places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        # Others are seldom, and have rules of their own.
        self._is_plain = all(p.kind in _KINDS for p in parameters)
        self._makes = makes
        self._in_order = [makes[p.name] for p in places]
        self._place = {p.name: number for number, p in enumerate(places)}
        required = [p.name for p in parameters if p.default is p.empty]
        #: Which must come by name if so many came without.
        self._to_name = [
            frozenset(name for name in required if self._place.get(name, given) >= given)
            for given in range(len(places) + 1)
        ]

    def __call__(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
        """None: it does not fit, or only the signature can tell."""
        given = len(args)
        if not self._is_plain or given >= len(self._to_name):
            return None
        if (to_name := self._to_name[given]) and not to_name <= kwargs.keys():
            return None
        named: dict[str, Any] = {}
        for name, value in kwargs.items():
            make = self._makes.get(name)
            if make is None or self._place.get(name, given + 1) <= given:
                return None
            named[name] = make(value)
        return [make(value) for make, value in zip(self._in_order, args, strict=False)], named


def make_of(kind: Any, convert: Callable[[Any, Any], Any], *, is_free: bool) -> Make:
    """`is_free`: it takes whatever JSON holds. Values of plain types need no more than a look."""
    if is_free:
        return lambda value: value
    if kind is int:
        return lambda value: value if type(value) is int and -_AT_MOST <= value < _AT_MOST else convert(value, int)
    if kind in (str, bool, float):
        return lambda value: value if type(value) is kind else convert(value, kind)
    return lambda value: convert(value, kind)
