"""Leaked threads: those that stay after the job that started them, again and again, and are no reason to recycle.

A library's pool or reporter thread, started by whichever job comes first, would have every process replaced after its
first job, for ever. So what a workflow has left behind often enough is taken for a part of it, and only reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unstuck.worker.roster import Post

#: So many processes are replaced for the same thread of the same workflow.
_RECYCLES = 3
#: A process with more of them is replaced all the same: that is a leak.
_MOST = 16
_REMEMBERED = 1000
_SHOWN = 5


class LeakedThreads:
    def __init__(self) -> None:
        self._recycles: dict[tuple[str, str], int] = {}

    def judge(self, post: Post, workflow: str, threads: Sequence[str]) -> str:
        """Why this process should be replaced now, or nothing."""
        post.leftovers += len(threads)
        if post.left_behind:
            return ""
        keys = {(workflow, _pattern(name)) for name in threads}
        strange = {key for key in keys if self._recycles.get(key, 0) < _RECYCLES}
        if not strange and post.leftovers <= _MOST:
            return ""
        for key in strange:
            self._note(key)
        names = ", ".join(threads[:_SHOWN]) + (", …" if len(threads) > _SHOWN else "")
        return f"{workflow} left {len(threads)} running behind it: {names}"

    def _note(self, key: tuple[str, str]) -> None:
        if len(self._recycles) >= _REMEMBERED:
            self._recycles.pop(next(iter(self._recycles)))
        self._recycles[key] = self._recycles.get(key, 0) + 1


def _pattern(name: str) -> str:
    """Thread-7 and Thread-12 are the same thread of two processes."""
    return re.sub(r"\d+", "#", name)
