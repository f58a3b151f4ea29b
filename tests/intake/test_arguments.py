"""How arguments travel: refused in the caller, or given back to the handler as they were."""

from __future__ import annotations

import enum
import functools
import json
import math
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unstuck
from unstuck.executor.context import AsyncContext, Context
from unstuck.intake.arguments import Arguments, Unresolved, context_of, encode_result, typed_result
from unstuck.model.errors import InvalidArguments, InvalidInput, InvalidResult, NotStorable

if TYPE_CHECKING:
    from somewhere_else import Elsewhere  # type: ignore[import-not-found]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Order:
    lines: list[Line]
    placed_at: datetime
    parent: Order | None = None
    notes: dict[int, str] = field(default_factory=dict)


@dataclass
class Meeting:
    """Made of types that say all about their values, but for its note."""

    place: str
    length: float
    colours: list[Colour] = field(default_factory=list)
    after: Meeting | None = None
    note: Any = None


@dataclass
class Noted:
    """Its own code puts into it what its types do not say."""

    place: str
    note: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.note = {1: "a", "1": "b"}  # type: ignore[dict-item]


@dataclass
class Counted:
    """There is no float among its types, and its own code makes one."""

    count: int
    rest: int = math.nan  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.count = {1: math.nan, 2: 1e16}.get(self.count, self.count)  # type: ignore[assignment]


class Defaulted(msgspec.Struct):
    rest: int = math.nan  # type: ignore[assignment]


class Made(msgspec.Struct):
    """A default that is made anew for each, by code that nobody checks."""

    rest: int = msgspec.field(default_factory=lambda: math.nan)  # type: ignore[assignment]
    some: list[str] = msgspec.field(default_factory=lambda: [{1: "a", "1": "b"}])  # type: ignore[list-item]


@dataclass
class Loose:
    anything: Any


@dataclass
class Chain:
    next: Chain | None


class Text(str):
    """Text of a class of its own."""


class Address(TypedDict):
    street: str
    number: int


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Customer(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


def kind_of(value: Any) -> str:
    return type(value).__name__


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


def travelled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    arguments = Arguments("f", function)
    return arguments.unpack(arguments.pack(args, kwargs))


def taking(annotation: Any) -> Callable[..., Any]:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    return f


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 2**80),
        (float, 0.1),
        (str, "naïve ☃ 𝄞"),
        (bool, False),
        (None, None),
        (Optional[int], None),  # noqa: UP045
        (int | str, "a"),
        (bytes, b"\x00\xff"),
        (datetime, datetime(2026, 11, 15, 20, 31, 7, 123456, tzinfo=UTC)),
        (datetime, datetime(2026, 11, 15)),
        (date, date(2026, 2, 28)),
        (timedelta, timedelta(days=1, microseconds=5)),
        (UUID, UUID(int=7)),
        (Decimal, Decimal("0.10")),
        (Colour, Colour.BLUE),
        (Literal["a", 1], 1),
        (list[int], [1, 2]),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (dict[int, str], {1: "a"}),
        (Path, Path("a/b")),
        (list[Path], [Path("a"), Path("b")]),
        (Line, Line("nut", 3)),
        (Order, Order([Line("nut")], datetime(2026, 1, 1, tzinfo=UTC), Order([], datetime(2025, 1, 1)), {3: "c"})),
        (Address, {"street": "Elm", "number": 5}),
        (Point, Point(1.5)),
        (list[Point | None], [Point(1.0, 2.0), None]),
        (Customer, Customer(name="Ada", age=36)),
        (list[Customer], [Customer(name="Ada", age=36)]),
        (Any, {"a": [1, None, "b"]}),
        (object, [1]),
    ],
)
def test_a_value_of_the_annotated_type_arrives_as_it_was(annotation: Any, value: Any) -> None:
    args, _ = travelled(taking(annotation), value)

    assert args == [value]
    assert type(args[0]) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "5"),
        (int, True),
        (int, 1.5),
        (str, b"bytes are no text"),
        (str, 5),
        (str, UUID(int=1)),
        (str, datetime(2026, 1, 1)),
        (datetime, "2026-01-01T00:00:00Z"),
        (bool, 1),
        (int, None),
        (Literal["a"], "b"),
        (Colour, "green"),
        (list[int], [1, "2"]),
        (Line, {"count": 2}),
        (Address, {"street": "Elm"}),
        (Point, Line("nut")),
        (Customer, {"name": "Ada", "age": -1}),
        (Customer, 5),
        (Path, 5),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_name_of_its_parameter(annotation: Any, value: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"^f cannot be called like this: x: "):
        Arguments("f", taking(annotation)).pack([value], {})


