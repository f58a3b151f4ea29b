"""What people may ask of a worker: named as they see it, refused at the door when nobody would carry it out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, chance, claimed, settle, submitted
from unstuck.clock import FakeClock
from unstuck.intake.workers import answered, drain, live_stack, recycle, stack
from unstuck.model.errors import (
    AmbiguousWorker,
    InvalidInput,
    NoAnswer,
    NoStack,
    UnknownJob,
    UnknownProcess,
    UnknownWorker,
)
from unstuck.model.job import WorkerRecord
from unstuck.model.settlement import ErrorInfo, Raised
from unstuck.store.port import WorkerOrder
from unstuck.store.sql_store import SqlStore

Answer = Callable[[WorkerOrder], tuple[str, bool]]


def with_processes(store: SqlStore, name: str, *pids: int, host: str = "host-1", **options: Any) -> WorkerRecord:
    info = {"executors": [{"executor": n, "pid": pid, "state": "active"} for n, pid in enumerate(pids)]}
    return a_worker(store, name, host=host, info=info, **options)


@pytest.fixture
def answering(store: SqlStore) -> Iterator[Callable[[WorkerRecord, Answer], None]]:
    """Plays workers that read their orders, each on a thread of its own, until the test ends."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def play(worker: WorkerRecord, answer: Answer) -> None:
        def read_orders() -> None:
            while not over.wait(0.01):
                for order in store.orders(worker.number):
                    text, refused = answer(order)
                    store.answer_order(order.number, text, refused=refused)

        threads.append(threading.Thread(target=read_orders))
        threads[-1].start()

    yield play
    over.set()
    for thread in threads:
        thread.join(10)


# --- recycle ------------------------------------------------------------------------------------------------------


def test_a_process_is_recycled_by_the_worker_that_has_it(
    store: SqlStore, answering: Callable[[WorkerRecord, Answer], None]
) -> None:
    with_processes(store, "ada", 4121, 4122)
    bob = with_processes(store, "bob", 5121)

    order = recycle(store, 5121, "kim")

    assert (order.worker, order.kind, order.subject, order.by) == (bob.number, "recycle", "5121", "kim")
    answering(bob, lambda order: (f"process {order.subject} is draining; 0 jobs finish first", False))
    assert answered(store, order).answer == "process 5121 is draining; 0 jobs finish first"


def test_a_process_that_nobody_has_is_unknown_and_the_ones_there_are_get_named(store: SqlStore) -> None:
    with_processes(store, "ada", 4121, 4122)

    with pytest.raises(UnknownProcess, match=r"no process 4711 of a worker; the workers have: 4121, 4122;"):
        recycle(store, 4711, "kim")


def test_the_pid_of_a_worker_itself_leads_to_its_drain(store: SqlStore) -> None:
    with_processes(store, "ada", 4121, pid=4000)

    with pytest.raises(UnknownProcess, match="it is worker ada itself: `unstuck workers drain ada` ends that"):
        recycle(store, 4000, "kim")


def test_the_same_pid_on_two_hosts_is_told_apart_by_the_worker(store: SqlStore) -> None:
    with_processes(store, "ada", 4121)
    bob = with_processes(store, "bob", 4121, host="host-2")

    with pytest.raises(AmbiguousWorker, match=r"process 4121 is not one but 2: ada on host-1 .*example ada"):
        recycle(store, 4121, "kim")

    assert recycle(store, 4121, "kim", worker="bob").worker == bob.number
    with pytest.raises(UnknownWorker, match=r"no worker bobb; did you mean bob\?"):
        recycle(store, 4121, "kim", worker="bobb")
    with pytest.raises(UnknownProcess, match="4122"):
        recycle(store, 4122, "kim", worker="bob")


def test_processes_of_workers_that_are_gone_are_not_there(store: SqlStore, clock: StoreClock) -> None:
    left = with_processes(store, "left", 4121)
    with_processes(store, "lost", 4122, lease=30.0)
    store.unregister_worker(left.number)
    clock.advance(31)

    for pid in (4121, 4122):
        with pytest.raises(UnknownProcess, match="no worker that lives has any"):
            recycle(store, pid, "kim")


@pytest.mark.parametrize("pid", [0, -1, True, "4121", 1.5, None])
def test_what_is_no_pid_is_refused(store: SqlStore, pid: Any) -> None:
    with pytest.raises(InvalidInput, match="is not the number of a process"):
        recycle(store, pid, "kim")


def test_a_worker_that_says_nothing_of_its_processes_has_none(store: SqlStore) -> None:
    for told in ({}, {"executors": None}, {"executors": "none"}, {"executors": [None, {"pid": "x"}, {}]}):
        a_worker(store, info=told)

    with pytest.raises(UnknownProcess):
        recycle(store, 4121, "kim")


# --- drain --------------------------------------------------------------------------------------------------------


def test_one_worker_is_drained_by_its_name_or_all_there_are(store: SqlStore) -> None:
    ada, bob = a_worker(store, "ada"), a_worker(store, "bob")
    store.unregister_worker(a_worker(store, "gone").number)

    [order] = drain(store, "ada", "kim")
    assert (order.worker, order.kind, order.subject) == (ada.number, "drain", "")

    assert [order.worker for order in drain(store, None, "kim")] == [ada.number, bob.number]
    with pytest.raises(UnknownWorker, match="no worker gone; there are: ada, bob"):
        drain(store, "gone", "kim")


