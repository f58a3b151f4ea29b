"""What is claimed for a worker at a distance, until it says that it heard of it."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_worker, chance, everything, kinds, record, settle, submitted
from unstuck.model.job import AttemptRef, ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.offers import claim_id, key_of, offered, remote_incarnation
from unstuck.store.port import NewWorker, Store, Verdict

ACK = 5.0


def far(store: Store, name: str = "far") -> WorkerRecord:
    new = NewWorker(
        incarnation=remote_incarnation("k3y00001", chance.nonce()),
        name=name,
        host="far-host",
        boot_id="far-boot",
        pid_namespace="1",
        pid=7,
        pid_start=1,
        queues=(),
        code_version="v1",
        lease=60.0,
    )
    return store.register_remote_worker(new)


def offer(store: Store, worker: WorkerRecord, claim: str = "") -> tuple[str, list[ClaimedJob]]:
    claim = claim or claim_id(worker.number, chance.nonce())
    return claim, list(store.claim(worker.number, offered(claim), everything(store)))


def acknowledged(ref: AttemptRef, claim: str) -> AttemptRef:
    return ref._replace(claim=claim)


def test_an_acknowledged_offer_is_a_claim_like_any_other(store: Store, clock: StoreClock) -> None:
    job, worker = submitted(store), far(store)
    claim, (given,) = offer(store, worker)
    assert store.acknowledge(worker.number, claim, [given.ref]) == [Verdict.DONE]
    clock.advance(ACK + 1)
    assert store.return_offers(ACK) == 0
    settled = settle(store, worker, acknowledged(given.ref, claim))
    assert (settled.verdict, settled.state) == (Verdict.DONE, JobState.COMPLETED)
    assert record(store, job.id).state is JobState.COMPLETED


def test_an_offer_that_nobody_heard_of_goes_back_uncharged(store: Store, clock: StoreClock) -> None:
    job, worker = submitted(store, max_retries=0), far(store)
    claim, (given,) = offer(store, worker)
    clock.advance(ACK - 1)
    assert store.return_offers(ACK) == 0
    clock.advance(2)
    assert store.return_offers(ACK) == 1
    found = record(store, job.id)
    assert (found.state, found.losses, found.failures) == (JobState.QUEUED, 0, 0)
    assert store.acknowledge(worker.number, claim, [given.ref]) == [Verdict.FENCED]
    assert settle(store, worker, acknowledged(given.ref, claim)).verdict is Verdict.FENCED
    assert kinds(store, job.id)[-1] == "given_back"


def test_an_acknowledgement_may_be_repeated(store: Store) -> None:
    submitted(store)
    worker = far(store)
    claim, (given,) = offer(store, worker)
    for _ in range(2):
        assert store.acknowledge(worker.number, claim, [given.ref]) == [Verdict.DONE]


def test_an_offer_whose_answer_was_lost_is_told_again_under_its_claim_id(store: Store) -> None:
    submitted(store)
    worker = far(store)
    claim, first = offer(store, worker)
    submitted(store)
    assert list(store.claim(worker.number, offered(claim), ())) == first
    assert len(first) == 1


def test_another_worker_acknowledges_nothing_of_it(store: Store) -> None:
    submitted(store)
    worker, other = far(store), far(store, "other")
    claim, (given,) = offer(store, worker)
    assert store.acknowledge(other.number, claim, [given.ref]) == [Verdict.FENCED]
    assert store.acknowledge(worker.number, claim, [given.ref._replace(token=9)]) == [Verdict.FENCED]
    assert store.acknowledge(worker.number, claim, [given.ref]) == [Verdict.DONE]


def test_claims_of_workers_beside_the_database_are_no_offers(store: Store, clock: StoreClock) -> None:
    job, worker = submitted(store), a_worker(store)
    store.claim(worker.number, chance.nonce(), everything(store))
    clock.advance(20)
    assert store.return_offers(ACK) == 0
    assert record(store, job.id).state is JobState.RUNNING


def test_a_beat_leaves_an_offer_alone_whose_claim_is_under_way(store: Store) -> None:
    submitted(store)
    worker = far(store)
    claim, (given,) = offer(store, worker)
    pending = [claim, offered(claim)]
    assert store.beat(worker.number, 60.0, [], pending_claims=pending).unheld == ()
    assert store.beat(worker.number, 60.0, []).unheld == (given.ref,)


@pytest.mark.parametrize("on_lost", ["retry", "fail", "pause"])
def test_an_offer_whose_worker_is_lost_before_it_heard_of_it_costs_its_job_nothing(
    store: Store, clock: StoreClock, on_lost: str
) -> None:
    """No janitor was there in time to return it: the one who finds the worker lost knows all the same."""
    job, worker = submitted(store, on_lost=on_lost, max_lost=0), far(store)
    offer(store, worker)
    clock.advance(61)
    (found,) = store.recover_lost(0.0)
    assert (found.id, found.state) == (job.id, JobState.QUEUED)
    after = record(store, job.id)
    assert (after.state, after.losses, after.failures, after.suspects) == (JobState.QUEUED, 0, 0, 0)
    assert kinds(store, job.id)[-1] == "given_back"


@pytest.mark.parametrize("on_lost", ["retry", "fail", "pause"])
def test_an_offer_whose_worker_leaves_before_it_heard_of_it_costs_its_job_nothing(store: Store, on_lost: str) -> None:
    job, worker = submitted(store, on_lost=on_lost, max_lost=0), far(store)
    offer(store, worker)
    store.unregister_worker(worker.number)
    after = record(store, job.id)
    assert (after.state, after.losses, after.failures, after.suspects) == (JobState.QUEUED, 0, 0, 0)


def test_a_reconciliation_that_was_long_on_its_way_takes_no_running_body_for_forgotten(store: Store) -> None:
    """Its worker gave it up, claimed and began; what it said it held is what it held before."""
    worker = far(store)
    renewed = store.renew(worker.number, 60.0)
    job = submitted(store)
    claim, (given,) = offer(store, worker)
    store.acknowledge(worker.number, claim, [given.ref])
    assert store.reconcile(worker.number, renewed, []).unheld == ()
    assert record(store, job.id).state is JobState.RUNNING
    assert store.beat(worker.number, 60.0, []).unheld == (acknowledged(given.ref, claim),)


def test_what_is_asked_of_several_workers_is_read_at_once(store: Store) -> None:
    one, other = far(store, "one"), far(store, "other")
    job = submitted(store)
    claim, (given,) = offer(store, one)
    store.acknowledge(one.number, claim, [given.ref])
    assert dict(store.control_news([one.number, other.number])) == {}
    store.cancel("default", job.id, "ada")
    order = store.give_order(other.number, "drain", "", "ada")
    news = store.control_news([one.number, other.number])
    assert [asked.ref for asked in news[one.number].asked] == [acknowledged(given.ref, claim)]
    assert [given.number for given in news[other.number].orders] == [order.number]


def test_a_far_workers_attempts_are_gathered_for_once_it_has_acknowledged_them(store: Store) -> None:
    submitted(store)
    worker = far(store)
    claim, (given,) = offer(store, worker)
    ref = acknowledged(given.ref, claim)
    assert store.gather(ref, []) == Verdict.FENCED
    store.acknowledge(worker.number, claim, [given.ref])
    assert store.gather(ref, []) == "[]"
    assert store.incarnation_of(worker.number) == worker.incarnation
    assert store.incarnation_of(999_999) is None


def test_of_a_key_those_are_counted_that_have_not_ended(store: Store) -> None:
    one, two, left = far(store), far(store), far(store)
    a_worker(store)
    store.unregister_worker(left.number)
    assert store.standing_of_key(one.incarnation, 10) == 1
    assert store.standing_of_key(one.incarnation.replace(one.incarnation[:8], "otherkey"), 10) == 0
    assert store.standing_of_key(remote_incarnation(key_of(two.incarnation), chance.nonce()), 1) == 1