def test_arguments_that_came_as_json_may_be_given_as_text_and_objects() -> None:
    def f(at: datetime, order: Line, who: Customer) -> None: ...

    arguments = Arguments("f", f)
    payload = arguments.pack_json(["2026-01-01T00:00:00Z", {"item": "nut"}, {"name": "Ada", "age": 1}], {})

    assert arguments.unpack(payload)[0] == [
        datetime(2026, 1, 1, tzinfo=UTC),
        Line("nut"),
        Customer(name="Ada", age=1),
    ]
    with pytest.raises(InvalidArguments, match="at: "):
        arguments.pack_json(["soon", {"item": "nut"}, {"name": "Ada", "age": 1}], {})


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
        ((1,), {"z": 2}, "unexpected keyword argument 'z'"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused(args: Any, kwargs: Any, problem: str) -> None:
    def f(x: int, y: int = 2) -> None: ...

    with pytest.raises(InvalidArguments) as refused:
        Arguments("f", f).pack(args, kwargs)
    assert problem in str(refused.value)


def test_every_kind_of_parameter_arrives_where_it_belongs() -> None:
    def f(a: int, /, b: int, *rest: date, c: Line, **more: Path) -> None: ...

    args, kwargs = travelled(f, 1, 2, date(2026, 1, 1), c=Line("nut"), d=Path("d"))

    assert args == [1, 2, date(2026, 1, 1)]
    assert kwargs == {"c": Line("nut"), "d": Path("d")}


def test_the_same_call_is_the_same_payload_however_it_is_written() -> None:
    def f(x: int, y: int = 2) -> None: ...

    arguments = Arguments("f", f)

    assert arguments.pack([1], {"y": 3}) == arguments.pack([], {"y": 3, "x": 1}) == '{"args":[1,3],"kwargs":{}}'


def test_defaults_are_left_to_the_code_that_will_run() -> None:
    def f(x: int = 1) -> None: ...

    assert Arguments("f", f).pack([], {}) == '{"args":[],"kwargs":{}}'


def _cycle() -> list[Any]:
    around: list[Any] = []
    around.append(around)
    return around


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        "nul \x00",
        "lone \ud800",
        _cycle(),
        10**5000,
        "x" * (1 << 20),
        {1: 2},
        {1, 2},
        datetime(2026, 1, 1),
        object(),
        Line("nut"),
    ],
    ids=kind_of,
)
def test_what_no_database_gives_back_is_refused_at_the_door(value: Any) -> None:
    def f(x) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(NotStorable):
        Arguments("f", f).pack([value], {})


@pytest.mark.parametrize("value", [math.nan, "nul \x00", "lone \ud800", "x" * (1 << 20)], ids=kind_of)
def test_annotated_parameters_are_held_to_the_same_rules(value: Any) -> None:
    with pytest.raises(NotStorable):
        Arguments("f", taking(type(value))).pack([value], {})


def test_a_recursive_value_of_an_annotated_type_is_refused_and_not_followed_for_ever() -> None:
    def f(x: list[Any]) -> None: ...

    with pytest.raises((InvalidArguments, NotStorable)):
        Arguments("f", f).pack([_cycle()], {})


@given(JSON)
def test_plain_json_values_come_back_equal(value: Any) -> None:
    assert travelled(taking(Any), value)[0] == [value]


def with_context(ctx: Context, x: int) -> None: ...
def with_public_context(ctx: unstuck.Context, x: int) -> None: ...
async def with_async_context(ctx: AsyncContext, x: int) -> None: ...
def with_any(ctx: Any, x: int) -> None: ...
def with_object(ctx: object, x: int) -> None: ...
def with_nothing(ctx, x: int) -> None: ...  # type: ignore[no-untyped-def]
def with_optional(ctx: Context | None, x: int) -> None: ...
def with_star(*ctx: Context) -> None: ...
def with_named(*, ctx: Context) -> None: ...
def with_second(x: int, ctx: Context) -> None: ...
def without() -> None: ...


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (with_context, Context),
        (with_public_context, Context),
        (with_async_context, AsyncContext),
        (with_any, None),
        (with_object, None),
        (with_nothing, None),
        (with_optional, None),
        (with_star, None),
        (with_named, None),
        (with_second, None),
        (without, None),
    ],
)
def test_exactly_a_first_parameter_annotated_context_is_the_context(function: Any, takes: Any) -> None:
    assert context_of(function) is takes


