"""Readiness: what tells a service manager and a probe whether this worker takes jobs.

The ready file exists exactly while it does. What a killed predecessor left behind is removed first.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from unstuck.telemetry import emit
from unstuck.worker.notify import Notifier

_STATUS_EVERY = 2.0
#: What the service manager waits for is said again so often, until it was heard: its queue may have been full.
_AGAIN_EVERY = 0.5
_EXTEND_EVERY = 5.0
#: Seconds of each extension: a worker that does not ask for another is no longer draining.
_EXTEND_BY = 20.0
#: So many signs of life within the time after which the service manager gives up.
_SIGNS = 3


class Readiness:
    def __init__(self, file: str | None = None, notifier: Notifier | None = None) -> None:
        self._file = None if file is None else Path(file)
        self._notifier = notifier or Notifier()
        self._is_ready: bool | None = None
        self._is_stopping = False
        #: What we are, if it was not heard yet.
        self._unheard = ""
        self._again_at = float("-inf")
        self._status = ""
        self._status_at = self._extended_at = self._sign_at = float("-inf")

    @property
    def is_ready(self) -> bool:
        return bool(self._is_ready)

    def begin(self) -> None:
        """Not ready, whatever was there before."""
        self.show(False)

    def show(self, is_ready: bool) -> None:
        if is_ready == self._is_ready:
            return
        self._is_ready = is_ready
        self._keep_file()
        self._announce("READY=1" if is_ready else "")

    def stopping(self) -> None:
        self.show(False)
        if not self._is_stopping:
            self._is_stopping = True
            self._announce("STOPPING=1")

    def tick(self, status: str, now: float) -> None:
        """A sign of life, and what we are about; while we drain, that we need more time."""
        if self._unheard and now >= self._again_at:
            self._again_at = now + _AGAIN_EVERY
            self._announce(self._unheard)
        watchdog = self._notifier.watchdog
        if watchdog is not None and now >= self._sign_at + watchdog / _SIGNS:
            self._sign_at = now
            self._notifier.say("WATCHDOG=1")
        if self._is_stopping and now >= self._extended_at + _EXTEND_EVERY:
            self._extended_at = now
            self._notifier.say(f"EXTEND_TIMEOUT_USEC={_EXTEND_BY * 1e6:.0f}")
        if status != self._status and now >= self._status_at + _STATUS_EVERY:
            self._status, self._status_at = status, now
            self._notifier.say(f"STATUS={' '.join(status.split())}")

    def _announce(self, what: str) -> None:
        """It takes the place of what was not heard before: that is not true any more."""
        self._unheard = "" if not what or self._notifier.say(what) else what

    def _keep_file(self) -> None:
        """A probe that cannot be served is no reason to stop serving jobs."""
        if self._file is None:
            return
        try:
            if self._is_ready:
                self._file.write_text(f"{os.getpid()}\n")
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            emit("ready_file_failed", level=logging.WARNING, file=str(self._file), error=str(error))
