"""Schedules: each tick once, whoever fires it; edits, pauses, overlap, refusals, what is made up for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import Leap, StoreClock
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, chance, claim_all, record, settle
from tests.support.plans import filled, plan_of, run, scans
from tests.support.postgres import PostgresServer
from tests.support.schedules import come, fired, made, outcomes, register, seen, the_duty, turn, verbs
from tests.support.troubles import allow, execute, holding, refuse
from tests.tiers import commit_on_sqlite
from unstuck.intake.schedules import job_of
from unstuck.janitor.schedules import SchedulesDuty
from unstuck.model.errors import (
    Conflict,
    InvalidArguments,
    InvalidInput,
    ScheduleExists,
    TooManyQueued,
    TooManySchedules,
    UnknownSchedule,
    UnknownWorkflowName,
    WorkflowBlacklisted,
)
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.schedules import ScheduleState
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.leaps import Witness
from unstuck.store.port import JobFilter, Limit, NewFiring, Pause, ScheduleRecord
from unstuck.store.sql_store import SqlStore

MINUTE = timedelta(minutes=1)


def jobs(store: SqlStore) -> list[Any]:
    return list(store.jobs(TENANT, JobFilter(newest_first=False), 1000).jobs)


# --- a tick ---------------------------------------------------------------------------------------------------------


def test_a_tick_becomes_a_job_once_and_says_which(store: SqlStore, clock: StoreClock) -> None:
    made(store, tags=["report"], priority=3, queue="slow", tick_as="day")
    assert turn(store) == 0
    tick = come(store, clock)

    assert turn(store) == 1
    assert turn(store) == 0

    [firing], [job] = fired(store), jobs(store)
    assert (firing.tick, firing.kind, firing.outcome, firing.job) == (tick, "tick", "fired", job.id)
    assert (job.workflow, job.queue, job.priority) == ("greet", "slow", 3)
    assert job.tags == ("report", "schedule:nightly")
    assert tick.isoformat() in job.payload
    after = seen(store)
    assert (after.last_tick, after.next_tick, after.quiet) == (tick, tick + MINUTE, 0)


def test_the_duty_rests_until_the_next_tick_and_no_longer_than_a_sweep(store: SqlStore, clock: StoreClock) -> None:
    duty = the_duty(store)
    duty.tick(0.0, endless())
    assert duty.every == 5.0
    schedule = made(store, every=3600.0)
    assert schedule.next_tick is not None
    clock.advance((schedule.next_tick - schedule.now).total_seconds() - 2.0)
    duty.tick(0.0, endless())
    assert 0 < duty.every <= 2.0


def test_two_that_fire_at_once_fire_once(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """As plans: both have seen the same tick as due. The second finds the row moved on."""
    made(store)
    come(store, clock)
    [due] = store.due_schedules()
    assert due.next_tick is not None
    jobs_of = [replace(verbs_job(store, due), id=each) for each in (uid(), uid())]
    firings = [NewFiring(due, due.next_tick, "tick", "fired", due.next_tick + MINUTE, job) for job in jobs_of]

    assert store.fire(firings[0]) is not None
    assert store.fire(firings[1]) is None

    assert [job.id for job in jobs(store)] == [jobs_of[0].id]


def verbs_job(store: SqlStore, schedule: ScheduleRecord) -> NewJob:
    assert schedule.next_tick is not None
    return job_of(store, TENANT, schedule.name, schedule.spec, schedule.next_tick)


def uid() -> str:
    return chance.job_id()


@pytest.fixture
def crowd(store_url: str) -> Iterator[list[SqlStore]]:
    stores = [SqlStore(open_database(store_url, store_call=20.0)) for _ in range(4)]
    yield stores
    for each in stores:
        each.close()


def test_a_crowd_that_fires_the_same_ticks_fires_each_once(
    store: SqlStore, clock: StoreClock, crowd: list[SqlStore]
) -> None:
    for name in ("a", "b", "c"):
        made(store, name, catch_up="all")
    come(store, clock, "a", late=20 * 60)
    threads = [threading.Thread(target=turn, args=(each,)) for each in crowd]
    if store._database.is_file:  # its clock is moved for one process alone
        threads = [threading.Thread(target=turn, args=(store,)) for _ in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    turn(store)

    for name in ("a", "b", "c"):
        found = [firing.tick for firing in fired(store, name)]
        assert len(found) == len(set(found)) >= 20
        assert found == sorted(found)
    made_jobs = {firing.job for name in ("a", "b", "c") for firing in fired(store, name)}
    assert made_jobs == {job.id for job in jobs(store)}


def test_a_cron_line_goes_by_the_clock_and_an_interval_by_its_distance(store_url: str, leap: Leap) -> None:
    """The clock leaps two hours: an hourly line has missed two ticks, an interval of an hour is where it was."""
    with closing(SqlStore(open_database(store_url, witness=Witness()))) as ours:
        a_worker(ours)
        made(ours, "line", cron="0 * * * *")
        made(ours, "distance", every=3600.0)
        before = seen(ours, "line"), seen(ours, "distance")
        leap(7200.0)
        ours.release_due()
        ours.release_due()

        after = seen(ours, "line"), seen(ours, "distance")
        assert after[1].due_at == before[1].due_at
        assert before[0].due_at is not None
        assert after[0].due_at is not None
        assert abs(after[0].due_at - (before[0].due_at - timedelta(hours=2))) < timedelta(seconds=5)
        turn(ours)
        assert outcomes(ours, "line") == ["missed", "fired"]
        assert fired(ours, "distance") == []


# --- what is refused ------------------------------------------------------------------------------------------------


def test_what_no_call_could_be_is_refused_when_it_is_made(store: SqlStore) -> None:
    with pytest.raises(UnknownWorkflowName):
        verbs(store).create("nightly", "nobody", every=60.0)
    register(store)
    with pytest.raises(InvalidArguments, match="missing a required argument: name"):
        made(store, kwargs={})
    with pytest.raises(InvalidArguments, match="expected string"):
        made(store, kwargs={"name": 5})
    with pytest.raises(InvalidInput, match="bad minute"):
        made(store, cron="61 * * * *")
    made(store)
    with pytest.raises(ScheduleExists):
        made(store)
    with pytest.raises(UnknownSchedule):
        verbs(store).get("hourly")


def test_a_tenant_has_so_many_and_ticks_are_so_far_apart(store: SqlStore) -> None:
    made(store)
    store.set_setting("schedules_per_tenant", "1", "ada")
    with pytest.raises(TooManySchedules):
        made(store, "second")
    store.set_setting("schedules_per_tenant", "2", "ada")
    store.set_setting("schedule_min_interval", "600", "ada")
    with pytest.raises(InvalidInput, match="schedule_min_interval=600"):
        made(store, "second")


def test_arguments_that_no_longer_fit_are_a_recorded_refusal_and_the_next_tick_comes(
    store: SqlStore, clock: StoreClock
) -> None:
    made(store)
    other = {"type": "object", "properties": {}, "additionalProperties": False}
    register_schema(store, other)
    come(store, clock)
    turn(store)

    [firing] = fired(store)
    assert (firing.outcome, firing.job) == ("refused", None)
    assert "there is no parameter name" in str(firing.reason)
    register(store, version="v3")
    come(store, clock)
    turn(store)
    assert outcomes(store) == ["refused", "fired"]


def register_schema(store: SqlStore, schema: dict[str, Any]) -> None:
    store.register_workflows([WorkflowRecord("greet", "v2", "default", Policy(), schema)])


def test_a_blacklisted_workflow_is_refused_by_tick_and_by_hand(store: SqlStore, clock: StoreClock) -> None:
    """A35: by schedule, by hand, by a range that is made up for."""
    made(store)
    store.blacklist_add(TENANT, "greet", "it hangs", "ada")
    come(store, clock)
    turn(store)

    [firing] = fired(store)
    assert firing.outcome == "refused"
    assert "Workflow is blacklisted" in str(firing.reason)
    with pytest.raises(WorkflowBlacklisted, match="Workflow is blacklisted"):
        verbs(store).run_now("nightly")
    with pytest.raises(WorkflowBlacklisted):
        verbs(store).backfill("nightly", firing.tick, firing.tick)
    assert jobs(store) == []


def test_a_cap_is_a_recorded_refusal_and_a_pause_of_the_queue_is_none(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    store.set_limit(Limit("queue", "default", TENANT, "ada", max_queued=1))
    store.pause(Pause("queue", "default", TENANT, "ada"))
    for _ in range(2):
        come(store, clock)
        turn(store)

    assert outcomes(store) == ["fired", "refused"]
    assert "as many as it may" in str(fired(store)[1].reason)
    assert [job.state for job in jobs(store)] == [JobState.QUEUED]
    with pytest.raises(TooManyQueued):
        verbs(store).run_now("nightly")


def test_a_schedule_that_makes_no_job_three_times_is_told_once(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    store.blacklist_add(TENANT, "greet", "it hangs", "ada")
    for count in range(1, 5):
        come(store, clock)
        turn(store)
        told = [n for n in store.notifications(TENANT) if n.title == "Schedule fell silent"]
        assert len(told) == (1 if count >= 3 else 0)
        assert len(store.silent_schedules(TENANT, 60.0)) == (1 if count >= 3 else 0)
    assert "schedule nightly of tenant default made no job at its last 3 ticks" in told[0].message
    store.blacklist_remove(TENANT, "greet", "ada")
    come(store, clock)
    turn(store)
    assert store.silent_schedules(TENANT, 60.0) == []


def test_one_that_nobody_fires_is_silent(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    come(store, clock, late=30)
    assert store.silent_schedules(None, 60.0) == []
    clock.advance(60)
    assert [found.name for found in store.silent_schedules(None, 60.0)] == ["nightly"]


# --- both clock changes ---------------------------------------------------------------------------------------------


def changes_of(zone: str, after: datetime) -> list[datetime]:
    """The next two midnights, there, of days on which its clocks change."""
    here = ZoneInfo(zone)
    first = after.astimezone(here).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None) + timedelta(days=3)
    days = [(first + timedelta(days=day)).replace(tzinfo=here) for day in range(400)]
    return [day for day, following in pairwise(days) if day.utcoffset() != following.utcoffset()][:2]


@commit_on_sqlite
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_time_of_day_fires_once_each_day_over_a_change_of_clocks(
    store: SqlStore, clock: StoreClock, zone: str, place: int
) -> None:
    night = changes_of(zone, store.now())[place]
    clock.advance((night - store.now()).total_seconds() - 6 * 3600)
    made(store, "daily", cron="15 2 * * *", zone=zone)
    made(store, "distance", cron="*/30 * * * *", zone=zone)
    for _ in range(44):
        come(store, clock, "distance")
        turn(store)

    assert [firing.tick.astimezone(ZoneInfo(zone)).date() for firing in fired(store, "daily")] == [night.date()]
    ticks = [firing.tick for firing in fired(store, "distance")]
    assert {later - tick for tick, later in pairwise(ticks)} == {timedelta(minutes=30)}


# --- what was missed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "count", "missed"), [("none", 0, 60), ("last", 1, 59), ("all", 60, 0), ("capped", 10, 50)]
)
def test_an_hour_of_outage(store: SqlStore, clock: StoreClock, rule: str, count: int, missed: int) -> None:
    said: dict[str, Any] = {"catch_up": "all" if rule == "capped" else rule}
    made(store, catch_up_most=10 if rule == "capped" else 100, **said)
    first = come(store, clock, late=59 * 60 + 45)

    turn(store)

    found = fired(store)
    assert sum(firing.outcome == "fired" for firing in found) == count == len(jobs(store))
    assert [(firing.ticks, firing.first_tick) for firing in found if firing.outcome == "missed"] == (
        [(missed, first)] if missed else []
    )
    assert seen(store).next_tick == first + 60 * MINUTE
    come(store, clock)
    turn(store)
    assert outcomes(store)[-1] == "fired"


# --- edits ----------------------------------------------------------------------------------------------------------


def test_an_edit_is_a_new_version_and_fires_no_tick_twice(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    tick = come(store, clock)
    turn(store)

    changed = verbs(store).update("nightly", every=30.0)
    assert (changed.version, changed.next_tick) == (2, tick + timedelta(seconds=30))
    back = verbs(store).update("nightly", every=60.0)
    assert back.next_tick == tick + MINUTE
    turn(store)
    assert outcomes(store) == ["fired"]


def test_an_edit_of_something_else_leaves_a_tick_that_is_due(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    tick = come(store, clock)
    verbs(store).update("nightly", kwargs={"name": "bob"}, tags=["new"])
    turn(store)
    assert [firing.tick for firing in fired(store)] == [tick]
    assert "bob" in jobs(store)[0].payload


def test_what_was_planned_by_an_older_version_is_not_done(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    come(store, clock)
    [due] = store.due_schedules()
    job = verbs_job(store, due)
    verbs(store).update("nightly", priority=5)
    assert due.next_tick is not None
    assert store.fire(NewFiring(due, due.next_tick, "tick", "fired", due.next_tick + MINUTE, job)) is None
    assert jobs(store) == []


def test_an_edit_that_has_seen_an_older_version_is_made_upon_the_newer(store: SqlStore) -> None:
    schedule = made(store)
    verbs(store).update("nightly", priority=5)
    with pytest.raises(Conflict, match="changed meanwhile"):
        store.change_schedule(TENANT, "nightly", schedule.spec, "bob", schedule.version)
    assert verbs(store).update("nightly", cron="0 3 * * *").spec.priority == 5
    assert seen(store).spec.every is None


def test_deleted_it_fires_no_more_and_its_jobs_stay(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    come(store, clock)
    turn(store)
    verbs(store).delete("nightly")
    clock.advance(300)
    assert turn(store) == 0
    assert len(jobs(store)) == 1
    assert store.schedules(TENANT) == []
    with pytest.raises(UnknownSchedule):
        verbs(store).delete("nightly")
    assert made(store).version == 1


# --- pauses ---------------------------------------------------------------------------------------------------------


def test_a_pause_lets_its_ticks_go_and_a_resume_goes_on_with_the_next(store: SqlStore, clock: StoreClock) -> None:
    made(store, catch_up="all")
    paused = verbs(store).pause("nightly", reason="the database moves")
    assert (paused.state, paused.next_tick) == (ScheduleState.PAUSED, None)
    clock.advance(600)
    assert turn(store) == 0
    resumed = verbs(store).resume("nightly")
    assert resumed.state is ScheduleState.ACTIVE
    come(store, clock)
    turn(store)
    assert outcomes(store) == ["fired"]
    assert [action.verb for action in store.audit(TENANT)][:2] == ["schedules.resume", "schedules.pause"]


def test_a_pause_with_an_end_ends_by_itself(store: SqlStore, clock: StoreClock) -> None:
    made(store, catch_up="all")
    paused = verbs(store).pause("nightly", lasting=300.0)
    assert paused.paused_until is not None
    assert paused.next_tick is not None
    assert paused.next_tick >= paused.paused_until
    clock.advance(200)
    assert (turn(store), seen(store).state) == (0, ScheduleState.PAUSED)
    come(store, clock)
    assert (turn(store), seen(store).state) == (1, ScheduleState.ACTIVE)


def test_it_ends_when_it_says(store: SqlStore, clock: StoreClock) -> None:
    schedule = made(store)
    assert schedule.next_tick is not None
    verbs(store).update("nightly", end_at=schedule.next_tick)
    come(store, clock)
    turn(store)
    assert (outcomes(store), seen(store).state) == (["fired"], ScheduleState.ENDED)


# --- overlap --------------------------------------------------------------------------------------------------------


def test_allow_lets_them_run_beside_each_other(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    for _ in range(3):
        come(store, clock)
        turn(store)
    assert len(claim_all(store, a_worker(store, lease=1e6))) == 3


def test_skip_makes_none_while_one_has_not_ended(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store, overlap="skip")
    come(store, clock)
    turn(store)
    [attempt] = claim_all(store, worker)
    come(store, clock)
    turn(store)
    skipped = fired(store)[1]
    assert (skipped.outcome, skipped.job) == ("skipped", None)
    assert attempt.id in str(skipped.reason)
    settle(store, worker, attempt.ref, Returned("null"))
    come(store, clock)
    turn(store)
    assert outcomes(store) == ["fired", "skipped", "fired"]


def test_skip_counts_a_body_that_may_still_live(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store, overlap="skip")
    come(store, clock)
    turn(store)
    [attempt] = claim_all(store, worker)
    settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "it does not stop")))
    assert record(store, attempt.id).state is JobState.FAILED
    come(store, clock)
    turn(store)
    assert outcomes(store) == ["fired", "skipped"]
    assert "a body of it may still run" in str(fired(store)[1].reason)


def test_queue_starts_the_next_once_the_one_before_is_gone(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store, overlap="queue")
    for _ in range(3):
        come(store, clock)
        turn(store)
    store.ingest()
    for firing in fired(store):
        [attempt] = claim_all(store, worker)
        assert attempt.id == firing.job
        assert claim_all(store, worker) == []
        settle(store, worker, attempt.ref, Returned("null"))
        store.ingest()


def test_queue_waits_for_those_of_an_earlier_version_that_went_elsewhere(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store)
    come(store, clock)
    turn(store)
    [attempt] = claim_all(store, worker)
    verbs(store).update("nightly", overlap="queue")
    come(store, clock)
    turn(store)
    store.ingest()
    assert claim_all(store, worker) == []
    settle(store, worker, attempt.ref, Returned("null"))
    store.ingest()  # into the line of its target
    store.ingest()  # whose head it becomes
    assert [found.id for found in claim_all(store, worker)] == [fired(store)[1].job]


def test_queue_waits_for_a_body_that_outlives_its_job(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store, overlap="queue")
    for _ in range(2):
        come(store, clock)
        turn(store)
    store.ingest()
    [stuck] = claim_all(store, worker)
    settle(store, worker, stuck.ref, Stuck(ErrorInfo("ExecutionStuck", "it does not stop")))
    store.ingest()
    assert record(store, stuck.id).state is JobState.FAILED
    assert claim_all(store, worker) == []
    store.lift_body_mark(worker.number, stuck.ref.job)
    store.ingest()
    assert [found.id for found in claim_all(store, worker)] == [fired(store)[1].job]


def test_cancel_asks_the_one_before_to_stop_and_starts_when_it_is_gone(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store, overlap="cancel")
    come(store, clock)
    turn(store)
    store.ingest()
    [attempt] = claim_all(store, worker)
    come(store, clock)
    turn(store)
    store.ingest()

    [asked] = store.asked(worker.number)
    assert asked.ref == attempt.ref
    assert claim_all(store, worker) == []
    settle(store, worker, attempt.ref, Returned("null"))
    store.ingest()
    assert [found.id for found in claim_all(store, worker)] == [fired(store)[1].job]
    assert store.overlapped() == []


def test_whoever_dies_before_it_asked_leaves_that_to_another(store: SqlStore, clock: StoreClock) -> None:
    """The firing is durable, and the request is not yet: its row says that it is still to be made."""
    made(store, overlap="cancel")
    come(store, clock)
    turn(store)
    come(store, clock)
    [due] = store.due_schedules()
    assert due.next_tick is not None
    store.fire(NewFiring(due, due.next_tick, "tick", "fired", due.next_tick + MINUTE, verbs_job(store, due)))

    assert [each.job for each in store.overlapped()] == [fired(store)[0].job]
    assert store.next_schedule() == 0
    turn(store)
    assert record(store, str(fired(store)[0].job)).state is JobState.CANCELLED
    assert store.overlapped() == []


def test_cancel_asks_all_that_came_before_however_many_they_are(
    store: SqlStore, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one look shows: of a schedule that let them overlap until it was changed."""
    monkeypatch.setattr(SchedulesDuty, "most", 3)
    made(store, catch_up="all")
    come(store, clock, late=7 * 60.0)
    turn(store)
    before = [str(firing.job) for firing in fired(store)]
    assert len(before) == 8
    verbs(store).update("nightly", overlap="cancel")
    come(store, clock)
    turn(store)

    assert {record(store, job).state for job in before} == {JobState.CANCELLED}
    assert store.next_schedule() != 0, "nothing is left to be asked"


