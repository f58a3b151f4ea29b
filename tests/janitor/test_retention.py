"""Retention keeps up with what ends, in bounded batches; what cannot go is passed by, and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, claim_all, claimed, settle, submitted
from tests.support.tables import ask
from tests.support.troubles import allow, refuse
from unstuck.assembly.janitor import build_janitor
from unstuck.clock import Clock, FakeClock, MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.retention import EndedJobs, Oldest, RetentionDuty, retention
from unstuck.model.errors import StoreUnavailable
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import NewChild, Report
from unstuck.store.sql_store import SqlStore

TIMES = Times()
WEEK = 7 * 86400.0


def jobs_duty(store: SqlStore) -> RetentionDuty:
    return next(duty for duty in retention(store, TIMES, MachineClock()) if duty.name == "retention of jobs")


def ended(store: SqlStore, worker: WorkerRecord, count: int) -> list[ClaimedJob]:
    store.submit([a_job() for _ in range(count)])
    attempts = claim_all(store, worker)
    store.settle(worker.number, [Report(attempt.ref, Returned("1"), duration_ms=1) for attempt in attempts])
    return attempts


def a_turn(clock: Clock | None = None) -> Budget:
    return Budget(clock or MachineClock(), TIMES.sweep / 5)


def turns(duty: RetentionDuty, most: int = 200) -> int:
    """Until it rests; how many went."""
    gone = 0
    for _ in range(most):
        gone += duty.tick(0.0, a_turn())
        if duty.every >= 60:
            return gone
    raise AssertionError(f"{duty.name} still hurries after {most} turns")


def test_a_backlog_goes_in_a_few_turns_and_then_it_rests(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e9)
    for _ in range(4):
        ended(store, worker, 1000)
    clock.advance(seconds=WEEK + 1)
    duty = jobs_duty(store)

    gone = turns(duty)

    assert gone == 4000
    assert store.ended_before(WEEK) == []


def test_one_row_that_raises_keeps_only_its_own_job(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e9)
    jobs = ended(store, worker, 60)
    bad = jobs[17]
    refuse(store_url, "unstuck_events", f"OLD.job = {bad.ref.job}", on="DELETE")
    clock.advance(seconds=WEEK + 1)

    gone = turns(jobs_duty(store))

    assert gone == 59
    assert [place.job for place in store.ended_before(WEEK)] == [bad.ref.job]
    assert len(store.history(TENANT, bad.id)) == 3, "all of it stays, or nothing"


def test_rows_that_somebody_holds_keep_only_their_own_jobs(postgres_url: str) -> None:
    """A person in psql, say; of what no move of ours ever locks as well."""
    store = SqlStore(open_database(postgres_url, application="unstuck-test"))
    try:
        worker = a_worker(store, lease=1e9)
        jobs = ended(store, worker, 40)
        held = sorted(jobs[place].ref.job for place in (3, 17, 31))
        with psycopg.connect(postgres_url) as person:
            person.execute("SELECT 1 FROM unstuck_events WHERE job = %s FOR UPDATE", (held[0],))
            person.execute("SELECT 1 FROM unstuck_done WHERE job = %s FOR UPDATE", (held[1],))
            person.execute("SELECT 1 FROM unstuck_jobs WHERE id = %s FOR UPDATE", (held[2],))
            duty = RetentionDuty("jobs", EndedJobs(store, -60.0, MachineClock()), TIMES, MachineClock())

            gone = turns(duty)

            assert gone == 37
            assert sorted(place.job for place in store.ended_before(-60.0)) == held
        assert turns(duty) == 3
    finally:
        store.close()


def test_what_must_stay_is_walked_over_once_in_a_round(store: SqlStore, clock: StoreClock) -> None:
    """Children stay as long as their parent: a thousand of them in front must not hide who comes behind."""
    worker = a_worker(store, lease=1e9)
    parent = claimed(store, worker)
    for number in range(30):
        assert store.spawn(NewChild(parent.ref, "child", number + 1, a_job()))
    children = claim_all(store, worker)
    store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in children])
    behind = ended(store, worker, 5)
    clock.advance(seconds=WEEK + 1)
    places = EndedJobs(store, WEEK, MachineClock())

    batches = [places.batch(10).gone for _ in range(4)]

    assert batches == [0, 0, 0, 5]
    assert all(store.get(TENANT, job.id) is None for job in behind)
    assert len(store.ended_before(WEEK)) == 30
    settle(store, worker, parent.ref)
    clock.advance(seconds=WEEK + 1)
    assert [places.batch(100).gone for _ in range(3)] == [1, 30, 0], "the parent, then its children"


def test_a_kind_that_fails_stops_no_other(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e9)
    submitted(store, key="k", fingerprint="f")
    (attempt,) = claim_all(store, worker)
    settle(store, worker, attempt.ref)
    a_worker(store, lease=1)
    refuse(store_url, "unstuck_keys", "OLD.key = 'k'", on="DELETE")
    clock.advance(seconds=WEEK + 1)

    build_janitor(store, TIMES).tick()

    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_keys")[0][0] == 1
    assert store.ended_before(WEEK) == []
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_workers")[0][0] == 1


def with_keys(store: SqlStore, count: int) -> None:
    worker = a_worker(store, lease=1e9)
    store.submit([a_job(key=f"k{number}", fingerprint="f") for number in range(count)])
    store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in claim_all(store, worker)])


def with_letters(store: SqlStore, count: int) -> None:
    for number in range(count):
        store.signal(TENANT, "paid", "1", "ada", topic=f"t{number}")


def with_workers(store: SqlStore, count: int) -> None:
    for number in range(count):
        a_worker(store, lease=1, name=f"w{number}")


@pytest.mark.parametrize(
    ("kind", "fill", "table", "bad"),
    [
        ("keys", with_keys, "unstuck_keys", "OLD.key IN ('k0', 'k17')"),
        ("unclaimed_events", with_letters, "unstuck_unclaimed_events", "OLD.address IN ('topic:t0', 'topic:t17')"),
        ("workers", with_workers, "unstuck_workers", "OLD.name IN ('w0', 'w17')"),
    ],
    ids=["keys", "letters", "workers"],
)
def test_of_a_kind_only_what_raises_stays(
    store: SqlStore,
    store_url: str,
    clock: StoreClock,
    kind: str,
    fill: Callable[[SqlStore, int], None],
    table: LiteralString,
    bad: str,
) -> None:
    fill(store, 60)
    refuse(store_url, table, bad, on="DELETE")
    clock.advance(seconds=WEEK + 1)
    duty = next(duty for duty in retention(store, TIMES, MachineClock()) if duty.name == f"retention of {kind}")

    assert turns(duty) == 58

    assert ask(store_url, f"SELECT COUNT(*) FROM {table}")[0][0] >= 2
    allow(store_url, table)
    assert turns(duty) == 2, "the next round begins with the oldest again"


# --- how large a batch is ------------------------------------------------------------------------------------------


class Heap:
    """So many things, each of which takes its time to go."""

    def __init__(self, things: int, seconds: float, clock: FakeClock) -> None:
        self.things = things
        self.seconds = seconds
        self.waiting = 0.002
        self.clock = clock
        self.sizes: list[int] = []
        self.problem: Exception | None = None
        self.forgetting = Oldest(self.forget)

    def forget(self, batch: int, past: int) -> int:
        self.sizes.append(batch)
        if self.problem is not None:
            raise self.problem
        gone = min(batch, self.things)
        self.things -= gone
        self.clock.advance(self.waiting + gone * self.seconds)
        return gone


def heap(things: int, seconds: float, come: float = 0.0) -> tuple[Heap, RetentionDuty]:
    """`come`: so many more each second."""
    clock = FakeClock()
    found = Heap(things, seconds, clock)
    found.forgetting.come = come
    return found, RetentionDuty("things", found.forgetting, TIMES, clock)


def gone_in(things: Heap, duty: RetentionDuty, seconds: float) -> int:
    """Turns and the rests between them, for so long."""
    gone, until = 0, things.clock.boot() + seconds
    while things.clock.boot() < until:
        gone += duty.tick(0.0, a_turn(things.clock))
        things.clock.advance(duty.every)
    return gone


def test_a_turn_is_one_batch_and_others_get_to_write_after_it() -> None:
    things, duty = heap(5_000, 20e-6)
    began = things.clock.boot()

    assert duty.tick(0.0, a_turn(things.clock)) == 1000

    took = things.clock.boot() - began
    assert took / 4 < duty.every < took
    assert things.sizes == [1000]
    assert turns(duty) == 4000


def test_waiting_behind_others_makes_no_batch_smaller() -> None:
    """Beside a full-speed drain most of the time is that: batches of ten never kept up with it."""
    things, duty = heap(100_000, 20e-6)
    things.waiting = 0.5
    for _ in range(20):
        assert duty.tick(0.0, a_turn(things.clock)) == 1000


@pytest.mark.parametrize("waiting", [0.0, 0.05, 0.2])
def test_as_many_go_as_come_whatever_a_batch_waits_for(waiting: float) -> None:
    """With a rest of half a batch, and a thousand at most, 3,200 a second go where each batch waits for 0.2 s."""
    things, duty = heap(1_000_000, 20e-6, come=8_000)
    things.waiting = waiting

    gone = gone_in(things, duty, 10.0)

    assert gone >= 80_000
    assert max(things.sizes) <= 4_000, "a batch is bounded all the same"


def test_what_keeps_up_with_a_rest_and_small_batches_goes_no_faster() -> None:
    things, duty = heap(1_000_000, 20e-6, come=100)
    things.waiting = 0.1

    gone = gone_in(things, duty, 10.0)

    assert things.sizes == [1000] * len(things.sizes)
    assert gone <= 70_000, "a third of the time is rest"


def test_a_batch_that_had_to_be_large_is_small_again_once_fewer_come() -> None:
    things, duty = heap(1_000_000, 20e-6, come=20_000)
    things.waiting = 0.1
    gone_in(things, duty, 5.0)
    assert things.sizes[-1] == 4_000

    things.forgetting.come = 100
    gone_in(things, duty, 5.0)

    assert things.sizes[-1] == 1000


def test_the_duty_counts_what_ends_at_present(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e9)
    ended(store, worker, 30)
    clock.advance(seconds=WEEK + 1)
    places = EndedJobs(store, WEEK, MachineClock())
    assert places.batch(1).has_more
    assert places.come == 0, "nothing ended in the last second"

    for _ in range(20):  # a second is short on a busy machine: until one try fits into it
        ended(store, worker, 7)
        places = EndedJobs(store, WEEK, MachineClock())
        assert places.batch(1).has_more
        if places.come:
            break

    assert places.come >= 7
    assert store.count_ended(3600.0, 1000) % 7 == 0
    assert store.count_ended(3600.0, 5) == 5, "no further than asked"


def test_a_slow_database_gets_small_batches() -> None:
    things, duty = heap(10_000, 0.01)
    for _ in range(20):
        duty.tick(0.0, a_turn(things.clock))
    assert things.sizes[0] == 1000
    assert things.sizes[-1] * 0.01 <= TIMES.store_call / 3


def test_a_kind_of_which_nothing_can_go_is_given_up_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    things, duty = heap(1000, 1e-6)
    things.problem = ValueError("refused")
    assert turns(duty, most=25) == 0
    assert things.sizes == [1000, 250, 62, 15, 3, *[1] * 20], "each of the oldest is passed by, but not without end"
    things.problem = None
    assert turns(duty) == 1000


def test_a_store_that_is_away_is_the_janitors_business() -> None:
    things, duty = heap(1000, 1e-6)
    things.problem = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        duty.tick(0.0, a_turn(things.clock))
    things.problem = None

    assert turns(duty) == 1000

    assert things.sizes[:2] == [1000, 250], "it may have been too much for one call"
