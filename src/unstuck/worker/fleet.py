"""The fleet: executor processes, started, fed, heard, stopped and replaced.

The supervisor's thread alone touches it. Whatever an executor says is checked: an attempt is known by a number that
the fleet dealt out, and one bad frame ends the executor. Death is seen by pidfd within milliseconds; ExecutorDied
follows when the zygote has reaped the process and killed its descendants, after every frame it had sent was read.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from unstuck.clock import Clock, MachineClock
from unstuck.executor.descendants import incarnation_tag, kill_where, look_at, tags_of
from unstuck.executor.messages import (
    AppFailed,
    AppImported,
    BadFrame,
    Begun,
    Cancel,
    Drain,
    Exited,
    Failed,
    Fork,
    Forked,
    GivenBack,
    Inbox,
    NotForked,
    Raise,
    Ready,
    Recall,
    Return,
    Run,
    Say,
    Stop,
    from_zygote,
    pack,
    pack_all,
)
from unstuck.executor.page import HEADER, Page, memory_file, page_size
from unstuck.executor.zygote import LEASE_OVER, Order
from unstuck.machine import INCARNATION_TAG
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.lifecycle import RequestKind
from unstuck.model.payload import clean_text
from unstuck.worker import testimony
from unstuck.worker.member import Member
from unstuck.worker.memory import oom_counters, oom_kills
from unstuck.worker.processes import (
    ExecutorDied,
    ExecutorReady,
    ExecutorView,
    Finished,
    FleetEvent,
    Imported,
    ImportFailed,
    Recalled,
    Said,
    Started,
    ZygoteDied,
)
from unstuck.worker.spill import Spill

#: Room in a shared page beyond two attempts per slot: what a supervisor may feed ahead.
AHEAD = 4096
#: How long a dead executor may wait for its status; after that it is reported without one.
STATUS_WITHIN = 5.0
HANG_UP_GRACE = 0.2
FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0
_READ = 1 << 20


@dataclass(slots=True)
class ZygoteHandle:
    process: subprocess.Popen[bytes]
    control: socket.socket
    spill: Spill
    import_by: float
    inbox: Inbox = field(default_factory=lambda: Inbox(from_zygote))
    imported: bool = False


@dataclass(slots=True)
class Birth:
    """An executor that is still to be ordered from the zygote, with the descriptors it will get."""

    member: Member
    slots: int
    descriptors: tuple[int, ...]


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
        max_jobs: int | None = None,
        max_memory: int | None = None,
        fork: bool | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._app = app
        self._incarnation = incarnation
        self._slots = slots
        self._pulse = pulse
        self._kill_grace = kill_grace
        self._import_limit = import_limit
        self.max_jobs = max_jobs
        self.max_memory = max_memory
        self._fork = fork
        self._clock = clock or MachineClock()
        self._members: dict[int, Member] = {}
        self._births: deque[Birth] = deque()
        self._zygote: ZygoteHandle | None = None
        self._restart_at = math.inf
        self._failures = 0
        self._serial = 0
        self._lease_until = 0.0
        self._events: list[FleetEvent] = []
        self._selector = selectors.DefaultSelector()
        self._guard_fd = memory_file("unstuck-lease", HEADER)
        self._guard_page = Page(self._guard_fd)
        self._nudge_in, self._nudge_out = os.pipe()
        os.set_blocking(self._nudge_in, False)
        os.set_blocking(self._nudge_out, False)
        self._watch(self._nudge_in, self._nudged)
        self._closed = False

    # what the supervisor asks

    def start(self) -> None:
        self._restart_at = self._clock.boot()

    def spawn(self, executor: int, *, alone: bool = False, slots: int | None = None) -> None:
        if executor in self._members:
            raise ValueError(f"there is an executor {executor} already")
        try:
            birth = self._conceive(executor, alone, slots or self._slots)
        except OSError as error:
            status = f"could not be started: {error}"
            self._events.append(ExecutorDied(executor, 0, status, running=(), unstarted=()))
            return
        self._births.append(birth)
        self._order_births()

    def _conceive(self, executor: int, alone: bool, slots: int) -> Birth:
        """Its descriptors, both ends of each; nothing stays open if one of them cannot be had."""
        cells = 2 * slots + AHEAD
        with contextlib.ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            undo.callback(theirs.close)
            page_fd = memory_file(f"unstuck-page-{executor}", page_size(cells))
            undo.callback(os.close, page_fd)
            page = Page(page_fd)
            undo.callback(page.close)
            stack = memory_file(f"unstuck-stack-{executor}")
            undo.callback(os.close, stack)
            their_stack = os.dup(stack)
            undo.callback(os.close, their_stack)
            output, their_output = os.pipe()
            undo.callback(_close_all, (output, their_output))
            ours.setblocking(False)
            page.grant(self._lease_until)
            spill = Spill(output, f"executor {executor}")
            member = Member(executor, alone, ours, page, stack, spill, self._clock.boot(), list(range(cells)))
            self._watch(ours, lambda mask: self._converse(member, mask))
            self._watch(output, lambda _: self._drain_spill(spill))
            undo.pop_all()
        self._members[executor] = member
        return Birth(member, slots, (theirs.detach(), page_fd, their_stack, their_output))

    def feed(self, executor: int, jobs: Sequence[ClaimedJob]) -> None:
        member = self._members.get(executor)
        if member is None:
            # It died in the same breath: they never reached it.
            self._events.append(Recalled(executor, tuple(job.ref for job in jobs)))
            return
        if len(member.places) < len(jobs):
            raise ValueError(f"executor {executor} has room for {len(member.places)} more jobs, not {len(jobs)}")
        runs = [member.deal(number, job) for number, job in enumerate(jobs, self._serial + 1)]
        self._serial += len(runs)
        member.unsent += b"".join(pack_all(runs, _weight))
        self._send(member)

    def cancel(self, executor: int, ref: AttemptRef, kind: RequestKind | None, reason: str) -> None:
        member = self._members.get(executor)
        if member is not None and (number := member.number_of(ref)) is not None:
            self._tell(member, Cancel(number, kind, clean_text(reason, 1000)))

    def recall(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        member = self._members.get(executor)
        if member is None:
            return
        wanted = set(refs)
        numbers = [number for number, fed in member.fed.items() if fed.ref in wanted]
        if numbers:
            self._tell(member, Recall(numbers))

    def drain(self, executor: int, reason: str) -> None:
        member = self._members.get(executor)
        if member is None or member.is_drained:
            return
        member.is_drained = True
        member.reason = reason
        member.state = "draining"
        self._tell(member, Drain())
        self._limit_stop(member)

    def kill(self, executor: int, reason: str) -> None:
        if (member := self._members.get(executor)) is not None:
            self._kill(member, reason)

    def lease(self, until: float) -> None:
        self._lease_until = until
        self._guard_page.grant(until)
        for member in self._members.values():
            member.page.grant(until)

    def nudge(self) -> None:
        if not self._closed:
            with contextlib.suppress(BlockingIOError):
                os.write(self._nudge_out, b"!")

    def hear(self, timeout: float) -> list[FleetEvent]:
        self._keep_house()
        wait = 0.0 if self._events else max(0.0, min(timeout, self._next_duty() - self._clock.boot()))
        for key, mask in self._selector.select(wait):
            # What an earlier one of this round has closed, or even replaced under the same number, is past hearing.
            now_there = self._selector.get_map().get(key.fd)
            if now_there is not None and now_there.data is key.data:
                key.data(mask)
        self._keep_house()
        events, self._events = self._events, []
        return events

    def views(self) -> list[ExecutorView]:
        now = self._clock.boot()
        return [member.view(now) for member in self._members.values()]

    def pids(self) -> dict[str, Any]:
        executors = [_identity(member.pid) for member in self._members.values() if member.pid]
        zygote = _identity(self._zygote.process.pid) if self._zygote else None
        return {"zygote": zygote, "executors": executors}

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # One that was never started is gone at once, and out of the members.
        for member in tuple(self._members.values()):
            self._kill(member, "the worker ends")
        if self._zygote is not None:
            self._end_zygote(self._zygote, patience=2.0)
        self._sweep()
        for birth in self._births:
            _close_all(birth.descriptors)
        for member in tuple(self._members.values()):
            self._release(member)
        self._selector.close()
        self._guard_page.close()
        _close_all((self._guard_fd, self._nudge_in, self._nudge_out))

    # the zygote

    def _start_zygote(self) -> None:
        self._restart_at = math.inf
        try:
            self._zygote = self._launch_zygote()
        except OSError as error:
            self._import_failed(f"the app's process could not be started: {error}")

    def _launch_zygote(self) -> ZygoteHandle:
        """Nothing stays open if it cannot be had."""
        with contextlib.ExitStack() as ends, contextlib.ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            ends.callback(theirs.close)
            output, their_output = os.pipe()
            undo.callback(os.close, output)
            ends.callback(os.close, their_output)
            order = Order(
                app=self._app,
                incarnation=self._incarnation,
                supervisor=os.getpid(),
                pulse=self._pulse,
                fork=False if os.environ.get("UNSTUCK_FORK", "").lower() in {"off", "0", "no"} else self._fork,
                control=theirs.fileno(),
                page=self._guard_fd,
            )
            process = subprocess.Popen(
                order.argv(),
                stdin=subprocess.DEVNULL,
                stdout=their_output,
                stderr=their_output,
                env={**os.environ, INCARNATION_TAG: self._incarnation},
                pass_fds=(order.control, order.page),
                start_new_session=True,
            )
            undo.pop_all()
        ours.setblocking(False)
        spill = Spill(output, "app")
        zygote = ZygoteHandle(process, ours, spill, self._clock.boot() + self._import_limit)
        self._watch(ours, lambda _: self._hear_zygote(zygote))
        self._watch(output, lambda _: self._drain_spill(spill))
        return zygote

    def _hear_zygote(self, zygote: ZygoteHandle) -> None:
        try:
            data = zygote.control.recv(_READ)
            messages = zygote.inbox.take(data)
        except BlockingIOError:
            return
        except (OSError, BadFrame):
            data, messages = b"", []
        for message in messages:
            self._heed(zygote, message)
        if not data and self._zygote is zygote:
            self._zygote_ended(zygote)

    def _heed(self, zygote: ZygoteHandle, message: Any) -> None:
        match message:
            case AppImported():
                zygote.imported = True
                zygote.import_by = math.inf
                self._failures = 0
                records = tuple(message.workflows)
                self._events.append(Imported(records, message.code_version, message.mode, message.reason))
                self._order_births()
            case AppFailed():
                self._end_zygote(zygote)
                self._import_failed(message.error)
            case Forked():
                self._forked(message)
            case NotForked():
                if (member := self._members.get(message.executor)) is not None:
                    member.fault = f"could not be started: {message.error}"
                    self._died(member, member.fault)
            case Exited():
                self._exited(message)

    def _zygote_ended(self, zygote: ZygoteHandle) -> None:
        """It died by itself: its executors get KILL from the kernel, whatever else was below it from the sweep."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            zygote.process.wait(1.0)
        status = zygote.process.returncode
        self._end_zygote(zygote)
        self._sweep()
        how = _ending(status)
        for member in self._born():
            member.fault = member.fault or f"its zygote ended ({how})"
            member.fell_with_zygote = True
            member.status_by = min(member.status_by, self._clock.boot() + self._pulse)
        if not zygote.imported:
            self._import_failed(f"the process ended while it imported the app ({how})")
        else:
            self._events.append(ZygoteDied(how, self._try_again()))

    def _import_failed(self, error: str) -> None:
        self._events.append(ImportFailed(error, self._try_again()))

    def _try_again(self) -> float:
        """In so many seconds; longer each time."""
        again_in = min(FIRST_RETRY * 2.0**self._failures, LONGEST_RETRY)
        self._failures = min(self._failures + 1, 30)
        self._restart_at = self._clock.boot() + again_in
        return again_in

    def _end_zygote(self, zygote: ZygoteHandle, patience: float = 0.0) -> None:
        """Hanging up lets it kill and reap all that is below it; after `patience` it is killed."""
        self._zygote = None
        self._unwatch(zygote.control)
        zygote.control.close()
        try:
            zygote.process.wait(patience)
        except subprocess.TimeoutExpired:
            zygote.process.kill()
            zygote.process.wait()
        zygote.spill.drain(self._clock.boot())
        self._unwatch(zygote.spill.fd)
        zygote.spill.close()

    def _sweep(self) -> None:
        tag = incarnation_tag(self._incarnation)
        kill_where(lambda found: tag in tags_of(found.pid))

    # executors: birth and death

    def _order_births(self) -> None:
        zygote = self._zygote
        while self._births and zygote is not None and zygote.imported:
            birth = self._births[0]
            frame = pack([Fork(birth.member.number, birth.member.alone, birth.slots)])
            try:
                socket.send_fds(zygote.control, [frame], list(birth.descriptors))
            except BlockingIOError:
                return
            except OSError:
                # Its end will be heard; the next zygote gets the order.
                return
            self._births.popleft()
            _close_all(birth.descriptors)
            birth.member.ready_by = self._clock.boot() + self._import_limit

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
                self._watch(member.pidfd, lambda _: self._seen_dead(member))
        if member.killed:
            self._strike(member)

    def _seen_dead(self, member: Member) -> None:
        self._unwatch(member.pidfd)
        self._read(member)
        member.status_by = min(member.status_by, self._clock.boot() + STATUS_WITHIN)
        # It has ended, in time or not: only its status is waited for.
        member.ready_by = member.stop_by = math.inf

    def _exited(self, message: Exited) -> None:
        member = self._members.get(message.executor)
        if member is None or member.pid != message.pid:
            return
        if message.why:
            member.fault = member.fault or f"killed: {message.why}"
            member.is_blameless = True
        self._read(member)
        if self._members.get(message.executor) is member:
            self._died(member, _status(message.status), message.status)

    def _died(self, member: Member, status: str, wait_status: int | None = None) -> None:
        stack = member.crash_stack(wait_status)
        if member.page.fenced_at:
            member.fault = member.fault or f"it ended itself: {LEASE_OVER}"
            member.is_blameless = True
        if member.fault and member.fault != status:
            status = f"{status}; {member.fault}"
        self._events.append(
            ExecutorDied(
                executor=member.number,
                pid=member.pid,
                status=status,
                running=member.running(),
                unstarted=member.unstarted(),
                culprit=member.culprit(stack),
                stack=stack,
                out_of_memory=wait_status is not None and member.was_out_of_memory(wait_status),
                expected=member.is_blameless or (member.is_drained and not member.running()),
                with_others=member.fell_with_zygote,
            )
        )
        self._release(member)

    def _release(self, member: Member) -> None:
        self._members.pop(member.number, None)
        self._unwatch(member.wire)
        member.wire.close()
        if member.pidfd >= 0:
            self._unwatch(member.pidfd)
            os.close(member.pidfd)
        self._unwatch(member.spill.fd)
        member.spill.drain(self._clock.boot())
        member.spill.close()
        member.page.close()
        os.close(member.stack)

    def _kill(self, member: Member, reason: str) -> None:
        member.fault = member.fault or f"killed: {reason}"
        member.reason = member.reason or reason
        member.killed = True
        member.state = "draining"
        for birth in tuple(self._births):
            if birth.member is member:
                self._births.remove(birth)
                _close_all(birth.descriptors)
                self._died(member, "never started")
                return
        self._strike(member)

    def _strike(self, member: Member) -> None:
        """KILL works on stopped and frozen processes too; the zygote sweeps what is left when it reaps."""
        if not member.pid:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if member.pidfd >= 0:
                signal.pidfd_send_signal(member.pidfd, signal.SIGKILL)
            else:
                os.kill(member.pid, signal.SIGKILL)
            # Before it is reaped its number cannot name another group.
            os.killpg(member.pid, signal.SIGKILL)

    def _born(self) -> list[Member]:
        unborn = {birth.member.number for birth in self._births}
        return [member for member in self._members.values() if member.number not in unborn]

    # executors: talk

    def _tell(self, member: Member, message: Any) -> None:
        member.unsent += pack([message])
        self._send(member)

    def _send(self, member: Member) -> None:
        while member.unsent:
            try:
                with memoryview(member.unsent) as view:
                    sent = member.wire.send(view[:_READ])
            except BlockingIOError:
                break
            except OSError:
                # It is dying or has closed its end; its death will be heard, with what it was fed as unstarted.
                member.unsent.clear()
                break
            del member.unsent[:sent]
        if member.writing != bool(member.unsent):
            member.writing = bool(member.unsent)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if member.writing else 0)
            with contextlib.suppress(KeyError):
                self._selector.modify(member.wire, events, self._selector.get_key(member.wire).data)

    def _converse(self, member: Member, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._send(member)
        if mask & selectors.EVENT_READ:
            self._read_once(member)

    def _read(self, member: Member) -> None:
        """All that a dead executor had sent."""
        while self._members.get(member.number) is member and self._read_once(member):
            pass

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
                self._take(member, message)
        except Exception as error:
            # BadFrame or whatever else its words led to: it costs this executor, never the supervisor.
            self._unwatch(member.wire)
            self._kill(member, f"it sent what no executor sends: {error}")
            return False
        return True

    def _hung_up(self, member: Member) -> None:
        """It closed its end: nothing can be heard or asked any more, so it must not go on."""
        self._unwatch(member.wire)
        if member.pid and not member.killed and member.status_by == math.inf:
            # Usually the process is just ending by itself: let its own status be seen.
            member.stop_by = min(member.stop_by, self._clock.boot() + HANG_UP_GRACE)
            member.reason = member.reason or "it closed its connection to the supervisor"

    def _take(self, member: Member, message: Any) -> None:
        match message:
            case Begun():
                self._begun(member, message)
            case Return() | Raise() | Stop():
                self._ended(member, message)
            case Say():
                fed = member.owed(message.number)
                self._events.append(Said(member.number, fed.ref, message.kind, testimony.said(message)))
            case GivenBack():
                self._given_back(member, message.numbers)
            case Ready():
                member.ready_by = math.inf
                if member.state == "starting":
                    member.state = "active"
                self._events.append(ExecutorReady(member.number, member.pid))
            case Failed():
                member.fault = clean_text(message.error, testimony.MAX_TEXT)

    def _begun(self, member: Member, message: Begun) -> None:
        fed = member.owed(message.number)
        fed.started = True
        now = self._clock.boot()
        self._events.append(Started(member.number, fed.ref, message.at if 0.0 < message.at <= now else now))

    def _ended(self, member: Member, message: Return | Raise | Stop) -> None:
        fed = member.owed(message.number)
        outcome = testimony.outcome_of(message, fed.max_result)
        output = testimony.output_of(message)
        member.answered(message.number)
        member.jobs_done += 1
        self._events.append(Finished(member.number, fed.ref, outcome, max(0, message.ms), output))
        self._limit_stop(member)

    def _given_back(self, member: Member, numbers: list[int]) -> None:
        back = {number: member.owed(number).ref for number in numbers}
        if any(map(member.has_started, back)):
            raise BadFrame("it gave back an attempt that had started")
        for number in back:
            member.answered(number)
        if back:
            self._events.append(Recalled(member.number, tuple(back.values())))
        self._limit_stop(member)

    def _limit_stop(self, member: Member) -> None:
        """A drained executor has the kill grace for its on_stop hooks."""
        if member.state == "draining" and not member.fed and member.stop_by == math.inf:
            member.stop_by = self._clock.boot() + self._kill_grace

    # house-keeping

    def _keep_house(self) -> None:
        now = self._clock.boot()
        if now >= self._restart_at and self._zygote is None:
            self._start_zygote()
        if self._zygote is not None and now >= self._zygote.import_by:
            self._end_zygote(self._zygote)
            self._sweep()
            self._import_failed(f"the import took longer than {self._import_limit:g} s")
        self._order_births()
        for member in tuple(self._members.values()):
            self._keep_deadlines(member, now)

    def _keep_deadlines(self, member: Member, now: float) -> None:
        if now >= member.status_by:
            self._read(member)
            self._died(member, "ended, status unknown")
        elif now >= member.ready_by:
            member.ready_by = math.inf
            self._kill(member, f"it was not ready after {self._import_limit:g} s")
            if not member.pid and self._zygote is not None:
                # The zygote itself does not answer: start over with a new one.
                self._zygote.process.kill()
        elif now >= member.stop_by:
            member.stop_by = math.inf
            self._kill(member, f"it did not end in time ({member.reason})")

    def _next_duty(self) -> float:
        duties = [self._restart_at if self._zygote is None else self._zygote.import_by]
        duties += [min(m.status_by, m.ready_by, m.stop_by) for m in self._members.values()]
        return min(duties)

    def _drain_spill(self, spill: Spill) -> None:
        if not spill.drain(self._clock.boot()):
            self._unwatch(spill.fd)

    def _nudged(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._nudge_in, 4096)

    def _watch(self, source: socket.socket | int, hear: Callable[[int], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, hear)

    def _unwatch(self, source: socket.socket | int) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)


def _status(status: int) -> str:
    return _ending(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _ending(code: int | None) -> str:
    """As subprocess counts: a negative one is a signal."""
    if code is None:
        return "status unknown"
    if code >= 0:
        return f"exit {code}"
    with contextlib.suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"


def _identity(pid: int) -> dict[str, int]:
    found = look_at(pid)
    return {"pid": pid, "start": found.start if found else 0}


def _close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _weight(run: Run) -> int:
    return len(run.payload) + 100
