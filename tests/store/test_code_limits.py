"""What the code says of the limits of a workflow, and of each of its limit keys, beside what operators set in their
place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_job, a_worker, all_routes, claim_all, settle
from unstuck.model.job import ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.port import EVERY, Limit, LimitKind, Store
from unstuck.store.sql_store import SqlStore


@pytest.fixture(params=["workflow", "workflow_key"])
def kind(request: pytest.FixtureRequest) -> LimitKind:
    """Of all jobs of the workflow together, or of each limit key: declared apart, kept by the same rules."""
    found: LimitKind = request.param
    return found


def declared(kind: LimitKind, limits: dict[str, Any]) -> dict[str, Any]:
    return limits if kind == "workflow" else {f"key_{part}": said for part, said in limits.items()}


def deploy(store: Store, kind: LimitKind, **limits: Any) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {}, **declared(kind, limits))])


def operate(store: Store, kind: LimitKind, **limits: Any) -> None:
    store.set_limit(Limit(kind, "greet", EVERY, "dana", **limits))


def lift(store: Store, kind: LimitKind) -> bool:
    return store.remove_limit(kind, "greet", EVERY)


def held(store: Store) -> list[tuple[Any, ...]]:
    return [(found.concurrency, found.rate, found.per, found.by) for found in store.limits()]


def test_the_code_holds_again_as_soon_as_an_operators_limit_is_lifted(store: Store, kind: LimitKind) -> None:
    deploy(store, kind, concurrency=4, rate="100/m")
    operate(store, kind, concurrency=9)
    assert held(store) == [(9, None, None, "dana")]
    assert lift(store, kind)
    assert held(store) == [(4, 100, 60.0, "code")]


def test_what_was_deployed_meanwhile_holds_then(store: Store, kind: LimitKind) -> None:
    deploy(store, kind, concurrency=4, rate="100/m")
    operate(store, kind, concurrency=9)
    deploy(store, kind, concurrency=6)
    assert held(store) == [(9, None, None, "dana")]
    lift(store, kind)
    assert held(store) == [(6, None, None, "code")]


def test_what_the_code_first_said_under_an_operators_limit_holds_after_it(store: Store, kind: LimitKind) -> None:
    operate(store, kind, rate=1, per=1.0)
    deploy(store, kind, concurrency=6)
    lift(store, kind)
    assert held(store) == [(6, None, None, "code")]


def test_a_limit_that_has_left_the_code_meanwhile_does_not_come_back(store: Store, kind: LimitKind) -> None:
    deploy(store, kind, concurrency=4)
    operate(store, kind, concurrency=9)
    deploy(store, kind)
    assert lift(store, kind)
    assert held(store) == []


def test_the_code_is_not_lifted_however_often_somebody_asks(store: Store, kind: LimitKind) -> None:
    """A script that lifts twice must not end without a limit that the code asks for."""
    deploy(store, kind, concurrency=4)
    assert [lift(store, kind), lift(store, kind)] == [False, False]
    assert held(store) == [(4, None, None, "code")]


@pytest.mark.parametrize("before", [{}, {"concurrency": 9}])
def test_a_change_that_leaves_nothing_answers_what_the_code_says(
    store: Store, kind: LimitKind, before: dict[str, int]
) -> None:
    deploy(store, kind, concurrency=4)
    if before:
        operate(store, kind, **before)
    found = store.change_limit(Limit(kind, "greet", EVERY, "dana"), ["concurrency"])
    assert found is not None
    assert (found.concurrency, found.by) == (4, "code")
    assert held(store) == [(4, None, None, "code")]


def test_a_change_of_one_part_of_the_codes_limit_keeps_the_other_and_is_the_operators(
    store: Store, kind: LimitKind
) -> None:
    deploy(store, kind, concurrency=4, rate="100/m")
    store.change_limit(Limit(kind, "greet", EVERY, "dana", concurrency=7), ["concurrency"])
    assert held(store) == [(7, 100, 60.0, "dana")]


def test_a_change_that_says_nothing_of_a_place_without_a_limit_leaves_none(store: Store) -> None:
    assert store.change_limit(Limit("queue", "io", "default", "dana"), ["concurrency"]) is None
    assert store.limits() == []


# --- which version's limits hold ----------------------------------------------------------------------------------


def serve(store: Store, kind: LimitKind, version: str, worker: WorkerRecord | None = None, **limits: Any) -> None:
    workflow = WorkflowRecord("greet", version, "default", Policy(), {}, **declared(kind, limits))
    store.register_workflows([workflow], worker=None if worker is None else worker.number, queues=["default"])


def test_an_old_worker_that_starts_late_changes_no_limit(store: SqlStore, kind: LimitKind) -> None:
    new, old = a_worker(store, "new"), a_worker(store, "old")
    serve(store, kind, "v1", concurrency=4)
    serve(store, kind, "v2", new, concurrency=2, rate="10/s")

    serve(store, kind, "v1", old, concurrency=4)
    assert held(store) == [(2, 10, 1.0, "code")]

    operate(store, kind, concurrency=9)
    serve(store, kind, "v1", old, concurrency=4)
    lift(store, kind)
    assert held(store) == [(2, 10, 1.0, "code")]


def test_a_limit_that_the_new_version_dropped_does_not_come_back_with_an_old_worker(
    store: SqlStore, kind: LimitKind
) -> None:
    serve(store, kind, "v1", a_worker(store, "first"), concurrency=4)
    serve(store, kind, "v2", a_worker(store, "new"))
    assert held(store) == []
    serve(store, kind, "v1", a_worker(store, "late"), concurrency=4)
    assert held(store) == []


def test_when_the_last_worker_of_a_version_has_ended_the_limits_of_the_next_hold(
    store: SqlStore, kind: LimitKind
) -> None:
    """A deploy that was taken back, while workers of the old version went on."""
    new = a_worker(store, "new")
    serve(store, kind, "v1", a_worker(store, "old"), concurrency=4)
    serve(store, kind, "v2", new, concurrency=2)
    assert (held(store), store.keep_code_limits()) == ([(2, None, None, "code")], 0)

    store.unregister_worker(new.number)

    assert store.keep_code_limits() == 1
    assert held(store) == [(4, None, None, "code")]
    assert store.keep_code_limits() == 0


# --- each key by itself, as claims see it -------------------------------------------------------------------------

KEYS = ("host:a", "host:b")


@pytest.fixture
def worker(store: Store) -> WorkerRecord:
    return a_worker(store, lease=600.0)


def queue_up(store: Store, workflow: str = "greet", each: int = 9, **options: Any) -> None:
    store.submit([a_job(workflow=workflow, limit_key=key, **options) for key in KEYS for _ in range(each)])


def taken(store: Store, worker: WorkerRecord) -> tuple[list[ClaimedJob], dict[tuple[str, str], int]]:
    """What a claim of everything gives, and how many of each workflow and key those are."""
    jobs = claim_all(store, worker)
    routes = {route.number: (route.workflow, route.limit_key) for route in all_routes(store)}
    return jobs, dict(Counter(routes[job.route] for job in jobs))


def of_each(most: int, workflow: str = "greet") -> dict[tuple[str, str], int]:
    return {(workflow, key): most for key in KEYS}


def test_as_many_of_each_key_run_at_once_as_the_code_says(store: Store, worker: WorkerRecord) -> None:
    deploy(store, "workflow_key", concurrency=2)
    queue_up(store)
    jobs, counts = taken(store, worker)
    assert counts == of_each(2)
    assert taken(store, worker) == ([], {})
    settle(store, worker, jobs[0].ref)
    assert sum(taken(store, worker)[1].values()) == 1


def test_as_many_of_each_key_start_in_a_time_as_the_code_says(
    store: Store, worker: WorkerRecord, clock: StoreClock
) -> None:
    """What `rate=` beside a `limit_key` was read as, and is not: that one counts all keys together."""
    deploy(store, "workflow_key", rate="3/m")
    queue_up(store)
    assert taken(store, worker)[1] == of_each(3)
    clock.advance(40)
    assert taken(store, worker)[1] == {}
    clock.advance(21)
    assert taken(store, worker)[1] == of_each(3)


def test_it_counts_the_jobs_of_its_own_workflow_and_those_that_have_a_key(store: Store, worker: WorkerRecord) -> None:
    """Another workflow that uses the same keys has said nothing; a job without a key has none that could be full."""
    deploy(store, "workflow_key", concurrency=1, rate="1/h")
    queue_up(store, "other", 3)
    queue_up(store)
    store.submit([a_job(workflow="greet") for _ in range(4)])
    assert taken(store, worker)[1] == {**of_each(1), **of_each(3, "other"), ("greet", ""): 4}


def test_two_workflows_with_the_same_keys_are_counted_apart(store: Store, worker: WorkerRecord) -> None:
    for name, most in (("greet", 2), ("other", 3)):
        store.register_workflows([WorkflowRecord(name, "v1", "default", Policy(), {}, key_concurrency=most)])
        queue_up(store, name)
    assert taken(store, worker)[1] == {**of_each(2), **of_each(3, "other")}
    assert taken(store, worker)[1] == {}


def test_all_together_and_each_key_hold_beside_each_other(store: Store, worker: WorkerRecord) -> None:
    workflow = WorkflowRecord("greet", "v1", "default", Policy(), {}, concurrency=3, key_concurrency=2)
    store.register_workflows([workflow])
    queue_up(store)
    assert sorted(taken(store, worker)[1].values()) == [1, 2]
    assert {(found.kind, found.concurrency) for found in store.limits()} == {("workflow", 3), ("workflow_key", 2)}


def test_a_key_counts_all_tenants_together_and_an_operator_can_count_one_apart(
    store: Store, worker: WorkerRecord
) -> None:
    deploy(store, "workflow_key", concurrency=4)
    store.set_limit(Limit("workflow_key", "greet", "acme", "dana", concurrency=1))
    for tenant in ("acme", "other"):
        queue_up(store, tenant=tenant)
    jobs, counts = taken(store, worker)
    assert counts == of_each(4)
    assert Counter(job.tenant for job in jobs) == {"acme": 2, "other": 6}


def test_what_an_operator_sets_in_its_place_holds_until_it_is_lifted(store: Store, worker: WorkerRecord) -> None:
    deploy(store, "workflow_key", concurrency=1)
    operate(store, "workflow_key", concurrency=3)
    queue_up(store)
    jobs, counts = taken(store, worker)
    assert counts == of_each(3)
    lift(store, "workflow_key")
    for job in jobs:
        settle(store, worker, job.ref)
    assert taken(store, worker)[1] == of_each(1)


@pytest.mark.parametrize(("family", "expected"), [(1, 1), (5, 2)])
def test_an_operators_limit_of_the_keys_themselves_counts_beside_it(
    store: Store, worker: WorkerRecord, family: int, expected: int
) -> None:
    """It counts every workflow's jobs, so it loosens nothing that a workflow says of its own."""
    deploy(store, "workflow_key", concurrency=2)
    store.set_limit(Limit("key", "host:*", EVERY, "dana", concurrency=family))
    queue_up(store)
    assert taken(store, worker)[1] == of_each(expected)


def test_a_line_that_was_removed_from_the_code_limits_no_key_any_more(store: Store, worker: WorkerRecord) -> None:
    deploy(store, "workflow_key", concurrency=1, rate="1/h")
    queue_up(store)
    assert taken(store, worker)[1] == of_each(1)
    deploy(store, "workflow_key")
    assert taken(store, worker)[1] == of_each(8)


def test_of_two_versions_the_newer_with_a_worker_decides_about_each_key(store: SqlStore) -> None:
    old, new = a_worker(store, "old"), a_worker(store, "new")
    serve(store, "workflow_key", "v1", old, concurrency=3)
    serve(store, "workflow_key", "v2", new, concurrency=1)
    queue_up(store)
    assert taken(store, old)[1] == of_each(1)

    store.unregister_worker(new.number)
    assert store.keep_code_limits() == 1
    assert taken(store, old)[1] == of_each(2)
