"""How long each workflow runs: the moving median decides whether it is worth fetching ahead."""

from __future__ import annotations

from collections import deque
from statistics import median

#: Below this a round trip to the database costs more than the job itself.
QUICK_MS = 50
_WINDOW = 50
_ENOUGH = 5


class Pace:
    """Written by the supervisor's thread, read by the claimer's: a deque's append and copy are atomic."""

    def __init__(self) -> None:
        self._runs: dict[str, deque[int]] = {}

    def note(self, workflow: str, duration_ms: int) -> None:
        runs = self._runs.get(workflow)
        if runs is None:
            runs = self._runs.setdefault(workflow, deque(maxlen=_WINDOW))
        runs.append(duration_ms)

    def is_quick(self, workflow: str) -> bool:
        runs = self._runs.get(workflow)
        return runs is not None and len(runs) >= _ENOUGH and median(runs.copy()) < QUICK_MS
