"""What the engine reads by the batch stays small, however large the things are that it is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.builders import TENANT, claim_all, record
from tests.support.link import slow_link
from tests.support.parking import Stage
from unstuck.model.lifecycle import JobState
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

LARGE = '"' + "x" * 900_000 + '"'


@pytest.fixture
def far(store_url: str) -> Iterator[SqlStore]:
    """The same database at the end of a link with 1 MB/s."""
    with slow_link(store_url, 1_000_000) as url:
        database = open_database(url, store_call=3.0)
        yield SqlStore(database)
        database.close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_batch_of_jobs_is_woken_without_reading_their_answers(store: SqlStore, far: SqlStore) -> None:
    """9 MB at 1 MB/s would never be read within a call, and the batch would be tried again for ever."""
    stage = Stage(store)
    ids = [stage.awaits("paid", of={"workflow": "w"}) for _ in range(10)]
    for job in ids:
        store.signal(TENANT, "paid", LARGE, "ada", job=job)

    assert far.ingest().woken == 10

    assert {record(store, job).state for job in ids} == {JobState.QUEUED}
    assert {job.id for job in claim_all(store, stage.worker)} == set(ids)
