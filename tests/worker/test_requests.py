"""The worker's own requests: made durable a few at a time, and never left half asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.builders import a_worker
from tests.support.troubles import holding
from unstuck import telemetry
from unstuck.clock import FakeClock
from unstuck.model.errors import StoreUnavailable
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.store.port import Asked, Verdict, WorkerOrder
from unstuck.store.sql_store import SqlStore
from unstuck.worker.loops import Loop
from unstuck.worker.requests import PendingRequest, Requests


class SlowStore:
    """Every ask takes its time; `trouble` is raised instead of an answer."""

    def __init__(self, clock: FakeClock, trouble: Exception | None = None) -> None:
        self.clock = clock
        self.trouble = trouble
        self.polls: list[float] = []

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str) -> Verdict:
        self.clock.advance(1.0)
        if self.trouble is not None:
            raise self.trouble
        return Verdict.DONE

    def asked(self, worker: int) -> list[Asked]:
        self.polls.append(self.clock.boot())
        return []

    def orders(self, worker: int) -> list[WorkerOrder]:
        return []


def requests_on(
    store: Any,
    clock: FakeClock,
    heard: Callable[[Asked], None],
    ordered: Callable[[WorkerOrder], None] = lambda order: None,
    is_busy: bool = True,
) -> Requests:
    return Requests(
        store,
        1,
        Times(),
        clock,
        is_busy=lambda: is_busy,
        heard=heard,
        revoked=lambda ref: None,
        ordered=ordered,
    )


def test_many_asks_are_written_over_many_ticks_with_polls_in_between() -> None:
    """Each tick is a sign of life: a worker that drains hundreds of slots must not look as if it hung."""
    clock, heard = FakeClock(), list[Asked]()
    store = SlowStore(clock)
    requests = requests_on(store, clock, heard.append)
    for number in range(100):
        requests.ask(PendingRequest(AttemptRef(number, 1, "c"), RequestKind.DRAIN, "bye", f"job-{number}"))

    longest, ticks = 0.0, 0
    while len(heard) < 100:
        before = clock.boot()
        requests.tick()
        longest, ticks = max(longest, clock.boot() - before), ticks + 1

    assert longest <= 10.0
    assert ticks >= 10
    assert len(store.polls) >= ticks - 1
    assert clock.boot() < 1000.0 + 100.0 + 2.0


def test_an_ask_that_fails_in_any_way_is_told_all_the_same() -> None:
    clock, heard = FakeClock(), list[Asked]()
    requests = requests_on(SlowStore(clock, ValueError("a mistake of ours")), clock, heard.append)
    requests.ask(PendingRequest(AttemptRef(1, 1, "c"), RequestKind.TIMEOUT, "late", "job-7"))
    told: list[dict[str, object]] = []
    end = telemetry.subscribe(lambda name, facts: told.append(facts) if name == "request_not_durable" else None)

    try:
        requests.tick()
    finally:
        end()

    assert heard == [Asked(AttemptRef(1, 1, "c"), RequestKind.TIMEOUT, "late")]
    assert [(facts["job"], facts["kind"]) for facts in told] == [("job-7", "timeout")], "by the id that people know"


class Desk:
    """A store with orders and a request; it fails for as long as `is_away`."""

    def __init__(self, *orders: WorkerOrder) -> None:
        self.is_away = False
        self.open = {order.number: order for order in orders}
        self.answers: list[tuple[int, str, bool]] = []
        self.requests = [Asked(AttemptRef(1, 1, "c"), RequestKind.CANCEL, "enough")]

    def asked(self, worker: int) -> list[Asked]:
        self._call()
        return self.requests

    def orders(self, worker: int) -> list[WorkerOrder]:
        self._call()
        return list(self.open.values())

    def answer_order(self, number: int, answer: str, *, refused: bool = False) -> None:
        self._call()
        self.open.pop(number, None)
        self.answers.append((number, answer, refused))

    def _call(self) -> None:
        if self.is_away:
            raise StoreUnavailable("gone for lunch")


def an_order(number: int = 1) -> WorkerOrder:
    return WorkerOrder(number, 1, "recycle", "4711", "me", datetime(2026, 1, 1, tzinfo=UTC))


def test_a_poll_that_fails_is_said_and_the_next_one_brings_the_cancel(caplog: pytest.LogCaptureFixture) -> None:
    """A store that is away for a while costs a running job nothing, and no request is lost."""
    clock, heard, desk = FakeClock(), list[Asked](), Desk()
    loop = Loop("requests", requests_on(desk, clock, heard.append).tick, clock, silence=60.0)
    desk.is_away = True
    for _ in range(5):
        clock.advance(loop.once())
    assert heard == []
    assert [line[-7:] for line in caplog.messages if "store_trouble" in line] == ["times=1", "times=2", "times=4"]
    desk.is_away = False
    loop.once()
    assert heard == desk.requests


def test_an_order_is_passed_on_once_and_its_answer_is_kept_until_the_store_has_it() -> None:
    clock, ordered, desk = FakeClock(), list[WorkerOrder](), Desk(an_order())
    requests = requests_on(desk, clock, lambda asked: None, ordered.append)
    for _ in range(3):
        requests.tick()
    assert ordered == [an_order()]

    requests.answer(1, "it drains", refused=False)
    desk.is_away = True
    loop = Loop("requests", requests.tick, clock, silence=60.0)
    for _ in range(3):
        clock.advance(loop.once())
    assert (requests.unanswered, desk.answers) == (1, [])
    desk.is_away = False
    requests.tick()
    assert (requests.unanswered, desk.answers) == (0, [(1, "it drains", False)])


def test_orders_are_heard_while_nothing_runs() -> None:
    clock, ordered, desk = FakeClock(), list[WorkerOrder](), Desk(an_order())
    requests_on(desk, clock, lambda asked: None, ordered.append, is_busy=False).tick()
    assert ordered == [an_order()]


def test_an_answer_that_no_store_can_take_does_not_hold_up_the_others() -> None:
    clock, desk = FakeClock(), Desk()
    requests = requests_on(desk, clock, lambda asked: None)
    answered = desk.answer_order

    def answer_order(number: int, answer: str, *, refused: bool = False) -> None:
        if number == 1:
            raise ValueError("a mistake of ours")
        answered(number, answer, refused=refused)

    desk.answer_order = answer_order  # type: ignore[method-assign]
    requests.answer(1, "one")
    requests.answer(2, "two")
    requests.tick()
    assert desk.answers == [(2, "two", False)]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_an_order_whose_row_somebody_holds_does_not_hold_up_the_answers_of_others(
    store: SqlStore, store_url: str
) -> None:
    worker = a_worker(store)
    held, other = (store.give_order(worker.number, "recycle", pid, "me") for pid in ("1", "2"))
    clock = FakeClock()
    requests = requests_on(store, clock, lambda asked: None, is_busy=False)
    requests.answer(held.number, "one")
    requests.answer(other.number, "two")

    with holding(store_url, "unstuck_orders", f"id = {held.number}"):
        for _ in range(2):
            requests.tick()
        assert [order.number for order in store.orders(worker.number)] == [held.number]

    requests.tick()
    assert store.orders(worker.number) == []
    assert requests.unanswered == 0
