"""The database's clock leaps, and the engine's time does not; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Literal

import pytest

from tests.conftest import Leap
from tests.support.builders import TENANT, a_worker, boom, claim_all, claimed, kinds, record, settle, submitted
from tests.support.troubles import execute
from unstuck import clock, machine
from unstuck.intake.gates import Gates
from unstuck.model.errors import InvalidInput, StoreBusy
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Parked, Returned
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.leaps import Witness
from unstuck.store.rows import microseconds
from unstuck.store.sql_store import SqlStore

HOUR = 3600.0
NO_TIME = timedelta(seconds=5)
Open = Callable[[], SqlStore]

both_ways = pytest.mark.parametrize("hour", [HOUR, -HOUR], ids=["forward", "back"])
only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
only_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture
def opened(store_url: str) -> Iterator[Open]:
    """A store as another process has it: with a witness of its own."""
    stores: list[SqlStore] = []

    def open_one() -> SqlStore:
        stores.append(SqlStore(open_database(store_url, witness=Witness())))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def ours(opened: Open, leap: Leap) -> SqlStore:
    return opened()


@pytest.fixture
def ada(ours: SqlStore) -> WorkerRecord:
    return a_worker(ours, "ada")


@both_ways
def test_the_engines_time_goes_on_and_the_leap_is_written_down(
    ours: SqlStore, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    before = ours.now()
    leap(hour)
    ours.release_due()
    assert before <= ours.now() < before + NO_TIME
    stand = ours.clock_stand()
    assert stand.leaps == 1
    assert stand.leap == pytest.approx(hour, abs=2)
    assert stand.ahead == pytest.approx(-hour, abs=2)
    assert stand.leapt_at is not None
    assert before <= stand.leapt_at < before + NO_TIME

    leap(-hour)
    ours.now()
    ours.release_due()
    assert before <= ours.now() < before + NO_TIME
    assert ours.clock_stand().leaps == 2
    assert ours.clock_stand().ahead == pytest.approx(0, abs=2)


@both_ways
def test_no_sweep_takes_jobs_by_a_clock_that_has_leapt(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    """Whoever sweeps first meets the leap in its own transaction."""
    job = claimed(ours, ada)
    late = submitted(ours, delay=600.0)
    theirs = opened()
    bert = a_worker(theirs, "bert")
    leap(hour)
    assert theirs.recover_lost(0) == []
    assert theirs.convict_overdue(0, 0) == []
    assert theirs.release_due() == 0
    for store, worker, held in ((theirs, bert, []), (ours, ada, [job.ref])):
        beat = store.beat(worker.number, 30.0, held)
        assert beat.alive
        assert beat.lease_until is not None
        assert abs(beat.lease_until - store.now() - timedelta(seconds=30)) < NO_TIME
    assert record(ours, job.id).state is JobState.RUNNING
    assert record(ours, late.id).state is JobState.QUEUED


@both_ways
def test_a_beat_is_the_first_to_notice(ours: SqlStore, ada: WorkerRecord, leap: Leap, hour: float) -> None:
    leap(hour)
    assert ours.beat(ada.number, 30.0, []).alive
    assert ours.recover_lost(0) == []


@only_postgres
def test_a_lease_is_not_lost_to_a_clock_that_leaps_while_it_is_renewed(ours: SqlStore, leap: Leap) -> None:
    """There may be another leap between the mend of one and the renewal that follows it."""
    worker, is_over = a_worker(ours, lease=600.0), threading.Event()

    def sawtooth() -> None:
        while not is_over.is_set():
            leap(HOUR)
            leap(-HOUR)

    def is_alive() -> bool | None:
        try:
            return ours.beat(worker.number, 600.0, []).alive
        except StoreBusy:
            return None  # it leaps too fast even for that: the worker tries again, its lease stands

    other = threading.Thread(target=sawtooth)
    other.start()
    try:
        answers = {is_alive() for _ in range(60)}
    finally:
        is_over.set()
        other.join()
    assert False not in answers
    assert ours.beat(worker.number, 600.0, []).alive


@both_ways
def test_a_retry_that_is_settled_after_the_leap_keeps_its_distance(
    ours: SqlStore, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    job = claimed(ours, ada)
    before = ours.now()
    leap(hour)
    settle(ours, ada, job.ref, boom())
    waits = record(ours, job.id).available_at - before
    assert timedelta(0) < waits < timedelta(minutes=2)
    (settled,) = [event for event in ours.history(TENANT, job.id) if event.kind == "retried"]
    assert settled.at - before < NO_TIME


@both_ways
def test_an_end_that_is_the_first_to_meet_the_leap_is_written_by_the_engines_time(
    ours: SqlStore, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    """Most ends are one statement that is its own transaction: what it has written cannot be undone."""
    job, before = claimed(ours, ada), ours.now()
    leap(hour)
    assert settle(ours, ada, job.ref, Returned("1")).state is JobState.COMPLETED
    ended = record(ours, job.id).finished_at
    assert ended is not None
    assert timedelta(0) <= ended - before < NO_TIME
    assert [event.at - before < NO_TIME for event in ours.history(TENANT, job.id)] == [True] * 3


@both_ways
def test_what_is_submitted_after_the_leap_is_too(ours: SqlStore, ada: WorkerRecord, leap: Leap, hour: float) -> None:
    before = ours.now()
    leap(hour)
    job = record(ours, submitted(ours, delay=30.0).id)
    assert abs(job.available_at - before - timedelta(seconds=30)) < NO_TIME


def test_an_appointment_follows_the_clock(ours: SqlStore, ada: WorkerRecord, leap: Leap) -> None:
    """A start at an instant, one that then has no long stay in the queue, and a park until one."""
    soon = ours.now() + timedelta(minutes=30)
    start = submitted(ours, start_at=soon)
    parked = claimed(ours, ada)
    settle(ours, ada, parked.ref, Parked(Wait(WaitKind.TIME, "w", until=microseconds(soon))))
    far = submitted(ours, delay=1800.0)
    leap(-HOUR)
    ours.now()
    ours.release_due()
    for job in (start.id, parked.id, far.id):
        assert record(ours, job).state in (JobState.QUEUED, JobState.WAITING)
    assert record(ours, start.id).available_at == pytest.approx(soon + timedelta(hours=1), abs=NO_TIME)

    leap(2 * HOUR)
    ours.now()
    assert ours.release_due() == 1, "it is half an hour past it now"
    assert ours.expire_waits() == 1
    assert [job.id for job in claim_all(ours, ada)] == [start.id] or record(ours, start.id).state is JobState.RUNNING
    assert record(ours, parked.id).state is not JobState.WAITING
    assert record(ours, far.id).state is JobState.QUEUED


def test_an_appointment_after_the_leap_is_one_of_the_new_clock(ours: SqlStore, ada: WorkerRecord, leap: Leap) -> None:
    wall = ours.now()
    leap(HOUR)
    ours.now()
    job = submitted(ours, start_at=wall + timedelta(hours=1, minutes=10))
    assert abs(record(ours, job.id).available_at - wall - timedelta(minutes=10)) < NO_TIME


def test_an_appointment_waits_for_its_release_as_an_instant_of_the_clock(
    ours: SqlStore, ada: WorkerRecord, leap: Leap
) -> None:
    """Of a job that is PENDING nothing moves; its release goes by the clock of then, and it follows from there on."""
    soon = ours.now() + timedelta(minutes=30)
    first, second = (submitted(ours, start_at=soon, on_hold=True) for _ in range(2))
    delayed = submitted(ours, delay=1800.0, on_hold=True)
    leap(-HOUR)
    ours.now()
    ours.release_due()

    for job in (first, delayed):
        ours.release(TENANT, job.id, "dana")

    assert abs(record(ours, first.id).available_at - soon - timedelta(hours=1)) < NO_TIME
    assert abs(record(ours, delayed.id).available_at - soon) < NO_TIME
    leap(2 * HOUR)
    ours.now()
    assert ours.release_due() == 1, "it is half an hour past it now"
    ours.release(TENANT, second.id, "dana")
    assert {job.id for job in claim_all(ours, ada)} == {first.id, second.id}
    assert record(ours, delayed.id).state is JobState.QUEUED


@pytest.mark.parametrize("kind", ["queue", "target"])
def test_a_pause_until_an_instant_ends_by_the_clock_and_one_for_a_while_keeps_its_length(
    ours: SqlStore, ada: WorkerRecord, leap: Leap, kind: Literal["queue", "target"]
) -> None:
    for name in ("noon", "while"):
        submitted(ours, queue=name, target=name)
    gates = Gates(ours)
    gates.pause(kind, "while", lasting=1800)
    gates.pause(kind, "noon", until=ours.now() + timedelta(minutes=30))

    def paused() -> list[str]:
        ours.now()
        ours.release_due()
        return sorted(pause.name for pause in ours.pauses())

    assert paused() == ["noon", "while"]
    leap(HOUR)
    assert paused() == ["while"]

    with pytest.raises(InvalidInput, match="would have ended already"):
        gates.pause(kind, "noon", until=ours.now() + timedelta(minutes=30))
    again = gates.pause(kind, "noon", until=ours.now() + timedelta(minutes=90))
    assert again.until_at is not None
    assert abs(again.until_at - ours.now() - timedelta(minutes=30)) < NO_TIME
    leap(-HOUR)
    assert paused() == ["noon", "while"]
    ends = {pause.name: pause.until_at for pause in ours.pauses()}
    assert ends["noon"] is not None
    assert ends["while"] is not None
    assert abs(ends["noon"] - ends["while"] - timedelta(hours=1)) < NO_TIME


@both_ways
def test_who_begins_while_nobody_is_there_knows_what_the_clock_did(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    job = claimed(ours, ada)
    assert ours.beat(ada.number, 30.0, [job.ref]).alive
    ours.close()
    leap(hour)
    later = opened()
    bert = a_worker(later, "bert")
    assert later.recover_lost(0) == []
    assert bert.lease_until - record(later, job.id).created_at < timedelta(minutes=1)
    assert kinds(later, job.id) == ["submitted", "claimed"]


@only_postgres
def test_a_machine_that_was_paused_believes_the_others(
    ours: SqlStore, opened: Open, ada: WorkerRecord, store_url: str, leap: Leap
) -> None:
    """To it ten minutes look like a leap; one of another machine has renewed meanwhile, and is its voucher."""
    other = a_worker(opened(), "other", boot_id="elsewhere")
    leap(600.0)
    execute(
        store_url,
        "UPDATE unstuck_workers SET started_at = started_at - 60000000, beat_at = unstuck_now(),"
        f" lease_until = unstuck_now() + 30000000 WHERE id = {other.number}",
    )
    assert not ours.beat(ada.number, 30.0, []).alive, "its lease is over, as everybody knows"
    assert ours.clock_stand().leaps == 0


@only_postgres
def test_a_witness_without_a_past_has_no_say_while_others_are_there(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap
) -> None:
    before = ours.now()
    leap(HOUR)
    stranger = opened()
    a_worker(stranger, "stranger", boot_id="elsewhere")
    assert stranger.now() - before > timedelta(minutes=59), "it knows no better, and is nobody's voucher"
    assert ours.now() - before < NO_TIME
    assert stranger.now() - before < NO_TIME, "and lets itself be told"
    assert ours.clock_stand().leaps == 1


@only_postgres
def test_who_saw_the_time_once_while_it_had_leapt_lets_itself_be_told_however_late(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that enqueued at that moment, and again much later: two that take the clock from each other would go
    on for ever."""
    monkeypatch.setattr("unstuck.store.drivers.leaps._YOUTH", 0.0)
    before = ours.now()
    leap(HOUR)
    program = opened()
    assert program.now() - before > timedelta(minutes=59)
    assert ours.now() - before < NO_TIME
    for store in (program, ours, program):
        assert store.now() - before < NO_TIME
    assert ours.clock_stand().leaps == 1