def test_two_workers_of_one_name_are_told_apart_by_host_or_number(store: SqlStore) -> None:
    here, there = a_worker(store, "ada"), a_worker(store, "ada", host="host-2")

    with pytest.raises(AmbiguousWorker, match=r"worker ada is not one but 2: .*for example ada@host-1"):
        drain(store, "ada", "kim")
    assert [order.worker for order in drain(store, "ada@host-2", "kim")] == [there.number]

    twin = a_worker(store, "ada", host="host-2")
    with pytest.raises(AmbiguousWorker, match=f"by its number, for example {there.number}"):
        drain(store, "ada@host-2", "kim")
    assert [order.worker for order in drain(store, str(twin.number), "kim")] == [twin.number]
    assert store.orders(here.number) == []


def test_an_answer_that_does_not_come_is_told_and_the_order_stands(store: SqlStore) -> None:
    ada = a_worker(store)
    [order] = drain(store, "ada", "kim")

    with pytest.raises(NoAnswer, match="did not answer the order to drain within 3 s: it may be frozen"):
        answered(store, order, 3.0, FakeClock())

    assert store.orders(ada.number) == [order]


# --- stack --------------------------------------------------------------------------------------------------------


def test_a_running_job_shows_its_live_stack(
    store: SqlStore, answering: Callable[[WorkerRecord, Answer], None]
) -> None:
    """Two workers of one name: it is asked of the one that runs it."""
    a_worker(store, "ada")
    ada = a_worker(store, "ada")
    attempt = claimed(store, ada)
    answering(ada, lambda order: (f"stack of {order.subject} for {order.by}", False))

    found = stack(store, TENANT, attempt.id, "kim")

    assert found.text == f"stack of {attempt.ref.job}:{attempt.ref.token} for kim"
    assert (found.is_live, found.worker, found.attempt) == (True, "ada", 1)
    assert live_stack(store, TENANT, attempt.id, "kim") == found.text


def test_a_job_that_does_not_run_shows_the_stack_its_last_attempt_left(store: SqlStore) -> None:
    ada = a_worker(store)
    attempt = claimed(store, ada, retries=0)
    settle(store, ada, attempt.ref, Raised(ErrorInfo("ValueError", "no", stack="File shop.py, line 3")))

    found = stack(store, TENANT, attempt.id)

    assert (found.text, found.is_live, found.attempt) == ("File shop.py, line 3", False, 1)


def test_without_any_stack_the_error_names_the_state(store: SqlStore) -> None:
    job = submitted(store)
    with pytest.raises(NoStack, match=f"job {job.id} is QUEUED and has no stack to show"):
        live_stack(store, TENANT, job.id)

    ada = a_worker(store)
    attempt = claimed(store, ada)
    settle(store, ada, attempt.ref)
    with pytest.raises(NoStack, match="is COMPLETED and has no stack"):
        live_stack(store, TENANT, attempt.id)

    for tenant, name in [(TENANT, chance.job_id()), ("other", job.id), (TENANT, "nul\x00")]:
        with pytest.raises(UnknownJob):
            live_stack(store, tenant, name)


def test_an_attempt_that_ended_before_its_worker_looked_shows_what_it_left(
    store: SqlStore, answering: Callable[[WorkerRecord, Answer], None]
) -> None:
    ada = a_worker(store)
    attempt = claimed(store, ada, retries=0)

    def ended_meanwhile(order: WorkerOrder) -> tuple[str, bool]:
        settle(store, ada, attempt.ref, Raised(ErrorInfo("ValueError", "no", stack="File shop.py, line 3")))
        return "it does not run here any more", True

    answering(ada, ended_meanwhile)

    found = stack(store, TENANT, attempt.id)
    assert (found.text, found.is_live) == ("File shop.py, line 3", False)


def test_a_worker_that_refuses_a_job_it_still_holds_is_quoted(
    store: SqlStore, answering: Callable[[WorkerRecord, Answer], None]
) -> None:
    ada = a_worker(store)
    attempt = claimed(store, ada)
    answering(ada, lambda order: ("it has not begun", True))

    with pytest.raises(NoStack, match="is RUNNING and has no stack to show: worker ada refused: it has not begun"):
        live_stack(store, TENANT, attempt.id)


def test_a_worker_whose_lease_is_over_is_not_asked(store: SqlStore, clock: StoreClock) -> None:
    attempt = claimed(store, a_worker(store, lease=30.0))
    clock.advance(31)

    with pytest.raises(NoStack, match=r"is RUNNING .* worker ada is silent and its lease is over"):
        live_stack(store, TENANT, attempt.id)


def test_a_frozen_worker_is_waited_for_no_longer_than_asked(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))

    with pytest.raises(NoAnswer, match="worker ada did not answer the order to show a stack within 2 s"):
        stack(store, TENANT, attempt.id, timeout=2.0, clock=FakeClock())
    with pytest.raises(InvalidInput, match="timeout="):
        live_stack(store, TENANT, attempt.id, timeout=-1)
