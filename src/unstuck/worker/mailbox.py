"""The mailbox: what other threads tell the main thread, read between two events of the executors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import stronger
from unstuck.records import dataclass
from unstuck.store.port import Asked, Beat, WorkerOrder
from unstuck.telemetry import emit
from unstuck.worker.act import ActionRunner
from unstuck.worker.ledger import Stage
from unstuck.worker.orders import Orders
from unstuck.worker.processes import FleetPort
from unstuck.worker.selffence import Fence
from unstuck.worker.state import WorkerState


@dataclass(frozen=True, slots=True)
class Renewed:
    sent_at: float
    beat: Beat


@dataclass(frozen=True, slots=True)
class Revoked:
    ref: AttemptRef


class LeaseLost:
    """The database says that this incarnation is no more."""


MailboxMessage = Asked | Renewed | Revoked | LeaseLost | WorkerOrder


class Mailbox:
    """Written by any thread."""

    def __init__(self, nudge: Callable[[], None]) -> None:
        self._messages: SimpleQueue[MailboxMessage] = SimpleQueue()
        self._nudge = nudge

    def put(self, message: MailboxMessage) -> None:
        self._messages.put(message)
        self._nudge()

    def take(self) -> MailboxMessage | None:
        try:
            return self._messages.get_nowait()
        except Empty:
            return None


class MailboxReader:
    """Read by the main thread alone."""

    def __init__(
        self, mailbox: Mailbox, state: WorkerState, fleet: FleetPort, actions: ActionRunner, orders: Orders
    ) -> None:
        self._mailbox = mailbox
        self._state = state
        self._fleet = fleet
        self._actions = actions
        self._orders = orders

    def read(self, now: float) -> None:
        """One message that cannot be digested must not take the others with it."""
        while (message := self._mailbox.take()) is not None:
            try:
                self._on(message, now)
            except Exception:
                logging.getLogger("unstuck").exception("could not digest %s", type(message).__name__)

    def _on(self, message: MailboxMessage, now: float) -> None:
        match message:
            case Asked():
                self._on_asked(message, now)
            case Renewed(sent_at, beat):
                self._on_renewed(sent_at, beat, now)
            case Revoked(ref):
                self._on_revoked(ref, now)
            case WorkerOrder():
                self._orders.take(message, now)
            case LeaseLost():
                self._state.is_fenced = True
                emit("lease_lost", level=logging.ERROR)

    def _on_renewed(self, sent_at: float, beat: Beat, now: float) -> None:
        self._state.fence = Fence.after(sent_at, self._state.times)
        self._fleet.lease(self._state.fence.kill_at)
        for asked in beat.asked:
            self._on_asked(asked, now)
        for ref in beat.gone:
            self._on_revoked(ref, now)

    def _on_asked(self, asked: Asked, now: float) -> None:
        """Told once, and again if a stronger request comes; the grace counts from the first."""
        holding = self._state.ledger.get(asked.ref)
        if holding is None:
            return
        holding.asking = None
        match holding.stage:
            case Stage.CLAIMED:
                self._state.give_back(asked.ref, f"{asked.kind} before it started")
            case Stage.FED if not holding.recalled:
                holding.recalled = True
                self._fleet.recall(holding.executor or 0, [asked.ref])
            case Stage.RUNNING:
                kind = stronger(holding.asked, asked.kind)
                if kind is not holding.asked or holding.told_at is None:
                    holding.asked = kind
                    self._actions.tell(holding, asked.reason or f"{asked.kind} requested", now)

    def _on_revoked(self, ref: AttemptRef, now: float) -> None:
        """Another worker may own it already: stop the handler, write nothing more about it."""
        state, holding = self._state, self._state.ledger.get(ref)
        if holding is None or holding.stage >= Stage.STUCK:
            return
        emit("revoked", level=logging.WARNING, **holding.facts, token=ref.token)
        if holding.stage is Stage.CLAIMED:
            state.unseated = [h for h in state.unseated if h.ref != ref]
            state.ledger.drop(ref)
            return
        if holding.stage is Stage.FED:
            self._fleet.recall(holding.executor or 0, [ref])
        holding.stage, holding.told_at, holding.asked = Stage.REVOKED, now, None
        self._fleet.cancel(holding.executor or 0, ref, None, "another worker may own this job now")
