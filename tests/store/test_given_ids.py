"""An id that the caller chose: the same call again is the same job, another call a conflict."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.builders import TENANT, a_job, kinds, record
from tests.support.tables import counts_of_tables
from tests.tiers import in_tiers
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import IdConflict, InvalidInput, WorkflowBlacklisted
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Submitted
from unstuck.store.sql_store import SqlStore

WORKFLOW = WorkflowRecord("greet", "v1", "default", Policy(), {})


def given(**options: Any) -> NewJob:
    return a_job(**{"id": str(uuid4()), "payload": "[1]", **options, "has_given_id": True})


def test_the_same_call_under_the_same_id_is_the_earlier_job(store: SqlStore) -> None:
    job = given()
    assert store.submit([job]) == [Submitted(job.id, True)]
    store.cancel(TENANT, job.id, by="ada")

    again = replace(job, priority=5, delay=10.0)
    assert store.submit([again]) == [Submitted(job.id, False)], "times and priority may differ, as with a key"

    assert (record(store, job.id).state, record(store, job.id).priority) == (JobState.CANCELLED, 0)
    assert kinds(store, job.id) == ["submitted", "cancelled"]


@pytest.mark.parametrize("change", [{"payload": "[2]"}, {"workflow": "other"}, {"tenant": "zeta"}])
def test_another_call_or_tenant_under_a_known_id_is_a_conflict_that_tells_nothing(
    store: SqlStore, store_url: str, change: dict[str, Any]
) -> None:
    job = given()
    store.submit([job])
    store.submit([a_job(workflow="other"), a_job(tenant="zeta")])
    before = counts_of_tables(store_url)

    with pytest.raises(IdConflict) as conflict:
        store.submit([given(), replace(job, **change)])

    assert str(conflict.value) == f"the id {job.id} belongs to another job; use another id for another job"
    after = counts_of_tables(store_url)
    assert {name: after[name] for name in after if name != "unstuck_routes"} == {
        name: before[name] for name in before if name != "unstuck_routes"
    }, "all or nothing: the new one beside it was not stored either"


def test_twins_in_one_batch_are_one_job_or_a_conflict(store: SqlStore) -> None:
    job = given()
    assert Counter(store.submit([job, replace(job)])) == {Submitted(job.id, True): 1, Submitted(job.id, False): 1}
    other = given()
    with pytest.raises(IdConflict):
        store.submit([other, replace(other, payload="[2]")])
    assert store.get(TENANT, other.id) is None


def test_ids_of_our_own_making_are_repeated_as_before(store: SqlStore) -> None:
    job = a_job()
    assert (store.submit([job]), store.submit([job])) == ([Submitted(job.id, True)], [Submitted(job.id, False)])


def test_a_repeat_is_answered_although_nothing_of_the_workflow_is_accepted_any_more(store: SqlStore) -> None:
    job = given(target="acme", tags=("a",), key="k1", fingerprint="f")
    store.submit([job])
    store.blacklist_add(TENANT, job.workflow, "stuck", "ada")
    assert store.submit([job]) == [Submitted(job.id, False)]
    unkeyed = given()
    with pytest.raises(WorkflowBlacklisted):
        store.submit([unkeyed])
    assert store.get(TENANT, unkeyed.id) is None


@in_tiers("rounds", 5, 50)
def test_of_many_who_submit_it_at_once_one_creates_it(store: SqlStore, store_url: str, rounds: int) -> None:
    others = [SqlStore(open_database(store_url, store_call=20.0)) for _ in range(4)]
    for number in range(rounds):
        job, barrier = given(), threading.Barrier(len(others))
        answers: list[Submitted | IdConflict] = []

        def submit(
            mine: SqlStore,
            asked: NewJob,
            barrier: threading.Barrier = barrier,
            answers: list[Submitted | IdConflict] = answers,
        ) -> None:
            barrier.wait()
            try:
                answers.extend(mine.submit([asked]))
            except IdConflict as conflict:
                answers.append(conflict)

        # In every other round one of them asks for something else.
        calls = [replace(job, payload="[2]") if place == 0 and number % 2 else job for place in range(len(others))]
        threads = [threading.Thread(target=submit, args=pair) for pair in zip(others, calls, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        kinds_of = Counter(
            "created" if getattr(answer, "created", None) else type(answer).__name__ for answer in answers
        )
        assert kinds_of["created"] == 1
        assert kinds_of["IdConflict"] in ((1, len(others) - 1) if number % 2 else (0,))
        assert kinds(store, job.id) == ["submitted"]
    for mine in others:
        mine.close()


# --- at the door --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["4", "7"])
def test_the_door_takes_a_uuid_in_its_usual_spelling(store: SqlStore, version: str) -> None:
    text = f"0190B7A2-6C3E-{version}D41-9F0A-5B8E2C7D1F36"
    submitter = Submitter(store)
    for ident in (text, text.lower(), UUID(text)):
        job = submitter.job(WORKFLOW, "[1]", Options().with_(id=ident))
        (stored,) = submitter.submit([job])
        assert (stored.id, stored.created) == (text.lower(), ident == text)
    with pytest.raises(IdConflict):
        submitter.submit([submitter.job(WORKFLOW, "[2]", Options().with_(id=text))])


@pytest.mark.parametrize(
    "ident",
    [
        "order-42",
        "",
        42,
        "0190b7a26c3e7d419f0a5b8e2c7d1f36",
        "0190b7a2-6c3e-1d41-9f0a-5b8e2c7d1f36",  # version 1
        "0190b7a2-6c3e-7d41-1f0a-5b8e2c7d1f36",  # no variant of ours
        "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36\n",
        "{0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36}",
    ],
)
def test_what_is_no_such_uuid_is_refused(ident: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is not a UUID of version 4 or 7"):
        Options().with_(id=ident)


def test_an_id_names_one_job(store: SqlStore) -> None:
    submitter = Submitter(store)
    pattern = submitter.pattern(WORKFLOW, Options().with_(id=str(uuid4())))
    with pytest.raises(InvalidInput, match="names one job, and these are 2"):
        submitter.jobs(pattern, ["[1]", "[2]"])
