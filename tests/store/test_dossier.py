"""Everything about one job: the same as by a question for each thing, by far fewer of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import TENANT, boom, claim_all, submitted
from tests.support.parking import Stage
from tests.support.round_trips import RoundTrips
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.database import Database
from unstuck.store.port import AttemptOutput, Dossier
from unstuck.store.sql_store import SqlStore


def one_by_one(store: SqlStore, job: str, last: int | None) -> dict[str, Any]:
    record = store.get(TENANT, job)
    assert record is not None
    return {
        "job": record,
        "events": store.history(TENANT, job, 0 if last is None else max(0, record.events - last)),
        "attempts": store.attempts(TENANT, job, 0 if last is None else max(0, record.token - last)),
        "progress": store.progress_of(TENANT, job),
        "steps": store.steps_of(TENANT, job),
        "waits": store.waits_of(TENANT, job),
        "usage": store.usage_of(TENANT, job),
        "children": store.children_of(TENANT, job),
        "parent": store.parent_of(TENANT, job),
        "parts": len(store.parts_of(TENANT, job)),
    }


def at_once(store: SqlStore, job: str, last: int | None = None) -> Dossier:
    found = store.dossier(TENANT, job, last)
    assert found is not None
    return found


def fresh(stage: Stage) -> str:
    return submitted(stage.store).id


def with_a_budget(stage: Stage) -> str:
    return submitted(stage.store, budget=(("tokens", 5.0),), budget_scope="tree").id


def retried(stage: Stage) -> str:
    attempt = stage.begun(retries=9, backoff_base=60.0)
    for number in range(3):
        stage.store.keep_output([AttemptOutput(attempt.ref, output=f"line {number}\n")])
        stage.end(attempt, boom())
        if number < 2:
            stage.store.run_now(TENANT, attempt.id, "ada")
            (attempt,) = claim_all(stage.store, stage.worker)
    return attempt.id


def busy(stage: Stage) -> str:
    """One that has something of everything."""
    attempt = stage.begun(budget=(("tokens", 100.0),))
    stage.step(attempt, "build", '"built"')
    stage.step(attempt, "test", '"tested"')
    stage.part(attempt, "page", "1", 1)
    stage.store.keep_output([AttemptOutput(attempt.ref, output="hello\n", progress='{"done":1}')])
    stage.store.spend(attempt.ref, 1, {"tokens": 3})
    stage.spawn(attempt, "leaf")
    stage.spawn(attempt, "twig")
    return attempt.id


def a_child(stage: Stage) -> str:
    attempt = stage.begun(budget=(("tokens", 100.0),), budget_scope="tree")
    return stage.spawn(attempt, "leaf").id


def waiting(stage: Stage) -> str:
    return stage.asks()


@pytest.mark.parametrize("last", [None, 1, 2])
@pytest.mark.parametrize("make", [fresh, with_a_budget, retried, busy, a_child, waiting], ids=lambda f: f.__name__)
def test_it_says_what_each_question_says(store: SqlStore, make: Any, last: int | None) -> None:
    job = make(Stage(store))
    found = at_once(store, job, last)
    expected = one_by_one(store, job, last)
    assert {name: getattr(found, name) for name in expected} == expected
    assert not found.is_redacted


def test_a_job_that_has_nothing_more_to_tell_is_one_question(store: SqlStore, database: Database) -> None:
    stage = Stage(store)
    waits, ended, has_all = fresh(stage), stage.end(stage.begun()), busy(stage)
    trips = RoundTrips(database)
    looker = SqlStore(trips)
    asked = {}
    for job in (waits, ended, has_all):
        looker.dossier(TENANT, job)  # policies are known from now on
        trips.statements.clear()
        at_once(looker, job)
        asked[job] = list(trips.statements)
    assert asked[waits] == ["dossier"]
    assert asked[ended] == ["dossier", "outputs"]
    assert set(asked[has_all]) == {"dossier", "outputs", "steps_of", "payers", "usage", "children_of"}


def test_it_knows_whether_something_is_hidden_by_any_version(store: SqlStore) -> None:
    job = submitted(store, workflow="pay").id
    assert not at_once(store, job).is_redacted
    store.register_workflows([WorkflowRecord("pay", "v1", "default", Policy(), {}, redact=("card",))])
    store.register_workflows([WorkflowRecord("pay", "v2", "default", Policy(), {})])
    assert at_once(store, job).is_redacted


def test_a_job_of_nobody_or_of_another_tenant_is_not_there(store: SqlStore) -> None:
    job = fresh(Stage(store))
    for tenant, name in [("other", job), (TENANT, "no-such-job"), (TENANT, "\x00")]:
        assert store.dossier(tenant, name) is None