@pytest.mark.parametrize("text", ["Context", "unstuck.Context", "AsyncContext"])
def test_a_context_that_only_the_type_checker_imports_is_known_by_its_name(text: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def f(ctx: {text!r}, x: 'int') -> None: ...", names)

    kind = context_of(names["f"])
    assert kind is not None
    assert kind.__name__ == text.removeprefix("unstuck.")
    if "." not in text:
        assert Arguments("f", names["f"]).pack([1], {}) == '{"args":[1],"kwargs":{}}'


def test_another_class_named_context_is_an_argument() -> None:
    names: dict[str, Any] = {}
    exec("class Context: ...\ndef f(ctx: 'Context') -> None: ...", names)

    assert context_of(names["f"]) is None


@pytest.mark.parametrize("function", [with_second, with_named])
def test_a_context_elsewhere_is_refused_with_the_remedy(function: Any) -> None:
    with pytest.raises(InvalidInput, match="Context goes first"):
        Arguments("f", function)


@pytest.mark.parametrize("annotation", [type("Lock", (), {}), Callable[[], int], str | datetime])
def test_a_type_without_a_json_form_is_refused_before_anything_is_enqueued(annotation: Any) -> None:
    with pytest.raises(InvalidInput, match="parameter x"):
        Arguments("f", taking(annotation))


def test_an_annotation_that_does_not_exist_at_run_time_is_told_apart() -> None:
    def f(x: Elsewhere) -> None: ...

    with pytest.raises(Unresolved, match="Elsewhere"):
        Arguments("f", f)


def test_results_keep_dataclasses_and_come_back_as_the_annotated_type() -> None:
    text = encode_result([Line("nut", 2)])

    assert text == '[{"item":"nut","count":2}]'
    assert typed_result(json.loads(text), list[Line]) == [Line("nut", 2)]
    assert typed_result(json.loads(text)) == [{"item": "nut", "count": 2}]
    assert typed_result("not an int", int) == "not an int"
    assert typed_result(None, int) is None


def test_keys_that_are_no_text_become_text_and_none_takes_the_place_of_another() -> None:
    assert encode_result({1: "a", "2": [{3: "b"}]}) == '{"1":"a","2":[{"3":"b"}]}'
    with pytest.raises(NotStorable, match="two of its keys are the same as text: '1'"):
        encode_result([{1: "a", "1": "b"}])


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, 3, "3"),
        (float, 3, "3"),
        (str, "a", '"a"'),
        (Colour, Colour.RED, None),
        (list[Line], [Line("nut", 2)], None),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (Customer | None, None, "null"),
        (None, None, "null"),
        (Any, "anything", None),
        (Sized, [1], "[1]"),
    ],
)
def test_a_result_of_its_declared_type_is_stored(annotation: Any, value: Any, text: str | None) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation
    arguments = Arguments("f", function)
    assert arguments.pack_result(value) == (text or encode_result(value))
    assert typed_result(json.loads(arguments.pack_result(value)), arguments.returns) == value


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(int, "3"), (int, True), (str, None), (None, 3), (list[Line], [{"item": 5}]), (dict[str, int], {"a": "b"})],
)
def test_a_result_of_another_type_is_refused_with_what_was_expected(annotation: Any, value: Any) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation
    with pytest.raises(InvalidResult, match="the result of f is not what its signature says: Expected"):
        Arguments("f", function).pack_result(value)


@pytest.mark.parametrize("value", [object(), math.nan, "\x00", _cycle(), 10**5000, iter([1])], ids=kind_of)
def test_a_result_that_cannot_be_stored_says_so(value: Any) -> None:
    with pytest.raises(NotStorable, match=r"^the result cannot be stored"):
        encode_result(value)


def _two(name: str, number: int) -> None: ...
def _rich(line: Line, *, urgent: bool = False, note: str = "", count: int = 3) -> None: ...
def _gaps(a: int, b: str = "", c: Any = None, *, d: float, e: int | None = None) -> None: ...
def _first_only(a: int, /, b: int = 0, **others: int) -> None: ...
def _several(a: Any, *more: int, z: bool = True) -> None: ...
def _made(
    a: Meeting, b: Point | None = None, *, c: dict[int, Any] | None = None, d: Address | None = None
) -> None: ...
def _loose(a, b=None, *, c: Any = None, d: dict[str, float] | None = None) -> None: ...  # type: ignore[no-untyped-def]


