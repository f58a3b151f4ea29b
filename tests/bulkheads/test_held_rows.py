"""A row that somebody else's session holds delays what needs that row, and nothing else."""

from __future__ import annotations

import pytest

from tests.bulkheads.conftest import TIMES, TROUBLE, WELL_WITHIN, House, boot, only_postgres
from tests.support.eventually import eventually
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times

pytestmark = [only_postgres, pytest.mark.timeout(120)]


def test_a_held_limit_row_delays_only_what_it_limits(house: House) -> None:
    house.begin()
    with house.held("SELECT 1 FROM unstuck_limits WHERE name = 'limited' FOR UPDATE") as pid:
        since = boot()
        jobs = house.send("limited", "limited", times=2)
        house.endure(since)

        assert house.marks() == []
        assert str(pid) in house.why(jobs[0]).verdict
        assert str(pid) in house.complaints()

    house.completes(*jobs)


def test_a_held_target_row_delays_only_its_own_jobs(house: House) -> None:
    house.begin()
    house.completes(house.send_one("work", "first", target="acme"))
    with house.held("SELECT 1 FROM unstuck_targets WHERE name = 'acme' FOR UPDATE") as pid:
        since = boot()
        kept = house.send_one("work", "kept", target="acme")
        others = [house.send_one("work", "other", target=f"other-{n}") for n in range(10)]
        house.completes(*others, within=TROUBLE)
        house.endure(since)

        assert "kept" not in house.marks()
        assert str(pid) in house.why(kept).verdict
        assert str(pid) in house.complaints()

    house.completes(kept)


def test_a_settle_on_a_held_target_delays_no_other_settle(house: House) -> None:
    house.begin()
    running, end = house.running("running", target="acme")
    with house.held("SELECT 1 FROM unstuck_targets WHERE name = 'acme' FOR UPDATE") as pid:
        since = boot()
        end.touch()
        house.endure(since)

        assert house.jobs.state(running) is JobState.RUNNING
        assert str(pid) in house.why(running).verdict

    house.completes(running)


def test_a_held_ready_row_delays_only_its_job(house: House) -> None:
    kept, *others = house.send("work", "some", times=5)
    with house.held("SELECT 1 FROM unstuck_ready WHERE job = %s FOR UPDATE", house.number(kept)) as pid:
        house.begin()
        since = boot()
        house.completes(*others)
        house.endure(since)

        assert house.jobs.state(kept) is JobState.QUEUED
        assert str(pid) in house.why(kept).verdict
        assert str(pid) in house.complaints()

    house.completes(kept)


def test_a_held_job_row_delays_only_the_settle_that_writes_it(house: House) -> None:
    house.begin()
    running, end = house.running("running")
    failing = house.send_one("fails_once", "fails", delay=1.0)
    with house.held("SELECT 1 FROM unstuck_jobs WHERE uid = ANY (%s) FOR UPDATE", [running, failing]) as pid:
        since = boot()
        end.touch()
        house.endure(since)
        assert str(pid) in house.complaints()

    house.completes(running)
    house.completes(failing)


def test_a_held_attempt_costs_no_worker_its_lease(house: House) -> None:
    """The beat writes when handlers began into that row."""
    house.begin()
    running, end = house.running("running")
    with house.held("SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE", house.number(running)) as pid:
        since = boot()
        house.endure(since)
        house.endure(since + TROUBLE)

        assert {worker.state for worker in house.store.workers()} == {"active"}
        assert str(pid) in house.complaints()
        end.touch()

    house.completes(running)
    assert house.jobs.kinds(running).count("claimed") == 1


def test_a_held_workflow_row_keeps_no_worker_from_starting(house: House) -> None:
    house.begin(1)
    with house.held("SELECT 1 FROM unstuck_workflows FOR UPDATE") as pid:
        since = boot()
        second = house.start(name="second")
        house.endure(since)
        eventually(lambda: second.record(house.store), timeout=10)
        house.workers[0].terminate()
        house.workers[0].wait()
        house.endure(boot())
        assert str(pid) in house.complaints()


