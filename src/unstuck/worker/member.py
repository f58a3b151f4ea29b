"""One executor as the fleet keeps it: its descriptors, what it owes an answer for, its deadlines."""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import field

import msgspec

from unstuck.executor.messages import MAX_FLOW_CALLS, BadFrame, FrameReader, Run, from_executor
from unstuck.executor.page import SharedPage
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.records import dataclass
from unstuck.worker import stacks
from unstuck.worker.dumps import Dumps
from unstuck.worker.memory import oom_kills, resident
from unstuck.worker.output_pipe import OutputPipe
from unstuck.worker.processes import ExecutorDied, ExecutorView, ProcessState
from unstuck.worker.threads import SilenceProbe, StallProbe, look_at_main, look_at_threads

#: How long an executor may take to answer a recall; after that what has not begun comes back without its help.
ANSWER_WITHIN = 0.1
MEMORY_EVERY = 0.2
#: Bytes in one go: a long frame is copied in parts.
MOST_SENT = 1 << 20
#: As a column of the database holds it.
MOST_SERIAL = (1 << 63) - 1


class Fed(msgspec.Struct):
    """An attempt that an executor was given and has not answered for.

    `is_back`: it was taken back without the executor's help. It will not begin, but its cell is not free before the
    executor has said so too.
    """

    ref: AttemptRef
    place: int
    max_result: int
    started: bool = False
    is_back: bool = False
    on_main: bool = False
    #: How many flow calls of it have come, and the serial of the last.
    flow_calls: int = 0
    serial: int = 0
    #: How many of them were answered; counted by the thread that answers.
    answers: int = 0


