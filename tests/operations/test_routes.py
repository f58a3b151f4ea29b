"""Routes follow from the table of operations: one for each, and what a call sends is what the operation is asked."""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Iterable as AnyIterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unstuck.model.errors import WrongArguments
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.times import seconds
from unstuck.operations.kinds import UNSAID, Duration, Unsaid
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.routes import PREFIX, HttpRoute, arguments, request, route_of, routes

ROUTES = routes()
EACH = pytest.mark.parametrize("route", ROUTES.values(), ids=list(ROUTES))


def test_every_operation_that_is_no_stream_has_one_route_and_no_two_collide() -> None:
    assert ROUTES.keys() == {name for name, each in OPERATIONS.items() if each.entry.effect != "stream"}
    shapes = [(route.method, shape(route)) for route in ROUTES.values()]
    assert sorted(set(shapes)) == sorted(shapes)


def test_a_word_of_a_path_hides_no_name() -> None:
    """GET /bulks/count is no bulk that somebody called "count": where a path has a word in the place of another one's
    name, that name is a number, or a job's id and the word has a letter that no id has."""
    for word in ROUTES.values():
        for name in ROUTES.values():
            parts = [*zip(word.path.split("/"), name.path.split("/"), strict=False)]
            if word.method != name.method or len(word.path.split("/")) != len(name.path.split("/")):
                continue
            hidden = [(a, b) for a, b in parts if b.startswith("{") and not a.startswith("{")]
            if hidden and all(a == b or b.startswith("{") or a.startswith("{") for a, b in parts):
                assert all(_is_no_name(name, a, b) for a, b in hidden), f"{word.path} hides {name.path}"


def _is_no_name(route: HttpRoute, word: str, place: str) -> bool:
    return route.names[place[1:-1]] is int or (place == "{job}" and not set(word) <= set("0123456789abcdef-"))


def shape(route: HttpRoute) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in route.path.split("/"))


@EACH
def test_a_route_says_where_each_argument_stands_and_what_it_answers(route: HttpRoute) -> None:
    taken = set(inspect.signature(route.operation.function).parameters) - {"caller"}
    assert not taken & {"tenant", "by"}, "those are the faces' own"
    in_body = set(route.body.__struct_fields__) if route.body else set()
    placed = {*route.names, *route.query.__struct_fields__, *in_body}
    own = {"tenant"} if route.operation.entry.whose != "platform" else set()
    own |= {"by"} if route.operation.entry.effect == "change" else set()
    assert placed == taken | own
    assert (route.method == "GET") == (route.operation.entry.effect == "read")
    msgspec.json.Decoder(route.answer)
    # In a query nothing tells None from not said.
    for field in msgspec.structs.fields(route.query):
        assert field.default is None or type(None) not in get_args(field.type)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jobs.enqueue", "POST /jobs"),
        ("jobs.list", "GET /jobs"),
        ("jobs.get", "GET /jobs/{job}"),
        ("jobs.why", "GET /jobs/{job}/why"),
        ("jobs.run_now", "POST /jobs/{job}/run-now"),
        ("stats.get", "GET /stats"),
        ("stats.by_queue", "GET /stats/by-queue"),
        ("blacklist.add", "POST /blacklist"),
        ("blacklist.remove", "DELETE /blacklist/{workflow}"),
        ("quarantine.retry", "POST /quarantine/retry"),
        ("settings.set", "PUT /settings/{name}"),
        ("events.send", "POST /events"),
        ("bulks.count", "GET /bulks/count"),
    ],
)
def test_the_rules_in_examples(name: str, expected: str) -> None:
    assert f"{ROUTES[name].method} {ROUTES[name].path}" == expected


def test_a_request_as_it_is_sent() -> None:
    sent = request(
        ROUTES["jobs.list"],
        (),
        {"state": [JobState.DEAD, Shown.BLOCKED], "limit": 5, "argument": ("n", 1), "tenant": "t"},
    )
    assert (sent.method, sent.path, sent.body) == ("GET", "/api/v1/jobs", None)
    assert sent.query == (
        ("state", "DEAD"),
        ("state", "BLOCKED"),
        ("argument", '["n", 1]'),
        ("limit", "5"),
        ("tenant", "t"),
    )
    until = datetime(2026, 1, 31, 12, tzinfo=UTC)
    sent = request(ROUTES["targets.pause"], ("acme/site",), {"until": until, "reason": None, "by": "anna"})
    assert sent.path == "/api/v1/targets/acme%2Fsite/pause"
    assert sent.body == {"until": "2026-01-31T12:00:00Z", "by": "anna"}
    assert request(ROUTES["workflows.get"], ("..",), {}).path == "/api/v1/workflows/%2E%2E"
    sent = request(ROUTES["queues.limit"], ("io",), {"concurrency": None, "rate": UNSAID})
    assert sent.body == {"concurrency": None}
    assert request(ROUTES["jobs.resolve"], ("1234", None), {}).body == {"result": None}


