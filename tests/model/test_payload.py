"""What cannot be stored is refused at the door, alike for both databases."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.model import payload
from unstuck.model.errors import InvalidInput, NotStorable
from unstuck.model.payload import MAX_DIGITS, check_name, clean_text, decode, encode

CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("a\x00b", "NUL"),
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (float("nan"), "nan is not a number"),
        ([float("-inf")], "-inf is not a number"),
        (CYCLE, "contains itself"),
        (DEEP, "nested deeper"),
        ({1: "a"}, "the key 1 is not text"),
        (10**MAX_DIGITS, "digits"),
        (object(), "a value of type object has no place in JSON"),
        ({1, 2}, "a value of type set has no place in JSON"),
        (b"x", "a value of type bytes has no place in JSON"),
        ("x" * 2_000_000, "the limit is 1,048,576"),
        ("é" * 600_000, "the limit is 1,048,576"),
    ],
)
def test_what_cannot_be_stored_says_why(value: Any, says: str) -> None:
    with pytest.raises(NotStorable, match="the arguments cannot be stored") as refused:
        encode(value, "the arguments")

    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ("NaN", "NaN is not a number"),
        ('"\\u0000"', "NUL"),
        ('"\\ud800"', "lone surrogate"),
        ("[" * 100_000, "not JSON we can read"),
        ("1" * 5000, "not JSON we can read"),
        ("{", "not JSON we can read"),
    ],
)
def test_json_from_outside_is_held_to_the_same_rules(text: str, says: str) -> None:
    with pytest.raises(NotStorable) as refused:
        decode(text, "the body")

    assert says in str(refused.value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(json_values)
def test_everything_else_comes_back_unchanged(value: Any) -> None:
    text = encode(value, "the value")

    assert json.loads(text) == value
    assert decode(text, "the value") == value


@given(st.text(st.characters(categories=["Cs", "L", "Cc"]), max_size=300), st.integers(20, 100))
def test_a_handlers_text_is_never_refused_only_made_storable_and_bounded(text: str, limit: int) -> None:
    clean = clean_text(text, limit)

    assert "\x00" not in clean
    assert len(clean) <= limit + 20
    clean.encode()


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\x00", "x" * 201, "tab\there", 7])
def test_names_that_people_could_not_read_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput):
        check_name(name, "queue")


_ODD = st.sampled_from(
    ["\x00", "\ud800", "\\u0000", "ü", 10**4200, 1.5, math.nan, (), (1, ("x",)), True, None, {1: 2}]
)


@given(
    st.recursive(_ODD | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_what_is_plain_is_written_and_refused_as_what_is_looked_at_closely(value: Any) -> None:
    def said() -> str:
        try:
            return encode(value, "it")
        except NotStorable as error:
            return str(error)

    quickly = said()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload, "_encode_plain", lambda _: None)
        closely = said()

    assert quickly == closely