@dataclass(slots=True)
class Member:
    number: int
    alone: bool
    wire: socket.socket
    page: SharedPage
    dumps: Dumps
    output_pipe: OutputPipe
    since: float
    places: list[int]
    state: ProcessState = "starting"
    pid: int = 0
    pidfd: int = -1
    inbox: FrameReader = field(default_factory=lambda: FrameReader(from_executor))
    unsent: bytearray = field(default_factory=bytearray)
    #: Around the wire's sending side: answers to flow calls are sent by the thread that has them.
    sending: threading.Lock = field(default_factory=threading.Lock)
    writing: bool = False
    fed: dict[int, Fed] = field(default_factory=dict)
    #: When to stop waiting for the answer to a recall, oldest first.
    recalls: dict[int, float] = field(default_factory=dict)
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
    #: Kernel threads that were there before its first attempt, or have run one: they may rest as long as they like.
    crew: set[int] | None = None
    silence: SilenceProbe | None = None
    stall: StallProbe | None = None
    is_released: bool = False

    def next_duty(self) -> float:
        recall = next(iter(self.recalls.values()), math.inf)
        return min(self.status_by, self.ready_by, self.stop_by, recall)

    def release(self, now: float) -> None:
        """Let go of all its descriptors; nothing is heard of it any more."""
        with self.sending:
            self.is_released = True
            self.unsent.clear()
            self.wire.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.output_pipe.drain(now)
        self.output_pipe.close()
        self.page.close()
        self.dumps.close()

    def send(self, frames: bytes) -> bool:
        """By any thread; never waits for the executor. Whether nothing is left to be sent."""
        with self.sending:
            if self.is_released:
                return True
            self.unsent += frames
            while self.unsent:
                try:
                    with memoryview(self.unsent) as view:
                        sent = self.wire.send(view[:MOST_SENT])
                except BlockingIOError:
                    return False
                except OSError:
                    # It is dying or has closed its end; its death will be heard, with what it was fed as unstarted.
                    self.unsent.clear()
                    break
                del self.unsent[:sent]
            return True

    # what it was given

    def deal(self, number: int, job: ClaimedJob) -> Run:
        """Give the attempt a cell of the page and put it on record, before anything is sent."""
        if self.crew is None:
            self.crew = set(look_at_threads(self.pid, 0.0).threads)
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
            policy.grace,
            job.trace,
            job.span,
        )

    def owed(self, number: int) -> Fed:
        try:
            return self.fed[number]
        except KeyError:
            raise BadFrame(f"it spoke of attempt {number}, which it was not given") from None

    def sends(self, number: int, serial: int) -> Fed:
        """One more flow call of this attempt; an executor of ours keeps back what is too much.

        Two under one serial would be taken for one from here on, and the end of the attempt wait for the other.
        """
        fed = self.owed(number)
        if not fed.serial < serial <= MOST_SERIAL:
            raise BadFrame(f"a flow call of serial {serial} after {fed.serial}")
        fed.serial = serial
        fed.flow_calls += 1
        if fed.flow_calls - fed.answers > MAX_FLOW_CALLS:
            raise BadFrame(f"more than {MAX_FLOW_CALLS} flow calls of one attempt at once")
        return fed

    def answered(self, number: int) -> None:
        place = self.fed.pop(number).place
        if self.crew is not None:
            self.crew.add(self.page.kernel_thread(place))
        self.places.append(place)
        self.recalls.pop(number, None)
        self.dumps.forget(number)

    def number_of(self, ref: AttemptRef) -> int | None:
        return next((number for number, fed in self._here() if fed.ref == ref), None)

    def has_started(self, number: int) -> bool:
        """By its word or, since a crash may have come before the word, by the page."""
        fed = self.fed[number]
        return fed.started or self.page.holds(fed.place, number)

    def is_idle(self) -> bool:
        return not any(True for _ in self._here())

    def running(self) -> tuple[AttemptRef, ...]:
        return tuple(fed.ref for number, fed in self._here() if self.has_started(number))

    def ended(self) -> tuple[AttemptRef, ...]:
        """By the page, which is left before the end is said."""
        return tuple(fed.ref for number, fed in self._here() if self._is_on(0, number))

    def unstarted(self) -> tuple[AttemptRef, ...]:
        return tuple(fed.ref for number, fed in self._here() if not self.has_started(number))

    def _here(self) -> Iterator[tuple[int, Fed]]:
        return ((number, fed) for number, fed in self.fed.items() if not fed.is_back)

    # what is taken back

    def withdraw(self, refs: Iterable[AttemptRef], now: float) -> list[int]:
        """From now on those of them that have not begun never will; which ones, is known when it answers, or when
        the time for its answer is over."""
        wanted = set(refs)
        numbers = [n for n, fed in self._here() if fed.ref in wanted and not self.has_started(n)]
        for number in numbers:
            self.page.withdraw(self.fed[number].place, number)
            self.recalls.setdefault(number, now + ANSWER_WITHIN)
        return numbers

    def take_back(self, now: float) -> tuple[AttemptRef, ...]:
        """Attempts that it has neither begun nor given back in time. An attempt that is in its cell has begun, or the
        executor sees there that it must not begin, and says so."""
        due = [number for number, until in self.recalls.items() if now >= until]
        back = []
        for number in due:
            del self.recalls[number]
            if not self.has_started(number):
                self.fed[number].is_back = True
                back.append(self.fed[number].ref)
        return tuple(back)

    def given_back(self, number: int) -> AttemptRef | None:
        """By its own word; None if it was taken back before."""
        fed = self.owed(number)
        has_begun = self.has_started(number) and not self.page.is_withdrawn(fed.place, number)
        if fed.started or has_begun:
            raise BadFrame("it gave back an attempt that had started")
        self.answered(number)
        return None if fed.is_back else fed.ref

    # what it was doing

    def stack_of(self, number: int) -> str | None:
        cell = self.page.cell(self.fed[number].place)
        thread = cell.thread if cell.number == number else 0
        return self.dumps.stack(number, thread, is_main=thread == self.page.main_thread, on_loop=self.page.loop_job)

    def is_held(self) -> bool:
        """A thread in it keeps the interpreter from all others."""
        return self.silence is not None and self.silence.is_held

    def culprit(self, stack: str | None) -> AttemptRef | None:
        """Whose thread crashed, by the crash report and the page; None if nothing says so."""
        crashed = stacks.crashed_thread(stack) if stack else None
        if crashed is None:
            return None
        there = [number for number, _ in self._here() if self._is_on(crashed, number)]
        if self.page.loop_job in there:
            return self.fed[self.page.loop_job].ref
        return self.fed[there[0]].ref if len(there) == 1 else None

    def _is_on(self, thread: int, number: int) -> bool:
        return self.page.is_on(self.fed[number].place, number, thread)

    def death(self, status: str, stack: str | None, wait_status: int | None) -> ExecutorDied:
        return ExecutorDied(
            executor=self.number,
            pid=self.pid,
            status=status,
            running=self.running(),
            unstarted=self.unstarted(),
            ended=self.ended(),
            culprit=self.culprit(stack),
            stack=stack,
            out_of_memory=wait_status is not None and self._was_out_of_memory(wait_status),
            expected=self.is_blameless or (self.is_drained and not self.running()),
            with_others=self.fell_with_zygote,
        )

    def _was_out_of_memory(self, status: int) -> bool:
        is_kill = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return is_kill and not self.killed and oom_kills(self.oom_counters) > self.oom_before

    # what can be seen from outside

    def view(self, now: float, silent_after: float) -> ExecutorView:
        """Twenty times a second: one pass over what it holds, and /proc only where there is a reason to."""
        page = self.page
        if now - self.memory_at >= MEMORY_EVERY:
            self.memory, self.memory_at = resident(self.pid) if self.pid else 0, now
        pulse_age = max(0.0, now - (page.pulse or now))
        loop_age = max(0.0, now - (page.loop_pulse or now))
        is_silent = pulse_age >= silent_after and self.pid
        # A process for single jobs has no loop that turns.
        is_stalled = not self.alone and loop_age >= silent_after
        silence = self._probe_silence(now, is_stalled) if is_silent else None
        self.silence = silence
        self.stall = self._probe_stall(now) if is_stalled and self.pid else None
        starving = silence or self.stall
        running: list[AttemptRef] = []
        unstarted: list[AttemptRef] = []
        unsaid: dict[AttemptRef, float] = {}
        on_main: list[AttemptRef] = []
        main = page.main_thread
        for number, fed in self._here():
            if not (fed.started or page.holds(fed.place, number)):
                unstarted.append(fed.ref)
                continue
            running.append(fed.ref)
            if not fed.started:
                unsaid[fed.ref] = page.cell(fed.place).started_at
            if not fed.on_main and main != 0:
                # Once on it, always on it.
                fed.on_main = page.is_on(fed.place, number, main)
            if fed.on_main:
                on_main.append(fed.ref)
        return ExecutorView(
            executor=self.number,
            pid=self.pid,
            state=self.state,
            since=self.since,
            pulse_age=pulse_age,
            jobs_done=self.jobs_done,
            memory=self.memory,
            running=tuple(running),
            unstarted=tuple(unstarted),
            reason=self.reason,
            unsaid=unsaid,
            loop_age=loop_age,
            on_loop=self._ref(page.loop_job),
            on_main=frozenset(on_main),
            holder=self._ref(silence.holder) if silence else None,
            is_stopped=silence.is_stopped if silence else False,
            is_starved=starving.is_starved if starving else False,
        )

    def _ref(self, number: int | None) -> AttemptRef | None:
        fed = self.fed.get(number) if number else None
        return None if fed is None or fed.is_back else fed.ref

    def _probe_silence(self, now: float, is_loop_silent: bool) -> SilenceProbe:
        silence = self.silence
        if silence is None or silence.pulse != self.page.pulse:
            # It spoke again since the last look, be it for a moment: nothing said of that silence holds for this one.
            silence = SilenceProbe(self.page.pulse)
        if silence.is_due(now):
            silence.look(
                look_at_threads(self.pid, now),
                self.pid,
                self.page.control_thread,
                self._threads_of_jobs(),
                self.crew or (),
                is_loop_silent=is_loop_silent,
            )
        return silence

    def _probe_stall(self, now: float) -> StallProbe:
        stall = self.stall
        if stall is None or stall.pulse != self.page.loop_pulse:
            return StallProbe(self.page.loop_pulse, look_at_main(self.pid, now))
        if stall.is_due(now):
            stall.look(look_at_main(self.pid, now), self.pid)
        return stall

    def _threads_of_jobs(self) -> dict[int, int]:
        """Which attempt is on which kernel thread; the main one belongs to the attempt that is on the loop now."""
        main, on_loop = self.page.main_thread, self.page.loop_job
        jobs: dict[int, int] = {}
        for number, fed in self._here():
            cell = self.page.cell(fed.place)
            if cell.number == number and cell.thread not in (0, main):
                jobs[cell.kernel_thread] = number
        if on_loop in self.fed:
            jobs[self.pid] = on_loop
        return jobs
