"""What shuts a route: pauses of queue, workflow or tenant, and limits. Asked of the look and of the claim itself."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    a_job,
    a_worker,
    all_routes,
    chance,
    claim_all,
    settle,
    submitted,
)
from tests.tiers import in_tiers
from unstuck.model.errors import UnknownTarget, UnknownTenant
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import EVERY, Limit, LimitKind, OpenRoutes, Pause, PauseKind, Report, Route, Share, Store


@pytest.fixture
def worker(store: Store) -> WorkerRecord:
    return a_worker(store)


def pause(store: Store, kind: PauseKind, name: str, tenant: str = "default", **more: Any) -> Pause:
    return store.pause(Pause(kind, name, tenant, "dana", **more))


def limit(store: Store, kind: LimitKind, name: str, tenant: str = EVERY, **more: Any) -> Limit:
    return store.set_limit(Limit(kind, name, tenant, "dana", **more))


def take(store: Store, worker: WorkerRecord, most: int = 100) -> list[ClaimedJob]:
    """As a claimer would that has looked: only what the fronts show, counted where they say so."""
    return claim_all(store, worker, most)


def take_blindly(store: Store, worker: WorkerRecord, most: int = 100, *, counted: bool = True) -> list[ClaimedJob]:
    """As a claimer would whose look is older than the gate."""
    shares = [Share(route.number, most, is_limited=counted) for route in all_routes(store)]
    return store.claim(worker.number, chance.nonce(), shares)


def open_routes(store: Store) -> set[tuple[str, str, str]]:
    return {(r.tenant, r.queue, r.workflow) for r in store.routes([front.route for front in store.open_routes()])}


# --- pauses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [("queue", "mail"), ("workflow", "send"), ("tenant", "default")])
def test_nothing_starts_on_a_paused_route_and_everything_else_goes_on(
    store: Store, worker: WorkerRecord, kind: PauseKind, name: str
) -> None:
    paused = submitted(store, queue="mail", workflow="send")
    other = submitted(store, queue="io", workflow="read", tenant="acme")
    pause(store, kind, name, reason="vendor outage")

    assert [job.id for job in take_blindly(store, worker)] == [other.id]
    assert open_routes(store) == set()
    assert store.unpause(kind, name, "default")
    assert [job.id for job in take(store, worker)] == [paused.id]


def test_a_pause_of_one_tenants_queue_leaves_the_other_tenants_alone_and_one_of_all_does_not(
    store: Store, worker: WorkerRecord
) -> None:
    submitted(store, queue="mail")
    acme = submitted(store, queue="mail", tenant="acme")
    pause(store, "queue", "mail")
    assert [job.id for job in take_blindly(store, worker)] == [acme.id]

    submitted(store, queue="mail", tenant="acme")
    pause(store, "queue", "mail", EVERY)
    assert take_blindly(store, worker) == []
    assert not store.unpause("queue", "mail", "acme")
    assert store.unpause("queue", "mail", "default")
    assert take_blindly(store, worker) == []
    assert store.unpause("queue", "mail", EVERY)
    assert len(take_blindly(store, worker)) == 2


def test_a_pause_with_an_end_opens_by_itself(store: Store, worker: WorkerRecord, clock: StoreClock) -> None:
    """A41, of queues: nobody has to do anything."""
    job = submitted(store)
    set_ = pause(store, "queue", "default", until_at=clock.now() + timedelta(seconds=20))
    assert store.pauses("default") == [set_]
    clock.advance(19)
    assert take(store, worker) == take_blindly(store, worker) == []
    clock.advance(2)
    assert store.pauses("default") == []
    assert [claimed.id for claimed in take(store, worker)] == [job.id]
    assert not store.unpause("queue", "default", "default")


def test_a_second_pause_replaces_the_first_and_what_runs_goes_on(
    store: Store, worker: WorkerRecord, clock: StoreClock
) -> None:
    submitted(store)
    (running,) = take(store, worker)
    pause(store, "queue", "default", until_at=clock.now() + timedelta(seconds=5))
    pause(store, "queue", "default", reason="for good")
    clock.advance(10)
    submitted(store)
    assert take_blindly(store, worker) == []
    assert [(p.reason, p.until_at, p.by) for p in store.pauses()] == [("for good", None, "dana")]
    assert settle(store, worker, running.ref).state == "COMPLETED"


def test_a_pause_of_somebody_nobody_ever_heard_of_is_an_error_and_writes_nothing(store: Store) -> None:
    with pytest.raises(UnknownTenant, match="nobody"):
        pause(store, "tenant", "nobody")
    with pytest.raises(UnknownTenant):
        pause(store, "queue", "mail", "nobody")
    with pytest.raises(UnknownTarget):
        pause(store, "target", "nowhere")
    assert store.pauses() == []


def test_a_tenant_sees_its_own_pauses_and_limits_and_those_of_all(store: Store) -> None:
    """A55: nothing of one tenant is visible to another."""
    for tenant in ("default", "acme", "globex"):
        submitted(store, tenant=tenant)
        pause(store, "queue", f"q-{tenant}", tenant)
        pause(store, "tenant", tenant, "default")
        limit(store, "queue", f"q-{tenant}", tenant, concurrency=2)
        limit(store, "tenant", tenant, "default", concurrency=2)
    pause(store, "queue", "io", EVERY)
    assert {p.name for p in store.pauses("acme")} == {"q-acme", "acme", "io"}
    assert {found.name for found in store.limits("acme")} == {"q-acme", "acme"}
    assert len(store.pauses()) == 7
    assert len(store.limits()) == 6


def test_a_hundred_paused_routes_in_front_are_left_out_of_the_look(store: Store) -> None:
    store.submit([a_job(workflow=f"w{n}", queue="shut") for n in range(100)])
    submitted(store, workflow="behind", queue="open")
    pause(store, "queue", "shut")
    assert open_routes(store) == {("default", "open", "behind")}


def test_a_look_ends_after_its_number_of_routes_and_says_where_to_go_on(store: Store) -> None:
    """However many routes are shut: no look walks over all of them at once."""
    store.submit([a_job(workflow=f"w{n}", queue="shut") for n in range(25)])
    submitted(store, workflow="behind", queue="open")
    pause(store, "queue", "shut")
    pages: list[OpenRoutes] = [store.open_routes(0, 10)]
    while pages[-1].looked_to:
        pages.append(store.open_routes(pages[-1].looked_to, 10))
    assert [len(page) for page in pages] == [0, 0, 1]


# --- concurrency --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("workflow", "greet"),
        ("queue", "default"),
        ("tenant", "default"),
        ("key", "account:1"),
        ("workflow_key", "greet"),
    ],
)
def test_no_more_run_at_once_than_a_limit_allows(
    store: Store, worker: WorkerRecord, kind: LimitKind, name: str
) -> None:
    store.submit([a_job(limit_key="account:1") for _ in range(5)])
    limit(store, kind, name, "default", concurrency=2)

    first = take(store, worker)
    assert len(first) == 2
    assert take(store, worker) == take_blindly(store, worker) == []
    assert store.open_routes() == []
    settle(store, worker, first[0].ref)
    assert [front.is_limited for front in store.open_routes()] == [True]
    assert len(take(store, worker)) == 1


def test_a_claim_that_has_not_counted_leaves_a_limited_route_alone(store: Store, worker: WorkerRecord) -> None:
    """A limit that was set after the claimer's look is not overlooked."""
    store.submit([a_job() for _ in range(5)])
    other = submitted(store, workflow="other")
    limit(store, "workflow", "greet", concurrency=2)
    assert [job.id for job in take_blindly(store, worker, counted=False)] == [other.id]
    assert len(take_blindly(store, worker)) == 2


