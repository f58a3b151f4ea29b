"""Templates: how a workflow names the target and the limit key of a call, from the arguments of the call itself.

`"{repo}"`, `"{order.customer}"`, `"deploy-{repo}"`: names of parameters, or of what one of them carries one level
down. They are filled in from the packed arguments and the workflow's schema, so every door gives the same text: code
in this process, the command line, another program.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from unstuck.model.call import MISSING, argument_of, default_of
from unstuck.model.errors import InvalidArguments, InvalidInput, quoted
from unstuck.model.payload import check_name
from unstuck.records import dataclass
from unstuck.store.port import EVERY


@dataclass(frozen=True, slots=True)
class Template:
    """Literal text and fields in turn; a field is (parameter, part of it or None)."""

    text: str
    pieces: tuple[str | tuple[str, str | None], ...]

    @property
    def fields(self) -> tuple[tuple[str, str | None], ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, tuple))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)


@functools.lru_cache(maxsize=1000)
def parse(text: str, what: str) -> Template:
    """InvalidInput says what such a text may not contain."""
    from string import Formatter

    pieces: list[str | tuple[str, str | None]] = []
    try:
        for literal, field, spec, conversion in Formatter().parse(text):
            if literal:
                pieces.append(literal)
            if field is not None:
                pieces.append(_field(field, bool(spec or conversion)))
    except ValueError as error:
        raise InvalidInput(f"{what}={quoted(text)} is no template: {error}") from None
    template = Template(text, tuple(pieces))
    if not template.parameters:
        check_place("".join(piece for piece in pieces if isinstance(piece, str)), what)
    return template


def _field(field: str, is_formatted: bool) -> tuple[str, str | None]:
    name, dot, part = field.partition(".")
    if is_formatted or not name.isidentifier() or (dot and not part.isidentifier()):
        raise ValueError("its fields are {parameter} or {parameter.field}, and nothing else")
    return name, part or None


def check(workflow: str, what: str, text: Any, parameters: Iterable[str], *, is_open: bool = False) -> None:
    """When the workflow is defined: a field that no call can have is a mistake now, not at the first call.

    `is_open`: the handler takes any named argument.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"workflow {workflow}: {what}={quoted(text)} is not text")
    try:
        template = parse(text, what)
    except InvalidInput as error:
        raise InvalidInput(f"workflow {workflow}: {error}") from None
    known = list(parameters)
    for name in template.parameters:
        if name not in known and not is_open:
            raise InvalidInput(
                f"workflow {workflow}: {what}={text!r} names {name}, which is none of its parameters"
                + (f": {', '.join(known)}" if known else "; it has none")
            )


def fill(workflow: str, what: str, text: str, schema: Mapping[str, Any], payload: str) -> str:
    """The text of one call; InvalidArguments names the field that the call cannot fill."""
    template = parse(text, what)
    call = json.loads(payload) if template.parameters else {}
    need = f"its {what} {text!r} needs"
    filled = "".join(
        piece if isinstance(piece, str) else _written(workflow, need, piece, schema, call)
        for piece in template.pieces
    )
    try:
        return check_place(filled, what)
    except InvalidInput as error:
        fields = ", ".join(template.parameters)
        raise InvalidArguments(workflow, f"its {what} {text!r} cannot be made of {fields}: {error}") from None


def check_place(name: str, what: str) -> str:
    """A target or limit key as it may be called; stars stand for several of them."""
    name = check_name(name, what)
    if name == EVERY or name.endswith(f":{EVERY}"):
        raise InvalidInput(f"{what} {name!r} is no name: the star stands for all of them")
    return name


def _written(
    workflow: str, need: str, field: tuple[str, str | None], schema: Mapping[str, Any], call: Mapping[str, Any]
) -> str:
    name, part = field
    value = argument_of(name, schema, call)
    if part is not None and isinstance(value, dict):
        name, value = f"{name}.{part}", value.get(part, _default_of_part(name, part, schema))
    elif part is not None and value is not None and value is not MISSING:
        raise InvalidArguments(workflow, f"{need} {name}.{part}, and {name} is not an object")
    if value is MISSING or value is None:
        raise InvalidArguments(workflow, f"{need} {name}, which {'is null' if value is None else 'is not given'}")
    return _text(workflow, need, name, value)


def _default_of_part(name: str, part: str, schema: Mapping[str, Any]) -> Any:
    """A class fills in what a caller left out; its schema says with what."""
    rules = [_resolved(rule, schema) for rule in _choices(schema.get("properties", {}).get(name))]
    found = (default_of(rule.get("properties", {}).get(part)) for rule in rules)
    return next((default for default in found if default is not MISSING), MISSING)


def _choices(rule: Any) -> list[Any]:
    return rule.get("anyOf", [rule]) if isinstance(rule, dict) else []


def _resolved(rule: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(rule, dict) and (reference := rule.get("$ref")):
        rule = schema.get("$defs", {}).get(str(reference).rpartition("/")[2], {})
    return rule if isinstance(rule, dict) else {}


def _text(workflow: str, need: str, name: str, value: Any) -> str:
    """The same text for 1 and 1.0: a door without the code cannot tell which of them a float parameter was given."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            kind = "a list" if isinstance(value, list) else "an object"
            raise InvalidArguments(workflow, f"{need} text or a number, and {name} is {kind}")
