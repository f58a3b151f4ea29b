"""Claims of large payloads: done before anybody reads them, and never more than a worker can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.builders import a_job, a_worker, chance, claim_all, everything, record
from tests.support.eventually import eventually
from tests.support.link import slow_link
from tests.support.troubles import raising
from unstuck.model.job import NewJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.observe.why import why
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.statements import Statements
from unstuck.store.life.claim_step import CLAIM_BYTES, ClaimAsk, question
from unstuck.store.port import Share
from unstuck.store.sql_store import SqlStore

only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
MEGABYTE = 1_000_000


def jobs_of(store: SqlStore, count: int, size: int) -> list[NewJob]:
    """Each with a payload of its own, of so many bytes."""
    jobs = [a_job(payload=f'"{number:0{size - 2}}"') for number in range(count)]
    batch = max(1, min(count, 2 * MEGABYTE // size))
    for start in range(0, count, batch):
        store.submit(jobs[start : start + batch])
    return jobs


def ask_and_never_read(url: str, worker: WorkerRecord, shares: list[Share]) -> psycopg.Connection:
    """A worker that was frozen as soon as its claim had left."""
    frozen = psycopg.connect(url, autocommit=True)
    text = Statements("postgres")["claim"]
    facts = question(ClaimAsk(worker.number, chance.nonce(), "{}"), shares)
    with psycopg.ClientCursor(frozen) as cursor:
        frozen.pgconn.send_query(cursor.mogrify(text, facts).encode())
    while frozen.pgconn.flush():
        pass
    return frozen


@only_postgres
@pytest.mark.parametrize(("count", "size"), [(20, MEGABYTE), (400, 200), (400, 600)])
def test_a_claim_whose_answer_nobody_reads_hides_no_job(
    store: SqlStore, store_url: str, count: int, size: int
) -> None:
    """It is committed before it sends anything that could have to wait: what it took is RUNNING, the rest is free."""
    worker = a_worker(store, "frozen", lease=300.0)
    jobs = jobs_of(store, count, size)

    frozen = ask_and_never_read(store_url, worker, everything(store, count - 1))
    try:
        eventually(lambda: {record(store, job.id).state for job in jobs[:-1]} == {JobState.RUNNING}, timeout=10)
        assert record(store, jobs[0].id).worker == "frozen"
        assert "frozen" in why(store, "default", jobs[0].id).verdict
        assert [job.id for job in claim_all(store, a_worker(store, "bob"))] == [jobs[-1].id]
    finally:
        frozen.close()


@pytest.mark.parametrize("size", [10, 1_000, 300_000])
def test_payloads_of_any_size_come_whole_and_in_order(store: SqlStore, size: int) -> None:
    jobs = jobs_of(store, 40, size)

    claimed = store.claim(a_worker(store).number, chance.nonce(), everything(store))

    assert [(job.id, job.payload) for job in claimed] == [(job.id, job.payload) for job in jobs]
    assert claimed.left_out == ()


def test_a_claim_repeated_by_its_id_brings_the_same_large_jobs(store: SqlStore) -> None:
    jobs = jobs_of(store, 5, MEGABYTE)
    worker, shares = a_worker(store), everything(store)

    first = store.claim(worker.number, "the-same", shares)
    again = store.claim(worker.number, "the-same", shares)

    assert [job.id for job in first] == [job.id for job in again] == [job.id for job in jobs]
    assert list(first) == list(again)


def test_what_is_too_much_for_one_claim_goes_back_at_once_and_uncharged(store: SqlStore) -> None:
    jobs = jobs_of(store, 24, MEGABYTE)
    ada, bob = a_worker(store, "ada"), a_worker(store, "bob")

    claimed = claim_all(store, ada)

    fit = -(-CLAIM_BYTES // MEGABYTE)
    assert [job.id for job in claimed] == [job.id for job in jobs[:fit]]
    assert len(claimed.left_out) == len(jobs) - fit
    rest = [record(store, job.id) for job in jobs[fit:]]
    assert {(job.state, job.failures, job.losses, job.suspects) for job in rest} == {(JobState.QUEUED, 0, 0, 0)}
    assert [job.id for job in claim_all(store, bob)] == [job.id for job in jobs[fit:]]
    # A beat of the first finds nothing to complain about.
    assert store.beat(ada.number, 30.0, [job.ref for job in claimed]).gone == ()


def test_a_claim_that_could_give_nothing_back_leaves_that_to_the_beat(store: SqlStore, store_url: str) -> None:
    """Nothing that it left out counts as held, or as a claim under way."""
    jobs = jobs_of(store, 20, MEGABYTE)
    ada = a_worker(store, "ada")

    with raising(store_url, "unstuck_ready", "NEW.job > 0"):
        claimed = claim_all(store, ada)
    assert record(store, jobs[-1].id).state is JobState.RUNNING
    beat = store.beat(ada.number, 30.0, [job.ref for job in claimed])

    assert set(beat.unheld) == set(claimed.left_out)
    assert record(store, jobs[-1].id).state is JobState.QUEUED


@pytest.fixture
def far(store_url: str) -> Iterator[SqlStore]:
    """The same database at the end of a link with 1 MB/s."""
    with slow_link(store_url, 1_000_000) as url:
        database = open_database(url, store_call=2.0)
        yield SqlStore(database)
        database.close()


@only_postgres
def test_over_a_slow_link_a_claim_brings_what_comes_in_time(store: SqlStore, far: SqlStore) -> None:
    jobs = jobs_of(store, 12, 600_000)
    ada = a_worker(far, "ada", lease=300.0)

    claimed = claim_all(far, ada)

    assert 1 <= len(claimed) < len(jobs)
    assert [job.id for job in claimed] == [job.id for job in jobs[: len(claimed)]]
    states = Counter(record(store, job.id).state for job in jobs)
    assert states == {JobState.RUNNING: len(claimed), JobState.QUEUED: len(jobs) - len(claimed)}
