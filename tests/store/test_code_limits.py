"""What the code says of a workflow's limit, beside what operators set in its place."""

from __future__ import annotations

from typing import Any

import pytest

from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.port import EVERY, Limit, Store


def deploy(store: Store, **limits: Any) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {}, **limits)])


def operate(store: Store, **limits: Any) -> None:
    store.set_limit(Limit("workflow", "greet", EVERY, "dana", **limits))


def lift(store: Store) -> bool:
    return store.remove_limit("workflow", "greet", EVERY)


def held(store: Store) -> list[tuple[Any, ...]]:
    return [(found.concurrency, found.rate, found.per, found.by) for found in store.limits()]


def test_the_code_holds_again_as_soon_as_an_operators_limit_is_lifted(store: Store) -> None:
    deploy(store, concurrency=4, rate="100/m")
    operate(store, concurrency=9)
    assert held(store) == [(9, None, None, "dana")]
    assert lift(store)
    assert held(store) == [(4, 100, 60.0, "code")]


def test_what_was_deployed_meanwhile_holds_then(store: Store) -> None:
    deploy(store, concurrency=4, rate="100/m")
    operate(store, concurrency=9)
    deploy(store, concurrency=6)
    assert held(store) == [(9, None, None, "dana")]
    lift(store)
    assert held(store) == [(6, None, None, "code")]


def test_what_the_code_first_said_under_an_operators_limit_holds_after_it(store: Store) -> None:
    operate(store, rate=1, per=1.0)
    deploy(store, concurrency=6)
    lift(store)
    assert held(store) == [(6, None, None, "code")]


def test_a_limit_that_has_left_the_code_meanwhile_does_not_come_back(store: Store) -> None:
    deploy(store, concurrency=4)
    operate(store, concurrency=9)
    deploy(store)
    assert lift(store)
    assert held(store) == []


def test_the_code_is_not_lifted_however_often_somebody_asks(store: Store) -> None:
    """A script that lifts twice must not end without a limit that the code asks for."""
    deploy(store, concurrency=4)
    assert [lift(store), lift(store)] == [False, False]
    assert held(store) == [(4, None, None, "code")]


@pytest.mark.parametrize("before", [{}, {"concurrency": 9}])
def test_a_change_that_leaves_nothing_answers_what_the_code_says(store: Store, before: dict[str, int]) -> None:
    deploy(store, concurrency=4)
    if before:
        operate(store, **before)
    found = store.change_limit(Limit("workflow", "greet", EVERY, "dana"), ["concurrency"])
    assert found is not None
    assert (found.concurrency, found.by) == (4, "code")
    assert held(store) == [(4, None, None, "code")]


def test_a_change_of_one_part_of_the_codes_limit_keeps_the_other_and_is_the_operators(store: Store) -> None:
    deploy(store, concurrency=4, rate="100/m")
    store.change_limit(Limit("workflow", "greet", EVERY, "dana", concurrency=7), ["concurrency"])
    assert held(store) == [(7, 100, 60.0, "dana")]


def test_a_change_that_says_nothing_of_a_place_without_a_limit_leaves_none(store: Store) -> None:
    assert store.change_limit(Limit("queue", "io", "default", "dana"), ["concurrency"]) is None
    assert store.limits() == []
