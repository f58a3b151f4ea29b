"""Batch: how many to take at a time."""

from __future__ import annotations

from unstuck.records import dataclass

#: Of the most: a call that is slow for reasons of its own, a busy machine say, is not made quicker by ever smaller
#: batches.
_LEAST = 1 / 16


@dataclass(slots=True)
class Batch:
    """Fewer after a call that took long, and far fewer after one that failed, down to one by one; more after a quick
    one. What fails was too much for one call, or has one among it that cannot be done: alone, it shows which."""

    most: int
    size: int = 0
    #: A slow call never makes the batch smaller than this; a failed one may.
    least: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or self.most
        self.least = self.least or max(1, int(self.most * _LEAST))

    def took(self, seconds: float, aim: float) -> None:
        if seconds > aim:
            self.size = max(min(self.size, self.least), self.size // 2)
        elif seconds <= aim / 2:
            self.size = min(self.most, 2 * self.size)

    def failed(self) -> None:
        """It may have cost a whole store call: by four, not by two."""
        self.size = max(1, self.size // 4)
