"""The channel to executors: what is told and what is heard, checked, and turned into events.

An attempt is known by a number that the fleet dealt out; one bad frame ends the executor that sent it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from unstuck.clock import Clock
from unstuck.executor.messages import (
    Answered,
    Begun,
    Failed,
    FlowCallMessage,
    GivenBack,
    LeftBehindMessage,
    Park,
    Raise,
    Ready,
    Return,
    Run,
    Say,
    ShownMessage,
    Stop,
    pack,
    pack_all,
)
from unstuck.model.job import AttemptRef
from unstuck.model.payload import clean_text
from unstuck.worker import validate
from unstuck.worker.fleet_selector import FleetSelector, is_readable, is_writable
from unstuck.worker.member import Member
from unstuck.worker.processes import ExecutorReady, Finished, FleetEvent, FlowCall, HandlerOutput, Recalled, Started

HANG_UP_GRACE = 0.2
#: More would be taken from the kernel page by page, and given back, for every report of a dozen bytes.
_READ = 64 << 10


class ExecutorChannel:
    def __init__(
        self,
        kill_grace: float,
        *,
        selector: FleetSelector,
        clock: Clock,
        say: Callable[[FleetEvent], None],
        kill: Callable[[Member, str], None],
    ) -> None:
        self._kill_grace = kill_grace
        self._selector = selector
        self._clock = clock
        self._say = say
        self._kill = kill

    def tell(self, member: Member, message: Any) -> None:
        self._send(member, pack([message]))

    def feed(self, member: Member, runs: Sequence[Run]) -> None:
        self._send(member, b"".join(pack_all(runs, _weight)))

    def answer(self, member: Member, message: Answered) -> bool:
        """By the thread that has the answer: the handler waits for it. Whether all was sent; if not, `go_on`."""
        return member.send(pack([message]))

    def go_on(self, member: Member) -> None:
        """With what another thread could not send."""
        if member.unsent and not member.writing:
            self._send(member)

    def converse(self, member: Member, mask: int) -> None:
        if is_writable(mask):
            self._send(member)
        if is_readable(mask):
            self._read_once(member)

    def read_all(self, member: Member) -> None:
        """All that a dead executor had sent."""
        while not member.is_released and self._read_once(member):
            pass

    def take_back(self, member: Member, now: float) -> None:
        """What was recalled comes back also when the executor is past answering."""
        self._recalled(member, member.take_back(now))

    def limit_stop(self, member: Member) -> None:
        """A drained executor has the kill grace for its on_stop hooks."""
        if member.state == "draining" and member.stop_by == math.inf and member.is_idle():
            member.stop_by = self._clock.boot() + self._kill_grace

    def _send(self, member: Member, frames: bytes = b"") -> None:
        is_all_sent = member.send(frames)
        if member.writing is is_all_sent and not member.is_released:
            member.writing = not is_all_sent
            self._selector.watch_for_room(member.wire, member.writing)

    def _read_once(self, member: Member) -> bool:
        try:
            data = member.wire.recv(_READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._hung_up(member)
            return False
        try:
            for message in member.inbox.take(data):
                if type(message) is Return:
                    self._ended(member, message)
                else:
                    self._take(member, message)
        except Exception as error:
            # BadFrame or whatever else its words led to: it costs this executor, never the supervisor.
            self._selector.unwatch(member.wire)
            self._kill(member, f"it sent what no executor sends: {error}")
            return False
        return True

    def _hung_up(self, member: Member) -> None:
        """It closed its end: nothing can be heard or asked any more, so it must not go on."""
        self._selector.unwatch(member.wire)
        if member.pid and not member.killed and member.status_by == math.inf:
            # Usually the process is just ending by itself: let its own status be seen.
            member.stop_by = min(member.stop_by, self._clock.boot() + HANG_UP_GRACE)
            member.reason = member.reason or "it closed its connection to the supervisor"

    def _take(self, member: Member, message: Any) -> None:
        match message:
            case Begun():
                self._begun(member, message)
            case Raise() | Stop() | Park():
                self._ended(member, message)
            case FlowCallMessage():
                fed = member.sends(message.number, message.serial)
                validate.check_question(message.question, fed.max_result)
                self._say(FlowCall(member.number, message.number, fed.ref, message.serial, message.question))
            case Say():
                fed = member.owed(message.number)
                self._say(HandlerOutput(member.number, fed.ref, message.kind, validate.said(message)))
            case GivenBack():
                self._given_back(member, message.numbers)
            case Ready():
                member.ready_by = math.inf
                member.memory_at = -math.inf  # what it used while it started says nothing
                if member.state == "starting":
                    member.state = "active"
                self._say(ExecutorReady(member.number, member.pid))
            case ShownMessage():
                member.dumps.show(message.number, message.stack)
            case LeftBehindMessage():
                self._say(validate.left_behind(member.number, message))
            case Failed():
                member.fault = clean_text(message.error, validate.MAX_TEXT)

    def _begun(self, member: Member, message: Begun) -> None:
        fed = member.owed(message.number)
        fed.started = True
        now = self._clock.boot()
        self._say(Started(member.number, fed.ref, message.at if 0.0 < message.at <= now else now))

    def _ended(self, member: Member, message: Return | Raise | Stop | Park) -> None:
        fed = member.owed(message.number)
        outcome = validate.outcome_of(message, fed.max_result, is_alone=member.alone)
        output = validate.output_of(message)
        member.answered(message.number)
        member.jobs_done += 1
        self._say(Finished(member.number, fed.ref, outcome, max(0, message.ms), output))
        self.limit_stop(member)

    def _given_back(self, member: Member, numbers: list[int]) -> None:
        answers = [member.given_back(number) for number in numbers]
        self._recalled(member, tuple(ref for ref in answers if ref is not None))

    def _recalled(self, member: Member, refs: tuple[AttemptRef, ...]) -> None:
        if refs:
            self._say(Recalled(member.number, refs))
        self.limit_stop(member)


def _weight(run: Run) -> int:
    return len(run.payload) + len(run.trace or "") + 100
