"""What limits leave to a claim, and how a rate is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.model.errors import InvalidInput
from unstuck.model.limits import LimitRoom, cut, parse_rate, spell_rate


def test_a_route_without_a_limit_is_not_cut() -> None:
    assert cut({1: 5, 2: 7}, [LimitRoom(2, 10, "w", bodies=3)]) == {1: 5, 2: 3}


def test_routes_of_one_bucket_share_what_is_left_the_first_named_first() -> None:
    rooms = [LimitRoom(route, 10, "w", bodies=4) for route in (1, 2, 3)]
    assert cut({2: 3, 1: 3, 3: 3}, rooms) == {2: 3, 1: 1}


def test_the_tightest_of_several_limits_counts_and_a_rate_counts_too() -> None:
    rooms = [LimitRoom(1, 10, "w", bodies=9), LimitRoom(1, 11, "q", bodies=5, starts=2)]
    assert cut({1: 9}, rooms) == {1: 2}


def test_a_limit_that_was_lowered_below_what_runs_leaves_nothing() -> None:
    assert cut({1: 9}, [LimitRoom(1, 10, "w", bodies=-3)]) == {}


@given(
    st.dictionaries(st.integers(1, 6), st.integers(1, 9)),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(-2, 9)), max_size=12),
)
def test_no_limit_is_ever_passed(wanted: dict[int, int], found: list[tuple[int, int, int]]) -> None:
    left = {limit: bodies for _, limit, bodies in found}
    rooms = {(route, limit): LimitRoom(route, limit, "b", bodies=left[limit]) for route, limit, _ in found}.values()
    granted = cut(wanted, rooms)
    assert all(granted[route] <= wanted[route] for route in granted)
    for limit, most in left.items():
        taken = sum(granted.get(room.route, 0) for room in rooms if room.limit == limit)
        assert taken <= max(0, most)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/m", (100, 60.0)),
        ("5/s", (5, 1.0)),
        ("1000/12h", (1000, 43200.0)),
        ("3 per day", (3, 86400.0)),
        ("10 / 30 seconds", (10, 30.0)),
        ("1/min", (1, 60.0)),
    ],
)
def test_a_rate_is_so_many_per_time(text: str, rate: tuple[int, float]) -> None:
    assert parse_rate(text) == rate
    assert parse_rate(spell_rate(*rate)) == rate


@pytest.mark.parametrize("text", ["100/m", "5/s", "1000/12h", "3/d", "7/90s", "1/3650d"])
def test_a_rate_is_spelled_as_people_write_it(text: str) -> None:
    assert spell_rate(*parse_rate(text)) == text


@pytest.mark.parametrize("text", ["", "100", "0/m", "-1/s", "5/0s", "5/fortnight", "1.5/s", "x/m", "5/m/m", None, 5])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="100/m"):
        parse_rate(text)


@pytest.mark.parametrize(
    "text",
    [
        "1/999999999d",
        "1/106751992d",
        "1/3651d",
        "1000000001/s",
        "999999999999999999/s",
        "٣/s",
        "3/٣s",
        "1/00s",
        "nan/s",
    ],
)
def test_a_rate_that_no_clock_or_counter_can_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        parse_rate(text)


def test_the_longest_and_largest_rates_are_taken_and_can_be_written_back_in_seconds() -> None:
    assert parse_rate("1000000000/3650d") == parse_rate("1000000000/315360000s") == (10**9, 315_360_000.0)


def test_a_refused_rate_is_repeated_in_part() -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_rate("x" * 100_000)
    assert len(str(refusal.value)) < 500
