"""Whoever holds a key signs by itself, on every road by which a job is stored; what must be signed and cannot be is
refused before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import a_worker, claim_all, settle
from tests.support.signing import ALGORITHMS, OTHER, a_key, toml
from tests.support.troubles import execute
from unstuck import App, Job
from unstuck.machine import INCARNATION_TAG
from unstuck.model.errors import Conflict, InvalidInput, InvalidSettings, SignatureRefused
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope, SignatureProblem, purpose_of
from unstuck.signing import SigningKeys, StoredCall, read_keys
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

KEYS = toml(a_key(), a_key("maker", "ed25519", secret=OTHER, purposes=("spawn",)))


def an_app(url: str, **settings: Any) -> App:
    return App(url, tenant="acme", **{"signing_keys": KEYS, **settings})


def greeting(app: App, **options: Any) -> Any:
    @app.workflow(name="greet", **options)
    def greet(name: str, times: int = 1) -> str:
        return name * times

    return greet


def found(store: SqlStore, job: Job[Any]) -> Envelope:
    """The envelope of a job that could be claimed as it stands."""
    record = store.get("acme", job.id)
    assert record is not None
    assert record.signature is not None
    told = Envelope.of(record.signature)
    assert told is not None
    call = StoredCall(
        job=record.id,
        tenant=record.tenant,
        workflow=record.workflow,
        queue=record.queue,
        target=record.target,
        priority=record.priority,
        payload=record.payload,
        policy=record.policy,
        purpose=purpose_of(record.made_by),
    )
    late = datetime.now(UTC) + timedelta(days=3650)
    keys = SigningKeys(read_keys(KEYS))
    assert keys.problem_at_claim(call, told, late) is None
    assert keys.problem_at_claim(replace(call, payload="{}"), told, late) is SignatureProblem.ALTERED
    return told


ROADS: dict[str, Callable[[Any], Job[Any]]] = {
    "plain": lambda greet: greet.enqueue("Ada"),
    "of a coroutine": lambda greet: asyncio.run(greet.aenqueue("Ada")),
    "one of many": lambda greet: greet.enqueue_many(["Ada", "Bob", "Eve"])[2],
    "with a target": lambda greet: greet.using(target="desk").enqueue("Ada"),
    "many with targets": lambda greet: greet.using(target="desk").enqueue_many(["Ada", "Bob"])[1],
    "with a key": lambda greet: greet.using(key="k").enqueue("Ada"),
    "with an id": lambda greet: greet.using(id="0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36").enqueue("Ada"),
    "with tags": lambda greet: greet.using(tags=["a"]).enqueue("Ada"),
    "with another policy": lambda greet: greet.using(retries=9, timeout=5, budget={"tokens": 3}).enqueue("Ada"),
    "without a time limit": lambda greet: greet.using(timeout="unlimited").enqueue("Ada"),
    "elsewhere": lambda greet: greet.using(queue="other", priority=-4).enqueue("Ada"),
    "with letters beyond ASCII": lambda greet: greet.using(target="käse").enqueue("Ä\U0001f600\n\\u0041"),
    "held": lambda greet: greet.using(hold=True).enqueue("Ada"),
}


@pytest.mark.parametrize("road", ROADS)
def test_what_is_signed_is_what_is_stored(road: str, store: SqlStore, store_url: str) -> None:
    with an_app(store_url) as app:
        told = found(store, ROADS[road](greeting(app)))
    assert told.key == "web"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_many_each_is_signed(algorithm: str, store: SqlStore, store_url: str) -> None:
    with an_app(store_url, signing_keys=toml(a_key(algorithm=algorithm))) as app:
        jobs = greeting(app).enqueue_many([f"name {number}" for number in range(250)])
    signatures = {record.signature for record in store.jobs("acme", JobFilter(), limit=250).jobs}
    assert None not in signatures
    assert len(signatures) == len(jobs) == 250


def test_the_time_limit_of_the_workflows_row_is_signed(store: SqlStore, store_url: str) -> None:
    """The program that enqueues knows nothing of the settings of the worker that will run it."""
    with an_app(store_url) as app:
        greet = greeting(app)
        before = greet.enqueue("nobody has registered it yet")
        store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(timeout=7.0, retries=1), {})])
        first, second = greet.enqueue("Ada"), greet.enqueue("Bob")
        for job in (before, first, second):
            found(store, job)
        record = store.get("acme", second.id)
        assert record is not None
        assert (record.policy.timeout, record.policy.retries) == (7.0, 1)
        store.register_workflows([WorkflowRecord("greet", "v2", "default", Policy(timeout=8.0), {})])
        third = store.get("acme", greet.enqueue("Eve").id)
        assert third is not None
        assert third.policy.timeout == 8.0


def test_a_delay_becomes_a_time_that_is_signed(store: SqlStore, store_url: str) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    with an_app(store_url) as app:
        later = greeting(app).using(delay=3600).enqueue("Ada")
        told = found(store, later)
        record = store.get("acme", later.id)
        assert record is not None
        assert told.not_before == round(record.available_at.timestamp() * 1_000_000)
        assert timedelta(minutes=59) < record.available_at - store.now() <= timedelta(minutes=61)
    with an_app(store_url) as app:
        told = found(store, greeting(app).using(at=at).enqueue("Ada"))
        assert told.not_before == round(at.timestamp() * 1_000_000)


def test_operations_of_an_app_sign_too(store: SqlStore, store_url: str) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(timeout=9.0), {})])
    with an_app(store_url) as app:
        view = app.jobs.enqueue("greet", args=["Ada"], policy={"retries": 4})
        found(store, app.job(view.id))
        assert app.jobs.get(view.id).signed_by == "web"


def test_an_app_without_keys_signs_nothing(store: SqlStore, store_url: str) -> None:
    with App(store_url, tenant="acme") as app:
        job = greeting(app).enqueue("Ada")
        assert app.jobs.get(job.id).signed_by is None
    record = store.get("acme", job.id)
    assert record is not None
    assert record.signature is None


def test_who_only_verifies_signs_nothing(store: SqlStore, store_url: str) -> None:
    public = a_key(algorithm="ed25519").for_verifying()
    with an_app(store_url, signing_keys=toml(public)) as app:
        record = store.get("acme", greeting(app).enqueue("Ada").id)
    assert record is not None
    assert record.signature is None


# --- where it is required -----------------------------------------------------------------------------------------


def nothing_is_stored(store: SqlStore) -> bool:
    return not store.jobs(None, JobFilter()).jobs


@pytest.mark.parametrize("rule", ["tenant:acme", "queue:default", "workflow:greet", "*", "queue:x, *"])
def test_what_is_required_and_cannot_be_signed_is_refused(rule: str, store: SqlStore, store_url: str) -> None:
    foreign = toml(a_key(tenant="other"))
    with an_app(store_url, signing_keys=foreign, require_signature=rule) as app:
        greet = greeting(app)
        with pytest.raises(SignatureRefused) as refused:
            greet.enqueue("Ada")
        assert refused.value.problem == "missing"
        with pytest.raises(SignatureRefused):
            greet.enqueue_many(["Ada", "Bob"])
    assert nothing_is_stored(store)


def test_what_is_not_required_needs_no_key(store: SqlStore, store_url: str) -> None:
    foreign = toml(a_key(tenant="other"))
    with an_app(store_url, signing_keys=foreign, require_signature=["queue:money"]) as app:
        assert greeting(app).enqueue("Ada").id


@pytest.mark.parametrize("settings", [{"require_signature": "tenant:other"}, {}])
def test_an_app_that_requires_signatures_and_has_no_key_begins_nothing(
    settings: dict[str, Any], store: SqlStore, store_url: str
) -> None:
    """A44: by its settings, or by what its code says of a workflow."""
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    with App(store_url, **settings) as app:
        greet = greeting(app, require_signature=not settings)
        with pytest.raises(InvalidSettings, match="a signature is required"):
            greet.enqueue("Ada")
        with pytest.raises(InvalidSettings, match="a signature is required"):
            app.jobs.enqueue("greet", args=["Ada"])
    assert nothing_is_stored(store)


def test_a_handlers_process_has_no_keys_and_is_refused_what_needs_them_alone(
    store: SqlStore, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the keys are: what it spawns is signed by its supervisor."""
    monkeypatch.setenv(INCARNATION_TAG, "x")
    with an_app(store_url, require_signature="queue:money") as app:
        greet = greeting(app)
        assert app.jobs.get(greet.enqueue("Ada").id).signed_by is None
        with pytest.raises(SignatureRefused):
            greet.using(queue="money").enqueue("Ada")


