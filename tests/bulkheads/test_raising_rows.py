"""A row that cannot be written is set aside: with its reason, a notification and a way back; all others go on."""

from __future__ import annotations

import pytest

from tests.bulkheads.conftest import TIMES, TROUBLE, WELL_WITHIN, House, boot
from tests.support.eventually import eventually
from tests.support.troubles import SAYS
from unstuck.model.lifecycle import JobState

pytestmark = pytest.mark.timeout(120)


def is_told(house: House, job: str) -> None:
    """By `why`, by `health`, by a notification and in the quarantine."""
    (entry,) = house.store.quarantined("default", job=job)
    assert SAYS in entry.error
    assert SAYS in house.why(job).verdict
    assert "quarantine" in house.complaints()
    assert any(job in news.message for news in house.store.notifications())


@pytest.mark.parametrize(
    ("table", "when", "on"),
    [("unstuck_running", "NEW.job = {}", "INSERT"), ("unstuck_ready", "OLD.job = {}", "DELETE")],
    ids=["opened", "taken"],
)
def test_a_row_that_raises_at_its_claim_keeps_no_other_from_its_start(
    house: House, table: str, when: str, on: str
) -> None:
    """Of its own route neither: four others wait beside it."""
    house.begin()
    bad, *others = house.send("work", "later", times=5, delay=1.0)
    with house.raising(table, when.format(house.number(bad)), on=on):
        since = boot()
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert house.jobs.state(bad) is JobState.QUEUED
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)
        assert "roles" not in house.complaints()

    house.completes(bad)
    assert house.jobs.kinds(bad).count("claimed") == 1
    eventually(lambda: house.store.quarantined() == [])


def test_a_row_that_raises_at_its_settle_keeps_no_other_from_ending(house: House) -> None:
    house.begin()
    bad, end = house.running("bad")
    with house.raising("unstuck_done", f"NEW.job = {house.number(bad)}"):
        since = boot()
        end.touch()
        house.endure(since)

        assert house.jobs.state(bad) is JobState.RUNNING
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)

    house.completes(bad)
    assert house.jobs.kinds(bad).count("claimed") == 1
    eventually(lambda: house.store.quarantined() == [])


def test_an_end_that_can_be_written_nowhere_is_told_by_its_worker(house: House) -> None:
    """Neither as an end nor in the quarantine."""
    house.begin()
    bad, end = house.running("bad")
    number = house.number(bad)
    with (
        house.raising("unstuck_done", f"NEW.job = {number}"),
        house.raising("unstuck_quarantine", f"NEW.item = {number}"),
    ):
        end.touch()
        eventually(lambda: "its end cannot be written" in house.why(bad).verdict, timeout=TIMES.beat + 10)
        assert SAYS in house.why(bad).verdict
        assert f"settle/job {number} has failed on worker" in house.complaints()

    house.completes(bad)
    eventually(lambda: "roles:" not in house.complaints(), timeout=TIMES.beat + 10)


def test_a_row_that_raises_at_its_recovery_keeps_no_other_from_its_rescue(house: House) -> None:
    end = house.folder / "end"
    lost = house.start(name="lost", concurrency=8)
    bad, *others = house.send("until_told", "running", str(end), times=8)
    eventually(lambda: house.marks().count("running") == 8, timeout=30)
    house.begin(1, name="healthy", concurrency=12)
    with house.raising("unstuck_events", f"NEW.job = {house.number(bad)}"):
        lost.kill_all()
        since = boot()
        house.endure(since)
        house.endure(since + TROUBLE)

        eventually(lambda: house.marks().count("running") == 15, timeout=TIMES.lease + WELL_WITHIN)
        assert house.jobs.state(bad) is JobState.RUNNING
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)
        end.touch()
        house.completes(*others)

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


def test_a_timer_that_raises_keeps_no_other_from_its_start(house: House) -> None:
    house.begin()
    bad, *others = house.send("work", "later", times=6, delay=1.0)
    with house.raising("unstuck_ready", f"NEW.job = {house.number(bad)}"):
        since = boot()
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert house.jobs.state(bad) is JobState.QUEUED
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


def test_a_target_that_raises_keeps_no_other_from_its_turn(house: House) -> None:
    house.begin()
    house.completes(house.send_one("work", "first", target="acme"))
    (record,) = house.store.targets("default")
    with house.raising("unstuck_targets", f"NEW.id = {record.number}", on="UPDATE"):
        since = boot()
        bad = house.send_one("work", "bad", target="acme")
        others = [house.send_one("work", "other", target=f"other-{n}") for n in range(10)]
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert "bad" not in house.marks()
        assert SAYS in house.why(bad).verdict
        assert "quarantine" in house.complaints()

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


def test_a_dependant_that_raises_keeps_no_other_waiting(house: House) -> None:
    house.begin()
    first, end = house.running("first")
    bad, *others = house.send("work", "after", times=6, after=(first,))
    with house.raising("unstuck_jobs", f"NEW.id = {house.number(bad)}", on="UPDATE"):
        since = boot()
        end.touch()
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert house.jobs.state(bad) is JobState.PENDING
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


def test_a_gather_that_raises_keeps_no_other_parent_waiting(house: House) -> None:
    house.begin()
    end = house.folder / "end"
    bad, *others = parents = house.send("parent", "gathered", str(end), times=3)
    for job in parents:
        house.jobs.until(job, JobState.WAITING)
    with house.raising(
        "unstuck_jobs", f"NEW.id = {house.number(bad)} AND NEW.state = 'QUEUED' AND NEW.token > 0", on="UPDATE"
    ):
        since = boot()
        end.touch()
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert house.jobs.state(bad) is JobState.WAITING
        eventually(lambda: is_told(house, bad), timeout=TIMES.sweep + 5)

    house.completes(bad)
    eventually(lambda: house.store.quarantined() == [])


def test_what_a_handler_printed_keeps_its_end_from_nobody(house: House) -> None:
    house.begin()
    bad = house.send_one("talks", "said", delay=1.0)
    with house.raising("unstuck_outputs", f"NEW.job = {house.number(bad)}"):
        since = boot()
        house.completes(bad, within=2 * TROUBLE)
        house.endure(since)

    assert house.jobs.get(bad).result == '"said"'
    eventually(lambda: house.store.quarantined() == [])
