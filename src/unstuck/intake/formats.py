"""Texts that stand for something else (an instant, a UUID, bytes …): how a schema says so, and whether a text fits.

A text is read by the very rules that the worker will apply, so that the door and the handler never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID  # noqa: TID251  a type to recognise; nothing is rolled here

import msgspec
from msgspec import inspect as kinds

#: JSON schema's date-time and time demand a zone; those of Python may lack one. So they get a word of our own.
MARK = "x-format"
_READ_AS: dict[str, tuple[Any, str]] = {
    "datetime": (datetime, "a date and time, like 2026-01-31T12:00:00Z"),
    "clock": (time, "a time, like 12:30:00"),
    "date-time": (Annotated[datetime, msgspec.Meta(tz=True)], "a date and time with its zone"),
    "time": (Annotated[time, msgspec.Meta(tz=True)], "a time with its zone"),
    "partial-time": (Annotated[time, msgspec.Meta(tz=False)], "a time without a zone"),
    "date": (date, "a date, like 2026-01-31"),
    "duration": (timedelta, "a duration, like PT1H30M"),
    "uuid": (UUID, "a UUID"),
    "decimal": (Decimal, "a decimal number"),
    "base64": (bytes, "base64"),
}


def misfit(text: str, rule: Mapping[str, Any]) -> str | None:
    """Why a text does not stand for what the rule says, or None."""
    name = rule.get(MARK) or rule.get("format") or rule.get("contentEncoding")
    if name not in _READ_AS:
        return None
    kind, spoken = _READ_AS[name]
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return f"{text[:80]!r} is not {spoken}"
    return None


Described = tuple[list[dict[str, Any]], dict[str, Any]]


def describe(types: Sequence[Any], hook: Callable[[Any], dict[str, Any]]) -> Described:
    """The JSON schema of each type, and the definitions they share; instants are marked wherever they stand."""
    infos = list(kinds.multi_type_info(types))
    classes = _classes(infos)
    # Asked for together with the types, each class answers under which name it was defined.
    found, definitions = msgspec.json.schema_components(
        [*types, *classes], schema_hook=hook, ref_template="#/$defs/{name}"
    )
    schemas = list(found)
    for info, schema in zip(infos, schemas, strict=False):
        _mark(info, schema)
    for fields, reference in zip(classes.values(), schemas[len(infos) :], strict=True):
        _mark_fields(fields, definitions[reference["$ref"].rpartition("/")[2]])
    return schemas[: len(infos)], definitions


def _classes(infos: Iterable[kinds.Type]) -> dict[Any, Sequence[kinds.Field]]:
    """Every class with fields that occurs in these types, however deep; recursive ones end at themselves."""
    found: dict[Any, Sequence[kinds.Field]] = {}
    waiting = list(infos)
    while waiting:
        info = waiting.pop()
        fields = getattr(info, "fields", None)
        if fields is not None and info.cls not in found:  # type: ignore[attr-defined]
            found[info.cls] = fields  # type: ignore[attr-defined]
            waiting += [field.type for field in fields]
        waiting += _inner(info)
    return found


def _inner(info: kinds.Type) -> list[kinds.Type]:
    single = [getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    several = [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    return [part for part in (*single, *several) if isinstance(part, kinds.Type)]


def _mark_fields(fields: Sequence[kinds.Field], schema: dict[str, Any]) -> None:
    places = schema.get("prefixItems", [])  # of classes that travel as arrays; a tag may stand before the fields
    for field, place in zip(fields, places[len(places) - len(fields) :], strict=False):
        _mark(field.type, place)
    for field in fields:
        _mark(field.type, schema.get("properties", {}).get(field.encode_name, {}))


def _mark(info: kinds.Type, schema: dict[str, Any]) -> None:
    match info:
        case kinds.Metadata():
            _mark(info.type, schema)
        case kinds.DateTimeType() if "format" not in schema:
            schema[MARK] = "datetime"
        case kinds.TimeType() if "format" not in schema:
            schema[MARK] = "clock"
        case kinds.CollectionType() if "items" in schema:
            _mark(info.item_type, schema["items"])
        case kinds.TupleType():
            for part, place in zip(info.item_types, schema.get("prefixItems", []), strict=False):
                _mark(part, place)
        case kinds.DictType() if "additionalProperties" in schema:
            _mark(info.value_type, schema["additionalProperties"])
        case kinds.UnionType():
            _mark_choices(info, schema.get("anyOf", []))


def _mark_choices(union: kinds.UnionType, choices: list[dict[str, Any]]) -> None:
    """Tagged classes and null come last among the choices, and they need no mark of their own."""
    plain = [part for part in union.types if not isinstance(_bare(part), kinds.StructType | kinds.NoneType)]
    for part, choice in zip(plain, choices, strict=False):
        _mark(part, choice)


def _bare(info: kinds.Type) -> kinds.Type:
    return _bare(info.type) if isinstance(info, kinds.Metadata) else info