@only_postgres
def test_what_an_elder_worker_of_the_machine_saw_decides_between_two_who_disagree(
    ours: SqlStore, opened: Open, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the younger one has believed in a clock that had leapt."""
    monkeypatch.setattr("unstuck.store.drivers.leaps._YOUTH", 0.0)
    elder = a_worker(ours, "elder", boot_id=machine.boot_id())
    assert ours.beat(elder.number, 30.0, []).alive
    before = ours.now()
    leap(HOUR)
    program = opened()
    for _ in range(2):
        assert program.now() - before > timedelta(minutes=59)
    assert ours.now() - before < NO_TIME
    for store in (program, ours, program):
        assert store.now() - before < NO_TIME
    assert ours.clock_stand().leaps == 1


@only_postgres
def test_a_young_worker_that_others_have_mended_beside_notices_the_next_leap_too(
    ours: SqlStore, opened: Open, leap: Leap
) -> None:
    elder = a_worker(ours, "elder", boot_id=machine.boot_id())
    assert ours.beat(elder.number, 30.0, []).alive
    later = opened()
    before = later.now()
    leap(HOUR)
    assert ours.now() - before < NO_TIME
    leap(-HOUR)
    assert later.now() - before < NO_TIME, "it has seen the right time, as its elder has"
    assert ours.clock_stand().leaps == 2


@only_postgres
@both_ways
def test_a_young_worker_of_another_machine_notices_the_leap_after_one_that_was_mended(
    ours: SqlStore, opened: Open, leap: Leap, hour: float
) -> None:
    """On a fresh database nobody is old enough to vouch for anybody: it has seen the right time before and after."""
    ada = a_worker(ours, "ada", boot_id="here")
    theirs = opened()
    a_worker(theirs, "bert", boot_id="there")
    job, before = claimed(ours, ada), ours.now()
    leap(hour)
    assert ours.now() - before < NO_TIME
    leap(-hour)
    assert theirs.recover_lost(0) == []
    assert abs(theirs.now() - before) < NO_TIME
    assert record(ours, job.id).state is JobState.RUNNING
    assert ours.clock_stand().leaps == 2


@only_postgres
@both_ways
@pytest.mark.parametrize("small", [2.0, -2.0])
def test_a_young_worker_follows_no_leap_after_a_small_one_that_another_mended(
    ours: SqlStore, opened: Open, leap: Leap, hour: float, small: float
) -> None:
    """What it sees then is not what was mended, so it is not its own mistake. (Alone with a program that enqueues, it
    took its own jobs for those of a lost worker.)"""
    ada = a_worker(ours, "ada", boot_id=machine.boot_id())
    job, before = claimed(ours, ada), ours.now()
    assert ours.beat(ada.number, 30.0, [job.ref]).alive
    program = opened()
    program.now()
    leap(small)
    assert abs(program.now() - before) < NO_TIME
    assert ours.clock_stand().leaps == 1
    leap(hour)
    assert ours.recover_lost(0) == []
    assert abs(ours.now() - before) < NO_TIME
    assert record(ours, job.id).state is JobState.RUNNING
    assert ours.clock_stand().leaps == 2


@only_postgres
@both_ways
def test_a_cancel_in_the_moment_of_the_leap_convicts_nobody(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap, hour: float
) -> None:
    """A command has no past and believes the clock: by the mended time the grace that it wrote would be long over."""
    job = claimed(ours, ada)
    assert ours.beat(ada.number, 30.0, [job.ref], started={job.ref.job: ours.now()}).alive
    leap(hour)
    opened().cancel(TENANT, job.id, "kim", "enough")
    ours.now()
    assert ours.clock_stand().leaps == 1
    assert ours.convict_overdue(0, 0) == []
    assert record(ours, job.id).state is JobState.RUNNING


@only_sqlite
def test_after_a_reboot_time_begins_where_the_clock_is_and_never_before_the_last_beat(
    ours: SqlStore, opened: Open, ada: WorkerRecord, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ours.beat(ada.number, 30.0, []).alive
    before = ours.now()
    leap(-HOUR)
    monkeypatch.setattr("unstuck.machine.boot_id", lambda: "the next")
    assert before - NO_TIME < opened().now() < before + NO_TIME
    leap(3 * HOUR)
    monkeypatch.setattr("unstuck.machine.boot_id", lambda: "the one after")
    assert opened().now() - before > timedelta(minutes=119)


def test_a_step_that_is_no_leap_is_followed(leap: Leap, ours: SqlStore, ada: WorkerRecord) -> None:
    for _ in range(3):
        leap(0.3)
        ours.now()
    ours.release_due()
    assert ours.clock_stand().leaps == 0


def test_a_witness_follows_no_faster_than_clocks_drift() -> None:
    """Else two of them, one of whom saw a small step and the other did not, would tug at the clock for ever."""
    witness, start = Witness(), clock.boot()
    assert witness.leap(0, start, start) == 0
    assert witness.leap(5_900_000, start + 5, start + 5) == 0
    assert witness.leap(11_800_000, start + 10, start + 10) == pytest.approx(1_800_000, abs=10_000)