def test_the_code_of_a_workflow_may_require_it(store: SqlStore, store_url: str) -> None:
    with an_app(store_url) as app:
        found(store, greeting(app, require_signature=True).enqueue("Ada"))
    [record] = app._registry.records()
    assert record.require_signature
    with pytest.raises(InvalidInput, match="require_signature='yes' is not true or false"):
        greeting(App(store_url), require_signature="yes")


@pytest.mark.parametrize("keys", ["/nowhere/keys.toml", "[[key]]\nid = 'a b'"])
def test_keys_that_cannot_be_read_are_told_at_the_first_submit(keys: str, store: SqlStore, store_url: str) -> None:
    with an_app(store_url, signing_keys=keys) as app, pytest.raises(InvalidSettings):
        greeting(app).enqueue("Ada")
    assert nothing_is_stored(store)


def end_all(store: SqlStore) -> None:
    worker = a_worker(store)
    for job in claim_all(store, worker):
        settle(store, worker, job.ref)


# --- what is signed stays as it is --------------------------------------------------------------------------------


def test_neither_priority_nor_time_of_a_signed_job_can_be_changed(store: SqlStore, store_url: str) -> None:
    with an_app(store_url) as app:
        greet = greeting(app)
        job, later = greet.enqueue("Ada"), greet.using(delay=3600).enqueue("Ada")
        with pytest.raises(Conflict, match="is signed"):
            app.jobs.reprioritise(job.id, 5)
        with pytest.raises(Conflict, match="is signed"):
            app.jobs.run_now(later.id)
        app.jobs.cancel(later.id)
        with pytest.raises(Conflict, match="is signed"):
            app.jobs.resume(later.id)
        found(store, job)


