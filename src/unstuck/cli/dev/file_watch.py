"""FileWatch: looks at an app's files again and again, from a thread of its own, and says what changed.

By the times of files and not by inotify: a few hundred are looked at in a millisecond, and it works on every file
system, those of containers and networks included.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from unstuck import clock
from unstuck.cli.dev.changes import Burst, FileChanges
from unstuck.cli.dev.sources import files_in

LOOK_EVERY = 0.3
#: While a burst goes on.
LOOK_AGAIN = 0.05
#: A look may take one part in so many of the time: a folder with a hundred thousand files is looked at less often.
_SHARE = 10


class FileWatch:
    def __init__(self, roots: Sequence[Path], wake: Callable[[], None]) -> None:
        self._roots = roots
        self._wake = wake
        self._found: deque[FileChanges] = deque()
        self._is_over = threading.Event()
        #: How many files there are; None until they were looked at once.
        self.files: int | None = None
        self._thread = threading.Thread(target=self._look, name="file-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()

    def take(self) -> FileChanges:
        """What changed since the last call."""
        found = FileChanges()
        while self._found:
            found = found.then(self._found.popleft())
        return found

    def _look(self) -> None:
        burst, rest = None, 0.0
        while not self._is_over.wait(rest):
            began = clock.boot()
            files = files_in(self._roots)
            took = clock.boot() - began
            if burst is None:
                burst, self.files = Burst(files), len(files)
                self._wake()
            elif found := burst.look(files, clock.boot()):
                self.files = len(files)
                self._found.append(found)
                self._wake()
            rest = max(LOOK_AGAIN if burst.is_growing else LOOK_EVERY, took * _SHARE)