def test_a_limit_of_all_tenants_counts_them_together_and_one_of_each_counts_them_apart(
    store: Store, worker: WorkerRecord
) -> None:
    store.submit([a_job(tenant=tenant) for tenant in ("a", "b", "c") for _ in range(9)])
    limit(store, "workflow", "greet", EVERY, concurrency=4)
    together = take(store, worker)
    assert len(together) == 4
    assert store.remove_limit("workflow", "greet", EVERY)
    assert not store.remove_limit("workflow", "greet", EVERY)

    for job in together:
        settle(store, worker, job.ref)
    limit(store, "tenant", EVERY, EVERY, concurrency=2)
    assert Counter(job.tenant for job in take(store, worker)) == {"a": 2, "b": 2, "c": 2}


def test_a_row_of_ones_own_wins_over_that_of_the_family_and_this_over_that_of_all(
    store: Store, worker: WorkerRecord
) -> None:
    keys = ["account:big", "account:small", "host:x", "plain"]
    store.submit([a_job(limit_key=key) for key in keys for _ in range(9)])
    limit(store, "key", EVERY, concurrency=1)
    limit(store, "key", "account:*", concurrency=2)
    limit(store, "key", "account:big", concurrency=5)

    claimed = take(store, worker)
    routes = {route.number: route.limit_key for route in all_routes(store)}
    assert Counter(routes[job.route] for job in claimed) == {
        "account:big": 5,
        "account:small": 2,
        "host:x": 1,
        "plain": 1,
    }


def test_a_tenants_own_row_wins_over_that_of_each_tenant(store: Store, worker: WorkerRecord) -> None:
    store.submit([a_job(tenant=tenant) for tenant in ("big", "small") for _ in range(9)])
    limit(store, "tenant", EVERY, concurrency=1)
    limit(store, "tenant", "big", concurrency=6)
    assert Counter(job.tenant for job in take(store, worker)) == {"big": 6, "small": 1}


