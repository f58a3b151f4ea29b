"""What the code says of a workflow's limit, beside what operators set in its place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import a_worker
from unstuck.model.job import WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.port import EVERY, Limit, Store
from unstuck.store.sql_store import SqlStore


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


# --- which version's limits hold ----------------------------------------------------------------------------------


def serve(store: Store, version: str, worker: WorkerRecord | None = None, **limits: Any) -> None:
    workflow = WorkflowRecord("greet", version, "default", Policy(), {}, **limits)
    store.register_workflows([workflow], worker=None if worker is None else worker.number, queues=["default"])


def test_an_old_worker_that_starts_late_changes_no_limit(store: SqlStore) -> None:
    new, old = a_worker(store, "new"), a_worker(store, "old")
    serve(store, "v1", concurrency=4)
    serve(store, "v2", new, concurrency=2, rate="10/s")

    serve(store, "v1", old, concurrency=4)
    assert held(store) == [(2, 10, 1.0, "code")]

    operate(store, concurrency=9)
    serve(store, "v1", old, concurrency=4)
    lift(store)
    assert held(store) == [(2, 10, 1.0, "code")]


def test_a_limit_that_the_new_version_dropped_does_not_come_back_with_an_old_worker(store: SqlStore) -> None:
    serve(store, "v1", a_worker(store, "first"), concurrency=4)
    serve(store, "v2", a_worker(store, "new"))
    assert held(store) == []
    serve(store, "v1", a_worker(store, "late"), concurrency=4)
    assert held(store) == []


def test_when_the_last_worker_of_a_version_has_ended_the_limits_of_the_next_hold(store: SqlStore) -> None:
    """A deploy that was taken back, while workers of the old version went on."""
    new = a_worker(store, "new")
    serve(store, "v1", a_worker(store, "old"), concurrency=4)
    serve(store, "v2", new, concurrency=2)
    assert (held(store), store.keep_code_limits()) == ([(2, None, None, "code")], 0)

    store.unregister_worker(new.number)

    assert store.keep_code_limits() == 1
    assert held(store) == [(4, None, None, "code")]
    assert store.keep_code_limits() == 0
