"""Doors without the code: the registered row refuses what a mistaken caller gets wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from unstuck.intake import schema
from unstuck.intake.arguments import Arguments
from unstuck.model.errors import InvalidArguments, NotStorable


@dataclass
class Line:
    item: str
    count: int = 1


class Customer(pydantic.BaseModel):
    name: str


def order(
    who: str,
    lines: list[Line],
    /,
    at: datetime | None = None,
    *more: int,
    kind: Literal["a", "b"] = "a",
    share: float = 1.0,
    anything: Any = None,
    customer: Customer | None = None,
) -> None: ...


SCHEMA = json.loads(json.dumps(Arguments("order", order).schema()))


def test_a_right_call_becomes_the_payload_that_the_handler_can_unpack() -> None:
    payload = schema.pack("order", SCHEMA, ["Ada", [{"item": "nut"}]], {"share": 1, "kind": "b", "anything": [1]})

    args, kwargs = Arguments("order", order).unpack(payload)
    assert args == ["Ada", [Line("nut")]]
    assert kwargs == {"share": 1.0, "kind": "b", "anything": [1]}


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        (["Ada"], {}, "missing a required argument: lines"),
        (["Ada", []], {"who": "Bob"}, "who"),
        (["Ada", []], {"colour": 1}, "there is no parameter colour"),
        ([5, []], {}, "who: expected string, got integer"),
        (["Ada", {}], {}, "lines: expected array, got object"),
        (["Ada", [{"count": 2}]], {}, "lines: [0]: missing field item"),
        (["Ada", [{"item": "nut", "count": "2"}]], {}, "lines: [0]: count: expected integer, got string"),
        (["Ada", [], 5], {}, "at: "),
        (["Ada", [], None, "x"], {}, "expected integer, got string"),
        (["Ada", []], {"kind": "c"}, "kind: 'c' is not one of"),
        (["Ada", []], {"share": True}, "share: expected number, got boolean"),
        (["Ada", []], {"customer": 5}, "customer: "),
        (["Ada", [], None], {"at": None}, "at was given twice"),
    ],
)
def test_a_wrong_call_is_refused_with_the_place_and_the_reason(args: Any, kwargs: Any, problem: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        schema.pack("order", SCHEMA, args, kwargs)
    assert problem in str(refused.value)


def test_all_wrong_names_are_told_at_once() -> None:
    with pytest.raises(InvalidArguments, match=r"no parameter a; there is no parameter b; missing"):
        schema.pack("order", SCHEMA, ["Ada"], {"a": 1, "b": 2})


def test_too_many_positional_arguments_are_counted() -> None:
    def f(x: int) -> None: ...

    with pytest.raises(InvalidArguments, match="at most 1, got 2"):
        schema.pack("f", Arguments("f", f).schema(), [1, 2], {})


def test_the_same_call_is_the_same_payload_as_from_code() -> None:
    def f(x: int, y: int = 2) -> None: ...

    arguments = Arguments("f", f)

    assert schema.pack("f", arguments.schema(), [], {"y": 3, "x": 1}) == arguments.pack([1, 3], {})


def test_a_workflow_without_a_schema_takes_anything_that_can_be_stored() -> None:
    assert schema.pack("f", {}, [1], {"a": None}) == '{"args":[1],"kwargs":{"a":null}}'
    with pytest.raises(NotStorable):
        schema.pack("f", {}, [float("nan")], {})


def test_the_schema_is_json_and_shows_defaults() -> None:
    assert SCHEMA["properties"]["share"] == {"type": "number", "default": 1.0}
    assert SCHEMA["required"] == ["who", "lines"]
    assert SCHEMA["$defs"]["Line"]["required"] == ["item"]


@dataclass
class Visit:
    at: datetime
    lasts: timedelta = timedelta(0)


class Event(msgspec.Struct, tag=True):
    at: datetime


class Alarm(msgspec.Struct, tag=True):
    daily: time


def book(
    at: datetime,
    day: date | None = None,
    *,
    hour: time | None = None,
    ident: UUID | None = None,
    price: Decimal | None = None,
    data: bytes = b"",
    utc: Annotated[datetime, msgspec.Meta(tz=True)] | None = None,
    visits: list[Visit] = [],  # noqa: B006  how people write it
    by_name: dict[str, date] | None = None,
    span: tuple[datetime, datetime] | None = None,
    reminder: Event | Alarm | None = None,
    seats: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1,
    code: Annotated[str, msgspec.Meta(min_length=2, max_length=4, pattern="^[A-Z]+$")] = "AB",
) -> None: ...


BOOK = json.loads(json.dumps(Arguments("book", book).schema()))
NOON = "2026-11-15T12:00:00Z"


@pytest.mark.parametrize(
    ("kwargs", "problem"),
    [
        ({"at": "tomorrow"}, "at: 'tomorrow' is not a date and time"),
        ({"at": NOON, "day": "2026-02-30"}, "day: '2026-02-30' is not a date"),
        ({"at": NOON, "hour": "25:00"}, "hour: '25:00' is not a time"),
        ({"at": NOON, "ident": "42"}, "ident: '42' is not a UUID"),
        ({"at": NOON, "price": "cheap"}, "price: 'cheap' is not a decimal number"),
        ({"at": NOON, "data": "ä"}, "data: 'ä' is not base64"),
        ({"at": NOON, "utc": "2026-11-15T12:00:00"}, "utc: '2026-11-15T12:00:00' is not a date and time with its"),
        ({"at": NOON, "visits": [{"at": "soon"}]}, "visits: [0]: at: 'soon' is not a date and time"),
        ({"at": NOON, "visits": [{"at": NOON, "lasts": "1h"}]}, "visits: [0]: lasts: '1h' is not a duration"),
        ({"at": NOON, "by_name": {"Ada": "x"}}, "by_name: Ada: 'x' is not a date"),
        ({"at": NOON, "span": [NOON, "later"]}, "span: [1]: 'later' is not a date and time"),
        ({"at": NOON, "span": [NOON]}, "span: has 1 of at least 2 elements"),
        ({"at": NOON, "reminder": {"type": "Event", "at": "x"}}, "reminder: at: 'x' is not a date and time"),
        ({"at": NOON, "reminder": {"type": "Alarm", "daily": "x"}}, "daily: 'x' is not a time"),
        ({"at": NOON, "seats": 0}, "seats: 0 is below 1"),
        ({"at": NOON, "seats": 10}, "seats: 10 is above 9"),
        ({"at": NOON, "code": "A"}, "code: has 1 of at least 2 characters"),
        ({"at": NOON, "code": "ABCDE"}, "code: has 5 of at most 4 characters"),
        ({"at": NOON, "code": "ab"}, "code: 'ab' does not match ^[A-Z]+$"),
    ],
)
def test_a_text_that_stands_for_something_else_is_read_at_the_door(kwargs: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        schema.pack("book", BOOK, [], kwargs)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"at": NOON},
        {"at": "2026-11-15T12:00:00"},
        {"at": NOON, "day": "2026-11-15", "hour": "12:30:00", "ident": "6f1c1c52-7f2b-4d4e-9c1b-000000000001"},
        {"at": NOON, "price": "10.50", "data": "aGVsbG8=", "utc": "2026-11-15T12:00:00+01:00"},
        {"at": NOON, "price": 10.5},
        {"at": NOON, "visits": [{"at": NOON, "lasts": "PT1H"}], "by_name": {"Ada": "2026-11-15"}},
        {"at": NOON, "span": [NOON, NOON], "seats": 9, "code": "XYZ"},
        {"at": NOON, "reminder": {"type": "Event", "at": NOON}},
        {"at": NOON, "reminder": {"type": "Alarm", "daily": "07:00:00"}},
    ],
)
def test_what_the_door_lets_in_the_handler_can_read(kwargs: dict[str, Any]) -> None:
    Arguments("book", book).unpack(schema.pack("book", BOOK, [], kwargs))


def test_an_object_is_called_an_object() -> None:
    with pytest.raises(InvalidArguments, match="expected string, got object"):
        schema.pack("book", BOOK, [{}], {})
