"""The supervisor's end of the zygote: started, heard, ended, and started again, later each time it fails."""

from __future__ import annotations

import contextlib
import logging
import math
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from unstuck.clock import Clock
from unstuck.executor.descendants import executor_of, kill_where, look_at
from unstuck.executor.messages import AppFailed, AppFound, AppImported, BadFrame, WorkerTerms
from unstuck.records import dataclass
from unstuck.telemetry import emit
from unstuck.worker.endings import ending
from unstuck.worker.fleet_selector import FleetSelector
from unstuck.worker.output_pipe import OutputPipe
from unstuck.worker.processes import FleetEvent, Imported, ImportFailed, ZygoteDied
from unstuck.worker.zygote_process import ZygoteProcess

FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0
#: How often it is looked at; stopped twice in a row, it is told to go on.
LOOK_EVERY = 1.0
#: While its end is waited for.
STAMP_EVERY = 0.25
_READ = 1 << 20


@dataclass(slots=True)
class LiveZygote:
    process: ZygoteProcess
    output_pipe: OutputPipe
    import_by: float
    imported: bool = False
    looked_at: float = 0.0
    is_stopped: bool = False


class ZygoteLink:
    """At most one zygote at a time. What it says of executors goes to `heard`; `died`: it ended by itself."""

    def __init__(
        self,
        start: Callable[[], ZygoteProcess],
        terms: WorkerTerms,
        page: int,
        import_limit: float,
        *,
        incarnation: str,
        selector: FleetSelector,
        clock: Clock,
        say: Callable[[FleetEvent], None],
        heard: Callable[[Any], None],
        died: Callable[[str], None],
        log_json: bool = False,
    ) -> None:
        self._start_process = start
        self._terms = terms
        self._page = page
        self._incarnation = incarnation
        self._import_limit = import_limit
        self._selector = selector
        self._clock = clock
        self._say = say
        self._heard = heard
        self._died = died
        self._log_json = log_json
        self._zygote: LiveZygote | None = None
        self._start_at = math.inf
        self._failures = 0

    @property
    def pid(self) -> int | None:
        return self._zygote.process.pid if self._zygote else None

    def start(self) -> None:
        self._start_at = self._clock.boot()

    def ask(self, frame: bytes, descriptors: Sequence[int]) -> bool:
        """Whether it went out. If not, this zygote cannot take it right now, or its end will be heard soon."""
        if self._zygote is None or not self._zygote.imported:
            return False
        try:
            socket.send_fds(self._zygote.process.control, [frame], list(descriptors))
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self._zygote is not None:
            self._zygote.process.process.kill()

    def keep_time(self, now: float) -> None:
        if self._zygote is None and now >= self._start_at:
            self._start()
        elif self._zygote is not None and now >= self._zygote.import_by:
            self._end(self._zygote)
            self.sweep()
            self._import_failed(f"the import took longer than {self._import_limit:g} s")
        elif self._zygote is not None and now >= self._zygote.looked_at + LOOK_EVERY:
            self._zygote.looked_at = now
            _keep_going(self._zygote)

    def next_duty(self) -> float:
        return self._start_at if self._zygote is None else self._zygote.import_by

    def close(self, patience: float, stamp: Callable[[], None]) -> None:
        if self._zygote is not None:
            self._end(self._zygote, patience, stamp)

    def sweep(self) -> None:
        kill_where(lambda found: executor_of(found.pid, self._incarnation) is not None)

    def _start(self) -> None:
        self._start_at = math.inf
        try:
            process = self._start_process()
        except OSError as error:
            self._import_failed(f"the app's process could not be started: {error}")
            return
        process.give(self._terms, self._page)
        output_pipe = OutputPipe(process.output, "app", as_json=self._log_json, begin=process.printed)
        zygote = self._zygote = LiveZygote(process, output_pipe, self._clock.boot() + self._import_limit)
        self._selector.watch(process.control, lambda _: self._hear(zygote))
        self._selector.watch(process.output, lambda _: self._drain(output_pipe))

    def _drain(self, output_pipe: OutputPipe) -> None:
        if not output_pipe.drain(self._clock.boot()):
            self._selector.unwatch(output_pipe.fd)

    def _hear(self, zygote: LiveZygote) -> None:
        try:
            data = zygote.process.control.recv(_READ)
            messages = zygote.process.inbox.take(data)
        except BlockingIOError:
            return
        except (OSError, BadFrame):
            data, messages = b"", []
        for message in messages:
            self._take(zygote, message)
        if not data and self._zygote is zygote:
            self._ended(zygote)

    def _take(self, zygote: LiveZygote, message: Any) -> None:
        match message:
            case AppImported():
                zygote.imported = True
                zygote.import_by = math.inf
                self._failures = 0
                self._say(_imported(message))
            case AppFailed():
                self._end(zygote)
                self._import_failed(message.error)
            case AppFound():
                pass  # its settings count from the worker's start on
            case _:
                self._heard(message)

    def _ended(self, zygote: LiveZygote) -> None:
        """It died by itself: its executors get KILL from the kernel, whatever else was below it from the sweep."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            zygote.process.process.wait(1.0)
        how = ending(zygote.process.process.returncode)
        self._end(zygote)
        self.sweep()
        self._died(how)
        if not zygote.imported:
            self._import_failed(f"the process ended while it imported the app ({how})")
        else:
            self._say(ZygoteDied(how, self._try_again()))

    def _import_failed(self, error: str) -> None:
        self._say(ImportFailed(error, self._try_again()))

    def _try_again(self) -> float:
        """Seconds until the next start; longer each time."""
        again_in = min(FIRST_RETRY * 2.0**self._failures, LONGEST_RETRY)
        self._failures = min(self._failures + 1, 30)
        self._start_at = self._clock.boot() + again_in
        return again_in

    def _end(self, zygote: LiveZygote, patience: float = 0.0, stamp: Callable[[], None] = lambda: None) -> None:
        """Hanging up lets it kill and reap all that is below it; after `patience` it is killed. If it does not
        even end then, no stamp is given: our watchdog is to see that."""
        self._zygote = None
        control, process = zygote.process.control, zygote.process.process
        self._selector.unwatch(control)
        control.close()
        until = self._clock.boot() + patience
        while process.poll() is None and (left := until - self._clock.boot()) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(left, STAMP_EVERY))
            stamp()
        if process.poll() is None:
            process.kill()
            process.wait()
        zygote.output_pipe.drain(self._clock.boot())
        self._selector.unwatch(zygote.output_pipe.fd)
        zygote.output_pipe.close()


def _keep_going(zygote: LiveZygote) -> None:
    """A job can stop it, and it has nobody else to tell it to go on; meanwhile no process could be replaced."""
    found = look_at(zygote.process.pid)
    was_stopped, zygote.is_stopped = zygote.is_stopped, found is not None and found.state == "T"
    if was_stopped and zygote.is_stopped:
        emit("zygote_stopped", level=logging.WARNING, pid=zygote.process.pid, remedy="told to go on (SIGCONT)")
        zygote.process.process.send_signal(signal.SIGCONT)


def _imported(message: AppImported) -> Imported:
    return Imported(
        tuple(message.workflows),
        message.code_version,
        message.mode,
        message.reason,
        frozenset(message.coroutines),
        tuple(message.schedules),
        message.app,
        message.origin,
    )
