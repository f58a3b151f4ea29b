"""A zygote as a process: started, asked what the app's own code says, given its terms.

A worker starts its first one before anything else: while it imports the app, the worker imports what it is made of.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from unstuck.clock import boot
from unstuck.executor.messages import AppFailed, AppFound, FrameReader, WorkerTerms, from_zygote, pack
from unstuck.executor.process import EXECUTOR_TAG
from unstuck.executor.tagging import tag_value
from unstuck.executor.zygote_setup import ZygoteSetup
from unstuck.machine import INCARNATION_TAG
from unstuck.model.errors import NotAnApp
from unstuck.worker.endings import ending
from unstuck.worker.secrecy import without_secrets

_READ = 1 << 20
#: Of what the app prints while it is asked, so much is kept, to be passed on.
_KEPT = 64 << 10


class NotImported(Exception):
    """The app cannot be imported, and this is what its process said of it."""


class ZygoteProcess:
    """Our end of the control socket, and of the pipe into which it and the app print."""

    def __init__(self, app: str, incarnation: str, environ: Mapping[str, str]) -> None:
        """Nothing stays open if it cannot be had: OSError."""
        self.app, self.incarnation = app, incarnation
        self.inbox = FrameReader(from_zygote)
        #: What was printed while it was asked.
        self.printed = b""
        self.started_at = boot()
        with contextlib.ExitStack() as ends, contextlib.ExitStack() as undo:
            self.control, theirs = socket.socketpair()
            undo.callback(self.control.close)
            ends.callback(theirs.close)
            self.output, their_output = os.pipe()
            undo.callback(os.close, self.output)
            ends.callback(os.close, their_output)
            setup = ZygoteSetup(app, incarnation, os.getpid(), theirs.fileno())
            self.process = subprocess.Popen(
                setup.argv(),
                stdin=subprocess.DEVNULL,
                stdout=their_output,
                stderr=their_output,
                env={
                    **without_secrets(environ),
                    INCARNATION_TAG: incarnation,
                    EXECUTOR_TAG: tag_value(incarnation, 0),
                },
                pass_fds=(setup.control,),
                start_new_session=True,
            )
            undo.pop_all()
        self.control.setblocking(False)
        os.set_blocking(self.output, False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def give(self, terms: WorkerTerms, page: int) -> None:
        """It hears them once the app is imported."""
        with contextlib.suppress(OSError):  # its end will be heard
            socket.send_fds(self.control, [pack([terms])], [page])

    def ask(self, limit: float, meanwhile: Callable[[], object]) -> dict[str, Any]:
        """The settings that the app's own code names. NotImported, NotAnApp: nothing is left of the process."""
        try:
            meanwhile()
            return self._wait_for_answer(limit)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Whoever asked needs it no more."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.control.close()
        os.close(self.output)

    def _wait_for_answer(self, limit: float) -> dict[str, Any]:
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(self.output, select.POLLIN)
        until = self.started_at + limit
        while (left := until - boot()) > 0:
            for fd, _ in poller.poll(left * 1000):
                if fd == self.control.fileno():
                    data = self.control.recv(_READ)
                    if (settings := self._answer(data)) is not None:
                        return settings
                    if not data:
                        raise NotImported(self._last_words(until))
                elif not self._keep_printed():
                    poller.unregister(fd)
        raise NotImported(f"it took longer than {limit:g} s")

    def _answer(self, data: bytes) -> dict[str, Any] | None:
        """None: a part of its answer, the rest is on the way."""
        for message in self.inbox.take(data):
            match message:
                case AppFound():
                    return message.settings
                case AppFailed() if message.found:
                    raise NotAnApp(self.app, message.found)
                case AppFailed():
                    raise NotImported(message.error)
        return None

    def _last_words(self, until: float) -> str:
        """It hung up: most end then, but code that closes all descriptors closes ours too, and goes on."""
        try:
            how = ending(self.process.wait(max(0.0, until - boot())))
        except subprocess.TimeoutExpired:
            how = "it closed its end of our socket"
        self._keep_printed()
        return self.printed.decode(errors="replace").strip() or how

    def _keep_printed(self) -> bool:
        """False: nobody holds the other end."""
        with contextlib.suppress(BlockingIOError):
            printed = os.read(self.output, _READ)
            self.printed = (self.printed + printed)[:_KEPT]
            return bool(printed)
        return True