def test_all_that_is_wrong_is_told_at_once_and_where() -> None:
    with pytest.raises(WrongArguments) as refused:
        arguments(ROUTES["jobs.enqueue"], {}, [("state", "x")], {"priority": "high", "a/b": 1, "tags": ["x", 5]})
    assert [(place, pointer) for place, pointer, _ in refused.value.problems] == [
        ("query", "/state"),
        ("body", "/priority"),
        ("body", "/a~1b"),
        ("body", "/tags/1"),
        ("body", "/workflow"),
    ]
    for query in (
        [("limit", "many")], [("limit", "1"), ("limit", "2")], [("before", "5")], [("before", "yesterday")],
        [("argument", "{")], [("argument", '["n"]')], [("newest_first", "perhaps")], [("limit", "")],
    ):  # fmt: skip
        with pytest.raises(WrongArguments) as refused:
            arguments(ROUTES["jobs.list"], {}, query)
        assert refused.value.problems[0][:2] == ("query", f"/{query[0][0]}")
    with pytest.raises(WrongArguments) as refused:
        arguments(ROUTES["bulks.get"], {"number": "first"}, [])
    assert refused.value.problems[0][:2] == ("path", "/number")
    bodies: list[Any] = [[], "text", 5]
    for body in bodies:
        with pytest.raises(WrongArguments, match="not an object"):
            arguments(ROUTES["jobs.cancel"], {"job": "1"}, [], body)


def test_two_tenants_in_one_request_are_refused() -> None:
    route = ROUTES["jobs.cancel"]
    assert arguments(route, {"job": "1"}, [("tenant", "a")], {"tenant": "a"}) == (
        ("1",),
        {"reason": None, "tenant": "a"},
    )
    assert arguments(route, {"job": "1"}, [], {"tenant": "a"})[1]["tenant"] == "a"
    with pytest.raises(WrongArguments, match="another tenant"):
        arguments(route, {"job": "1"}, [("tenant", "a")], {"tenant": "b"})


def test_an_empty_tenant_is_no_tenant() -> None:
    for query, body in (([("tenant", "")], {}), ([], {"tenant": ""}), ([], {"by": ""})):
        with pytest.raises(WrongArguments, match="length >= 1"):
            arguments(ROUTES["jobs.cancel"], {"job": "1"}, query, body)


# --- there and back -----------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.one_of(TEXT, st.sampled_from([".", "..", "a/b", "a%2Fb", "{job}", "a b", "?x=1", "*"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OFFSETS = st.integers(-1400, 1400).map(lambda minutes: timezone(timedelta(minutes=minutes)))
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: NAMES,
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    datetime: st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 28), timezones=OFFSETS),
    Any: JSON,
    Unsaid: st.just(UNSAID),
    type(None): st.none(),
    JobState: st.sampled_from(JobState),
    Shown: st.sampled_from(Shown),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    if hint in LEAVES:
        return LEAVES[hint]
    origin, inside = get_origin(hint), get_args(hint)
    if hint == Duration or hint == Duration | None:
        some = st.floats(0, 1e6) | st.sampled_from(["5m", "90s", "1h30m", 60])
        return some if hint == Duration else some | st.none()
    if origin in (Union, types.UnionType):
        lists = [each for each in inside if get_origin(each) is AnyIterable]
        if str in inside and int in inside:  # a cursor; a page gives text
            inside = tuple(each for each in inside if each is not int)
        return st.one_of([values(each) for each in lists or inside])
    if origin is Literal:
        return st.sampled_from(inside)
    if origin in (AnyIterable, Collection, Sequence):
        return st.lists(values(inside[0]), max_size=3)
    if origin is Mapping:
        return st.dictionaries(TEXT, values(inside[1]), max_size=3)
    assert origin is tuple, f"what is {hint}?"
    return st.tuples(*map(values, inside))


@st.composite
def calls(draw: st.DrawFn, route: HttpRoute) -> tuple[list[Any], dict[str, Any]]:
    hints = get_type_hints(route.operation.function)
    args, kwargs = [], {}
    for name, parameter in [*inspect.signature(route.operation.function).parameters.items()][1:]:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            args.append(draw(values(hints[name])))
        elif parameter.default is parameter.empty or draw(st.booleans()):
            kwargs[name] = draw(values(hints[name]))
    own = [("tenant", route.operation.entry.whose != "platform"), ("by", route.operation.entry.effect == "change")]
    return args, kwargs | {name: draw(TEXT.filter(bool)) for name, takes in own if takes and draw(st.booleans())}


@EACH
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_a_call_sends_is_what_the_operation_is_asked(route: HttpRoute, data: st.DataObject) -> None:
    args, kwargs = data.draw(calls(route))
    sent = request(route, args, kwargs)
    assert sent.method == route.method
    assert sent.path.startswith(PREFIX)
    parts = zip(route.path.split("/"), sent.path.removeprefix(PREFIX).split("/"), strict=True)
    path = {name[1:-1]: part for name, part in parts if name.startswith("{")}
    query = parse_qsl(urlencode(sent.query), keep_blank_values=True, strict_parsing=bool(sent.query))
    body = None if sent.body is None else msgspec.json.decode(msgspec.json.encode(sent.body))
    assert asked(route, *arguments(route, path, query, body)) == asked(route, args, kwargs)


def asked(route: HttpRoute, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: kwargs[name] for name in ("tenant", "by") if name in kwargs}
    bound = inspect.signature(route.operation.function).bind(
        None, *args, **{name: value for name, value in kwargs.items() if name not in own}
    )
    bound.apply_defaults()
    hints = get_type_hints(route.operation.function)
    said = {
        name: seconds(value)
        if hints.get(name) in (Duration, Duration | None) and value is not None
        else listed(value)
        for name, value in bound.arguments.items()
    }
    return said | own


def listed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [listed(each) for each in value]
    return {key: listed(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_a_route_is_made_once() -> None:
    assert route_of(OPERATIONS["jobs.get"]) is route_of(OPERATIONS["jobs.get"])
