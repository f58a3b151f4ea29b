"""The registered schema of a workflow, for doors that do not have its code: names and JSON types are checked.

Not all of JSON schema: what `Arguments.schema` writes and a mistaken caller gets wrong. The worker checks the rest
against the real types before the handler runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    properties = schema.get("properties", {})
    other = schema.get("additionalProperties")
    named = [*zip(positional, args, strict=False), *kwargs.items()]
    found = [
        problem
        for name, value in named
        if (problem := _misfit(value, properties.get(name, other if isinstance(other, dict) else {}), schema))
        and (problem := f"{name}: {problem}")
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
        misfits = [_misfit(value, choice, root) for choice in rule["anyOf"]]
        return None if None in misfits else " or ".join(dict.fromkeys(m for m in misfits if m))
    if "enum" in rule and value not in rule["enum"]:
        return f"{value!r} is not one of {', '.join(map(repr, rule['enum']))}"
    if wanted := rule.get("type"):
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        if not any(_is(value, name) for name in names):
            return f"expected {' or '.join(names)}, got {_json_name(value)}"
    return _inner_misfit(value, rule, root)


def _inner_misfit(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    if isinstance(value, dict):
        for name in rule.get("required", []):
            if name not in value:
                return f"missing field {name}"
        for name, inner in rule.get("properties", {}).items():
            if name in value and (misfit := _misfit(value[name], inner, root)):
                return f"{name}: {misfit}"
    if isinstance(value, list | tuple) and isinstance(rule.get("items"), dict):
        for place, item in enumerate(value):
            if misfit := _misfit(item, rule["items"], root):
                return f"[{place}]: {misfit}"
    return None


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _JSON_TYPES.get(name, (object,)))


def _json_name(value: Any) -> str:
    return next((name for name in ("null", *_JSON_TYPES) if _is(value, name)), type(value).__name__)
