"""Notes: what other threads tell the main thread, read between two events of the executors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from unstuck.executor.messages import Reply
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import stronger
from unstuck.store.port import Asked, Beat, WorkerOrder
from unstuck.telemetry import emit
from unstuck.worker.act import Hands
from unstuck.worker.ledger import Stage
from unstuck.worker.orders import Orders
from unstuck.worker.processes import FleetPort, FlowCall
from unstuck.worker.selffence import Fence
from unstuck.worker.state import Books


@dataclass(frozen=True, slots=True)
class Renewed:
    sent_at: float
    beat: Beat


@dataclass(frozen=True, slots=True)
class Revoked:
    ref: AttemptRef


@dataclass(frozen=True, slots=True)
class ErrandDone:
    errand: FlowCall
    answer: Reply


class LeaseLost:
    """The database says that this incarnation is no more."""


Note = Asked | Renewed | Revoked | ErrandDone | LeaseLost | WorkerOrder


class Mailbox:
    """Written by any thread."""

    def __init__(self, nudge: Callable[[], None]) -> None:
        self._notes: SimpleQueue[Note] = SimpleQueue()
        self._nudge = nudge

    def put(self, note: Note) -> None:
        self._notes.put(note)
        self._nudge()

    def take(self) -> Note | None:
        try:
            return self._notes.get_nowait()
        except Empty:
            return None


class Notes:
    """Read by the main thread alone."""

    def __init__(self, inbox: Mailbox, books: Books, fleet: FleetPort, hands: Hands, orders: Orders) -> None:
        self._inbox = inbox
        self._books = books
        self._fleet = fleet
        self._hands = hands
        self._orders = orders

    def read(self, now: float) -> None:
        """One note that cannot be digested must not take the others with it."""
        while (note := self._inbox.take()) is not None:
            try:
                self._on(note, now)
            except Exception:
                logging.getLogger("unstuck").exception("could not digest %s", type(note).__name__)

    def _on(self, note: Note, now: float) -> None:
        match note:
            case Asked():
                self._on_asked(note, now)
            case Renewed(sent_at, beat):
                self._on_renewed(sent_at, beat, now)
            case Revoked(ref):
                self._on_revoked(ref, now)
            case ErrandDone(errand, answer):
                self._fleet.answer(errand.executor, errand.ref, errand.serial, answer)
            case WorkerOrder():
                self._orders.take(note, now)
            case LeaseLost():
                self._books.is_fenced = True
                emit("lease_lost", level=logging.ERROR)

    def _on_renewed(self, sent_at: float, beat: Beat, now: float) -> None:
        self._books.fence = Fence.after(sent_at, self._books.times)
        self._fleet.lease(self._books.fence.kill_at)
        for asked in beat.asked:
            self._on_asked(asked, now)
        for ref in beat.gone:
            self._on_revoked(ref, now)

    def _on_asked(self, asked: Asked, now: float) -> None:
        """Told once, and again if a stronger request comes; the grace counts from the first."""
        holding = self._books.ledger.get(asked.ref)
        if holding is None:
            return
        holding.asking = None
        match holding.stage:
            case Stage.CLAIMED:
                self._books.give_back(asked.ref, f"{asked.kind} before it started")
            case Stage.FED if not holding.recalled:
                holding.recalled = True
                self._fleet.recall(holding.executor or 0, [asked.ref])
            case Stage.RUNNING:
                kind = stronger(holding.asked, asked.kind)
                if kind is not holding.asked or holding.told_at is None:
                    holding.asked = kind
                    self._hands.tell(holding, asked.reason or f"{asked.kind} requested", now)

    def _on_revoked(self, ref: AttemptRef, now: float) -> None:
        """Somebody else may own it already: stop the body, write nothing more about it."""
        books, holding = self._books, self._books.ledger.get(ref)
        if holding is None or holding.stage >= Stage.STUCK:
            return
        emit("revoked", level=logging.WARNING, job=holding.job.id, token=ref.token)
        if holding.stage is Stage.CLAIMED:
            books.standing = [h for h in books.standing if h.ref != ref]
            books.ledger.drop(ref)
            return
        if holding.stage is Stage.FED:
            self._fleet.recall(holding.executor or 0, [ref])
        holding.stage, holding.told_at, holding.asked = Stage.REVOKED, now, None
        self._fleet.cancel(holding.executor or 0, ref, None, "another worker may own this job now")
