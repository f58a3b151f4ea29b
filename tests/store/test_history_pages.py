"""A job that was retried for days: its history and its attempts are read in pages, by everybody."""

from __future__ import annotations

import pytest

from tests.support.builders import TENANT, a_worker, boom, claim_all, settle, submitted
from tests.support.troubles import execute
from unstuck.model.lifecycle import fold
from unstuck.observe.logs import Logs
from unstuck.observe.lookup import Lookup
from unstuck.store.port import ATTEMPTS_PAGE, HISTORY_PAGE
from unstuck.store.sql_store import SqlStore

TRIES = HISTORY_PAGE // 2 + 30


@pytest.fixture
def tried(store: SqlStore, store_url: str) -> str:
    """The id of a job that has failed so often: once by the store's own verbs, the others copied from that."""
    worker = a_worker(store)
    job = submitted(store, retries=1)
    (attempt,) = claim_all(store, worker)
    settle(store, worker, attempt.ref, boom())
    number = attempt.ref.job
    series = f"WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {TRIES - 1})"
    execute(
        store_url,
        f"INSERT INTO unstuck_events (job, number, at, kind, run, token, data) {series}"
        f" SELECT e.job, e.number + 2 * c.i, e.at + c.i, e.kind, e.run, e.token + c.i, e.data"
        " FROM unstuck_events e, c"
        f" WHERE e.job = {number} AND e.number > 1",
    )
    execute(
        store_url,
        f"INSERT INTO unstuck_outputs (job, token, output, stack) {series}"
        f" SELECT {number}, c.i, 'said by ' || c.i, 'stack ' || c.i FROM c",
    )
    execute(store_url, f"UPDATE unstuck_jobs SET token = {TRIES}, event_count = {2 * TRIES + 1} WHERE id = {number}")
    return job.id


def test_events_come_in_pages_by_their_number(store: SqlStore, tried: str) -> None:
    first = store.history(TENANT, tried)
    assert [event.number for event in first] == list(range(1, HISTORY_PAGE + 1))
    assert [e.number for e in store.history(TENANT, tried, HISTORY_PAGE, 3)] == [
        HISTORY_PAGE + 1,
        HISTORY_PAGE + 2,
        HISTORY_PAGE + 3,
    ]
    assert store.history(TENANT, tried, 2 * TRIES + 1) == []


def test_who_wants_all_of_it_reads_all_pages(store: SqlStore, tried: str) -> None:
    lookup = Lookup(store)
    events = lookup.history(tried)
    assert [event.number for event in events] == list(range(1, 2 * TRIES + 2))
    assert fold(event.kind for event in events) is lookup.job(tried).state
    assert [event.number for event in lookup.history(tried, 2 * TRIES - 1)] == [2 * TRIES, 2 * TRIES + 1]
    assert len(lookup.history(tried, limit=7)) == 7


def test_attempts_come_in_pages_by_their_token(store: SqlStore, tried: str) -> None:
    lookup = Lookup(store)
    page = store.attempts(TENANT, tried)
    assert [attempt.token for attempt in page] == list(range(1, ATTEMPTS_PAGE + 1))
    assert all(attempt.ended_at is not None and attempt.error_type == "ValueError" for attempt in page)
    assert [attempt.token for attempt in lookup.attempts(tried)] == list(range(1, TRIES + 1))
    (one,) = lookup.attempts(tried, 299, 1)
    assert (one.token, one.output, one.stack) == (300, "said by 300", "stack 300")


def test_logs_of_all_attempts_come_page_by_page_and_ended_ones_are_read_once(store: SqlStore, tried: str) -> None:
    said = "".join(piece.text for piece in Logs(Lookup(store), tried).look()[0])
    assert said.startswith("said by 1said by 2")
    assert said.endswith(f"said by {TRIES - 1}")
    following = Logs(Lookup(store), tried, follow=True)
    assert len(following.look()[0]) == TRIES - 1
    assert following._over == TRIES
    assert following.look()[0] == []
    assert [piece.text for piece in Logs(Lookup(store), tried, 400).look()[0]] == ["said by 400"]
