"""A job's policy: what it says itself over the row of its workflow, whoever enqueues it and whenever."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import a_job, a_worker, claim_all, record
from unstuck.model.errors import InvalidPolicy
from unstuck.model.job import NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy, said
from unstuck.store.sql_store import SqlStore


def saying(workflow: str = "greet", guess: Policy | None = None, **options: Any) -> NewJob:
    """A job of somebody whose own settings are `guess`."""
    policy = (guess or Policy()).with_("w", options)
    return a_job(workflow=workflow, policy=policy, said=said("w", options), max_timeout=3600.0)


def register(store: SqlStore, worker: WorkerRecord | None = None, version: str = "v1", **policy: Any) -> None:
    rule = WorkflowRecord("greet", version, "default", Policy().with_("w", policy), {}, max_timeout=3600.0)
    store.register_workflows([rule], worker=None if worker is None else worker.number, queues=["default"])


def policy_of(store: SqlStore, job: NewJob) -> Policy:
    store.submit([job])
    return record(store, job.id).policy


def test_the_row_decides_what_the_job_leaves_open(store: SqlStore) -> None:
    register(store, grace=3, budget={"tokens": 10})
    found = policy_of(store, saying(guess=Policy(grace=99.0, retries=9), timeout=5))
    assert (found.grace, found.timeout, found.retries, dict(found.budget)) == (3.0, 5, 3, {"tokens": 10.0})


def test_a_registration_is_noticed_by_the_next_submit(store: SqlStore) -> None:
    """The process that enqueues has looked the row up before, and nobody tells it."""
    register(store, grace=3)
    assert policy_of(store, saying()).grace == 3.0
    register(store, grace=4)
    assert policy_of(store, saying()).grace == 4.0


def test_a_registration_is_noticed_whatever_the_clock_says(store: SqlStore, clock: Any) -> None:
    register(store, grace=3)
    policy_of(store, saying())
    clock.advance(hours=-1)
    register(store, grace=4)
    assert policy_of(store, saying()).grace == 4.0


def test_what_was_stored_keeps_its_policy(store: SqlStore) -> None:
    register(store, grace=3)
    job = saying()
    store.submit([job])
    register(store, grace=4)
    assert record(store, job.id).policy.grace == 3.0


def test_before_any_worker_the_policy_is_open_and_the_first_registration_fills_it_in(store: SqlStore) -> None:
    jobs = [saying(guess=Policy(grace=99.0)), saying(retries=1), saying(workflow="other")]
    store.submit(jobs)
    assert record(store, jobs[0].id).policy.grace == 99.0

    register(store, grace=3, retries=7)

    found = [record(store, job.id).policy for job in jobs]
    assert [(p.grace, p.retries) for p in found] == [(3.0, 7), (3.0, 1), (10.0, 3)]
    attempts = {attempt.id: attempt.policy for attempt in claim_all(store, a_worker(store))}
    assert attempts == {job.id: policy for job, policy in zip(jobs, found, strict=True)}


def test_a_longer_timeout_than_the_row_allows_is_refused(store: SqlStore) -> None:
    with pytest.raises(InvalidPolicy, match="workflow greet: timeout=3601 is above max_timeout=3600"):
        store.submit([saying(timeout=3601)])
    rule = WorkflowRecord("greet", "v1", "default", Policy(), {}, max_timeout=5000.0)
    store.register_workflows([rule])
    assert policy_of(store, saying(timeout=4000)).timeout == 4000
    with pytest.raises(InvalidPolicy, match="timeout=5001 is above max_timeout=5000"):
        store.submit([saying(timeout=5001)])
    assert policy_of(store, saying(timeout="unlimited")).timeout == "unlimited"


def test_a_job_that_says_nothing_of_a_rule_has_exactly_its_policy(store: SqlStore) -> None:
    """As a replay: the policy of the job that it repeats."""
    register(store, grace=3)
    assert policy_of(store, a_job(workflow="greet", policy=Policy(grace=8.0))).grace == 8.0


def test_the_stay_in_the_queue_is_the_rows(store: SqlStore, clock: Any) -> None:
    register(store, expires_after=60)
    job = saying()
    store.submit([job])
    clock.advance(61)
    store.release_due()
    assert record(store, job.id).error_type == "QueueTimeout"


# --- which version's row -----------------------------------------------------------------------------------------


def test_an_old_worker_that_starts_late_changes_nothing_at_the_doors(store: SqlStore) -> None:
    new, old = a_worker(store, "new"), a_worker(store, "old")
    register(store, version="v1", grace=1)
    register(store, new, version="v2", grace=2)
    register(store, old, version="v1", grace=1)

    chosen = store.workflow("greet")
    assert chosen is not None
    assert chosen.code_version == "v2"
    assert [w.code_version for w in store.workflows()] == ["v2"]
    assert policy_of(store, saying()).grace == 2.0


def test_a_version_without_workers_gives_way_to_one_that_has_some(store: SqlStore) -> None:
    """A deploy that was taken back."""
    new = a_worker(store, "new")
    register(store, version="v1", grace=1)
    register(store, new, version="v2", grace=2)
    assert policy_of(store, saying()).grace == 2.0

    store.unregister_worker(new.number)
    register(store, a_worker(store, "old"), version="v1", grace=1)

    chosen = store.workflow("greet")
    assert chosen is not None
    assert chosen.code_version == "v1"
    assert policy_of(store, saying()).grace == 1.0


def test_with_no_worker_at_all_the_newest_version_stands(store: SqlStore) -> None:
    register(store, version="v1")
    register(store, version="v2")
    register(store, version="v1", grace=5)
    chosen = store.workflow("greet")
    assert chosen is not None
    assert chosen.code_version == "v2"
