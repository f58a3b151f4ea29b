"""The series: what is counted of each minute, and what can be said from a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from unstuck.model.lifecycle import JobState

#: Upper bounds of a histogram's buckets, in milliseconds; one more bucket holds what is beyond the last.
BOUNDS_MS: Final = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 300_000, 1_800_000)
BUCKETS: Final = len(BOUNDS_MS) + 1
#: What a percentile is that lies beyond the last bound: longer than that.
BEYOND_MS: Final = BOUNDS_MS[-1] + 1

#: What is counted of the runs that ended, by the names of columns: where they ended, and both histograms.
COUNTS: Final = (
    *(state.lower() for state in JobState if state.is_final),
    *(f"{what}_{number}" for what in ("wait", "run") for number in range(1, BUCKETS + 1)),
)

#: The steps that are kept; longer ones are summed from them.
MINUTE: Final = 60.0
HOUR: Final = 3600.0
SERIES_KEPT: Final = 7 * 86400.0
#: Of what has not ended anything for so long there is no total any more.
TOTALS_KEPT: Final = 30 * 86400.0


def percentile(counts: Sequence[int], share: float) -> int | None:
    """The upper bound of the bucket in which this share of all is reached: they took no longer. None: there are
    none."""
    left = sum(counts) * share
    if left == 0:
        return None
    for count, bound in zip(counts, (*BOUNDS_MS, BEYOND_MS), strict=True):
        left -= count
        if left <= 0:
            return bound
    return BEYOND_MS
