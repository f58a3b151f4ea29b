"""One executor as the fleet keeps it: its descriptors, what it owes an answer for, its deadlines."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
from dataclasses import dataclass, field

from unstuck.executor.messages import BadFrame, Inbox, Run, from_executor
from unstuck.executor.page import Page
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.payload import clean_text
from unstuck.worker.memory import oom_kills, resident
from unstuck.worker.processes import ExecutorView, ProcessState
from unstuck.worker.spill import Spill

_MAX_STACK = 64 << 10
#: What the interpreter writes a report about before it dies of it.
_CRASHES = {getattr(signal, f"SIG{name}", None) for name in ("SEGV", "ABRT", "BUS", "FPE", "ILL")}
_CRASHED_THREAD = re.compile(r"^Current thread 0x([0-9a-f]+)", re.MULTILINE)


@dataclass(slots=True)
class Fed:
    """An attempt that an executor was given and has not answered for."""

    ref: AttemptRef
    place: int
    max_result: int
    started: bool = False


@dataclass(slots=True)
class Member:
    number: int
    alone: bool
    wire: socket.socket
    page: Page
    stack: int
    spill: Spill
    since: float
    places: list[int]
    state: ProcessState = "starting"
    pid: int = 0
    pidfd: int = -1
    inbox: Inbox = field(default_factory=lambda: Inbox(from_executor))
    unsent: bytearray = field(default_factory=bytearray)
    writing: bool = False
    fed: dict[int, Fed] = field(default_factory=dict)
    jobs_done: int = 0
    #: Why it is to end, as the supervisor said; and what went wrong, as its status will say.
    reason: str = ""
    fault: str = ""
    is_drained: bool = False
    is_blameless: bool = False
    fell_with_zygote: bool = False
    killed: bool = False
    ready_by: float = math.inf
    stop_by: float = math.inf
    status_by: float = math.inf
    oom_counters: tuple[str, ...] = ()
    oom_before: int = 0
    memory: int = 0
    memory_at: float = -math.inf

    def deal(self, number: int, job: ClaimedJob) -> Run:
        """Give the attempt a cell of the page and put it on record, before anything is sent."""
        place = self.places.pop()
        ref, policy = job.ref, job.policy
        self.fed[number] = Fed(ref, place, policy.max_result)
        return Run(
            number,
            place,
            job.id,
            ref.token,
            ref.claim,
            job.run,
            job.attempt,
            job.tenant,
            job.queue,
            job.workflow,
            job.payload,
            None if policy.timeout == "unlimited" else float(policy.timeout),
            policy.max_result,
        )

    def owed(self, number: int) -> Fed:
        try:
            return self.fed[number]
        except KeyError:
            raise BadFrame(f"it spoke of attempt {number}, which it was not given") from None

    def answered(self, number: int) -> None:
        self.places.append(self.fed.pop(number).place)

    def number_of(self, ref: AttemptRef) -> int | None:
        return next((number for number, fed in self.fed.items() if fed.ref == ref), None)

    def has_started(self, number: int) -> bool:
        """By its word or, since a crash may have come before the word, by the page."""
        fed = self.fed[number]
        return fed.started or self.page.cell(fed.place).number == number

    def running(self) -> tuple[AttemptRef, ...]:
        return tuple(fed.ref for number, fed in self.fed.items() if self.has_started(number))

    def unstarted(self) -> tuple[AttemptRef, ...]:
        return tuple(fed.ref for number, fed in self.fed.items() if not self.has_started(number))

    def unsaid(self) -> dict[AttemptRef, float]:
        """What the page alone says to have begun, and when."""
        silent = ((number, fed) for number, fed in self.fed.items() if not fed.started)
        cells = ((number, fed.ref, self.page.cell(fed.place)) for number, fed in silent)
        return {ref: cell.started_at for number, ref, cell in cells if cell.number == number}

    def crash_stack(self, status: int | None) -> str | None:
        """Its report, if it died of a crash: what else may be written there has nothing to do with its end."""
        if status is None or not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in _CRASHES:
            return None
        text = os.pread(self.stack, _MAX_STACK, 0).decode("utf-8", "replace")
        return clean_text(text, _MAX_STACK) or None

    def culprit(self, stack: str | None) -> AttemptRef | None:
        """Whose thread crashed, by the crash report and the page; None if nothing says so."""
        _, fatal, report = (stack or "").rpartition("Fatal Python error")
        crashed = _CRASHED_THREAD.search(report) if fatal else None
        if crashed is None:
            return None
        there = [number for number in self.fed if self._is_on(int(crashed[1], 16), number)]
        if self.page.loop_job in there:
            return self.fed[self.page.loop_job].ref
        return self.fed[there[0]].ref if len(there) == 1 else None

    def _is_on(self, thread: int, number: int) -> bool:
        cell = self.page.cell(self.fed[number].place)
        return cell.number == number and cell.thread == thread

    def was_out_of_memory(self, status: int) -> bool:
        is_kill = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return is_kill and not self.killed and oom_kills(self.oom_counters) > self.oom_before

    def view(self, now: float) -> ExecutorView:
        if now - self.memory_at >= 1.0:
            self.memory, self.memory_at = resident(self.pid) if self.pid else 0, now
        return ExecutorView(
            executor=self.number,
            pid=self.pid,
            state=self.state,
            since=self.since,
            pulse_age=max(0.0, now - (self.page.pulse or now)),
            jobs_done=self.jobs_done,
            memory=self.memory,
            running=self.running(),
            unstarted=self.unstarted(),
            reason=self.reason,
            unsaid=self.unsaid(),
        )
