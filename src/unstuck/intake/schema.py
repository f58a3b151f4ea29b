"""The registered schema of a workflow, for doors that do not have its code: names, types, formats and bounds.

Not all of JSON schema: what `Arguments.schema` writes and a mistaken caller gets wrong. The worker checks the rest
(what classes with validators of their own demand) against the real types before the handler runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.intake import formats
from unstuck.model.errors import InvalidArguments
from unstuck.model.payload import encode

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list, tuple),
    "null": (type(None),),
}


def pack(workflow: str, schema: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The payload of a call of a registered workflow; InvalidArguments says what does not fit."""
    if schema:
        problems = _bind_problems(schema, args, kwargs) or _value_problems(schema, args, kwargs)
        if problems:
            raise InvalidArguments(workflow, "; ".join(problems))
        args, kwargs = _normal(schema, args, kwargs)
    return encode({"args": list(args), "kwargs": dict(kwargs)}, f"the arguments of {workflow}")


def misfit_of(name: str, value: Any, schema: Mapping[str, Any]) -> str | None:
    """Why a value does not fit the parameter of this name, or None."""
    return _misfit(value, rule_of(name, schema), schema)


def rule_of(name: str, schema: Mapping[str, Any]) -> Any:
    """What is demanded of the parameter of this name; of one that has none of its own, what is demanded of others."""
    other = schema.get("additionalProperties")
    return schema.get("properties", {}).get(name, other if isinstance(other, dict) else {})


def types_of(rule: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The JSON types that fit a rule; none: any may."""
    if not isinstance(rule, dict) or depth > 20:
        return frozenset()
    if reference := rule.get("$ref"):
        return types_of(root.get("$defs", {}).get(str(reference).rpartition("/")[2]), root, depth + 1)
    if "anyOf" in rule:
        several = [types_of(choice, root, depth + 1) for choice in rule["anyOf"]]
        return frozenset().union(*several) if all(several) else frozenset()
    wanted = rule.get("type")
    names = [wanted] if isinstance(wanted, str) else list(wanted or ())
    return frozenset([*names, "number"] if rule.get("format") == "decimal" else names)


def _bind_problems(schema: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    positional = schema.get("x-positional", [])
    given = positional[: len(args)]
    found = [f"{name} was given twice" for name in given if name in kwargs]
    if len(args) > len(positional) and "x-more" not in schema:
        found.append(f"too many positional arguments: at most {len(positional)}, got {len(args)}")
    only = set(schema.get("x-positional-only", []))
    found += [f"{name} must be positional" for name in kwargs if name in only]
    if schema.get("additionalProperties") is False:
        found += [f"there is no parameter {name}" for name in kwargs if name not in schema.get("properties", {})]
    missing = [name for name in schema.get("required", []) if name not in given and name not in kwargs]
    return found + [f"missing a required argument: {name}" for name in missing]


def _value_problems(schema: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    positional = schema.get("x-positional", [])
    named = [*zip(positional, args, strict=False), *kwargs.items()]
    found = [
        problem
        for name, value in named
        if (problem := misfit_of(name, value, schema)) and (problem := f"{name}: {problem}")
    ]
    more = schema.get("x-more", {})
    return found + [p for value in args[len(positional) :] if (p := _misfit(value, more, schema))]


def _normal(
    schema: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """f(1) and f(x=1) are the same call, and an idempotency key must see them so."""
    placed, rest = list(args), dict(kwargs)
    for name in schema.get("x-positional", [])[len(args) :]:
        if name not in rest:
            break
        placed.append(rest.pop(name))
    return placed, rest


def _misfit(value: Any, rule: Any, root: Mapping[str, Any]) -> str | None:
    """Why a value does not fit a rule, or None."""
    if not isinstance(rule, dict):
        return None
    if reference := rule.get("$ref"):
        return _misfit(value, root.get("$defs", {}).get(str(reference).rpartition("/")[2], {}), root)
    if "anyOf" in rule:
        return _no_choice(value, rule["anyOf"], root)
    if "enum" in rule and value not in rule["enum"]:
        return f"{value!r} is not one of {', '.join(map(repr, rule['enum']))}"
    if wanted := rule.get("type"):
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        if rule.get("format") == "decimal":  # written as text, read from numbers too
            names.append("number")
        if not any(_is(value, name) for name in names):
            return f"expected {' or '.join(names)}, got {_json_name(value)}"
    return _out_of_bounds(value, rule) or _inner_misfit(value, rule, root)


def _no_choice(value: Any, choices: Sequence[Any], root: Mapping[str, Any]) -> str | None:
    """Why none of the choices fits. Nobody who gave a value needs to hear that it is not null."""
    misfits = {place: _misfit(value, choice, root) for place, choice in enumerate(choices)}
    if None in misfits.values():
        return None
    telling = [m for place, m in misfits.items() if m and choices[place] != {"type": "null"}]
    return " or ".join(dict.fromkeys(telling)) or f"expected null, got {_json_name(value)}"


def _out_of_bounds(value: Any, rule: Mapping[str, Any]) -> str | None:
    match value:
        case str():
            return formats.misfit(value, rule) or _bad_text(value, rule)
        case bool():
            return None
        case int() | float():
            return _bad_number(value, rule)
        case list() | tuple():
            return _bad_count(len(value), rule, "Items", "elements")
        case dict():
            return _bad_count(len(value), rule, "Properties", "entries")
        case _:
            return None


def _bad_text(text: str, rule: Mapping[str, Any]) -> str | None:
    pattern = rule.get("pattern")
    if pattern is not None and re.search(pattern, text) is None:
        return f"{text[:80]!r} does not match {pattern}"
    return _bad_count(len(text), rule, "Length", "characters")


def _bad_number(number: float, rule: Mapping[str, Any]) -> str | None:
    if (least := rule.get("minimum")) is not None and number < least:
        return f"{number} is below {least}"
    if (most := rule.get("maximum")) is not None and number > most:
        return f"{number} is above {most}"
    if (floor := rule.get("exclusiveMinimum")) is not None and number <= floor:
        return f"{number} is not above {floor}"
    if (roof := rule.get("exclusiveMaximum")) is not None and number >= roof:
        return f"{number} is not below {roof}"
    return None


def _bad_count(count: int, rule: Mapping[str, Any], what: str, spoken: str) -> str | None:
    if (least := rule.get(f"min{what}")) is not None and count < least:
        return f"has {count} of at least {least} {spoken}"
    if (most := rule.get(f"max{what}")) is not None and count > most:
        return f"has {count} of at most {most} {spoken}"
    return None


def _inner_misfit(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    if isinstance(value, dict):
        for name in rule.get("required", []):
            if name not in value:
                return f"missing field {name}"
        known, other = rule.get("properties", {}), rule.get("additionalProperties")
        for name, item in value.items():
            if misfit := _misfit(item, known.get(name, other), root):
                return f"{name}: {misfit}"
    if isinstance(value, list | tuple):
        first, rest = rule.get("prefixItems", []), rule.get("items")
        for place, item in enumerate(value):
            if misfit := _misfit(item, first[place] if place < len(first) else rest, root):
                return f"[{place}]: {misfit}"
    return None


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _JSON_TYPES.get(name, (object,)))


def _json_name(value: Any) -> str:
    return next((name for name in ("null", *_JSON_TYPES) if _is(value, name)), type(value).__name__)
