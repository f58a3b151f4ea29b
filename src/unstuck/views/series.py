"""Series: how many runs ended in each step of time, how, and how long they took."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.lifecycle import JobState
from unstuck.model.series import BOUNDS_MS, percentile
from unstuck.store.port import SeriesPer, SeriesPoint
from unstuck.views import View


class PointView(View, frozen=True, kw_only=True):
    """What ended in the step that began `at`. `wait`: how many waited so long from due to claimed, one number for
    each of `buckets_ms`; `run`: how many attempts took so long. Jobs that no worker ever claimed are in neither. Of
    the percentiles each is the upper bound of its bucket: so many took no longer. 1800001: longer than half an hour;
    null: there is nothing to tell."""

    at: datetime
    name: str | None
    ended: int
    completed: int
    failed: int
    timeout: int
    cancelled: int
    dead: int
    wait: tuple[int, ...]
    wait_p50_ms: int | None
    wait_p95_ms: int | None
    wait_p99_ms: int | None
    run: tuple[int, ...]
    run_p50_ms: int | None
    run_p95_ms: int | None
    run_p99_ms: int | None

    @classmethod
    def of(cls, point: SeriesPoint) -> PointView:
        return cls(
            at=point.at,
            name=point.name or None,
            ended=sum(point.ended.values()),
            completed=point.ended[JobState.COMPLETED],
            failed=point.ended[JobState.FAILED],
            timeout=point.ended[JobState.TIMEOUT],
            cancelled=point.ended[JobState.CANCELLED],
            dead=point.ended[JobState.DEAD],
            wait=point.wait,
            wait_p50_ms=percentile(point.wait, 0.5),
            wait_p95_ms=percentile(point.wait, 0.95),
            wait_p99_ms=percentile(point.wait, 0.99),
            run=point.run,
            run_p50_ms=percentile(point.run, 0.5),
            run_p95_ms=percentile(point.run, 0.95),
            run_p99_ms=percentile(point.run, 0.99),
        )


class SeriesView(View, frozen=True, kw_only=True):
    """The points by name, then by time; a step in which nothing ended has none. What ended after `counted_until` has
    not been counted yet. `tenant`: whose; null: everybody's. `step`: in seconds. `buckets_ms`: the upper bounds of
    the histograms' buckets; null: no bound."""

    per: SeriesPer
    tenant: str | None
    since_at: datetime
    until_at: datetime
    step: int
    counted_until: datetime
    buckets_ms: tuple[int | None, ...] = (*BOUNDS_MS, None)
    points: tuple[PointView, ...]
