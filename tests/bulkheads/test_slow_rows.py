"""A row that takes longer than a store call to write is set aside as one that raises: it is slow for nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.bulkheads.conftest import SOON, TIMES, TROUBLE, WELL_WITHIN, House, boot, only_postgres
from tests.support.eventually import eventually
from tests.support.troubles import slow
from unstuck.model.errors import StoreError
from unstuck.model.guard import EVERY
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times

pytestmark = [only_postgres, pytest.mark.timeout(120)]

#: Longer than any call.
SECONDS = TIMES.store_call + 1.0


def is_set_aside(house: House, job: str) -> bool:
    return bool(house.store.quarantined("default", job=job))


def test_a_slow_settle_keeps_no_other_from_ending(house: House) -> None:
    house.begin()
    bad, end = house.running("bad")
    with slow(house.url, "unstuck_done", f"NEW.job = {house.number(bad)}", SECONDS):
        since = boot()
        end.touch()
        house.endure(since)
        eventually(lambda: is_set_aside(house, bad), timeout=10)
        house.endure(boot() - TROUBLE / 2)
        # Each try of it takes its worker a moment, in which others wait.
        others = house.send("work", "other", times=5)
        house.completes(*others, within=TIMES.poll + 2.0)

        assert house.jobs.state(bad) is JobState.RUNNING
        assert "statement timeout" in house.why(bad).verdict

    house.completes(bad)
    assert house.jobs.kinds(bad).count("claimed") == 1


@pytest.mark.parametrize(
    ("table", "when", "on"),
    [("unstuck_ready", "NEW.job = {}", "INSERT"), ("unstuck_timers", "OLD.job = {}", "DELETE")],
    ids=["queued", "taken"],
)
def test_a_slow_timer_keeps_no_other_from_its_start(house: House, table: str, when: str, on: str) -> None:
    house.begin()
    bad, *others = house.send("work", "later", times=6, delay=1.0)
    with slow(house.url, table, when.format(house.number(bad)), SECONDS, on):
        since = boot()
        house.completes(*others, within=TROUBLE)
        house.endure(since)
        eventually(lambda: is_set_aside(house, bad), timeout=10)
        more = house.send("work", "more", times=5, delay=0.5)
        house.completes(*more, within=0.5 + WELL_WITHIN)

        assert house.jobs.state(bad) is JobState.QUEUED

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("neighbours", [5, 200])
def test_a_slow_claim_delays_nobody_who_shares_it(house: House, workers: int, neighbours: int) -> None:
    """Not even those whose very claim it is in, and however many workers meet it."""
    house.begin(workers, times=Times())
    bad, *others = house.send("work", "later", times=1 + neighbours, delay=1.0)
    with slow(house.url, "unstuck_running", f"NEW.job = {house.number(bad)}", Times().store_call + 1):
        since = boot()
        house.starts("later", neighbours, within=10.0)
        took = boot() - since
        house.endure(since)
        # What unrelated jobs wait for meanwhile is this machine's doing. Who waited for the slow call took 4 s.
        assert took <= 1.0 + SOON + house.stream.worst(since)
        eventually(lambda: is_set_aside(house, bad), timeout=10)
        assert "statement timeout" in house.why(bad).verdict

    house.completes(bad, *others)
    assert house.jobs.kinds(bad).count("claimed") == 1


@pytest.mark.parametrize("table", ["unstuck_audit", "unstuck_news"])
def test_a_blacklist_that_is_slow_to_write_keeps_no_claim_out(house: House, table: str) -> None:
    """A new entry shuts the door of all claims, and only for as long as its commit takes."""
    house.begin()
    with slow(house.url, table, "TRUE", SECONDS), blacklisting(house):
        house.endure(boot())
    house.completes(house.send_one("work", "later"))


@contextmanager
def blacklisting(house: House) -> Iterator[None]:
    """Somebody shuts out one workflow after the other."""
    over = threading.Event()

    def insist() -> None:
        number = 0
        while not over.is_set():
            number += 1
            with suppress(StoreError):
                house.store.blacklist_add(EVERY, f"shut_out_{number}", "", "kim")

    person = threading.Thread(target=insist, name="person")
    person.start()
    try:
        yield
    finally:
        over.set()
        person.join(20)
