"""A call as it is stored: {"args": […], "kwargs": {…}}; its workflow's schema says which place has which name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_name, encode, plain_text

#: In place of a value: there is none.
MISSING: Final = object()


class WantedArgument(NamedTuple):
    """What is looked for: the value of a parameter, or with dots of something inside it (`order.customer`)."""

    name: str
    value: str | float | bool | None

    def is_in(self, call: Any, schema: Mapping[str, Any]) -> bool:
        """Whatever was stored: what is no call has no such argument."""
        name, *inside = self.name.split(".")
        found = argument_of(name, schema, call) if isinstance(call, Mapping) else MISSING
        for part in inside:
            found = found.get(part, MISSING) if isinstance(found, Mapping) else MISSING
        if isinstance(found, bool) or isinstance(self.value, bool):
            return found is self.value  # to Python True is 1
        return bool(found == self.value)


def check_argument(given: Any) -> WantedArgument:
    """A name and a value that JSON has, other than a list or an object."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInput(f"argument={quoted(given)} is not the name of an argument and its value")
    name, value = check_name(given[0], "argument"), plain_text(given[1])
    if value is not None and not isinstance(value, str | int | float):
        raise InvalidInput(f"argument {name}: {quoted(value)} is neither text nor a number, true, false or null")
    encode(value, f"argument {name}")
    return WantedArgument(name, value)


def argument_of(name: str, schema: Mapping[str, Any], call: Mapping[str, Any]) -> Any:
    """As the handler will get it: given by place, by name, or by default; MISSING if it is not given."""
    places: Sequence[str] = schema.get("x-positional", ())
    args, kwargs = call.get("args") or [], call.get("kwargs") or {}
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        return MISSING  # its row was damaged: no worker could call with it either
    if name in places and places.index(name) < len(args):
        return args[places.index(name)]
    return kwargs[name] if name in kwargs else default_of(schema.get("properties", {}).get(name))


def default_of(rule: Any) -> Any:
    return rule.get("default", MISSING) if isinstance(rule, dict) else MISSING
