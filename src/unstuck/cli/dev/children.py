"""Worker and server as `unstuck dev` starts them: the commands of these names, writing on its own stdout."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unstuck.cli.companion import Leaving, on, start, tell

#: Seconds for an answer that is under way; for a job that is told to stop after its drain; for one that does not.
_ANSWERS, _TOLD, _IGNORED = 3.0, 2.0, 1.0


class DevChild:
    """One of them. What it tells us stands on its own stdout, line by line."""

    def __init__(self, words: Sequence[str], drain: float, environ: Mapping[str, str], **how: Any) -> None:
        self._drain = drain
        self.process = start(words, environ, stdout=subprocess.PIPE, stderr=sys.stdout.fileno(), **how)
        assert self.process.stdout is not None
        self._ear = self.process.stdout.fileno()
        os.set_blocking(self._ear, False)
        self._piece = b""

    @property
    def code(self) -> int | None:
        """How it ended; None: it lives."""
        return self.process.poll()

    def lines(self) -> Iterator[str]:
        """What it told since the last call."""
        try:
            while read := os.read(self._ear, 65536):
                *whole, self._piece = (self._piece + read).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
        except BlockingIOError:
            return

    def leave(self, now: float) -> Leaving:
        return Leaving(self.process, self._drain, now, grace=_IGNORED)


class DevWorker(DevChild):
    """It gets itself ready at once, and begins when it is told what the app's code says: so that it need not ask
    itself, and is there the sooner."""

    def __init__(self, app: str, drain: float, options: Sequence[str], environ: Mapping[str, str]) -> None:
        words = ["worker", app, "--for-dev", "--drain", f"{drain:g}", *options]
        super().__init__(words, drain + _TOLD, environ)

    def begin(self, own: Mapping[str, Any], database: str) -> None:
        tell(self.process, {**own, "database": database})

    def news(self) -> Iterator[dict[str, Any]]:
        """That it imported the app, or could not."""
        for line in self.lines():
            yield json.loads(line)


class DevServer(DevChild):
    """It answers on a socket that is ours, so that the address stays when it is replaced."""

    def __init__(self, database: str, host: str, listener: socket.socket, options: Sequence[str]) -> None:
        fd = listener.fileno()
        words = ["server", "--host", host, "--listener-fd", str(fd), *options]
        super().__init__(words, _ANSWERS, on(database), pass_fds=[fd])
        self._is_up = False

    @property
    def is_up(self) -> bool:
        """It has said where it is."""
        self._is_up = self._is_up or any(self.lines())
        return self._is_up
