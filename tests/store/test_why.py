"""Every code of `why`, brought about by the real verbs on both databases."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, begin, boom, chance, settle, submitted
from unstuck.model.errors import UnknownJob
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.why import Reason
from unstuck.model.why.codes import Code
from unstuck.observe.why import why
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.port import Limit, Pause, Share
from unstuck.store.sql_store import SqlStore


def serve(store: SqlStore, worker: WorkerRecord, *workflows: str, queues: tuple[str, ...] = ("default",)) -> None:
    records = [WorkflowRecord(name, "v1", "default", Policy(), {}) for name in workflows]
    store.register_workflows(records, worker=worker.number, queues=queues)


@pytest.fixture
def worker(store: SqlStore) -> WorkerRecord:
    """One that serves what these tests submit."""
    ada = a_worker(store, "ada", info={"slots": 2})
    serve(store, ada, "greet")
    return ada


def codes(store: SqlStore, job: NewJob) -> tuple[Code, ...]:
    return why(store, job.tenant, job.id).codes


def only(store: SqlStore, job: NewJob) -> Reason:
    [reason] = why(store, job.tenant, job.id).reasons
    return reason


def take(store: SqlStore, worker: WorkerRecord, job: NewJob) -> ClaimedJob:
    """A claim that looks at this job first."""
    store.ingest()
    facts = store.gate_facts(job.tenant, job.id)
    assert facts is not None
    floor = (facts.rank, facts.job.number)
    [claimed] = store.claim(worker.number, chance.nonce(), [Share(facts.route, 1, floor, is_limited=True)])
    assert claimed.id == job.id
    return claimed


def by_hand(url: str, sql: str, *values: Any) -> None:
    """What no verb leads to yet."""
    if url.startswith("sqlite"):
        with sqlite3.connect(sqlite_path(url)) as file:
            file.execute(sql.replace("%s", "?"), values)
        file.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(sql, values)


def test_an_unknown_job_and_another_tenants_job_are_unknown(store: SqlStore, worker: WorkerRecord) -> None:
    job = submitted(store)
    for tenant, name in [(TENANT, "no-such-job"), ("other", job.id), (TENANT, "nul\x00")]:
        with pytest.raises(UnknownJob):
            why(store, tenant, name)


# --- time and holds -----------------------------------------------------------------------------------------------


def test_a_delayed_start_is_scheduled(store: SqlStore, worker: WorkerRecord, clock: StoreClock) -> None:
    job = submitted(store, delay=250.0)
    reason = only(store, job)
    assert reason.code is Code.SCHEDULED
    assert reason.until is not None
    assert 248 < (reason.until - clock.now()).total_seconds() < 251
    store.run_now(TENANT, job.id, "me")
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_a_failed_attempt_backs_off(store: SqlStore, worker: WorkerRecord) -> None:
    job = submitted(store, backoff_base=100.0)
    settle(store, worker, take(store, worker, job).ref, boom("no", "Timeout"))
    reason = only(store, job)
    assert reason.code is Code.RETRY_BACKOFF
    assert "attempt 1 failed with Timeout (1 of 4 tries used)" in reason.sentence


def test_a_timer_that_nobody_sweeps_is_told(store: SqlStore, clock: StoreClock) -> None:
    job = submitted(store, delay=10.0)
    clock.advance(60)
    assert set(codes(store, job)) == {Code.NO_WORKER, Code.ENGINE_STALLED, Code.SCHEDULED}


def test_a_held_job_waits_for_its_release(store: SqlStore, worker: WorkerRecord) -> None:
    job = submitted(store, on_hold=True)
    reason = only(store, job)
    assert (reason.code, reason.remedy) == (Code.HELD, f"unstuck jobs release {job.id}")
    store.release(TENANT, job.id, "me")
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_dependencies_are_named_until_they_end(store: SqlStore, worker: WorkerRecord) -> None:
    first = submitted(store)
    job = submitted(store, after=(first.id,))
    store.ingest()
    reason = only(store, job)
    assert reason.code is Code.WAITING_DEPENDENCIES
    assert f"the job that it comes after has not ended: {first.id} (QUEUED)" in reason.sentence
    settle(store, worker, take(store, worker, first).ref)
    assert "have ended; the next look" in only(store, job).sentence
    store.ingest()
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_an_old_body_that_may_live_shuts_its_job_out(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, timeout=10.0)
    begin(store, worker, take(store, worker, job), lease=30.0)
    clock.advance(25)
    assert [found.id for found in store.convict_overdue(0.0, 0.0)] == [job.id]
    assert set(codes(store, job)) == {Code.ENDED, Code.STUCK}
    store.resume(TENANT, job.id, "me")
    reason = only(store, job)
    assert reason.code is Code.BODY_MAY_LIVE
    assert "worker ada" in reason.sentence
    assert store.lift_body_mark(worker.number, _number(store, job))
    assert codes(store, job) == (Code.CLAIMABLE,)


def _number(store: SqlStore, job: NewJob) -> int:
    record = store.get(job.tenant, job.id)
    assert record is not None
    return record.number


def test_a_job_that_stands_nowhere_is_told(store: SqlStore, worker: WorkerRecord, store_url: str) -> None:
    job = submitted(store)
    by_hand(store_url, "DELETE FROM unstuck_ready")
    assert codes(store, job) == (Code.UNPLACED,)


# --- targets ------------------------------------------------------------------------------------------------------


def test_a_target_runs_one_job_at_a_time(store: SqlStore, worker: WorkerRecord) -> None:
    first, second, third = (submitted(store, target="acme") for _ in range(3))
    assert codes(store, first) == (Code.CLAIMABLE,)
    assert only(store, second).code is Code.TARGET_BUSY
    take(store, worker, first)
    reason = only(store, third)
    assert f"job {first.id} is running" in reason.sentence
    assert reason.details["ahead"] == 1
    assert reason.remedy == f"unstuck why {first.id}"


def test_a_failed_job_blocks_its_target_and_says_so(store: SqlStore, worker: WorkerRecord) -> None:
    first, second = submitted(store, target="acme", retries=0), submitted(store, target="acme")
    settle(store, worker, take(store, worker, first).ref, boom())
    reason = only(store, second)
    assert (reason.code, reason.remedy) == (Code.TARGET_BLOCKED, f"unstuck jobs resume {first.id}")
    assert f"blocked by FAILED job {first.id} (ValueError)" in reason.sentence
    assert "target acme is blocked, 1 job behind it" in only(store, first).sentence
    store.skip(TENANT, first.id, "me")
    assert codes(store, second) == (Code.CLAIMABLE,)


def test_a_paused_target_is_shut_until_its_pause_ends(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, target="acme")
    store.ingest()
    store.pause(Pause("target", "acme", TENANT, "dana", reason="moving house"))
    reason = only(store, job)
    assert (reason.code, reason.remedy) == (Code.TARGET_PAUSED, "unstuck targets unpause acme")
    assert "paused by dana" in reason.sentence
    assert '("moving house")' in reason.sentence
    store.unpause("target", "acme", TENANT)
    assert codes(store, job) == (Code.CLAIMABLE,)
    store.pause(Pause("target", "acme", TENANT, "dana", until_at=clock.now() + timedelta(seconds=10)))
    clock.advance(15)
    assert "the next sweep lets its jobs go on" in only(store, job).sentence
    store.release_due()
    assert codes(store, job) == (Code.CLAIMABLE,)


# --- the route's gates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("queue", "default", Code.QUEUE_PAUSED),
        ("workflow", "greet", Code.WORKFLOW_PAUSED),
        ("tenant", TENANT, Code.TENANT_PAUSED),
    ],
)
def test_pauses_shut_routes_and_open_by_themselves(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock, kind: Any, name: str, code: Code
) -> None:
    job = submitted(store)
    far = clock.now().replace(year=clock.now().year + 1)
    store.pause(Pause(kind, name, TENANT, "dana", until_at=far, reason="vendor outage"))
    reason = only(store, job)
    assert (reason.code, reason.until, reason.details["by"]) == (code, far, "dana")
    assert reason.remedy == f"unstuck {kind}s unpause {name}"
    store.unpause(kind, name, TENANT)
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_a_concurrency_limit_that_is_used_up_is_told(store: SqlStore, worker: WorkerRecord) -> None:
    store.set_limit(Limit("workflow", "greet", TENANT, "dana", concurrency=1))
    first, second = submitted(store), submitted(store)
    attempt = take(store, worker, first)
    reason = only(store, second)
    assert reason.code is Code.CONCURRENCY_LIMIT
    assert "workflow greet has 1 of 1 running" in reason.sentence
    assert reason.remedy == "unstuck workflows limit greet --concurrency N"
    settle(store, worker, attempt.ref)
    assert codes(store, second) == (Code.CLAIMABLE,)


def test_a_rate_that_is_used_up_says_when_the_next_may_start(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    store.set_limit(Limit("queue", "default", TENANT, "dana", rate=1, per=600.0))
    first, second = submitted(store), submitted(store)
    settle(store, worker, take(store, worker, first).ref)
    reason = only(store, second)
    assert reason.code is Code.RATE_LIMITED
    assert reason.until is not None
    assert 500 < (reason.until - clock.now()).total_seconds() < 601


# --- workers ------------------------------------------------------------------------------------------------------


def test_a_queue_that_nobody_serves_is_told_with_who_was_last_seen(store: SqlStore, clock: StoreClock) -> None:
    job = submitted(store)
    assert "none ever did" in only(store, job).sentence
    ada = a_worker(store, lease=30.0)
    serve(store, ada, "greet", queues=("gpu",))
    assert only(store, job).code is Code.NO_WORKER
    serve(store, ada, "greet", queues=("default", "gpu"))
    assert codes(store, job) == (Code.CLAIMABLE,)
    clock.advance(3600)
    reason = only(store, job)
    assert reason.code is Code.NO_WORKER
    assert "the last one was seen 1h ago" in reason.sentence


def test_a_worker_without_the_workflow_lacks_code(store: SqlStore) -> None:
    """A59: and it is told which version knew it."""
    job = submitted(store, workflow="crawl")
    store.register_workflows([WorkflowRecord("crawl", "v0", "default", Policy(), {})])
    serve(store, a_worker(store), "greet")
    reason = only(store, job)
    assert reason.code is Code.WORKER_LACKS_CODE
    assert "1 live worker on queue default, none has workflow crawl (code v1); code v0 had it" in reason.sentence


def test_a_worker_whose_app_is_not_imported_is_told_with_its_problem(store: SqlStore) -> None:
    job = submitted(store)
    ada = a_worker(store)
    assert only(store, job).code is Code.APP_NOT_LOADED
    store.beat(ada.number, 30.0, [], info={"import_error": "Traceback …\nModuleNotFoundError: shop"})
    assert only(store, job).sentence.endswith("ModuleNotFoundError: shop")


def test_draining_workers_take_nothing_new(store: SqlStore, worker: WorkerRecord) -> None:
    job = submitted(store)
    store.beat(worker.number, 30.0, [], state="draining")
    reason = only(store, job)
    assert reason.code is Code.WORKERS_DRAINING
    assert "(ada)" in reason.sentence


def test_busy_slots_and_others_before_it_are_details_of_runnable(store: SqlStore, worker: WorkerRecord) -> None:
    """A57"""
    first, second, last = (submitted(store) for _ in range(3))
    high = submitted(store, priority=5)
    found = why(store, TENANT, last.id)
    assert (found.is_runnable, found.codes) == (True, (Code.LOWER_PRIORITY, Code.OTHERS_FIRST))
    assert [reason.details["jobs"] for reason in found.reasons] == [1, 2]
    take(store, worker, first)
    take(store, worker, second)
    found = why(store, TENANT, high.id)
    assert (found.is_runnable, found.codes) == (True, (Code.WORKERS_FULL,))
    assert "all 2 slots of the worker that serves it are busy" in found.verdict


# --- what cannot be written, who cannot work ----------------------------------------------------------------------

FAILS = {"failing_for": 40.0, "failures": 12, "error": "RuntimeError: column gone"}


def test_a_job_whose_start_was_set_aside_says_so_until_it_leaves(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, delay=5.0)
    clock.advance(10)
    store.quarantine("start", {_number(store, job): "it raises"}, by="ada")
    found = why(store, TENANT, job.id)
    assert (found.is_runnable, found.codes) == (False, (Code.QUARANTINED, Code.SCHEDULED))
    assert "cannot be brought into the queue since " in found.verdict
    assert "(tried once): it raises; every sweep tries it again, alone" in found.verdict
    assert found.reasons[0].remedy == f"unstuck quarantine retry {job.id}"
    store.leave_quarantine("start", _number(store, job))
    store.release_due()
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_a_job_whose_target_was_set_aside_says_so_and_anothers_target_is_no_matter(
    store: SqlStore, worker: WorkerRecord, store_url: str
) -> None:
    job, other = submitted(store, target="acme"), submitted(store, target="ajax")
    target = store.target(TENANT, "acme")
    assert target is not None
    store.quarantine("target", {target.number: "it raises"}, by="ada")
    assert codes(store, job) == (Code.QUARANTINED,)
    assert codes(store, other) == (Code.CLAIMABLE,)


def test_a_running_job_whose_result_or_recovery_was_set_aside_says_so(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store)
    number = take(store, worker, job).ref.job
    store.quarantine("settle", {number: "check violated"}, by="ada")
    reason = only(store, job)
    assert reason.code is Code.QUARANTINED
    assert reason.sentence.startswith("its attempt has ended, and its end cannot be written since ")
    assert reason.sentence.endswith(": check violated; its worker tries again")
    store.leave_quarantine("settle", number)
    clock.advance(100)
    store.quarantine("recover", {number: "check violated"}, by="zoe")
    a_worker(store, "zoe")
    assert codes(store, job) == (Code.QUARANTINED, Code.LEASE_EXPIRED)


def test_a_running_job_whose_end_can_be_written_nowhere_is_told_by_its_worker(
    store: SqlStore, worker: WorkerRecord
) -> None:
    """The database refuses its end and its place in the quarantine; what its worker says with its beat is left."""
    job, other = submitted(store), submitted(store)
    held = [take(store, worker, each).ref for each in (job, other)]
    number = held[0].job
    store.beat(worker.number, 600.0, held, info={"roles": [{**FAILS, "name": f"settle/job {number}"}]})
    reason = only(store, job)
    assert reason.code is Code.QUARANTINED
    assert reason.sentence.startswith("its attempt has ended, and its end cannot be written since ")
    assert reason.sentence.endswith("column gone; its worker tries again")
    assert codes(store, other) == (Code.RUNNING,)
    store.cancel(TENANT, job.id, "dana")
    assert codes(store, job) == (Code.QUARANTINED,)


@pytest.mark.parametrize(("state", "duty"), [("PENDING", "dependants"), ("WAITING", "wait"), ("PENDING", "children")])
def test_a_job_at_rest_that_was_set_aside_says_so(
    store: SqlStore, worker: WorkerRecord, store_url: str, state: str, duty: Any
) -> None:
    job = submitted(store, on_hold=True)
    by_hand(store_url, "UPDATE unstuck_jobs SET state = %s", state)
    store.quarantine(duty, {_number(store, job): "no"}, by="ada")
    assert codes(store, job)[0] is Code.QUARANTINED


def test_workers_that_cannot_claim_or_settle_are_told(store: SqlStore, worker: WorkerRecord) -> None:
    job, runs = submitted(store), submitted(store)
    held = [take(store, worker, runs).ref]
    store.beat(worker.number, 30.0, held, info={"slots": 2, "roles": [{"name": "claim", **FAILS}]})
    found = why(store, TENANT, job.id)
    assert (found.is_runnable, found.codes) == (False, (Code.WORKER_FAILING,))
    assert "cannot take it: claim has failed there for 40s (12 times): RuntimeError: column gone" in found.verdict
    assert codes(store, runs) == (Code.RUNNING,)
    store.beat(worker.number, 30.0, held, info={"slots": 2, "roles": [{"name": "settle", **FAILS}]})
    assert codes(store, runs) == (Code.WORKER_FAILING, Code.RUNNING)
    store.beat(worker.number, 30.0, held, info={"slots": 2, "roles": "nonsense"})
    assert (codes(store, job), codes(store, runs)) == ((Code.CLAIMABLE,), (Code.RUNNING,))


# --- running and ended --------------------------------------------------------------------------------------------


def test_a_running_job_says_where_and_a_cancelled_one_until_when(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, grace=10.0)
    take(store, worker, job)
    found = why(store, TENANT, job.id)
    assert (found.codes, found.is_runnable) == ((Code.RUNNING,), False)
    assert "worker ada" in found.verdict
    store.cancel(TENANT, job.id, "me", "not wanted")
    reason = only(store, job)
    assert reason.code is Code.CANCELLING
    assert '("not wanted")' in reason.sentence
    assert reason.until is not None
    assert (reason.until - clock.now()).total_seconds() < 10
    clock.advance(40)
    assert set(codes(store, job)) == {Code.LEASE_EXPIRED}
    clock.advance(60)
    assert set(codes(store, job)) == {Code.LEASE_EXPIRED, Code.ENGINE_STALLED}


def test_stopped_and_ended_jobs_say_what_can_be_done(store: SqlStore, worker: WorkerRecord) -> None:
    job, other = submitted(store), submitted(store, retries=0)
    store.interrupt(TENANT, job.id, "me")
    assert (only(store, job).code, only(store, job).remedy) == (Code.PAUSED, f"unstuck jobs resume {job.id}")
    settle(store, worker, take(store, worker, other).ref, boom("no more"))
    assert only(store, other).code is Code.ENDED
    assert "FAILED with ValueError: no more" in only(store, other).sentence


def test_parked_and_dead_jobs_say_so(store: SqlStore, worker: WorkerRecord, store_url: str) -> None:
    job, other = submitted(store), submitted(store)
    settle(store, worker, take(store, worker, other).ref)
    by_hand(store_url, "UPDATE unstuck_jobs SET state = 'WAITING' WHERE uid = %s", job.id)
    by_hand(store_url, "UPDATE unstuck_done SET state = 'DEAD'")
    assert codes(store, job) == (Code.WAITING,)
    assert codes(store, other) == (Code.DEAD,)
    assert why(store, TENANT, other.id).state is JobState.DEAD
