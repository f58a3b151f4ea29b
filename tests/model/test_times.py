"""The closed list of refused settings, and the bounds that follow from the accepted ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstuck.model.times import Times


def test_the_defaults_are_accepted_and_print_the_promised_bounds() -> None:
    bounds = Times().bounds()

    assert Times().problems(timeout=600) == []
    assert bounds["job of a lost machine leaves RUNNING"] == 39
    assert bounds["job of a worker seen dead on this host leaves RUNNING"] == 9
    assert bounds["handlers are cancelled after the store was last reached"] == 17
    assert bounds["nothing runs any more after the store was last reached"] == 22


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lease": 21}, "lease=21 is below 2·beat + store_call + margin + slack = 22"),
        ({"margin": 6}, "margin=6 is below kill_grace + pulse + slack = 6.1"),
        ({"store_call": 5}, "store_call=5 is not below beat=5"),
        ({"sweep": 16}, "sweep=16 is above lease/2 = 15"),
        ({"poll": 6}, "poll=6 is above sweep=5"),
        ({"unresponsive": 0.4}, "unresponsive=0.4 is below 5·pulse = 0.5"),
        ({"frozen": 0.9}, "frozen=0.9 is below unresponsive=1"),
        ({"offer_ack": 15}, "offer_ack=15 is not below lease/2 = 15"),
    ],
)
def test_each_broken_inequality_is_named_with_its_numbers(changes: dict[str, float], says: str) -> None:
    problems = replace(Times(), **changes).problems()

    assert [p for p in problems if p.startswith(says)], problems


def test_a_timeout_above_the_maximum_and_a_drain_beyond_the_stop_time_are_refused() -> None:
    assert "timeout=7200 is above max_timeout=3600" in Times().problems(timeout=7200)
    assert any("drain=300 is above" in p for p in Times().problems(stop_time=30))
    assert Times(drain=20).problems(stop_time=30) == []


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "5", True])
def test_what_is_no_duration_is_refused(value: float) -> None:
    assert replace(Times(), poll=value).problems() != []


def test_zero_is_refused_where_it_would_mean_never_or_always() -> None:
    assert Times(lost_grace=0).problems() == []
    assert Times(grace=0).problems() == [
        "grace=0 is not above 0: a job that is asked to stop needs a moment to do so"
    ]