def test_an_unsigned_job_can_be_hurried_and_reprioritised(store: SqlStore, store_url: str) -> None:
    with App(store_url) as app:
        job = greeting(app).using(delay=3600).enqueue("Ada")
        assert app.jobs.reprioritise(job.id, 5).priority == 5
        assert app.jobs.run_now(job.id).id == job.id


def test_a_replay_is_signed_by_a_key_for_what_the_engine_makes(store: SqlStore, store_url: str) -> None:
    with an_app(store_url, require_signature="*") as app:
        job = greeting(app).enqueue("Ada")
        end_all(store)
        assert app.jobs.get(job.id).state is JobState.COMPLETED
        again = job.replay()
        assert found(store, again).key == "maker"


def test_a_replay_does_not_sign_what_somebody_changed(store: SqlStore, store_url: str) -> None:
    with an_app(store_url, require_signature="*") as app:
        job = greeting(app).enqueue("Ada")
        end_all(store)
        execute(store_url, f"UPDATE unstuck_jobs SET payload = replace(payload, 'Ada', 'Eve') WHERE uid = '{job.id}'")
        with pytest.raises(SignatureRefused) as refused:
            job.replay()
        assert refused.value.problem == "altered"


def test_a_replay_does_not_sign_what_a_revoked_key_had_signed(store: SqlStore, store_url: str) -> None:
    """An operator may replay; to sign a dead letter anew takes an admin who looked at it"""
    with an_app(store_url, require_signature="*") as app:
        job = greeting(app).enqueue("Ada")
        end_all(store)
        store.revoke_signer("web", "kim")
        with pytest.raises(SignatureRefused) as refused:
            job.replay()
        assert refused.value.problem == "revoked"
        store.unrevoke_signer("web", "kim")
        assert found(store, job.replay()).key == "maker"


def test_a_replay_of_what_nobody_had_signed_is_not_signed_either(store: SqlStore, store_url: str) -> None:
    """Its workers' code may require that: they refused the job, and would run what repeats it"""
    with App(store_url, tenant="acme") as app:
        job = greeting(app).enqueue("Ada")
    end_all(store)
    with an_app(store_url) as app:
        again = store.get("acme", app.jobs.replay(job.id).id)
    assert again is not None
    assert (again.made_by, again.signature) == ("replay", None)