def test_a_job_that_cannot_be_asked_to_stop_keeps_no_other_from_it(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    for name in ("bad", "good"):
        made(store, name, overlap="cancel")
    come(store, clock, "good")
    turn(store)
    bad, good = (str(fired(store, name)[0].job) for name in ("bad", "good"))
    refuse(store_url, "unstuck_done", f"NEW.job = {record(store, bad).number}")
    come(store, clock, "good")
    duty = the_duty(store)

    duty.tick(0.0, endless())
    assert record(store, good).state is JobState.CANCELLED
    assert [each.job for each in store.overlapped()] == [bad], "it is tried again"
    allow(store_url, "unstuck_done")
    duty.tick(Times().sweep, endless())
    assert record(store, bad).state is JobState.CANCELLED
    assert store.overlapped() == []


def test_what_a_deleted_schedule_would_have_cancelled_is_nobodys_duty(store: SqlStore, clock: StoreClock) -> None:
    """Every janitor would look for it once a second, for as long as firings are kept."""
    made(store, overlap="cancel")
    come(store, clock)
    turn(store)
    come(store, clock)
    [due] = store.due_schedules()
    assert due.next_tick is not None
    store.fire(NewFiring(due, due.next_tick, "tick", "fired", due.next_tick + MINUTE, verbs_job(store, due)))
    verbs(store).delete("nightly")
    assert store.next_schedule() is None


# --- by hand --------------------------------------------------------------------------------------------------------


def test_run_now_takes_the_place_of_no_tick(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    verbs(store).pause("nightly")
    by_hand = verbs(store).run_now("nightly")
    assert (by_hand.kind, by_hand.outcome, by_hand.by) == ("run_now", "fired", "ada")
    verbs(store).resume("nightly")
    come(store, clock)
    turn(store)
    assert [firing.kind for firing in fired(store)] == ["run_now", "tick"]
    assert len(jobs(store)) == 2


def test_a_backfill_makes_a_job_for_each_tick_that_has_none(store: SqlStore, clock: StoreClock) -> None:
    made(store, catch_up="none", tick_as="day")
    first = come(store, clock, late=10 * 60 + 45)
    turn(store)
    assert outcomes(store) == ["missed"]

    made_up = verbs(store).backfill("nightly", first - 2 * MINUTE, first + 4 * MINUTE)

    assert [firing.tick for firing in made_up] == [first + place * MINUTE for place in range(-2, 5)]
    assert len(jobs(store)) == 7
    assert verbs(store).backfill("nightly", first - 2 * MINUTE, first + 4 * MINUTE) == []
    assert [action.verb for action in store.audit(TENANT)] == ["schedules.backfill", "schedules.create"]
    assert len(jobs(store)) == 7
    with pytest.raises(InvalidInput, match="not over yet"):
        verbs(store).backfill("nightly", first, clock.now() + timedelta(hours=1))
    with pytest.raises(InvalidInput, match="more than 1000 ticks"):
        verbs(store).backfill("nightly", first - timedelta(days=2), first)


def test_a_backfill_from_the_beginning_of_the_calendar_is_answered(store: SqlStore, clock: StoreClock) -> None:
    made(store, every=366 * 86400.0)
    begin = datetime.min.replace(tzinfo=ZoneInfo("UTC"))
    first, *_ = verbs(store).backfill("nightly", begin, store.now())
    assert first.tick.year == 1970


def test_a_backfill_of_ticks_that_must_not_overlap_runs_one_after_the_other(
    store: SqlStore, clock: StoreClock
) -> None:
    made(store, overlap="skip")
    now = seen(store).now
    made_up = verbs(store).backfill("nightly", now - 5 * MINUTE, now)
    assert {firing.outcome for firing in made_up} == {"fired"}
    store.ingest()
    assert len(claim_all(store, a_worker(store, lease=1e6))) == 1


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_firings_are_forgotten_but_for_those_whose_job_has_not_ended(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    made(store)
    for _ in range(3):
        come(store, clock)
        turn(store)
    first = claim_all(store, worker, limit=1)[0]
    settle(store, worker, first.ref, Returned("null"))
    clock.advance(days=8)
    assert store.forget_firings(7 * 86400.0) == 1
    assert len(fired(store)) == 2


def test_a_list_goes_page_by_page_and_tenants_see_their_own(store: SqlStore) -> None:
    register(store)
    for name in ("a", "b", "c"):
        made(store, name)
    verbs(store, "other").create("a", "greet", every=60.0, kwargs={"name": "eve"})
    page = store.schedules(TENANT, limit=2)
    assert [each.name for each in page] == ["a", "b"]
    assert [each.name for each in store.schedules(TENANT, after=page[-1].number)] == ["c"]
    assert [each.tenant for each in store.schedules(None)] == [TENANT] * 3 + ["other"]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)  # a SQLite file has one lock for all
def test_schedules_that_somebody_holds_keep_no_other_from_its_turn(
    store: SqlStore, store_url: str, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: they come first by their time, and would be the whole batch for ever."""
    monkeypatch.setattr(SchedulesDuty, "most", 3)
    for number in range(4):
        made(store, f"held{number}")
    made(store, "other")
    duty = the_duty(store)
    come(store, clock, "other")
    with holding(store_url, "unstuck_schedules", "name LIKE 'held%'"):
        duty.tick(0.0, endless())
        duty.tick(0.0, endless())
        assert outcomes(store, "other") == ["fired"]
    duty.tick(0.0, endless())
    assert outcomes(store, "held0") == outcomes(store, "held3") == ["fired"]


def test_one_that_could_not_be_fired_keeps_no_other_from_its_turn_and_fires_with_the_next_sweep(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    bad = made(store, "bad")
    made(store, "other")
    duty = the_duty(store)
    come(store, clock, "other")
    refuse(store_url, "unstuck_firings", f"NEW.schedule = {bad.number}")
    duty.tick(0.0, endless())
    assert (outcomes(store, "bad"), outcomes(store, "other")) == ([], ["fired"])
    assert [each.link for each in store.notifications()] == ["/schedules/bad"]
    allow(store_url, "unstuck_firings")
    duty.tick(Times().sweep, endless())
    assert outcomes(store, "bad") == ["fired"]


@pytest.mark.parametrize("body", ['{"workflow": "greet", "every": "x"}', "[oops", "[]", "7", '{"cron": "0 3 * * *"}'])
def test_a_damaged_schedule_keeps_no_other_from_its_turn(
    store: SqlStore, store_url: str, clock: StoreClock, body: str
) -> None:
    made(store, "broken")
    made(store, "sound")
    execute(store_url, f"UPDATE unstuck_schedules SET body = '{body}' WHERE name = 'broken'")
    come(store, clock, "sound")
    turn(store)

    assert outcomes(store, "sound") == ["fired"]
    assert [each.name for each in store.schedules(TENANT)] == ["broken", "sound"]
    clock.advance(120)
    assert "broken" in [each.name for each in store.silent_schedules(TENANT, 60.0)]
    verbs(store).pause("broken")
    assert verbs(store).delete("broken").name == "broken"


# --- many -----------------------------------------------------------------------------------------------------------

MANY_ROWS = """
INSERT INTO unstuck_schedules (tenant, name, workflow, body, created_at, created_by,
                               changed_at, changed_by, next_tick, due_at)
SELECT 'default', 's' || n, 'greet', '{}', n, 'ada', n, 'ada', 1, CASE WHEN n <= 5 THEN 1 ELSE 4102444800000000 END
  FROM generate_series(1, 10000) n;
INSERT INTO unstuck_firings (schedule, tick, kind, outcome, at, version, first_tick, is_open, job, cancels)
SELECT 1 + n % 100, n, 'tick', 'fired', n, 1, n, CASE WHEN n <= 200 THEN 1 ELSE 0 END, 'j' || n, 0
  FROM generate_series(1, 40000) n;
"""


@pytest.mark.parametrize(
    ("name", "values", "most"),
    [
        ("due_schedules", {"batch": 100}, 6),
        ("close_firings", {"number": 7}, 4),
        ("open_firings", {"number": 7, "most": 1000}, 4),
        ("overlapped", {"batch": 100, "firing": 0, "place": 0}, 1),
        ("firings", {"number": 7, "before": 1 << 60, "most": 50}, 50),
    ],
)
def test_a_turn_reads_what_it_moves_however_many_there_are(
    postgres_server: PostgresServer, name: str, values: dict[str, Any], most: int
) -> None:
    with filled(postgres_server, run(MANY_ROWS), what=__name__) as url:
        for scan in scans(plan_of(url, name, values, generic=False)):
            touched = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
            assert touched <= most, f"{name}: {scan}"