def test_of_several_limits_the_tightest_counts(store: Store, worker: WorkerRecord) -> None:
    store.submit([a_job(workflow=f"w{n}") for n in range(3) for _ in range(5)])
    limit(store, "queue", "default", concurrency=7)
    limit(store, "workflow", "w0", concurrency=1)
    claimed = Counter(job.workflow for _ in range(3) for job in take(store, worker))
    assert claimed["w0"] <= 1
    assert sum(claimed.values()) == 7


def test_a_job_under_a_hold_counts_because_its_old_body_may_still_live(store: Store, worker: WorkerRecord) -> None:
    store.submit([a_job(retries=0) for _ in range(3)])
    limit(store, "workflow", "greet", concurrency=1)
    (stuck,) = take(store, worker)
    store.settle(worker.number, [Report(stuck.ref, Stuck(ErrorInfo("ExecutionStuck", "deaf")))])

    assert take(store, worker) == take_blindly(store, worker) == []
    store.lift_body_mark(worker.number, stuck.ref.job)
    assert len(take(store, worker)) == 1


def test_a_limit_frees_its_place_when_a_lost_worker_is_recovered(
    store: Store, worker: WorkerRecord, clock: StoreClock
) -> None:
    """A60: a KILL costs the place for as long as the lease, not for ever."""
    store.submit([a_job() for _ in range(3)])
    limit(store, "workflow", "greet", concurrency=1)
    doomed = a_worker(store, "doomed", lease=5.0)
    assert len(take(store, doomed)) == 1
    assert take(store, worker) == []
    clock.advance(6)
    store.recover_lost(0.0)
    assert len(take(store, worker)) == 1


def test_a_repeated_claim_answers_with_the_same_attempts_though_the_limit_is_reached_now(
    store: Store, worker: WorkerRecord
) -> None:
    store.submit([a_job() for _ in range(5)])
    limit(store, "workflow", "greet", concurrency=2, rate=2, per=60.0)
    shares, claim = [Share(front.route, 5, is_limited=True) for front in store.open_routes()], chance.nonce()
    first = store.claim(worker.number, claim, shares)
    assert len(first) == 2
    assert [job.ref for job in store.claim(worker.number, claim, shares)] == [job.ref for job in first]


def test_a_raised_limit_lets_more_start_and_a_lowered_one_stops_nobody(store: Store, worker: WorkerRecord) -> None:
    store.submit([a_job() for _ in range(9)])
    limit(store, "workflow", "greet", concurrency=2)
    assert len(take(store, worker)) == 2
    limit(store, "workflow", "greet", concurrency=5)
    assert len(take(store, worker)) == 3
    limit(store, "workflow", "greet", concurrency=1)
    assert take(store, worker) == []
    assert store.counts()[JobState.RUNNING] == 5


def test_a_cap_on_waiting_jobs_is_no_gate_of_the_claim(store: Store, worker: WorkerRecord) -> None:
    store.submit([a_job() for _ in range(3)])
    limit(store, "queue", "default", "default", max_queued=1)
    assert [front.is_limited for front in store.open_routes()] == [False]
    assert len(take_blindly(store, worker, counted=False)) == 3


# --- rates --------------------------------------------------------------------------------------------------------


def test_a_rate_counts_the_starts_of_its_window_and_opens_as_they_leave_it(
    store: Store, worker: WorkerRecord, clock: StoreClock
) -> None:
    store.submit([a_job() for _ in range(9)])
    limit(store, "workflow", "greet", rate=3, per=10.0)
    assert len(take(store, worker, 2)) == 2
    clock.advance(4)
    assert len(take(store, worker)) == 1
    assert take(store, worker) == take_blindly(store, worker) == []
    clock.advance(7)
    assert len(take(store, worker)) == 2
    assert take(store, worker) == []


def test_starts_that_nothing_counts_any_more_are_forgotten(
    store: Store, worker: WorkerRecord, clock: StoreClock
) -> None:
    store.submit([a_job() for _ in range(9)])
    limit(store, "workflow", "greet", rate=3, per=10.0)
    take(store, worker)
    assert store.forget_starts() == 0
    clock.advance(11)
    take(store, worker)
    assert store.forget_starts() == 1  # three that started at once are one row
    store.remove_limit("workflow", "greet", EVERY)
    clock.advance(11)
    assert store.forget_starts() == 1


