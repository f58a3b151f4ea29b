"""What all handlers of a process share and any of them may bend: streams, folder, collector, recursion limit.

It is put back while no handler runs, so that a job is not hurt by one that ended before it came. In between there is
no telling whose change it is: somebody may need it right now. Only a closed stream is of use to nobody.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys


class Surroundings:
    """As they are now; `restore` brings them back. It runs no user code."""

    def __init__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        self._is_collecting = gc.isenabled()
        self._depth = sys.getrecursionlimit()
        self._folder = _folder()

    def reopen(self) -> None:
        if _is_closed(sys.stdout):
            sys.stdout = self._streams[0]
        if _is_closed(sys.stderr):
            sys.stderr = self._streams[1]

    def restore(self) -> None:
        sys.stdout, sys.stderr = self._streams
        if self._is_collecting != gc.isenabled():
            (gc.enable if self._is_collecting else gc.disable)()
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)
        if self._folder and self._folder != _folder():
            # Our folder may be gone itself.
            with contextlib.suppress(OSError):
                os.chdir(self._folder)


def _is_closed(stream: object) -> bool:
    return type(stream) in (io.TextIOWrapper, io.StringIO) and stream.closed  # type: ignore[attr-defined]


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
