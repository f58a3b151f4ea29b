"""The fleet: executor processes, started, fed, heard, stopped and replaced.

The supervisor's thread alone touches it. Whatever an executor says is checked (executor_channel.py). Death is seen
by pidfd within milliseconds; ExecutorDied follows when the zygote has reaped the process and killed its descendants,
after every frame it had sent was read.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from unstuck.clock import Clock, MachineClock
from unstuck.executor.descendants import look_at
from unstuck.executor.messages import (
    INTERRUPT_SIGNAL,
    STACK_SIGNAL,
    Answered,
    Cancel,
    DrainMessage,
    ExitedMessage,
    Forked,
    NotForked,
    RecallMessage,
    Reply,
    Show,
    WorkerTerms,
)
from unstuck.executor.page import HEADER, SharedPage, memory_file
from unstuck.executor.zygote_setup import LEASE_OVER
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.lifecycle import RequestKind
from unstuck.model.payload import clean_text
from unstuck.model.policy import Policy
from unstuck.worker import endings, signals
from unstuck.worker.executor_channel import ExecutorChannel
from unstuck.worker.fleet_selector import FleetSelector
from unstuck.worker.member import Member
from unstuck.worker.memory import oom_counters, oom_kills
from unstuck.worker.output_pipe import OutputPipe
from unstuck.worker.pending_forks import PendingFork, PendingForks, close_all, prepare_fork
from unstuck.worker.processes import ExecutorDied, ExecutorView, FleetEvent, FlowCall, Recalled
from unstuck.worker.zygote_link import ZygoteLink
from unstuck.worker.zygote_process import ZygoteProcess

#: How long a dead executor may wait for its status; after that it is reported without one.
STATUS_WITHIN = 5.0
#: Pulses missed in a row before the kernel is asked why; fewer than make an executor unresponsive.
SILENT_PULSES = 4


class Fleet:
    def __init__(
        self,
        app: str,
        *,
        incarnation: str,
        slots: int,
        pulse: float = 0.1,
        kill_grace: float = 5.0,
        import_limit: float = 60.0,
        max_memory: int | None = None,
        fork: bool | None = None,
        policy: Policy | None = None,
        max_timeout: float | None = None,
        database: str | None = None,
        log_json: bool = False,
        clock: Clock | None = None,
        zygote: ZygoteProcess | None = None,
    ) -> None:
        """`zygote`: one of this app and incarnation that was started before; the next it starts itself."""
        self._slots = slots
        self._pulse = pulse
        self._import_limit = import_limit
        self.max_memory = max_memory
        self._log_json = log_json
        self._clock = clock or MachineClock()
        self._members: dict[int, Member] = {}
        self._pending_forks = PendingForks()
        self._serial = 0
        self._lease_until = 0.0
        self._events: list[FleetEvent] = []
        self._selector = FleetSelector()
        self._guard_fd = memory_file("unstuck-lease", HEADER)
        self._guard_page = SharedPage(self._guard_fd)
        self._channel = ExecutorChannel(
            kill_grace, selector=self._selector, clock=self._clock, say=self._say, kill=self._kill
        )
        early = [] if zygote is None else [zygote]

        def start() -> ZygoteProcess:
            return early.pop() if early else ZygoteProcess(app, incarnation, os.environ)

        self._zygote = ZygoteLink(
            start,
            WorkerTerms(pulse, _may_fork(fork), None if policy is None else policy.to_json(), max_timeout, database),
            self._guard_fd,
            import_limit,
            incarnation=incarnation,
            selector=self._selector,
            clock=self._clock,
            say=self._say,
            heard=self._on_zygote_message,
            died=self._on_zygote_death,
            log_json=log_json,
        )
        self._closed = False

    # what the supervisor asks

    def start(self) -> None:
        self._zygote.start()

    def spawn(self, executor: int, *, alone: bool = False, slots: int | None = None) -> None:
        if executor in self._members:
            raise ValueError(f"there is an executor {executor} already")
        try:
            fork = prepare_fork(
                executor, alone, slots or self._slots, self._lease_until, self._clock.boot(), log_json=self._log_json
            )
            self._expect(fork)
        except OSError as error:
            status = f"could not be started: {error}"
            self._say(ExecutorDied(executor, 0, status, running=(), unstarted=()))
            return
        self._send_forks()

    def feed(self, executor: int, jobs: Sequence[ClaimedJob]) -> None:
        member = self._members.get(executor)
        if member is None:
            # It died in the same breath: they never reached it.
            self._say(Recalled(executor, tuple(job.ref for job in jobs)))
            return
        if len(member.places) < len(jobs):
            raise ValueError(f"executor {executor} has room for {len(member.places)} more jobs, not {len(jobs)}")
        runs = [member.deal(number, job) for number, job in enumerate(jobs, self._serial + 1)]
        self._serial += len(runs)
        self._channel.feed(member, runs)

    def cancel(self, executor: int, ref: AttemptRef, kind: RequestKind | None, reason: str) -> None:
        for member, number in self._find(executor, [ref]):
            self._channel.tell(member, Cancel(number, kind, clean_text(reason, 1000)))

    def answer(self, call: FlowCall, answer: Reply) -> bool:
        member = self._members.get(call.executor)
        fed = None if member is None else member.fed.get(call.number)
        if member is None or fed is None:
            return True
        fed.answers += 1
        return self._channel.answer(member, Answered(call.number, call.serial, answer))

    def recall(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        member = self._members.get(executor)
        if member is None:
            return
        if numbers := member.withdraw(refs, self._clock.boot()):
            self._channel.tell(member, RecallMessage(numbers))

    def interrupt(self, executor: int, ref: AttemptRef) -> None:
        for member, number in self._find(executor, [ref]):
            member.page.aim(number)
            signals.send(member, INTERRUPT_SIGNAL)

    def dump(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        numbers = [number for _, number in self._find(executor, refs)]
        if numbers:
            member = self._members[executor]
            member.dumps.ask(numbers, member.page.loop_job)
            self._channel.tell(member, Show(numbers))
            _force_dump(member)

    def stack(self, executor: int, ref: AttemptRef) -> str | None:
        return next((member.stack_of(number) for member, number in self._find(executor, [ref])), None)

    def resume(self, executor: int) -> None:
        if (member := self._members.get(executor)) is not None:
            signals.resume(member)

    def terminate(self, executor: int) -> None:
        if (member := self._members.get(executor)) is not None:
            signals.terminate(member)

    def drain(self, executor: int, reason: str) -> None:
        member = self._members.get(executor)
        if member is None or member.is_drained:
            return
        member.is_drained = True
        member.reason = reason
        member.state = "draining"
        self._channel.tell(member, DrainMessage())
        self._channel.limit_stop(member)

    def kill(self, executor: int, reason: str) -> None:
        if (member := self._members.get(executor)) is not None:
            self._kill(member, reason)

    def lease(self, until: float) -> None:
        self._lease_until = until
        self._guard_page.grant(until)
        for member in self._members.values():
            member.page.grant(until)

    def nudge(self) -> None:
        self._selector.nudge()

    def hear(self, timeout: float) -> list[FleetEvent]:
        self._keep_house()
        wait = 0.0 if self._events else max(0.0, min(timeout, self._next_duty() - self._clock.boot()))
        self._selector.hear(wait)
        self._keep_house()
        events, self._events = self._events, []
        return events

    def views(self) -> list[ExecutorView]:
        now = self._clock.boot()
        silent_after = SILENT_PULSES * self._pulse
        return [member.view(now, silent_after) for member in self._members.values()]

    def pids(self) -> dict[str, Any]:
        executors = [_identity(member.pid) for member in self._members.values() if member.pid]
        zygote = _identity(self._zygote.pid) if self._zygote.pid else None
        return {"zygote": zygote, "executors": executors}

    def close(self, stamp: Callable[[], None] = lambda: None) -> None:
        if self._closed:
            return
        self._closed = True
        # A member that was never started is gone at once, and out of the members.
        for member in tuple(self._members.values()):
            self._kill(member, "the worker ends")
        self._zygote.close(2.0, stamp)
        stamp()
        self._zygote.sweep()
        stamp()
        for member in tuple(self._members.values()):
            self._release(member)
        self._selector.close()
        self._guard_page.close()
        os.close(self._guard_fd)

    def _find(self, executor: int, refs: Sequence[AttemptRef]) -> list[tuple[Member, int]]:
        """Those of them that this executor holds."""
        member = self._members.get(executor)
        if member is None:
            return []
        return [(member, number) for ref in refs if (number := member.number_of(ref)) is not None]

    def _say(self, event: FleetEvent) -> None:
        self._events.append(event)

    # starts

    def _expect(self, fork: PendingFork) -> None:
        member, output_pipe = fork.member, fork.member.output_pipe
        self._members[member.number] = member
        try:
            self._selector.watch(member.wire, lambda mask: self._channel.converse(member, mask))
            self._selector.watch(output_pipe.fd, lambda _: self._drain_output(output_pipe))
        except OSError:
            self._release(member)
            close_all(fork.descriptors)
            raise
        self._pending_forks.add(fork)

    def _send_forks(self) -> None:
        for member in self._pending_forks.send(self._zygote):
            member.ready_by = self._clock.boot() + self._import_limit

    def _on_zygote_message(self, message: Any) -> None:
        """What the zygote says of executors."""
        match message:
            case Forked():
                self._forked(message)
            case NotForked():
                if (member := self._members.get(message.executor)) is not None:
                    member.fault = f"could not be started: {message.error}"
                    self._died(member, member.fault)
            case ExitedMessage():
                self._exited(message)

    def _forked(self, message: Forked) -> None:
        member = self._members.get(message.executor)
        if member is None:
            return
        member.pid = message.pid
        member.oom_counters = oom_counters(member.pid)
        member.oom_before = oom_kills(member.oom_counters)
        if hasattr(os, "pidfd_open"):
            # Already reaped? Then its Exited is on the way. No descriptor left? Exited will do as well.
            with contextlib.suppress(OSError):
                member.pidfd = os.pidfd_open(member.pid)
                self._selector.watch(member.pidfd, lambda _: self._seen_dead(member))
        if member.killed:
            signals.kill(member)

    # deaths

    def _on_zygote_death(self, how: str) -> None:
        """The zygote died by itself, and every executor of it with it."""
        for member in self._members.values():
            if member not in self._pending_forks:
                member.fault = member.fault or f"its zygote ended ({how})"
                member.fell_with_zygote = True
                member.status_by = min(member.status_by, self._clock.boot() + self._pulse)

    def _seen_dead(self, member: Member) -> None:
        self._selector.unwatch(member.pidfd)
        self._channel.read_all(member)
        member.status_by = min(member.status_by, self._clock.boot() + STATUS_WITHIN)
        # It has ended, in time or not: only its status is waited for.
        member.ready_by = member.stop_by = math.inf

    def _exited(self, message: ExitedMessage) -> None:
        member = self._members.get(message.executor)
        if member is None or member.pid != message.pid:
            return
        if message.why:
            member.fault = member.fault or f"killed: {message.why}"
            member.is_blameless = True
        self._channel.read_all(member)
        if not member.is_released:
            self._died(member, endings.status(message.status), message.status)

    def _died(self, member: Member, status: str, wait_status: int | None = None) -> None:
        stack = member.dumps.crash_report(wait_status)
        if member.page.fenced_at:
            member.fault = member.fault or f"it ended itself: {LEASE_OVER}"
            member.is_blameless = True
        if member.fault and member.fault != status:
            status = f"{status}; {member.fault}"
        self._say(member.death(status, stack, wait_status))
        self._release(member)

    def _release(self, member: Member) -> None:
        self._members.pop(member.number, None)
        self._selector.unwatch(member.wire)
        if member.pidfd >= 0:
            self._selector.unwatch(member.pidfd)
        self._selector.unwatch(member.output_pipe.fd)
        member.release(self._clock.boot())

    def _kill(self, member: Member, reason: str) -> None:
        member.fault = member.fault or f"killed: {reason}"
        member.reason = member.reason or reason
        member.killed = True
        member.state = "draining"
        if self._pending_forks.withdraw(member):
            self._died(member, "never started")
        else:
            signals.kill(member)

    # house-keeping

    def _keep_house(self) -> None:
        now = self._clock.boot()
        self._zygote.keep_time(now)
        self._send_forks()
        for member in tuple(self._members.values()):
            self._keep_deadlines(member, now)

    def _keep_deadlines(self, member: Member, now: float) -> None:
        if member.recalls:
            self._channel.take_back(member, now)
        self._channel.go_on(member)
        _force_dump(member)
        if now >= member.status_by:
            self._channel.read_all(member)
            self._died(member, "ended, status unknown")
        elif now >= member.ready_by:
            member.ready_by = math.inf
            self._kill(member, f"it was not ready after {self._import_limit:g} s")
            if not member.pid:
                # The zygote itself does not answer: start over with a new one.
                self._zygote.kill()
        elif now >= member.stop_by:
            member.stop_by = math.inf
            self._kill(member, f"it did not end in time ({member.reason})")

    def _next_duty(self) -> float:
        return min((self._zygote.next_duty(), *(member.next_duty() for member in self._members.values())))

    def _drain_output(self, output_pipe: OutputPipe) -> None:
        if not output_pipe.drain(self._clock.boot()):
            self._selector.unwatch(output_pipe.fd)


def _force_dump(member: Member) -> None:
    if member.is_held() and member.dumps.force():
        signals.send(member, STACK_SIGNAL)


def _may_fork(wanted: bool | None) -> bool | None:
    return False if os.environ.get("UNSTUCK_FORK", "").lower() in {"off", "0", "no"} else wanted


def _identity(pid: int) -> dict[str, int]:
    found = look_at(pid)
    return {"pid": pid, "start": found.start if found else 0}
