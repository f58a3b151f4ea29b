"""Requests to running attempts: people's, heard by a poll that is cheaper than a beat, and the worker's own
(timeout, drain), made durable before the handler hears of them. And orders to the worker itself, and its news.

A request whose running row another session holds is tried again for a while, and keeps no other request waiting; then
its handler hears of it all the same."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from unstuck.clock import Clock
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.store.port import Asked, Verdict, WorkerOrder, WorkerPort
from unstuck.telemetry import emit

#: So many asks per tick: between two ticks the watchdog sees a sign of life, and people's requests get their turn.
_ASKS = 5
#: How long a request whose row another session holds is tried, and how often.
_PATIENCE = 3.0
_AGAIN = 0.2


@dataclass(frozen=True, slots=True)
class PendingRequest:
    ref: AttemptRef
    kind: RequestKind
    reason: str
    #: Its id, for the log.
    job: str


@dataclass(frozen=True, slots=True)
class _Answer:
    order: int
    text: str
    refused: bool


@dataclass(frozen=True, slots=True)
class News:
    """For operators."""

    title: str
    message: str
    link: str
    severity: str


class Requests:
    def __init__(
        self,
        store: WorkerPort,
        worker: int,
        times: Times,
        clock: Clock,
        *,
        is_busy: Callable[[], bool],
        heard: Callable[[Asked], None],
        revoked: Callable[[AttemptRef], None],
        ordered: Callable[[WorkerOrder], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._times = times
        self._clock = clock
        self._is_busy = is_busy
        self._heard = heard
        self._revoked = revoked
        self._ordered = ordered
        self._answers: deque[_Answer] = deque()
        self._news: deque[News] = deque()
        #: Orders that were passed on: polled again until their answer is written.
        self._taken: set[int] = set()
        self._asks: deque[PendingRequest] = deque()
        #: Requests whose row another session holds: when to try again, and when to give up.
        self._held_up: dict[PendingRequest, tuple[float, float]] = {}
        self._arrived = threading.Event()
        self._polled_at = float("-inf")

    def ask(self, ask: PendingRequest) -> None:
        self._asks.append(ask)
        self._arrived.set()

    def answer(self, number: int, text: str, *, refused: bool = False) -> None:
        self._answers.append(_Answer(number, text, refused))
        self._arrived.set()

    def tell(self, news: News) -> None:
        self._news.append(news)
        self._arrived.set()

    def wake(self) -> None:
        """End its rest early."""
        self._arrived.set()

    @property
    def unanswered(self) -> int:
        return len(self._answers) + len(self._news)

    def tick(self) -> float:
        self._clock.wait(self._arrived, min([self._until_poll(), *self._until_again()]))
        self._arrived.clear()
        self._bring_back()
        self._make_durable()
        self._write_answers()
        self._write_news()
        if self._until_poll() <= 0:
            self._poll()
        return 0.0

    def _until_poll(self) -> float:
        """Who holds nothing is asked for nothing but orders."""
        every = self._times.cancel_poll / 2 if self._is_busy() else self._times.cancel_poll
        return max(0.0, self._polled_at + every - self._clock.boot())

    def _until_again(self) -> list[float]:
        now = self._clock.boot()
        return [max(0.0, at - now) for at, _ in self._held_up.values() if at < float("inf")]

    def _bring_back(self) -> None:
        now = self._clock.boot()
        for ask, (at, until) in tuple(self._held_up.items()):
            if at <= now:
                self._held_up[ask] = float("inf"), until
                self._asks.append(ask)

    def _make_durable(self) -> None:
        for _ in range(min(_ASKS, len(self._asks))):
            ask = self._asks.popleft()
            verdict = self._write(ask)
            if verdict is Verdict.BUSY:
                continue
            self._held_up.pop(ask, None)
            if verdict is Verdict.FENCED:
                self._revoked(ask.ref)
            else:
                self._heard(Asked(ask.ref, ask.kind, ask.reason))
        if self._asks:
            self._arrived.set()

    def _write(self, ask: PendingRequest) -> Verdict:
        try:
            return self._store.ask(ask.ref, ask.kind, ask.reason)
        except Exception as error:
            now = self._clock.boot()
            _, until = self._held_up.get(ask, (now, now + _PATIENCE))
            if isinstance(error, StoreBusy) and now < until:
                self._held_up[ask] = now + _AGAIN, until
                return Verdict.BUSY
            # The limit has passed whether or not the store is there to hear of it; the settlement says it again.
            emit("request_not_durable", level=logging.WARNING, job=ask.job, kind=ask.kind, error=str(error))
            return Verdict.DONE

    def _write_answers(self) -> None:
        """An answer that the store could not take is kept for the next poll, behind the others: its row may be held.
        The person who gave the order waits no longer than that."""
        for _ in range(min(_ASKS, len(self._answers))):
            answer = self._answers[0]
            try:
                self._store.answer_order(answer.order, answer.text, refused=answer.refused)
            except StoreError as error:
                emit("order_not_answered", level=logging.WARNING, order=answer.order, error=str(error))
                self._answers.rotate(-1)
                return
            except Exception as error:
                emit("order_not_answered", level=logging.ERROR, order=answer.order, error=repr(error))
            self._answers.popleft()
        if self._answers:
            self._arrived.set()

    def _write_news(self) -> None:
        """News that the store cannot take now are kept for the next time."""
        while self._news:
            news = self._news[0]
            try:
                self._store.notify(news.title, news.message, news.link, news.severity)
            except StoreError as error:
                emit("news_not_written", level=logging.WARNING, title=news.title, error=str(error))
                return
            except Exception as error:
                emit("news_not_written", level=logging.ERROR, title=news.title, error=repr(error))
            self._news.popleft()

    def _poll(self) -> None:
        self._polled_at = self._clock.boot()
        if self._is_busy():
            for asked in self._store.asked(self._worker):
                self._heard(asked)
        open_orders = self._store.orders(self._worker)
        self._taken &= {order.number for order in open_orders}
        for order in open_orders:
            if order.number not in self._taken:
                self._taken.add(order.number)
                self._ordered(order)