def test_a_held_worker_row_stops_no_other_worker(house: House) -> None:
    house.begin()
    with house.held("SELECT 1 FROM unstuck_workers WHERE name = 'w1' FOR UPDATE") as pid:
        since = boot()
        house.endure(since)
        house.endure(since + TROUBLE)
        assert str(pid) in house.complaints()


def test_the_held_row_of_a_lost_worker_stops_no_rescue_of_others(house: House) -> None:
    end = house.folder / "end"
    for name in ("lost-1", "lost-2"):
        house.start(name=name, concurrency=2)
    jobs = house.send("until_told", "running", str(end), times=4)
    eventually(lambda: house.marks().count("running") == 4, timeout=30)
    house.begin(1, name="healthy")
    with house.held("SELECT 1 FROM unstuck_workers WHERE name = 'lost-1' FOR UPDATE"):
        since = boot()
        for worker in house.workers[:2]:
            worker.kill_all()
        end.touch()
        house.endure(since)

    house.completes(*jobs, within=TIMES.lease + WELL_WITHIN)


def test_a_held_inbox_entry_delays_only_its_own_target(house: House) -> None:
    kept = house.send_one("work", "kept", target="acme")
    others = [house.send_one("work", "other", target=f"other-{n}") for n in range(10)]
    with house.held(
        "SELECT 1 FROM unstuck_inbox WHERE target = (SELECT id FROM unstuck_targets WHERE name = 'acme') FOR UPDATE"
    ) as pid:
        house.begin()
        since = boot()
        house.completes(*others)
        house.endure(since)

        assert "kept" not in house.marks()
        assert str(pid) in house.why(kept).verdict
        assert str(pid) in house.complaints()

    house.completes(kept)


def test_a_held_timer_delays_only_its_own_job(house: House) -> None:
    house.begin()
    kept = house.send_one("work", "kept", delay=1.0)
    others = house.send("work", "other", delay=1.0, times=5)
    with house.held("SELECT 1 FROM unstuck_timers WHERE job = %s FOR UPDATE", house.number(kept)) as pid:
        since = boot()
        house.completes(*others, within=TROUBLE)
        house.endure(since)
        assert "kept" not in house.marks()
        assert str(pid) in house.why(kept).verdict

    house.completes(kept)


def test_a_held_row_of_the_quarantine_delays_only_its_own_job(house: House) -> None:
    """Somebody looks after what was set aside, in psql: one that cannot end, and one that cannot be queued. With the
    times that everybody has: who waited for a lock here would wait longer than a poll."""
    house.begin(times=Times())
    bad, end = house.running("bad")
    late = house.send_one("work", "late", delay=1.0)
    with (
        house.raising("unstuck_done", f"NEW.job = {house.number(bad)}"),
        house.raising("unstuck_ready", f"NEW.job = {house.number(late)}"),
    ):
        end.touch()
        eventually(lambda: {found.duty for found in house.store.quarantined()} == {"settle", "start"}, timeout=30)
        with house.held("SELECT 1 FROM unstuck_quarantine FOR UPDATE") as pid:
            house.endure(boot())
            house.endure(boot())
            assert str(pid) in house.complaints()

    house.completes(bad, late, within=Times().sweep + WELL_WITHIN)
    eventually(lambda: house.store.quarantined() == [], timeout=20)


def test_held_events_delay_nobody(house: House) -> None:
    house.begin()
    with house.held("SELECT 1 FROM unstuck_events FOR UPDATE") as pid:
        since = boot()
        house.endure(since)
        assert str(pid) in house.complaints()


def test_a_held_feed_delays_nobody(house: House) -> None:
    house.begin()
    with house.held("SELECT 1 FROM unstuck_sequencer FOR UPDATE") as pid:
        since = boot()
        house.endure(since)
        assert str(pid) in house.complaints()