_VALUES = st.one_of(
    st.integers(-3, 3),
    st.text(max_size=2),
    st.booleans(),
    st.none(),
    st.floats(),
    st.builds(Line, st.text(max_size=1), st.integers(0, 3)),
    st.sampled_from(
        [1 << 63, -(1 << 63) - 1, 1 << 200, 10**4200, True, Colour.RED, 1e-5, 1e16, "1e5", "\x00", "\ud800"]
    ),
    st.builds(Point, st.floats(), st.sampled_from([0.00002, 3e-7, 0.5])),
    st.builds(Meeting, st.text(max_size=2), st.floats(), st.lists(st.builds(Colour, st.just("red")), max_size=2)),
    st.dictionaries(
        st.sampled_from([1, "1", "street", "number", 2.5]), st.integers() | st.text() | st.floats(), max_size=2
    ),
    st.lists(st.none() | st.text() | st.builds(Text, st.just("x")) | st.datetimes() | st.binary(), max_size=2),
    st.integers(90, 110).map(lambda depth: json.loads("[" * depth + "]" * depth)),
    st.just("é" * 3000),
)


@given(
    st.sampled_from([_two, _rich, _gaps, _first_only, _several, _made, _loose]),
    st.lists(_VALUES, max_size=4),
    st.dictionaries(st.sampled_from("abcdez") | st.sampled_from(["name", "number", "line", "note"]), _VALUES),
)
def test_what_is_prepared_packs_every_call_as_its_signature_would(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> None:
    """The same payload, which an idempotency key stands for; or the same words of refusal."""
    assert _said(Arguments("w", function), args, kwargs) == _said(_by_signature(function), args, kwargs)


def _by_signature(function: Callable[..., Any]) -> Arguments:
    arguments = Arguments("w", function)
    arguments._binding._is_plain = False
    return arguments


def _said(arguments: Arguments, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """At both doors."""
    said = []
    for door in (arguments.pack, arguments.pack_json):
        try:
            said.append(door(args, kwargs))
        except (InvalidArguments, NotStorable) as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.nan),
        (float, 1e16),
        (float, 0.00002),
        (Point, Point(math.inf, 1.0)),
        (Meeting, Meeting("here", -2e-7)),
        (Meeting, Meeting("here", 1.5, [Colour.RED], Meeting("there", 2.0))),
        (Loose, Loose({1: "a", "1": "b"})),
        (Noted, {"place": "x"}),
        (Counted, {"count": 1, "rest": 0}),
        (Counted, {"count": 2, "rest": 0}),
        (Counted, {"count": 3}),
        (list[Defaulted], [{}]),
        (Made, {"some": []}),
        (Made, {"rest": 1}),
        (dict[int, str], {1: "a"}),
        (dict[str | int, str], {1: "a", "1": "b"}),
        (Any, {1: "a"}),
        (Any, Colour.RED),
        (str, "a\x00b"),
        (str, "\\u0000"),
        (str, "é\ud800"),
        (str, "é"),
        (int, 1 << 200),
        pytest.param(int, 10**4200, id="a long number"),
        pytest.param(Chain, functools.reduce(lambda inner, _: Chain(inner), range(45), Chain(None)), id="deep"),
        pytest.param(Chain, functools.reduce(lambda inner, _: Chain(inner), range(150), Chain(None)), id="too deep"),
    ],
)
def test_a_value_that_is_written_in_one_go_is_written_as_any_other(annotation: Any, value: Any) -> None:
    def function(a: Any) -> None: ...

    function.__annotations__["a"] = annotation
    assert _said(Arguments("w", function), [value], {}) == _said(_by_signature(function), [value], {})


_STORED = st.one_of(
    st.integers(-3, 3),
    st.text(max_size=2),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.fixed_dictionaries({"item": st.text(max_size=1), "count": st.integers(0, 3) | st.text(max_size=1)}),
    st.sampled_from([1 << 63, -(1 << 63) - 1, 10**30, "red"]),
)


@given(
    st.sampled_from([_two, _rich, _gaps, _first_only, _several]),
    st.lists(_STORED, max_size=4),
    st.dictionaries(st.sampled_from("abcdez") | st.sampled_from(["name", "number", "line", "note"]), _STORED),
)
def test_what_is_prepared_unpacks_every_payload_as_its_signature_would(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> None:
    """Also one that another version of the code has stored: the same arguments, or the same words of refusal."""
    payload = json.dumps({"args": args, "kwargs": kwargs})

    def got(arguments: Arguments) -> object:
        try:
            made, named = arguments.unpack(payload)
        except InvalidArguments as error:
            return str(error)
        return [(type(value), value) for value in made], sorted((n, str(type(v)), str(v)) for n, v in named.items())

    by_signature = Arguments("w", function)
    by_signature._unpacking._is_plain = False

    assert got(Arguments("w", function)) == got(by_signature)


def test_a_number_beyond_all_floats_is_read_as_before() -> None:
    def take(number: float) -> None: ...

    assert Arguments("w", take).unpack('{"args":[1e400],"kwargs":{}}') == ([float("inf")], {})
