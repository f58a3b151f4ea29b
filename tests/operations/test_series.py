"""The series, asked by whoever may: steps, names, whose, and what is refused."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.support.builders import a_job
from unstuck import App
from unstuck.model.errors import InvalidInput, NotPermitted
from unstuck.operations import series
from unstuck.operations.table import READER
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def ended(store: SqlStore, clock: StoreClock) -> datetime:
    """When two jobs of acme and one of default ended."""
    jobs = [a_job(tenant=tenant, workflow="mail") for tenant in ("acme", "acme", "default")]
    store.submit(jobs)
    for job in jobs:
        store.cancel(job.tenant, job.id, "eve")
    at = clock.now()
    clock.advance(minutes=3)
    store.count_ends(60.0)
    return at


@pytest.mark.usefixtures("ended")
def test_whose_points_they_are(ask: Ask) -> None:
    def ends(**facts: Any) -> int:
        return sum(point.cancelled for point in series.get(ask(**facts)).points)

    assert (ends(), ends(tenant="acme"), ends(tenant="*"), ends(tenant="nobody")) == (1, 2, 3, 0)
    bound = {"role": READER, "bound": "acme"}
    assert ends(**bound) == 2
    for other in ("default", "*"):
        with pytest.raises(NotPermitted, match="acme alone"):
            ends(**bound, tenant=other)


def test_an_answer_says_which_time_it_is_about(ask: Ask, ended: datetime) -> None:
    found = series.get(ask(), per="workflow", step="15m", since=ended - timedelta(hours=2), until=ended)
    assert found.since_at <= ended - timedelta(hours=2)
    assert found.until_at >= ended
    assert found.since_at.minute % 15 == found.until_at.minute % 15 == 0
    assert (found.step, found.per, found.tenant) == (900, "workflow", "default")
    assert ended < found.counted_until < ended + timedelta(minutes=3)
    (point,) = found.points
    assert point.at <= ended < point.at + timedelta(minutes=15)
    assert (point.name, point.ended, point.wait_p50_ms, point.run_p99_ms) == ("mail", 1, None, None)


@pytest.mark.usefixtures("ended")
def test_python_asks_the_same(store_url: str) -> None:
    with closing(App(store_url)) as app:
        assert [point.cancelled for point in app.series.get(tenant="*", step="1h", since=_ago(days=1)).points] == [3]
        assert app.series.get(workflow="other").points == ()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"per": "job"}, "per='job' is none of: total, queue, workflow"),
        ({"per": None}, "is none of"),
        ({"step": 90}, "whole minutes"),
        ({"step": 0}, "whole minutes"),
        ({"step": "2d"}, "a day at most"),
        ({"step": "soon"}, "neither a number of seconds"),
        ({"limit": 0}, "between 1 and 20"),
        ({"limit": True}, "between 1 and 20"),
        ({"since": "yesterday"}, "not a datetime"),
        ({"since": datetime(2100, 1, 1, tzinfo=UTC)}, "is not before"),
        ({"since": datetime(2000, 1, 1, tzinfo=UTC), "until": datetime(2000, 1, 1, tzinfo=UTC)}, "is not before"),
        ({"since": datetime(2001, 1, 1, tzinfo=UTC)}, "750 is the most"),
        ({"since": datetime(2000, 1, 1), "until": datetime(2000, 1, 3), "step": "10m"}, "steps of whole hours"),
        ({"since": datetime(1, 1, 1), "until": datetime(1, 1, 2)}, "beyond any time"),
        ({"until": datetime(1, 1, 1)}, "beyond any time"),
        ({"since": datetime(9999, 12, 31, 23), "until": datetime.max}, "beyond any time"),
        ({"queue": 7}, "queue"),
    ],
)
def test_what_cannot_be_asked_is_refused(ask: Ask, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        series.get(ask(), **asked)


def _ago(**time: float) -> datetime:
    return datetime.now(UTC) - timedelta(**time)
