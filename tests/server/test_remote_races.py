"""Workers at a distance at the same instant: twenty for one job, ends beside recoveries, cancels beside offers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.server.conftest import Site, running
from tests.server.test_remote_workers import FarWorker, enter_at
from tests.store.test_races import together
from tests.support.builders import TENANT, a_job, chance, kinds, record, submitted
from tests.support.eventually import eventually
from tests.tiers import LONGER, slow, torture
from unstuck.assembly.server import ServerOptions
from unstuck.model.errors import IllegalMove
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.offers import claim_id
from unstuck.model.settlement import Returned
from unstuck.store.port import Report, Verdict
from unstuck.store.sql_store import SqlStore

#: So many jobs; a thousand by hand.
sizes = pytest.mark.parametrize("size", [pytest.param(100, marks=slow), pytest.param(100 * LONGER, marks=torture)])


@pytest.fixture
def sites(store: SqlStore, store_url: str) -> Iterator[tuple[Site, Site]]:
    """Two servers of one database."""
    with ExitStack() as ends:
        one, other = (ends.enter_context(running(ServerOptions(store_url, port=0, rate=1e6))) for _ in range(2))
        yield one, other


@slow
def test_a1_twenty_workers_of_two_servers_that_wait_for_one_job_open_one_attempt(
    sites: tuple[Site, Site], store: SqlStore
) -> None:
    workers = [enter_at(sites[n % 2], store, f"host-{n}") for n in range(20)]
    for _ in range(3):
        found: list[ClaimedJob] = []

        def take(worker: FarWorker, found: list[ClaimedJob] = found) -> None:
            found.extend(worker.take(wait=3.0))

        together(*[lambda w=w: take(w) for w in workers], lambda: submitted(store))
        assert len(found) == 1
        assert kinds(store, found[0].id) == ["submitted", "claimed"]
    for worker in workers:
        worker.port.close()


@sizes
def test_a8_an_end_by_a_server_and_a_recovery_at_once_give_one_outcome(
    sites: tuple[Site, Site], store: SqlStore, size: int
) -> None:
    for _ in range(size // 100):
        worker = enter_at(sites[0], store, f"host-{chance.nonce()}")
        store.submit([a_job() for _ in range(100)])
        taken = worker.take(slots=100)
        assert len(taken) == 100
        until = worker.port.renew(worker.number, 1.0).lease_until
        assert until is not None
        eventually(lambda: store.now() > until)  # noqa: B023
        verdicts: dict[str, Verdict] = {}

        def settle(worker: FarWorker = worker, taken: list[ClaimedJob] = taken) -> None:
            for job in taken:
                verdict = Verdict.BUSY
                while verdict is Verdict.BUSY:
                    (answer,) = worker.port.settle(worker.number, [Report(job.ref, Returned("1"), 5)])
                    verdict = answer.verdict
                verdicts[job.id] = verdict  # noqa: B023

        def recover() -> None:
            while store.recover_lost(0, batch=5):
                pass

        together(settle, recover)
        assert store.recover_lost(0) == []
        for job, verdict in verdicts.items():
            ended = list(kinds(store, job))[2:]
            if verdict is Verdict.DONE:
                assert (record(store, job).state, ended) == (JobState.COMPLETED, ["completed"])
            else:
                assert (record(store, job).state, ended) == (JobState.QUEUED, ["lost"])
                store.cancel(TENANT, job, by="me")
        worker.port.close()


@sizes
def test_a21_a_cancel_that_races_an_offer_and_its_acknowledgement_ends_cancelled(
    sites: tuple[Site, Site], store: SqlStore, size: int
) -> None:
    """Also where it comes between the two: the worker hears of it, or the offer goes back and is cancelled."""
    jobs = [submitted(store).id for _ in range(size)]
    workers = [enter_at(site, store, f"host-{n}") for n, site in enumerate(sites)]
    acknowledged: list[str] = []

    def cancel() -> None:
        for job in jobs:
            try:
                store.cancel(TENANT, job, by="me")
                acknowledged.append(job)
            except IllegalMove:
                pass

    def work(worker: FarWorker) -> None:
        """Every third offer is never heard of."""
        turn = 0
        while store.counts().get(JobState.QUEUED):
            turn += 1
            claim = claim_id(worker.number, chance.nonce())
            offers = worker.port.take(worker.number, claim, worker.wanted(slots=3))
            if turn % 3 == 0:
                store.return_offers(0.0, worker=worker.number)
            answers = worker.port.acknowledge(worker.number, claim, [job.ref for job in offers]) if offers else []
            ours = [job.ref for job, verdict in zip(offers, answers, strict=True) if verdict is Verdict.DONE]
            left = [Report(ref._replace(claim=claim), Returned("1"), 5) for ref in ours]
            while left:
                settled = worker.port.settle(worker.number, left)
                left = [report for report, one in zip(left, settled, strict=True) if one.verdict is Verdict.BUSY]

    together(cancel, *[lambda w=w: work(w) for w in workers])
    for job in jobs:
        state = JobState.CANCELLED if job in acknowledged else JobState.COMPLETED
        assert record(store, job).state in (state, JobState.CANCELLED), kinds(store, job)
    assert {record(store, job).state for job in acknowledged} == {JobState.CANCELLED}
    assert acknowledged
    for worker in workers:
        worker.port.close()
