"""What the server tells Prometheus: right, bounded, of one tenant or of all, and counters that never fall."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.app.hand import Hand
from tests.conftest import StoreClock
from tests.support import alerts
from tests.support.alerts import open_ones
from tests.support.builders import a_job, a_worker, begin, boom, claim_all, claimed, settle, submitted
from tests.support.metrics_text import samples, value
from unstuck.model.errors import InvalidInput
from unstuck.model.job import NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.metrics import MOST_NAMES, MOST_TENANTS, OTHER, Buckets, Measures
from unstuck.model.policy import Policy
from unstuck.model.series import BUCKETS
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.model.totals import COLUMNS, EndTotal, NamedTotals
from unstuck.observe.exposition import text_of
from unstuck.operations.metrics import BOUNDS, MetricsMemory, measure
from unstuck.operations.table import Caller
from unstuck.store.port import Pause
from unstuck.store.sql_store import SqlStore

LAG = 60.0


@pytest.fixture
def caller(store: SqlStore) -> Caller:
    return Caller(store, "prometheus")


def asked(caller: Caller, memory: MetricsMemory | None = None) -> dict[str, Any]:
    return samples(text_of(measure(caller, memory or MetricsMemory())))


def of(caller: Caller, tenant: str) -> Caller:
    return replace(caller, tenant=tenant, bound=tenant)


def count_all(store: SqlStore, clock: StoreClock) -> None:
    clock.advance(minutes=3)
    while store.count_ends(LAG) or store.count_enqueued(LAG):
        pass


def test_a56_a_silent_worker_is_offline_a_job_that_waits_is_reported_and_the_named_metrics_are_right(
    store: SqlStore, clock: StoreClock, caller: Caller
) -> None:
    Hand(store, "w-1")
    waiting = [submitted(store, tenant=tenant) for tenant in ("acme", "acme", "beta")]
    runs = claimed(store, a_worker(store, "w-2", lease=1000.0), tenant="beta")
    clock.advance(110)
    found = asked(caller)
    assert value(found, "jobs_queued_total", tenant_id="acme") == 2
    assert value(found, "jobs_queued_total", tenant_id="beta") == 1
    assert value(found, "jobs_running_total", tenant_id="acme") == 0
    assert value(found, "jobs_running_total", tenant_id="beta") == 1
    assert 110 <= value(found, "worker_heartbeat_last_seconds", worker_id="w-1") < 120
    assert value(found, "unstuck_workers", state="lost") == 1
    assert value(found, "unstuck_workers", state="offline") == 0
    for job in waiting:
        assert 110 <= value(found, "jobs_stuck_duration_seconds", job_id=job.id) < 120
    assert runs.id not in str(found["jobs_stuck_duration_seconds"])

    clock.advance(11)
    assert value(asked(caller), "unstuck_workers", state="offline") == 2

    clock.advance(minutes=4)
    found = asked(caller)
    assert value(found, "unstuck_oldest_job_age_seconds", state="queued", queue="default") > 300

    alerts.turn(store)
    queued = open_ones(store, "job_queued")
    assert {alert.subject for alert in queued} <= {job.id for job in waiting}
    assert len(queued) == 2
    assert all("worker" in alert.message for alert in queued)
    found = asked(caller)
    assert value(found, "unstuck_alerts_open", rule="job_queued", severity="warning") == 2
    assert value(found, "unstuck_alerts_open", rule="worker_silent", severity="warning") == 2


def test_jobs_are_told_by_state_queue_and_workflow(store: SqlStore, clock: StoreClock, caller: Caller) -> None:
    ada = a_worker(store, lease=1e6)
    submitted(store, queue="io", workflow="crawl")
    submitted(store, queue="io", workflow="crawl", target="acme")
    submitted(store, workflow="later", delay=3600.0)
    submitted(store, workflow="held", on_hold=True)
    claimed(store, ada, workflow="runs")
    clock.advance(50)
    found = asked(caller)
    assert value(found, "unstuck_jobs", state="queued", queue="io", workflow="crawl") == 2
    assert value(found, "unstuck_jobs", state="queued", queue="default", workflow="later") == 1
    assert value(found, "unstuck_jobs_scheduled", queue="default", workflow="later") == 1
    assert value(found, "unstuck_jobs", state="pending", queue="default", workflow="held") == 1
    assert value(found, "unstuck_jobs", state="running", queue="default", workflow="runs") == 1
    assert 50 <= value(found, "unstuck_oldest_job_age_seconds", state="pending", queue="default") < 55
    assert sum(found["unstuck_jobs"].values()) == 5
    assert set(found["unstuck_jobs_cut"].values()) == {0.0}


def test_what_has_no_jobs_any_more_is_told_as_0(store: SqlStore, caller: Caller) -> None:
    memory = MetricsMemory()
    ada = a_worker(store, lease=1e6)
    submitted(store, tenant="acme", workflow="greet")
    asked(caller, memory)
    (job,) = claim_all(store, ada)
    settle(store, ada, job.ref)
    found = asked(caller, memory)
    assert value(found, "unstuck_jobs", state="queued", queue="default", workflow="greet") == 0
    assert value(found, "jobs_queued_total", tenant_id="acme") == 0
    store.submit([_job(number) for number in range(MOST_NAMES + 60)])
    assert len(asked(caller, memory)["unstuck_jobs"]) == MOST_NAMES + 1


def test_a_tenant_sees_itself_alone(store: SqlStore, clock: StoreClock, caller: Caller) -> None:
    """Check 2: no value of beta in what acme gets. A55"""
    ada = a_worker(store, lease=1e6)
    foreign = submitted(store, tenant="beta-canary", queue="q-canary", workflow="w-canary", target="t-canary")
    settle(store, ada, claimed(store, ada, tenant="beta-canary", workflow="e-canary").ref)
    submitted(store, tenant="acme", workflow="mine")
    settle(store, ada, claimed(store, ada, tenant="acme", workflow="ended").ref)
    count_all(store, clock)
    text = text_of(measure(of(caller, "acme"), MetricsMemory()))
    assert "canary" not in text
    assert foreign.id not in text
    found = samples(text)
    assert {dict(labels)["tenant_id"] for labels in found["jobs_queued_total"]} == {"acme"}
    assert value(found, "unstuck_jobs", state="queued", queue="default", workflow="mine") == 1
    assert value(found, "unstuck_jobs_finished_total", queue="default", workflow="ended", outcome="completed") == 1
    assert value(found, "unstuck_jobs_enqueued_total", queue="default", workflow="mine") == 1
    assert len(found["unstuck_jobs_finished_total"]) == 2 * 5
    assert "unstuck_clock_leaps_total" not in found
    whole = asked(caller)
    assert sum(whole["jobs_queued_total"].values()) == 2
    assert value(whole, "unstuck_clock_leaps_total") == 0


def test_ends_are_counted_with_their_waits_and_runs_and_go_on_after_a_restart(
    store: SqlStore, clock: StoreClock, caller: Caller
) -> None:
    ada = a_worker(store, lease=1e6)
    for _ in range(3):
        submitted(store, workflow="greet")
    clock.advance(2)
    for attempt in claim_all(store, ada):
        settle(store, ada, attempt.ref)
    failed = claimed(store, ada, workflow="fails", retries=0)
    settle(store, ada, failed.ref, boom())
    stuck = claimed(store, ada, workflow="sticks")
    begin(store, ada, stuck)
    settle(store, ada, stuck.ref, Stuck(ErrorInfo("ExecutionStuck", "it did not answer", "stack"), pid=1))
    count_all(store, clock)
    for _ in range(2):  # whoever asks for the first time hears the same
        found = asked(caller)
        named = {"queue": "default", "workflow": "greet"}
        assert value(found, "unstuck_jobs_enqueued_total", **named) == 3
        assert value(found, "unstuck_jobs_finished_total", **named, outcome="completed") == 3
        assert value(found, "unstuck_job_wait_seconds_count", **named) == 3
        assert 6 <= value(found, "unstuck_job_wait_seconds_sum", **named) < 9
        assert value(found, "unstuck_job_wait_seconds_bucket", **named, le="1") == 0
        assert value(found, "unstuck_job_wait_seconds_bucket", **named, le="3") == 3
        assert value(found, "unstuck_job_run_seconds_bucket", **named, le="0.01") == 3
        assert value(found, "unstuck_job_run_seconds_sum", **named) == pytest.approx(0.015)
        assert value(found, "unstuck_jobs_stuck_total", queue="default", workflow="sticks") == 1
        assert value(found, "unstuck_jobs_stuck_total", queue="default", workflow="fails") == 0
    until = value(found, "unstuck_counted_until_timestamp_seconds")
    assert 60 <= value(found, "unstuck_metrics_read_timestamp_seconds") - until <= 180


def test_totals_are_the_sums_of_the_series_whoever_counts_and_in_whichever_parts(
    store: SqlStore, clock: StoreClock
) -> None:
    ada = a_worker(store, lease=1e6)
    for number in range(30):
        submitted(store, tenant=f"t{number % 3}", queue=f"q{number % 2}", workflow=f"w{number % 5}", retries=0)
        (job,) = claim_all(store, ada)
        settle(store, ada, job.ref, boom() if number % 4 == 0 else Returned("1"))
        clock.advance(7)
    clock.advance(minutes=3)

    def count() -> None:
        while store.count_ends(LAG, 3):
            pass

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while store.count_ends(LAG, 3):
        pass
    everything, names = store.end_totals(None)
    assert sum(everything.ended.values()) == 30
    assert everything.ended[JobState.FAILED] == 8
    assert sum(everything.waits) == sum(everything.runs) == 30
    assert len(names) == 10
    assert _sum(names.values()) == everything.numbers
    tenants = [store.end_totals(f"t{number}") for number in range(3)]
    assert _sum(whole for whole, _ in tenants) == everything.numbers
    assert all(_sum(names.values()) == whole.numbers for whole, names in tenants)

    clock.advance(days=31)
    assert store.forget_totals(30 * 86400.0) == 30 + 10 + 3
    assert store.end_totals(None) == (everything, {})


def _sum(totals: Any) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(total.numbers for total in totals), strict=True)))


def test_a_flood_of_names_tenants_and_jobs_is_summed_up(store: SqlStore, caller: Caller) -> None:
    store.submit([_job(number) for number in range(MOST_NAMES + 60)])
    found = asked(caller)
    assert len(found["unstuck_jobs"]) == MOST_NAMES + 1
    assert value(found, "unstuck_jobs", state="queued", queue=OTHER, workflow=OTHER) == 60
    assert len(found["jobs_queued_total"]) == MOST_TENANTS + 1
    assert value(found, "jobs_queued_total", tenant_id=OTHER) == 60
    assert len(found["jobs_stuck_duration_seconds"]) == 100
    assert len(found["unstuck_oldest_job_age_seconds"]) <= MOST_NAMES + 1
    assert sum(found["unstuck_jobs"].values()) == MOST_NAMES + 60


def _job(number: int) -> NewJob:
    return a_job(tenant=f"t{number}", queue=f"q{number}", workflow=f"w{number}")


def test_strange_names_are_told_as_they_are(store: SqlStore, caller: Caller) -> None:
    strange = 'a"b\\c}{,=é\u2028'
    submitted(store, workflow=strange)
    found = asked(caller)
    assert value(found, "unstuck_jobs", state="queued", queue="default", workflow=strange) == 1


def test_what_is_past_its_bound_is_counted_and_else_0(store: SqlStore, clock: StoreClock, caller: Caller) -> None:
    ada, bob = a_worker(store, lease=30.0), a_worker(store, "bob", lease=1e6)
    claimed(store, ada, tenant="acme")
    claimed(store, ada, tenant="beta")
    begin(store, bob, claimed(store, bob, timeout=10.0))
    submitted(store, delay=86400.0)
    submitted(store, expires_after=100.0)

    def bounds(of: Caller = caller) -> dict[str, float]:
        return {dict(labels)["bound"]: jobs for labels, jobs in asked(of)["unstuck_jobs_past_bound"].items()}

    well = dict.fromkeys(BOUNDS, 0.0)
    assert bounds() == well
    clock.advance(40)
    assert bounds() == well
    clock.advance(100)
    assert bounds() == {**well, "lost": 2, "limit": 1, "expire": 1}
    assert bounds(of(caller, "acme")) == {**well, "lost": 1}
    clock.advance(days=2)
    assert bounds()["start"] == 1


def test_a_job_that_nobody_claims_although_slots_are_free_is_past_its_bound_at_the_second_look(
    store: SqlStore, clock: StoreClock, caller: Caller
) -> None:
    ada = a_worker(store, lease=1e6, queues=("default",))
    _serve(store, ada, "greet")
    submitted(store, workflow="greet")
    memory = MetricsMemory()
    bound = {"bound": "claim"}
    assert value(asked(caller, memory), "unstuck_jobs_past_bound", **bound) == 0
    clock.advance(60)
    _beat(store, ada)
    assert value(asked(caller, memory), "unstuck_jobs_past_bound", **bound) == 0
    assert value(asked(caller, memory), "unstuck_jobs_past_bound", **bound) == 1
    store.pause(Pause("workflow", "greet", "default", "ada"))
    assert value(asked(caller, memory), "unstuck_jobs_past_bound", **bound) == 0


def _serve(store: SqlStore, worker: WorkerRecord, workflow: str) -> None:
    found = WorkflowRecord(workflow, "v1", "default", Policy(), {})
    store.register_workflows([found], worker=worker.number, queues=["default"])
    _beat(store, worker)


def _beat(store: SqlStore, worker: WorkerRecord) -> None:
    assert store.beat(worker.number, 1e6, [], info={"slots": 4, "ready": True}).alive


def test_what_somebody_should_look_at_is_counted(store: SqlStore, clock: StoreClock, caller: Caller) -> None:
    ada = a_worker(store, lease=1e6)
    submitted(store, target="site", retries=0)
    store.ingest()
    (blocker,) = claim_all(store, ada)
    begin(store, ada, blocker)
    settle(store, ada, blocker.ref, boom())
    submitted(store, tenant="acme")
    store.blacklist_add("acme", "bad", "it hurts", "ada")
    clock.advance(77)
    found = asked(caller)
    assert value(found, "unstuck_targets_blocked") == 1
    assert 77 <= value(found, "unstuck_target_blocked_longest_seconds") < 80
    assert value(found, "unstuck_blacklist_entries") == 1
    assert value(asked(of(caller, "beta")), "unstuck_blacklist_entries") == 0
    assert value(asked(of(caller, "beta")), "unstuck_targets_blocked") == 0
    assert value(found, "unstuck_quarantined", duty="settle") == 0


# --- counters that never fall -------------------------------------------------------------------------------------


def total(completed: int, failed: int = 0) -> EndTotal:
    numbers = dict.fromkeys(COLUMNS, 0) | {"completed": completed, "failed": failed, "waited": completed * 7}
    return EndTotal(tuple(numbers.values()))


def test_names_keep_their_counters_and_the_others_one_never_falls() -> None:
    totals = NamedTotals(2)
    steps: list[dict[tuple[str, str], EndTotal]] = [
        {("q", "big"): total(100), ("q", "mid"): total(50), ("q", "small"): total(9)},
        {("q", "small"): total(200), ("q", "big"): total(101), ("q", "mid"): total(50)},
        {("q", "small"): total(200), ("q", "big"): total(101), ("q", "new"): total(30)},  # mid was forgotten
        {("q", "small"): total(201), ("q", "mid"): total(4), ("q", "big"): total(101)},  # and comes again
    ]
    sums = (159, 351, 381, 386)
    seen: list[Counter[str]] = []
    for found, everything in zip(steps, sums, strict=True):
        totals.update(found, total(everything))
        seen.append(Counter({name[1]: one.ended[JobState.COMPLETED] for name, one in totals}))
        seen[-1]["other"] = totals.others.ended[JobState.COMPLETED]
    assert [set(each) for each in seen] == [{"big", "mid", "other"}] * 4
    assert [each["other"] for each in seen] == [0, 191, 221, 222]
    assert [each["big"] for each in seen] == [100, 101, 101, 101]
    assert [each["mid"] for each in seen] == [50, 50, 50, 4]


def test_a_total_knows_its_parts() -> None:
    found = EndTotal(tuple(range(len(COLUMNS))))
    place = COLUMNS.index
    assert (found.stuck, found.enqueued) == (place("stuck"), place("enqueued"))
    assert (found.waited, found.ran) == (place("waited") / 1e6, place("ran") / 1e3)
    assert found.ended == {state: place(state.lower()) for state in found.ended}
    for what, counts in (("wait", found.waits), ("run", found.runs)):
        assert counts == tuple(place(f"{what}_{number}") for number in range(1, BUCKETS + 1))


# --- the text -----------------------------------------------------------------------------------------------------


def test_a_label_too_few_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Measures().put("unstuck_jobs", 1, "queued")


def test_without_the_library_it_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(InvalidInput, match=r"pip install 'unstuck\[metrics\]'"):
        text_of(Measures())


def test_a_histogram_is_told_in_growing_buckets() -> None:
    found = Measures()
    buckets = Buckets([0] * 14)
    for seconds in (0.001, 0.02, 0.02, 99999.0):
        buckets.add(seconds, (0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0))
    found.put("unstuck_recovery_seconds", buckets)
    told = samples(text_of(found))
    assert value(told, "unstuck_recovery_seconds_bucket", le="0.005") == 1
    assert value(told, "unstuck_recovery_seconds_bucket", le="0.03") == 3
    assert value(told, "unstuck_recovery_seconds_bucket", le="+Inf") == 4