# --- sixteen at once ----------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "most"), [("workflow", 1), ("workflow", 5), ("workflow_key", 2)])
@in_tiers("size", 30, 120)
def test_sixteen_claimers_at_once_never_pass_a_limit_and_leave_nothing_behind(
    store: Store, kind: LimitKind, most: int, size: int
) -> None:
    """A60: exact, whoever claims and settles meanwhile."""
    jobs: list[NewJob] = [a_job(tenant=f"t{n % 3}", limit_key="host:a") for n in range(size)]
    store.submit(jobs)
    limit(store, kind, "greet", EVERY, concurrency=most)
    running, highest, done, problems = set[int](), 0, 0, list[BaseException]()
    lock = threading.Lock()

    def work(name: str) -> None:
        nonlocal highest, done
        try:
            worker = a_worker(store, name, lease=300.0)
            while done < len(jobs):
                claimed = take(store, worker, 3)
                with lock:
                    running.update(job.ref.job for job in claimed)
                    highest = max(highest, len(running))
                for job in claimed:
                    with lock:  # before the settle: what the database frees must not be counted here any more
                        running.discard(job.ref.job)
                    settle(store, worker, job.ref)
                    with lock:
                        done += 1
        except BaseException as problem:
            problems.append(problem)
            raise

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert done == len(jobs)
    assert 0 < highest <= most


# --- the floor ----------------------------------------------------------------------------------------------------


def test_a_claim_with_a_floor_begins_there(store: Store, worker: WorkerRecord) -> None:
    jobs = [a_job() for _ in range(4)]
    store.submit(jobs)  # at one instant: of one rank
    first = take(store, worker, 1)[0]
    (route,) = all_routes(store)
    share = Share(route.number, 1, floor=(first.rank, first.ref.job + 2))
    (claimed,) = store.claim(worker.number, chance.nonce(), [share])
    assert claimed.id == jobs[2].id
    assert (claimed.route, claimed.rank) == (route.number, first.rank)
    share = Share(route.number, 1, floor=(claimed.rank, claimed.ref.job))
    assert [job.id for job in store.claim(worker.number, chance.nonce(), [share])] == [jobs[3].id]
    assert [job.id for job in take(store, worker)] == [jobs[1].id]


# --- what code says -----------------------------------------------------------------------------------------------


def a_workflow(name: str = "greet", version: str = "v1", **more: Any) -> WorkflowRecord:
    return WorkflowRecord(name, version, "default", Policy(), {}, **more)


def test_limits_in_the_code_hold_until_an_operator_sets_another(store: Store) -> None:
    store.register_workflows([a_workflow(concurrency=4, rate="100/m")])
    (by_code,) = store.limits()
    assert (by_code.kind, by_code.name, by_code.tenant, by_code.by) == ("workflow", "greet", EVERY, "code")
    assert (by_code.concurrency, by_code.rate, by_code.per) == (4, 100, 60.0)

    store.register_workflows([a_workflow(version="v2", concurrency=6)])
    assert [(found.concurrency, found.rate) for found in store.limits()] == [(6, None)]

    limit(store, "workflow", "greet", EVERY, concurrency=9)
    store.register_workflows([a_workflow(concurrency=4)])
    store.register_workflows([a_workflow()])
    assert [(found.concurrency, found.by) for found in store.limits()] == [(9, "dana")]


def test_a_limit_that_has_left_the_code_is_gone(store: Store) -> None:
    store.register_workflows([a_workflow(concurrency=4)])
    store.register_workflows([a_workflow()])
    assert store.limits() == []


def test_a_worker_says_what_it_serves(store: Store, worker: WorkerRecord) -> None:
    assert worker.serves == {}
    store.register_workflows([a_workflow("b"), a_workflow("a")], worker=worker.number, queues=["io", "default"])
    (found,) = store.workers()
    assert found.serves == {"queues": ["default", "io"], "workflows": ["a", "b"]}


# --- tenants and routes -------------------------------------------------------------------------------------------


def test_tenants_are_listed_by_name_with_their_weights(store: Store) -> None:
    for tenant in ("b", "a", "d"):
        submitted(store, tenant=tenant)
    store.set_tenant("b", 5, "dana")
    store.set_tenant("c", 3, "dana")
    store.set_tenant("c", 1, "dana")
    assert [(t.name, t.weight) for t in store.tenants()] == [("a", 1), ("b", 5), ("c", 1), ("d", 1)]
    assert [t.name for t in store.tenants(after="a", limit=2)] == ["b", "c"]
    assert store.weights() == {"b": 5}


def test_routes_are_read_by_their_numbers(store: Store) -> None:
    submitted(store, workflow="w", queue="q", tenant="t", limit_key="k")
    submitted(store, workflow="other")
    (front,) = [front for front in store.open_routes() if store.routes([front.route])[0].workflow == "w"]
    assert store.routes([front.route, 999_999]) == [Route(front.route, "t", "q", "w", "k")]
    assert store.routes([]) == []
