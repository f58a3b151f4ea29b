"""Policies are checked where they are written down, and travel as JSON."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.model.errors import InvalidPolicy
from unstuck.model.policy import Backoff, Policy


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("timeout", 0, "timeout=0 is not between"),
        ("timeout", None, "timeout=None is not a number"),
        ("timeout", "forever", "timeout='forever' is not a number"),
        ("grace", 0, "grace=0 is not between"),
        ("grace", float("nan"), "grace=nan is not between"),
        ("retries", -1, "retries=-1 is not between"),
        ("retries", 1.5, "retries=1.5 is not a whole number"),
        ("retries", True, "retries=True is not a whole number"),
        ("on_lost", "shrug", "on_lost='shrug' is not one of retry, fail, pause"),
        ("expires_after", -5, "expires_after=-5 is not between"),
        ("backoff_factor", 0.5, "backoff_factor=0.5 is not between"),
        ("retry_on_timeout", "yes", "retry_on_timeout='yes' is not true or false"),
        ("budget", 5, 'budget=5 is not {unit: most}, such as {"tokens": 5000}'),
        ("budget", 0, "budget=0 is not {unit: most}"),
        ("budget", "tokens", "budget='tokens' is not {unit: most}"),
        ("budget", ["tokens"], "budget=['tokens'] is not {unit: most}"),
        ("budget", ["ab"], "budget=['ab'] is not {unit: most}"),
        ("budget", {"two words": 5}, "'two words' is not the name of a unit"),
        ("tiemout", 5, "there is no option tiemout; did you mean timeout?; known: approval_timeout, backoff_base"),
    ],
)
def test_a_bad_option_is_refused_by_name(option: str, value: object, says: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy().with_("workflow release", {option: value})

    assert says in str(refused.value)
    assert "workflow release" in str(refused.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy().with_("job", {"grace": -1, "retries": -1, "on_lost": "x"})

    assert len(refused.value.problems) == 3


def test_unlimited_must_be_spelled_out_and_the_maximum_is_the_operators() -> None:
    assert Policy().with_("w", {"timeout": "unlimited"}).problems(max_timeout=10) == []
    (problem,) = Policy(timeout=11.0).problems(max_timeout=10)
    assert problem.startswith("timeout=11 is above max_timeout=10: raise that of the worker")


def test_a_policy_survives_its_journey_and_ignores_what_a_newer_version_added() -> None:
    policy = Policy(timeout="unlimited", retries=7, on_lost="pause", expires_after=60)

    assert Policy.from_json(policy.to_json()) == policy
    assert Policy.from_json('{"retries": 2, "invented_later": true}') == Policy(retries=2)


@given(
    base=st.floats(0.001, 100),
    factor=st.floats(1.3, 10),
    cap=st.floats(0.001, 1e6),
    jitters=st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=30),
)
def test_backoff_grows_until_its_cap_whatever_the_dice_say(
    base: float, factor: float, cap: float, jitters: list[float]
) -> None:
    backoff = Backoff(base, factor, cap)
    delays = [backoff.delay(nth, jitter) for nth, jitter in enumerate(jitters, 1)]

    assert all(0 < delay <= cap * 1.25 for delay in delays)
    assert all(b > a for a, b in itertools.pairwise(delays) if b < cap)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": "1m"}, "timeout='1m' is not a number of seconds: write 60, or \"unlimited\""),
        ({"grace": "90s"}, "grace='90s' is not a number of seconds: write 90"),
        ({"grace": "soon"}, "grace='soon' is not a number of seconds"),
        ({"backoff": 3}, "backoff_base, backoff_factor and backoff_cap say how long to wait"),
        ({"cron": "* * * * *"}, "write schedule="),
    ],
)
def test_an_option_that_people_try_is_answered_with_what_to_write(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidPolicy, match=re.escape(told)):
        Policy().with_("workflow w", options)
