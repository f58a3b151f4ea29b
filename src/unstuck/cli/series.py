"""unstuck series: what ended, minute by minute."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated, cast

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.model.series import BEYOND_MS, BOUNDS_MS
from unstuck.operations import series as operation
from unstuck.store.port import EVERY, SeriesPer
from unstuck.views.series import PointView, SeriesView

app = options.single()

_WIDE = 10


@app.command()
def series(
    per: Annotated[str, option("--per", metavar="WHAT", help="total, queue or workflow")] = "total",
    since: Annotated[
        float, option("--since", read=options.seconds, metavar="DURATION", help="how far back, e.g. 90m, 7d")
    ] = 3600.0,
    step: Annotated[
        float, option("--step", read=options.seconds, metavar="DURATION", help="per line, e.g. 1m, 5m, 1h")
    ] = 60.0,
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only of this queue")] = None,
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")] = None,
    limit: Annotated[
        int, option("--limit", "-n", help="maximum queues or workflows: the busiest", least=1, most=20)
    ] = 10,
    all_tenants: Annotated[bool, option("--all-tenants", help="of every tenant, not only this one")] = False,
    *,
    common: options.Common,
) -> None:
    """How many runs ended in each minute, how, and how long they waited and ran. Kept for seven days; a minute is
    counted one or two minutes after it has passed."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        found = operation.get(
            session.caller.about(EVERY if all_tenants else None),
            per=cast(SeriesPer, per),
            since=session.now() - timedelta(seconds=since),
            step=step,
            queue=queue,
            workflow=workflow,
            limit=limit,
        )
    if common.json:
        output.emit_view(found)
        return
    named = [] if found.per == "total" else [found.per.upper()]
    output.table(
        [*named, "UTC", "ENDED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD", "WAIT p50 p95 p99", "RUN p50 p95 p99"],
        _rows(found),
        empty="nothing ended in that time, as far as it was counted",
    )
    output.note(f"counted until {found.counted_until:%Y-%m-%d %H:%M} UTC; steps in which nothing ended are left out")


def _rows(found: SeriesView) -> list[tuple[object, ...]]:
    most = max((point.ended for point in found.points), default=1)
    is_long = found.until_at - found.since_at > timedelta(days=1)
    return [
        (
            *([] if point.name is None else [point.name]),
            f"{point.at:%m-%d %H:%M}" if is_long else f"{point.at:%H:%M}",
            f"{point.ended:>{len(f'{most:,}')},} {bar(point, most)}",
            *(point.failed, point.timeout, point.cancelled, point.dead),
            _times(point.wait_p50_ms, point.wait_p95_ms, point.wait_p99_ms),
            _times(point.run_p50_ms, point.run_p95_ms, point.run_p99_ms),
        )
        for point in found.points
    ]


def bar(point: PointView, most: int) -> str:
    """Of the busiest step so much; the end of it, in another ink, is what did not complete."""
    whole, not_complete = ("█", "▒") if _has_blocks() else ("#", "!")
    length = max(1, round(_WIDE * point.ended / most))
    bad = point.ended - point.completed
    dark = min(length, max(1, round(length * bad / point.ended))) if bad else 0
    return whole * (length - dark) + not_complete * dark


def _has_blocks() -> bool:
    return not output.is_plain(sys.stdout) and "utf" in (sys.stdout.encoding or "").lower()


def _times(*bounds: int | None) -> str:
    return " ".join(_time(bound) for bound in bounds if bound is not None)


def _time(bound: int) -> str:
    if bound == BEYOND_MS:
        return f">{_time(BOUNDS_MS[-1])}"
    return f"{bound}ms" if bound < 1000 else f"{bound // 1000}s" if bound < 60_000 else f"{bound // 60_000}m"
