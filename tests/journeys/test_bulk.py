"""A bulk whose worker is killed in the middle goes on elsewhere, and does each job once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.journeys.conftest import Jobs, only_here
from tests.support.eventually import eventually
from tests.support.workers import Worker
from unstuck.intake.bulks import BulkVerbs
from unstuck.model.bulk import BulkState
from unstuck.model.lifecycle import JobState
from unstuck.store.port import JobFilter

#: Bulks are carried by workers beside the database, and by servers: tests/server.
pytestmark = only_here

MANY = 3000


@pytest.mark.timeout(240)
def test_a_bulk_survives_kill_9_of_the_worker_that_carries_it(start: Callable[..., Worker], jobs: Jobs) -> None:
    """It has done some and not all when its worker dies; another one does the rest, and nothing twice."""
    ids = jobs.submit("add", 1, 1, times=MANY, delay=3600.0)
    bulks = BulkVerbs(jobs.store, by="ada")
    bulk = bulks.start("cancel", JobFilter(workflow="add"), reason="wrong file", expected=MANY)
    first = start("first")
    eventually(lambda: bulks.get(bulk.number).done > 0, timeout=30, every=0.01)
    first.kill_all()

    half = bulks.get(bulk.number)
    assert half.state is BulkState.RUNNING
    assert 0 < half.done < MANY
    assert jobs.store.counts()[JobState.CANCELLED] == half.done, "what was counted was done, and nothing else"

    start("second")
    eventually(lambda: bulks.get(bulk.number).state is BulkState.DONE, timeout=100)

    done = bulks.get(bulk.number)
    assert (done.matched, done.done, done.refused, done.moved_on, done.left) == (MANY, MANY, 0, 0, 0)
    assert Counter(tuple(jobs.kinds(job)) for job in ids) == {("submitted", "cancelled"): MANY}
