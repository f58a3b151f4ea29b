"""Bytes that are no text, where somebody else wrote into a SQLite file, delay their own job and hide no other."""

from __future__ import annotations

import pytest

from tests.support.builders import TENANT, a_job, a_worker, claim_all, record, settle, submitted
from tests.support.eventually import eventually
from tests.support.troubles import execute
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.observe.why import why
from unstuck.store.sql_store import SqlStore

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


def damage(url: str, job: str) -> None:
    execute(url, f"UPDATE unstuck_jobs SET payload = CAST(x'7bff00fe' AS TEXT) WHERE uid = '{job}'")


def mend(url: str, job: str) -> None:
    execute(url, f"UPDATE unstuck_jobs SET payload = '{{}}' WHERE uid = '{job}'")


def test_damaged_text_keeps_a_worker_neither_from_the_other_jobs_nor_from_writing(
    store: SqlStore, store_url: str
) -> None:
    """The claim that met it was never ended as long as its error was kept: its worker could not write again, until
    somebody started it anew."""
    worker = a_worker(store)
    bad = submitted(store)
    damage(store_url, bad.id)
    others = [a_job() for _ in range(5)]
    store.submit(others)

    found = claim_all(store, worker)

    assert {attempt.id for attempt in found} == {job.id for job in others}
    (entry,) = store.quarantined(TENANT)
    assert (entry.duty, entry.job) == ("claim", bad.id)
    execute(store_url, "UPDATE unstuck_jobs SET rank = rank")  # somebody else has written since
    for attempt in found:
        settle(store, worker, attempt.ref, Returned("1"))

    mend(store_url, bad.id)

    def runs() -> bool:
        for attempt in claim_all(store, worker):
            settle(store, worker, attempt.ref, Returned("1"))
        return record(store, bad.id).state is JobState.COMPLETED

    eventually(runs, timeout=10)
    assert store.quarantined(TENANT) == []


def test_damaged_text_is_shown_and_hides_no_other(store: SqlStore, store_url: str) -> None:
    bad, other = submitted(store), submitted(store)
    damage(store_url, bad.id)

    assert "\N{REPLACEMENT CHARACTER}" in record(store, bad.id).payload
    assert why(store, TENANT, bad.id, Times()).verdict
    assert record(store, other.id).payload == "{}"
