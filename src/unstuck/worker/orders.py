"""Orders: what people ask of this worker itself. The requests loop brings and answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from unstuck.model.job import AttemptRef
from unstuck.records import dataclass
from unstuck.store.port import WorkerOrder
from unstuck.telemetry import emit
from unstuck.worker.act import ActionRunner
from unstuck.worker.actions import ORDERED, Drain, Dump, Kill
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.processes import FleetPort
from unstuck.worker.roster import Post
from unstuck.worker.shutdown import Shutdown
from unstuck.worker.state import WorkerState

#: A process that has not shown a stack by then will not.
_STACK_WITHIN = 1.0
#: Of a subject: anything that can write into the database may have written it.
_MOST_SHOWN = 50
_MOST_DIGITS = 10


class AnswerOrder(Protocol):
    def __call__(self, number: int, text: str, *, refused: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A stack that was asked for."""

    order: int
    ref: AttemptRef
    until: float


class Orders:
    def __init__(
        self, state: WorkerState, fleet: FleetPort, actions: ActionRunner, shutdown: Shutdown, answer: AnswerOrder
    ) -> None:
        self._state = state
        self._fleet = fleet
        self._actions = actions
        self._shutdown = shutdown
        self._answer = answer
        self._awaited: list[_Awaited] = []

    def take(self, order: WorkerOrder, now: float) -> None:
        emit("ordered", kind=order.kind, subject=order.subject[:_MOST_SHOWN], by=order.by)
        match order.kind:
            case "drain":
                self._drain(order)
            case "recycle":
                self._to_process(order, lambda post: self._recycle(post, order, now))
            case "kill":
                self._to_process(order, lambda post: self._kill(post, now))
            case "stack":
                self._show(order, now)

    def look(self, now: float) -> None:
        """Stacks come some milliseconds after they were asked for, if they come."""
        self._awaited = [awaited for awaited in self._awaited if not self._has_answered(awaited, now)]

    # --- processes ----------------------------------------------------------------------------------------------
    def _drain(self, order: WorkerOrder) -> None:
        """Like a first TERM; a worker that drains already is not hurried by it."""
        if not self._shutdown.is_asked:
            self._shutdown.ask()
        self._answer(order.number, f"this worker is draining; {_jobs(self._state.ledger.held)} first")

    def _to_process(self, order: WorkerOrder, act: Callable[[Post], str]) -> None:
        pid = _pid(order.subject)
        post = self._state.roster.of_pid(pid) if pid else None
        if post is None:
            self._answer(order.number, f"no process {order.subject[:_MOST_SHOWN]} here", refused=True)
        else:
            self._answer(order.number, act(post))

    def _recycle(self, post: Post, order: WorkerOrder, now: float) -> str:
        if post.state != "draining" and not post.killed:
            self._actions.do(Drain(post.number, f"recycled by {order.by}"), now)
        return f"process {post.pid} is draining; {_jobs(len(post.bodies))} first"

    def _kill(self, post: Post, now: float) -> str:
        running = len(post.bodies)
        self._actions.do(Kill(post.number, ORDERED), now)
        return f"process {post.pid} is killed; {running} of its jobs go back"

    # --- stacks -------------------------------------------------------------------------------------------------
    def _show(self, order: WorkerOrder, now: float) -> None:
        holding = self._subject(order.subject)
        if holding is None or not holding.has_body:
            is_waiting = holding is not None and holding.stage < Stage.RUNNING
            why = "it has not started yet" if is_waiting else "it does not run here any more"
            self._answer(order.number, why, refused=True)
            return
        self._actions.do(Dump(holding.executor or 0, (holding.ref,)), now)
        self._awaited.append(_Awaited(order.number, holding.ref, now + _STACK_WITHIN))

    def _subject(self, subject: str) -> HeldAttempt | None:
        job, _, token = subject.partition(":")
        held = self._state.ledger.holdings()
        return next((h for h in held if (str(h.ref.job), str(h.ref.token)) == (job, token)), None)

    def _has_answered(self, awaited: _Awaited, now: float) -> bool:
        holding = self._state.ledger.get(awaited.ref)
        post = None if holding is None else self._state.post_of(holding)
        if holding is None or post is None:
            self._answer(awaited.order, "it does not run here any more", refused=True)
            return True
        if stack := self._fleet.stack(post.number, awaited.ref):
            self._answer(awaited.order, stack)
            return True
        if now >= awaited.until:
            state = "is stopped (state T)" if post.is_stopped else "does not show one"
            self._answer(awaited.order, f"no stack: process {post.pid} {state}", refused=True)
            return True
        return False


def _pid(subject: str) -> int:
    """0 for what is none: a number of many digits costs time to read, or cannot be read at all."""
    is_number = subject.isascii() and subject.isdecimal() and len(subject) <= _MOST_DIGITS
    return int(subject) if is_number else 0


def _jobs(count: int) -> str:
    return "1 job finishes" if count == 1 else f"{count} jobs finish"
