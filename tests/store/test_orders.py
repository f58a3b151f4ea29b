"""Orders: what people ask of a worker itself, given once, read by their worker alone, answered once."""

from __future__ import annotations

import threading

import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import a_worker, claimed
from unstuck.clock import MachineClock
from unstuck.janitor.retention import ORDERS_KEPT, retention
from unstuck.model.errors import UnknownWorker
from unstuck.model.times import Times
from unstuck.store.sql_store import SqlStore


def test_an_order_waits_for_its_worker_until_it_is_answered(store: SqlStore) -> None:
    ada = a_worker(store)

    order = store.give_order(ada.number, "recycle", "4121", "kim")

    assert (order.worker, order.kind, order.subject, order.by) == (ada.number, "recycle", "4121", "kim")
    assert (order.done_at, order.answer, order.is_refused) == (None, None, False)
    assert store.orders(ada.number) == [order]

    store.answer_order(order.number, "process 4121 is draining; 2 jobs finish first")

    assert store.orders(ada.number) == []
    answered = store.order(order.number)
    assert answered is not None
    assert answered.done_at is not None
    assert (answered.answer, answered.is_refused) == ("process 4121 is draining; 2 jobs finish first", False)


def test_of_two_answers_to_one_order_the_first_counts(store: SqlStore) -> None:
    """An answer whose outcome was unknown is written again; it must not change what somebody has read."""
    order = store.give_order(a_worker(store).number, "stack", "7:1", "kim")

    store.answer_order(order.number, "it does not run here any more", refused=True)
    first = store.order(order.number)
    store.answer_order(order.number, "File x, line 1")

    assert store.order(order.number) == first
    assert first is not None
    assert first.is_refused
    assert first.answer == "it does not run here any more"


def test_a_worker_sees_its_own_orders_only_and_the_oldest_first(store: SqlStore) -> None:
    ada, bob = a_worker(store, "ada"), a_worker(store, "bob")

    third = store.give_order(bob.number, "drain", "", "kim")
    first = store.give_order(ada.number, "stack", "9:1", "kim")
    second = store.give_order(ada.number, "recycle", "4121", "kim")

    assert store.orders(ada.number) == [first, second]
    assert store.orders(bob.number) == [third]


def test_the_same_order_while_it_is_open_is_that_order(store: SqlStore) -> None:
    """Every verb is safe to repeat: an answer that was lost on the way recycles nothing twice."""
    ada = a_worker(store)

    order = store.give_order(ada.number, "recycle", "4121", "kim")
    assert store.give_order(ada.number, "recycle", "4121", "lee") == order
    assert store.give_order(ada.number, "recycle", "4122", "lee") != order

    store.answer_order(order.number, "done")
    again = store.give_order(ada.number, "recycle", "4121", "lee")
    assert again.number != order.number
    assert again.by == "lee"


def test_a_worker_that_left_or_is_lost_gets_no_orders(store: SqlStore, clock: StoreClock) -> None:
    left, lost = a_worker(store, "left"), a_worker(store, "lost", lease=30.0)
    store.unregister_worker(left.number)
    clock.advance(31)

    for worker in (left, lost):
        with pytest.raises(UnknownWorker, match=f"no worker {worker.name} any more; it was on host-1, but its lease"):
            store.give_order(worker.number, "drain", "", "kim")
        assert store.orders(worker.number) == []
    with pytest.raises(UnknownWorker, match="no worker 4711;"):
        store.give_order(4711, "drain", "", "kim")


def test_many_give_the_same_order_at_once_and_all_hear_its_answer(store: SqlStore) -> None:
    ada = a_worker(store)
    given: list[int] = []
    threads = [
        threading.Thread(target=lambda: given.append(store.give_order(ada.number, "stack", "7:1", "kim").number))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(given) == 8
    assert len(set(given)) == 1
    assert len(store.orders(ada.number)) == 1


def test_what_is_written_is_made_storable_and_bounded(store: SqlStore) -> None:
    ada = a_worker(store)

    order = store.give_order(ada.number, "stack", "7:1", "k\x00im" + "x" * 1000)
    store.answer_order(order.number, "a\x00b\ud800" + "y" * 500_000)

    answered = store.order(order.number)
    assert answered is not None
    assert answered.answer is not None
    assert len(answered.by) <= 250
    assert answered.by.startswith("k\ufffdim")
    assert answered.answer.startswith("a\ufffdb")
    assert len(answered.answer) < 70_000


def test_retention_forgets_orders_after_an_hour(store: SqlStore, clock: StoreClock) -> None:
    ada = a_worker(store, lease=1e6)
    duty = next(duty for duty in retention(store, Times(), MachineClock()) if duty.name == "retention of orders")
    old = store.give_order(ada.number, "recycle", "1", "kim")
    clock.advance(ORDERS_KEPT - 10)
    young = store.give_order(ada.number, "recycle", "2", "kim")

    assert duty.tick(0.0, endless()) == 0
    clock.advance(11)
    assert duty.tick(0.0, endless()) == 1

    assert store.order(old.number) is None
    assert store.order(young.number) == young


def test_an_order_touches_no_job(store: SqlStore) -> None:
    """A claim, a settle and a beat go on as if nobody had asked."""
    ada = a_worker(store)
    attempt = claimed(store, ada)
    store.give_order(ada.number, "drain", "", "kim")

    beat = store.beat(ada.number, 30.0, [attempt.ref])

    assert beat.alive
    assert beat.state == "active"
    assert beat.gone == ()
