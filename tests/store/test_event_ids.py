"""The id of an event: sent twice to the same job or topic, it counts once."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import claim, work_off
from tests.store.test_waits import PAID, parked, rows_of, the_wait
from tests.support.builders import TENANT, a_worker, claimed, record, settle
from tests.tiers import in_tiers
from unstuck.model.errors import EventConflict, NotStorable, NotWaiting
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Parked
from unstuck.model.waits import Signalled
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore


def test_the_same_event_again_answers_no_second_wait(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    first = store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1")
    assert first == Signalled(attempt.id, 0)
    work_off(store)
    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(replace(PAID, key="event:paid#2")))

    assert store.signal(TENANT, "paid", "1", "eve", job=attempt.id, id="evt-1") == replace(first, is_repeat=True)

    work_off(store)
    assert record(store, attempt.id).state is JobState.WAITING
    assert [action.verb for action in store.audit()] == ["events.send"], "a repeat did nothing"
    assert store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-2").job == attempt.id


def test_an_early_event_that_is_sent_twice_is_kept_once(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    first = store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1")
    assert (first.job, first.number > 0) == (None, True)
    assert store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1") == replace(first, is_repeat=True)
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_unclaimed_events") == [(1,)]

    settle(store, worker, attempt.ref, Parked(PAID))

    assert the_wait(store, attempt.id).payload == "1"
    assert store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1").is_repeat, "taken meanwhile"


def test_a_repeat_is_answered_although_the_job_has_ended(store: SqlStore) -> None:
    """Who lost the answer asks again, and the first one counted."""
    worker = a_worker(store)
    attempt = parked(store, worker)
    store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1")
    store.cancel(TENANT, attempt.id, by="ada")
    assert store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-1") == Signalled(attempt.id, 0, True)
    with pytest.raises(NotWaiting):
        store.signal(TENANT, "paid", "1", "ada", job=attempt.id, id="evt-2")
    assert rows_of(store, "SELECT id FROM unstuck_event_ids") == [("evt-1",)], "what was refused was not sent"


@pytest.mark.parametrize(("event", "payload"), [("paid", "2"), ("shipped", "1")])
def test_another_event_under_a_known_id_is_a_conflict(store: SqlStore, event: str, payload: str) -> None:
    store.signal(TENANT, "paid", "1", "ada", topic="orders", id="evt-1")
    with pytest.raises(EventConflict, match="'evt-1' was sent there before, with another name or payload"):
        store.signal(TENANT, event, payload, "ada", topic="orders", id="evt-1")


def test_an_id_belongs_to_its_tenant_and_its_job_or_topic(store: SqlStore) -> None:
    worker = a_worker(store)
    one, other = claimed(store, worker), claimed(store, worker)
    sent = [
        store.signal(TENANT, "paid", "1", "ada", job=one.id, id="evt-1"),
        store.signal(TENANT, "paid", "1", "ada", job=other.id, id="evt-1"),
        store.signal(TENANT, "paid", "1", "ada", topic="orders", id="evt-1"),
        store.signal("zeta", "paid", "2", "ada", topic="orders", id="evt-1"),
    ]
    assert not any(one.is_repeat for one in sent)


def test_an_id_is_known_as_long_as_events_are_kept(store: SqlStore, clock: StoreClock) -> None:
    def send() -> bool:
        return store.signal(TENANT, "paid", "1", "ada", topic="orders", id="evt-1").is_repeat

    assert (send(), send()) == (False, True)
    clock.advance(hours=24, seconds=1)
    assert (send(), send()) == (False, True), "as new, although nobody has forgotten the old one yet"
    assert store.forget_event_ids() == 0
    clock.advance(hours=24, seconds=1)
    assert (store.forget_event_ids(), store.forget_event_ids()) == (1, 0)


def test_an_id_that_cannot_be_stored_is_refused(store: SqlStore) -> None:
    with pytest.raises(NotStorable):
        store.signal(TENANT, "paid", "1", "ada", topic="orders", id="a\x00b")


@in_tiers("rounds", 5, 50)
def test_of_many_who_send_it_at_once_one_does(store: SqlStore, store_url: str, rounds: int) -> None:
    others = [SqlStore(open_database(store_url, store_call=20.0)) for _ in range(4)]
    for number in range(rounds):
        barrier = threading.Barrier(len(others))
        answers: list[Signalled] = []

        def send(mine: SqlStore, barrier: threading.Barrier = barrier, id: str = f"evt-{number}") -> None:
            barrier.wait()
            answers.append(mine.signal(TENANT, "paid", "1", "ada", topic="orders", id=id))  # noqa: B023

        threads = [threading.Thread(target=send, args=(mine,)) for mine in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert Counter(answer.is_repeat for answer in answers) == {False: 1, True: len(others) - 1}
        assert len({answer.number for answer in answers}) == 1
    for mine in others:
        mine.close()
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_unclaimed_events") == [(rounds,)]
