"""Doors without the code: the registered row refuses what a mistaken caller gets wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

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
