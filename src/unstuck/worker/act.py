"""Carries out what was planned, and notes it in the state, so that it is not planned again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import Report
from unstuck.telemetry import emit
from unstuck.worker import actions
from unstuck.worker.blame import did_not_respond, no_stack
from unstuck.worker.ledger import HeldAttempt
from unstuck.worker.processes import FleetPort
from unstuck.worker.requests import PendingRequest, Requests
from unstuck.worker.roster import Post
from unstuck.worker.state import WorkerState

#: On a busy machine a stack may take so long, once it was asked for.
STACK_WITHIN = 1.0


class ActionRunner:
    def __init__(self, state: WorkerState, fleet: FleetPort, requests: Requests) -> None:
        self._state = state
        self._fleet = fleet
        self._requests = requests

    def do(self, action: actions.Action, now: float) -> None:
        match action:
            case actions.Kill(executor, reason, culprit):
                self._kill(executor, reason, culprit, now)
            case actions.Drain(executor, reason):
                self._drain(executor, reason, now)
            case actions.Terminate(executor, reason):
                self._terminate(executor, reason, now)
            case actions.Continue(executor):
                self._continue(executor, now)
            case actions.Recall(executor, refs):
                self._recall(executor, refs)
            case actions.Dump(executor, refs):
                self._dump(executor, refs, now)
            case actions.GiveBack(ref, reason):
                self._state.give_back(ref, reason)
            case actions.StartExecutor(alone, slots, is_spare):
                post = self._state.roster.open(alone, now, slots, is_spare=is_spare)
                self._fleet.spawn(post.number, alone=alone, slots=slots)
            case actions.Promote(executor):
                self._state.roster.promote(executor)
                emit("executor_promoted", executor=executor)
            case _:
                if holding := self._state.ledger.get(action.ref):
                    self._do_to(holding, action, now)

    def _do_to(
        self,
        holding: HeldAttempt,
        action: actions.Convict | actions.Excuse | actions.Interrupt | actions.Tell | actions.Ask,
        now: float,
    ) -> None:
        match action:
            case actions.Convict():
                self._convict(holding, now)
            case actions.Excuse(_, seconds):
                holding.told_at = (holding.told_at or now) + seconds
            case actions.Interrupt(_, stalls):
                self._interrupt(holding, stalls, now)
            case actions.Tell(_, reason):
                self.tell(holding, reason, now)
            case actions.Ask(ref, kind, reason):
                holding.asking = kind
                self._requests.ask(PendingRequest(ref, kind, reason, holding.job.id))

    # --- processes ----------------------------------------------------------------------------------------------
    def _kill(self, executor: int, reason: str, culprit: AttemptRef | None, now: float) -> None:
        post = self._state.roster.posts.get(executor)
        if post is None or post.killed:
            return
        post.killed, post.killed_at, post.culprit = reason, now, culprit
        self._state.roster.vacate(post)
        for holding in post.bodies:
            holding.stack = self._stack_of(post, holding) or holding.stack
        emit("executor_killed", executor=executor, pid=post.pid, reason=reason)
        if reason == actions.OVER_MEMORY and post.is_untouched:
            # At once, and not when its death is heard: its replacement would be on the way by then.
            self._state.start_failed(_too_large(post.memory, self._state.limits.memory_limit or 0), now)
        self._fleet.kill(executor, reason)

    def _drain(self, executor: int, reason: str, now: float) -> None:
        if post := self._state.roster.posts.get(executor):
            self._state.roster.vacate(post)
            post.state, post.reason = "draining", reason
            post.draining_since = post.draining_since or now
            emit("executor_draining", executor=executor, pid=post.pid, reason=reason)
            self._fleet.drain(executor, reason)

    def _terminate(self, executor: int, reason: str, now: float) -> None:
        if post := self._state.roster.posts.get(executor):
            post.state, post.reason, post.terminated_at = "draining", reason, now
            post.draining_since = post.draining_since or now
            emit("executor_terminated", executor=executor, pid=post.pid, reason=reason)
            self._fleet.terminate(executor)

    def _continue(self, executor: int, now: float) -> None:
        if post := self._state.roster.posts.get(executor):
            post.note_continued(now)
            emit("executor_continued", level=logging.WARNING, executor=executor, pid=post.pid, times=post.continued)
            self._fleet.resume(executor)

    def _recall(self, executor: int, refs: Iterable[AttemptRef]) -> None:
        asked = [h for ref in refs if (h := self._state.ledger.get(ref))]
        for holding in asked:
            holding.recalled = True
        if asked:
            self._state.is_congested = True
            self._fleet.recall(executor, [h.ref for h in asked])

    def _dump(self, executor: int, refs: Iterable[AttemptRef], now: float) -> None:
        shown = [h for ref in refs if (h := self._state.ledger.get(ref))]
        for holding in shown:
            holding.dumped_at = now
        self._fleet.dump(executor, [h.ref for h in shown])

    # --- attempts -----------------------------------------------------------------------------------------------
    def tell(self, holding: HeldAttempt, reason: str, now: float) -> None:
        holding.told_at = holding.told_at if holding.told_at is not None else now
        emit("cancellation_requested", level=logging.INFO, **holding.facts, kind=holding.asked, reason=reason)
        self._fleet.cancel(holding.executor or 0, holding.ref, holding.asked, reason)

    def _interrupt(self, holding: HeldAttempt, stalls: bool, now: float) -> None:
        if stalls:
            holding.stalled_at = now
            if post := self._state.post_of(holding):
                holding.stack = self._stack_of(post, holding)
        holding.interrupted_at = now
        holding.interrupts += 1
        emit("interrupted", level=logging.INFO, **holding.facts, stalls=stalls)
        self._fleet.interrupt(holding.executor or 0, holding.ref)

    def _convict(self, holding: HeldAttempt, now: float) -> None:
        post = self._state.post_of(holding)
        stack = None if post is None else self._stack_of(post, holding)
        if stack is None and _may_still_show(post, holding, now):
            return  # it is planned again
        stack = stack or no_stack(post)
        self._state.ledger.convict(holding)
        emit("stuck", level=logging.WARNING, **holding.facts)
        error = ErrorInfo(ErrorType.EXECUTION_STUCK, did_not_respond(holding), stack)
        outcome = Stuck(error, pid=post.pid if post else None)
        duration = None if holding.started_at is None else round((now - holding.started_at) * 1000)
        self._state.reports.append(Report(holding.ref, outcome, duration_ms=duration, span=holding.span))

    def _stack_of(self, post: Post, holding: HeldAttempt) -> str | None:
        """What a process wrote must not keep us from ending it."""
        if holding.dumped_at is None:
            return None
        try:
            return self._fleet.stack(post.number, holding.ref)
        except Exception:
            logging.getLogger("unstuck").exception("could not read the stack of %s", holding.job.id)
            return None


def _may_still_show(post: Post | None, holding: HeldAttempt, now: float) -> bool:
    """The stack that explains the verdict is worth a moment; of a stopped process none will come."""
    if post is None or post.is_stopped or post.killed or holding.dumped_at is None:
        return False
    return now < holding.dumped_at + STACK_WITHIN


def _too_large(memory: int, limit: int) -> str:
    return f"a process uses {memory >> 20} MiB before any job; memory_limit is {limit >> 20} MiB"
