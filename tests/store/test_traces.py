"""The trace of a job is stored with it and comes with every claim of it; so does the span of the attempt before."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_job, a_worker, boom, chance, claim_all, settle
from unstuck.model.job import Alike
from unstuck.model.settlement import NotStarted
from unstuck.store.life import claim_step
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=1\nuser=7"
SPAN = "00-0af7651916cd43dd8448eb211c80319c-{:016x}-01"


@pytest.mark.parametrize("options", [{}, {"target": "acme"}, {"tags": ("a",)}, {"key": "k"}])
def test_it_comes_with_the_claim(store: SqlStore, options: dict[str, object]) -> None:
    worker = a_worker(store)
    store.submit([a_job(trace=TRACE, **options)])
    store.ingest()
    assert [(job.trace, job.span) for job in claim_all(store, worker)] == [(TRACE, None)]


def test_of_many_at_once_each_has_its_own(store: SqlStore) -> None:
    worker = a_worker(store)
    traces = [SPAN.format(number) for number in (1, 2)]
    jobs = [a_job(said="{}", trace=traces[0]), a_job(said="{}"), a_job(said="{}", trace=traces[1])]
    store.submit(jobs)
    store.submit(Alike(a_job(said="{}"), chance.job_ids(2), ["1", "2"], TRACE))
    store.submit(Alike(a_job(said="{}"), chance.job_ids(2), ["3", "4"]))
    found = [job.trace for job in claim_all(store, worker)]
    assert found == [traces[0], None, traces[1], TRACE, TRACE, None, None]


def test_it_comes_with_texts_that_are_read_after_the_claim(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_step, "ANSWER_BYTES", 1000)
    monkeypatch.setattr(claim_step, "CLAIM_BYTES", 1000)
    worker = a_worker(store)
    store.submit([a_job(trace=TRACE, payload=f'"{"x" * 2000}"') for _ in range(3)])
    assert [job.trace for job in claim_all(store, worker)] == [TRACE] * 3


def test_the_next_attempt_knows_the_last_span(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    store.submit([a_job(trace=TRACE, retries=3)])
    (first,) = claim_all(store, worker)
    store.settle(worker.number, [Report(first.ref, boom(), 5, span=SPAN.format(7))])
    clock.advance(seconds=3600)
    store.release_due()
    (second,) = claim_all(store, worker)
    assert (second.trace, second.span) == (TRACE, SPAN.format(7))

    settle(store, worker, second.ref, NotStarted("it had not started"))
    (third,) = claim_all(store, worker)
    assert third.span == SPAN.format(7), "an attempt without a span hides none"
