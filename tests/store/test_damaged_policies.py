"""A policy that somebody damaged keeps nobody's job from its end: it runs by the defaults, and the log says so."""

from __future__ import annotations

import pytest

from tests.support.builders import TENANT, a_worker, claim_all, record, settle, submitted
from tests.support.troubles import execute
from unstuck.assembly.store import open_store
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Raised
from unstuck.model.times import Times
from unstuck.observe.why import why
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("body", ["not json", "[]", '{"timeout": "soon"}', '{"retries": null}', '{"budget": 5}'])
def test_a_job_with_a_damaged_policy_runs_by_the_defaults(
    store: SqlStore, store_url: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = a_worker(store)
    damaged, whole = submitted(store, retries=7), submitted(store)
    execute(store_url, f"UPDATE unstuck_policies SET body = '{body}' WHERE body LIKE '%\"retries\":7%'")
    other = open_store(store_url, Times())  # it has read no policy yet
    try:
        assert why(other, TENANT, damaged.id, Times()).state is JobState.QUEUED
        jobs = {job.id: job for job in claim_all(other, worker)}

        assert jobs.keys() == {damaged.id, whole.id}
        assert jobs[damaged.id].policy == Policy()
        assert "policy_unreadable" in caplog.text
        answer = settle(other, worker, jobs[damaged.id].ref, Raised(ErrorInfo("E", "no"), retry=False))
        assert answer.state is JobState.FAILED
        assert record(other, damaged.id).error_type == "E"
    finally:
        other.close()
