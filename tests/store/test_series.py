"""The series: what ended is counted once, in its minute; on both databases."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import pytest

from tests.conftest import Leap, StoreClock
from tests.support.builders import a_job, a_worker, boom, claim_all, settle, settle_all
from tests.support.eventually import eventually
from tests.support.tables import ask
from tests.support.troubles import SAYS, execute, raising
from tests.tiers import slow
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.retention import retention
from unstuck.janitor.series import SeriesDuty
from unstuck.model.errors import IllegalMove
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.series import BEYOND_MS, BOUNDS_MS, BUCKETS, SERIES_KEPT, percentile
from unstuck.model.settlement import Outcome, Returned, Stopped
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.leaps import Witness
from unstuck.store.port import Report, SeriesPage, SeriesPer
from unstuck.store.rows import instant, microseconds
from unstuck.store.sql_store import SqlStore

LAG = 60.0
EVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
MINUTE_US = 60_000_000
#: What a row of a minute counts: states, and the buckets of waits and runs.
KINDS = [
    *("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD"),
    *(f"{what}_{number}" for what in ("wait", "run") for number in range(1, BUCKETS + 1)),
]
#: (tenant, queue, workflow, minute): how often each.
Counts = dict[tuple[str, str, str, int], Counter[str]]

ENDS: LiteralString = """
SELECT r.tenant, r.queue, r.workflow, d.state, d.finished_at, d.claimed_at - j.available_at, d.duration_ms
  FROM unstuck_done d JOIN unstuck_jobs j ON j.id = d.job JOIN unstuck_routes r ON r.id = d.route
UNION ALL
SELECT r.tenant, r.queue, r.workflow, p.state, p.finished_at, NULL, p.duration_ms
  FROM unstuck_past_runs p JOIN unstuck_routes r ON r.id = p.route
"""


@pytest.fixture
def ada(store: SqlStore) -> WorkerRecord:
    return a_worker(store, "ada", lease=1e7)


@pytest.fixture
def another(store_url: str) -> Iterator[Callable[[], SqlStore]]:
    """A store as another process has it: with a witness of its own."""
    stores: list[SqlStore] = []

    def opened() -> SqlStore:
        stores.append(SqlStore(open_database(store_url, witness=Witness())))
        return stores[-1]

    yield opened
    for each in stores:
        each.close()


def bucket(what: str, ms: float) -> str:
    number = next((number for number, bound in enumerate(BOUNDS_MS, 1) if ms <= bound), BUCKETS)
    return f"{what}_{number}"


def brute_force(ends: list[Any], since: datetime, until: datetime, into: Counts | None = None) -> Counts:
    """Every end, one by one, as its rows tell it."""
    found: Counts = {} if into is None else into
    for tenant, queue, workflow, state, at, waited, ran in ends:
        if since <= instant(at) < until:
            counter = found.setdefault((tenant, queue, workflow, at - at % MINUTE_US), Counter())
            counter[state] += 1
            counter.update([bucket("wait", waited / 1000)] if waited is not None else [])
            counter.update([bucket("run", ran)] if ran is not None else [])
    return found


def in_minutes(url: str, step: int = 60) -> Counts:
    rows = ask(url, f"SELECT tenant, queue, workflow, at, {', '.join(KINDS)} FROM unstuck_series WHERE step = {step}")
    return {tuple(row[:4]): +Counter(dict(zip(KINDS, row[4:], strict=True))) for row in rows}


def by_hours(counts: Counts) -> Counts:
    found: Counts = {}
    for (*names, minute), counter in counts.items():
        place = (names[0], names[1], names[2], minute - minute % (60 * MINUTE_US))
        found[place] = found.get(place, Counter()) + counter
    return found


def counted_until(store: SqlStore) -> datetime:
    return series(store).counted_until


def count_all(store: SqlStore, batch: int = 1000) -> int:
    total = 0
    while some := store.count_ends(LAG, batch):
        total += some
    return total


def ended(store: SqlStore, ada: WorkerRecord, jobs: int, **options: Any) -> None:
    """So many jobs end now."""
    store.submit([a_job(**options) for _ in range(jobs)])
    reports = [Report(attempt.ref, Returned('"ok"'), duration_ms=5) for attempt in claim_all(store, ada)]
    assert len(reports) == jobs
    settle_all(store, ada.number, reports)


def spread(url: str, seconds: int) -> None:
    """The ends that there are, moved back so that they lie so far apart."""
    execute(
        url,
        f"UPDATE unstuck_done SET finished_at = finished_at - {seconds * 1_000_000} * "
        "((SELECT MAX(d.job) FROM unstuck_done d) - job)",
    )


def series(store: SqlStore, per: SeriesPer = "total", step: float = 60.0, **more: Any) -> SeriesPage:
    return store.series(more.pop("tenant", None), per, *EVER, step, **more)


def sum_of(page: SeriesPage) -> Counter[JobState]:
    return +sum((Counter(point.ended) for point in page.points), Counter())


# --- counting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_counts_are_those_of_a_brute_force_over_random_jobs(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord, seed: int
) -> None:
    chance = random.Random(seed)
    names = [(t, q, w) for t in ("default", "acme") for q in ("io", "cpu") for w in ("mail", "crawl")]
    outcomes: list[Outcome] = [Returned('"ok"'), boom(), Stopped(RequestKind.TIMEOUT)]
    jobs: list[tuple[str, str]] = []
    wanted: Counts = {}

    def count(batch: int) -> int:
        """What is counted now is what the rows say now: a resume makes them forget when its job was due."""
        ends, since = ask(store_url, ENDS), counted_until(store)
        found = store.count_ends(LAG, batch)
        brute_force(ends, since, counted_until(store), into=wanted)
        return found

    for _ in range(20):
        for tenant, queue, workflow in chance.choices(names, k=chance.randint(0, 12)):
            job = a_job(
                tenant=tenant, queue=queue, workflow=workflow, limit_key=chance.choice([None, "a", "b"]), retries=0
            )
            store.submit([job])
            jobs.append((tenant, job.id))
        clock.advance(seconds=chance.choice([0, 0.2, 5, 90, 4000]))
        attempts = list(claim_all(store, ada, chance.randint(1, 3))) if chance.random() < 0.6 else []
        clock.advance(seconds=chance.choice([0, 1, 30, 700]))
        for attempt in attempts:
            ran = chance.choice([0, 10, 11, 999, 1000, 60_001, 10**7])
            settle_all(store, ada.number, [Report(attempt.ref, chance.choice(outcomes), duration_ms=ran)])
        for tenant, uid in chance.sample(jobs, len(jobs) // 4):
            try:
                match chance.choice(["cancel", "resume", "resolve"]):
                    case "cancel":
                        store.cancel(tenant, uid, "eve")
                    case "resume":
                        store.resume(tenant, uid, "eve")
                    case "resolve":
                        store.resolve(tenant, uid, "eve", '"1"')
            except IllegalMove:
                pass
        count(chance.choice([1, 2, 7, 1000]))
    clock.advance(minutes=3)
    while count(chance.choice([1, 3, 1000])):
        pass
    assert clock.now() - counted_until(store) < timedelta(seconds=2 * LAG)
    assert in_minutes(store_url) == wanted
    assert in_minutes(store_url, 3600) == by_hours(wanted)
    assert sum(sum(c[kind] for kind in KINDS[:5]) for c in wanted.values()) == len(ask(store_url, ENDS))
    states = Counter[str]()
    for each in wanted.values():
        states.update(each)
    assert {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "wait_12", "run_12"} <= {*states}


def test_a_bound_belongs_to_the_bucket_below_it(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord
) -> None:
    around = sorted({near for bound in BOUNDS_MS for near in (bound, bound + 1)} | {0})
    ended(store, ada, len(around))
    for job, ms in enumerate(around, 1):
        execute(store_url, f"UPDATE unstuck_done SET duration_ms = {ms} WHERE job = {job}")
        due = f"(SELECT available_at FROM unstuck_jobs WHERE id = {job})"
        execute(store_url, f"UPDATE unstuck_done SET claimed_at = {ms * 1000} + {due} WHERE job = {job}")
    clock.advance(minutes=3)
    assert count_all(store) == len(around)
    (point,) = series(store).points
    expected = [Counter(bucket("run", ms) for ms in around)[f"run_{n}"] for n in range(1, BUCKETS + 1)]
    assert list(point.run) == list(point.wait) == expected
    assert expected == [2, *[2] * (BUCKETS - 2), 1]


def test_what_was_never_claimed_has_neither_wait_nor_run(
    store: SqlStore, clock: StoreClock, ada: WorkerRecord
) -> None:
    job = a_job()
    store.submit([job])
    store.cancel(job.tenant, job.id, "eve")
    clock.advance(minutes=3)
    assert count_all(store) == 1
    (point,) = series(store).points
    assert (point.ended[JobState.CANCELLED], sum(point.wait), sum(point.run)) == (1, 0, 0)


def test_a_run_that_was_resumed_before_anybody_counted_it_counts_too(
    store: SqlStore, clock: StoreClock, ada: WorkerRecord
) -> None:
    job = a_job(retries=0)
    store.submit([job])
    (attempt,) = claim_all(store, ada)
    settle(store, ada, attempt.ref, boom())
    store.resume(job.tenant, job.id, "eve")
    clock.advance(seconds=90)
    (attempt,) = claim_all(store, ada)
    settle(store, ada, attempt.ref)
    clock.advance(minutes=3)
    assert count_all(store) == 2
    assert sum_of(series(store)) == {JobState.FAILED: 1, JobState.COMPLETED: 1}


def test_what_may_still_commit_is_left_for_later(store: SqlStore, clock: StoreClock, ada: WorkerRecord) -> None:
    ended(store, ada, 3)
    for _ in range(13):
        now = clock.now()
        store.count_ends(LAG)
        until = counted_until(store)
        assert until <= now + timedelta(seconds=5) - timedelta(seconds=LAG)
        assert until.second == until.microsecond == 0
        clock.advance(seconds=10)
    assert sum_of(series(store)) == {JobState.COMPLETED: 3}


def test_nothing_is_written_where_nothing_is_old_enough(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord
) -> None:
    clock.advance(minutes=3)
    store.count_ends(LAG)
    with raising(store_url, "unstuck_counted", "NEW.until > 0", on="UPDATE"):
        for _ in range(3):
            assert store.count_ends(LAG + 60) == 0
        clock.advance(minutes=1)
        with pytest.raises(Exception, match=SAYS):
            store.count_ends(LAG)


# --- once, whoever counts and whoever dies --------------------------------------------------------------------------


def test_what_fails_between_the_counts_and_the_place_leaves_neither(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord
) -> None:
    ended(store, ada, 20)
    clock.advance(minutes=3)
    with raising(store_url, "unstuck_counted", "NEW.until > 0", on="UPDATE"):
        for _ in range(3):
            with pytest.raises(Exception, match=SAYS):
                store.count_ends(LAG, 7)
        assert in_minutes(store_url) == {}
    count_all(store, 7)
    assert sum_of(series(store)) == {JobState.COMPLETED: 20}


def test_two_who_count_at_once_count_everything_once(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord, another: Callable[[], SqlStore]
) -> None:
    ended(store, ada, 400)
    spread(store_url, 7)
    ends = ask(store_url, ENDS)
    clock.advance(minutes=3)
    start, found = threading.Barrier(2), [0, 0]
    stores = [another(), another()] if not store_url.startswith("sqlite") else [store, store]

    def count(mine: int) -> None:
        start.wait()
        while counted_until(stores[mine]) < counted_until_wanted:
            found[mine] += stores[mine].count_ends(LAG, 5)

    now = clock.now() - timedelta(seconds=LAG)
    counted_until_wanted = now.replace(second=0, microsecond=0)
    threads = [threading.Thread(target=count, args=(mine,)) for mine in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert min(found) > 0, "one of them did all"
    assert in_minutes(store_url) == brute_force(ends, EVER[0], counted_until(store))
    assert sum_of(series(store)) == {JobState.COMPLETED: 400}


COUNTER = """
import sys
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

store = SqlStore(open_database(sys.argv[1]))
print("counts", flush=True)
while store.count_ends(60.0, 1):
    pass
"""


@slow
def test_a_counter_that_is_killed_loses_nothing_and_repeats_nothing(
    store: SqlStore, store_url: str, ada: WorkerRecord
) -> None:
    ended(store, ada, 600)
    spread(store_url, 7)
    # Not by the test's clock, which another process does not have.
    execute(store_url, f"UPDATE unstuck_done SET finished_at = finished_at - {180 * 1_000_000}")
    ends = ask(store_url, ENDS)
    kills = 0
    while kills < 3:
        seen = len(in_minutes(store_url))
        process = subprocess.Popen([sys.executable, "-c", COUNTER, store_url], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process, process.stdout:
            process.stdout.readline()
            eventually(lambda: len(in_minutes(store_url)) > seen, timeout=30, every=0.001)  # noqa: B023
            os.kill(process.pid, signal.SIGKILL)
        kills += 1
        assert process.returncode == -signal.SIGKILL, "it was done before it was killed"
    # The server may not have noticed yet that the last one is gone, with the lock under which it counts.
    eventually(lambda: count_all(store, 50) == 0 and sum(sum_of(series(store)).values()) == 600, timeout=30)
    assert in_minutes(store_url) == brute_force(ends, EVER[0], counted_until(store))
    assert sum_of(series(store)) == {JobState.COMPLETED: 600}
    assert store.end_totals(None)[0].ended[JobState.COMPLETED] == 600


@pytest.mark.parametrize("hour", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_leap_of_the_clock_neither_loses_nor_repeats(
    store_url: str, another: Callable[[], SqlStore], leap: Leap, hour: float
) -> None:
    ours = another()
    bob = a_worker(ours, "bob", lease=1e7)
    ended(ours, bob, 5)
    execute(store_url, f"UPDATE unstuck_done SET finished_at = finished_at - {300 * 1_000_000}")
    leap(hour)
    ours.count_ends(LAG)
    until = counted_until(ours)
    assert until <= ours.now() - timedelta(seconds=LAG), "the place is ahead of the engine's time"
    assert sum_of(series(ours)) == {JobState.COMPLETED: 5}
    ended(ours, bob, 4)
    late = [at for *_, at, _, _ in ask(store_url, ENDS) if instant(at) >= until]
    assert len(late) == 4, "they ended behind the place that was counted up to: nobody will count them"


# --- much of it, and old ------------------------------------------------------------------------------------------


class SmallBatches(SeriesDuty):
    most = 100


def test_a_day_without_workers_is_caught_up_with_in_turns(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord
) -> None:
    ended(store, ada, 1000)
    spread(store_url, 86)
    ends = ask(store_url, ENDS)
    clock.advance(minutes=3)
    duty, machine = SmallBatches(store, Times()), MachineClock()
    turns, found = 0, 1
    while found:
        found = duty.tick(machine.boot(), Budget(machine, 0.0))
        assert found <= 100, "a turn without time takes one batch"
        turns += 1
    assert turns > 10
    assert in_minutes(store_url) == brute_force(ends, EVER[0], counted_until(store))
    assert sum_of(series(store)) == {JobState.COMPLETED: 1000}


def test_minutes_without_ends_cost_nothing(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    store.submit([job := a_job()])
    store.cancel(job.tenant, job.id, "eve")
    clock.advance(days=300)
    store.submit([job := a_job()])
    store.cancel(job.tenant, job.id, "eve")
    clock.advance(minutes=3)
    assert store.count_ends(LAG) == 2
    assert len(in_minutes(store_url)) == 2


def test_what_is_older_than_a_week_goes_in_batches(
    store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord
) -> None:
    ended(store, ada, 30)
    spread(store_url, 60)
    clock.advance(minutes=3)
    count_all(store)
    clock.advance(SERIES_KEPT - 20 * 60)
    before = clock.now() - timedelta(seconds=SERIES_KEPT)
    kept = {step: sum(instant(at) > before for *_, at in in_minutes(store_url, step)) for step in (60, 3600)}
    old = sum(len(in_minutes(store_url, step)) for step in kept) - sum(kept.values())
    assert 5 < kept[60] < 25
    assert old > 5
    (duty,) = [duty for duty in retention(store, Times(), MachineClock()) if duty.name == "retention of series"]
    assert store.forget_series(SERIES_KEPT, 3) == 3
    assert store.forget_series(SERIES_KEPT, 1000, 1) == old - 4
    assert duty.tick(0.0, Budget(MachineClock(), 1.0)) == 1
    assert store.forget_series(SERIES_KEPT) == 0
    assert {step: len(in_minutes(store_url, step)) for step in kept} == kept


MANY = 100_000


@slow
def test_a_minute_of_a_hundred_thousand_ends_is_counted_in_parts(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    numbers = f"WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {MANY}) SELECT n FROM g"
    at = microseconds(clock.now()) // MINUTE_US * MINUTE_US - 60 * MINUTE_US
    named_at = ", named_at" if store_url.startswith("sqlite") else ""
    execute(
        store_url,
        f"INSERT INTO unstuck_routes (tenant, queue, workflow{named_at}) VALUES ('a', 'q', 'w'{named_at and ', 0'})",
    )
    execute(
        store_url,
        "INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at, "
        f"available_at) SELECT 'u' || n, 'a', 'q', 'w', 1, 0, n, '{{}}', 1, {at}, {at} FROM ({numbers}) AS numbers",
    )
    execute(
        store_url,
        "INSERT INTO unstuck_done (job, route, run, state, token, event_count, claimed_at, finished_at, duration_ms) "
        f"SELECT id, 1, 1, 'COMPLETED', 1, 3, {at} + id, {at} + id * 599, id % 20 FROM unstuck_jobs",
    )
    longest, parts = 0.0, 0
    clocked = MachineClock()
    while True:
        begun = clocked.boot()
        found = store.count_ends(LAG, SeriesDuty.most)
        longest = max(longest, clocked.boot() - begun)
        if not found:
            break
        parts += 1
    assert parts == MANY / SeriesDuty.most
    (point,) = series(store).points
    assert sum(point.ended.values()) == sum(point.wait) == sum(point.run) == MANY
    assert (point.run[0], point.run[1]) == (MANY * 11 // 20, MANY * 9 // 20)
    assert longest < Times().sweep / 2, "a part keeps the janitor, and on SQLite everybody who writes, for too long"


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(store: SqlStore, store_url: str, clock: StoreClock, ada: WorkerRecord) -> datetime:
    """From this instant on: 12 mails and 6 crawls a minute for ten minutes; one minute later acme ends 5."""
    begin = clock.now().replace(second=0, microsecond=0) - timedelta(hours=2)
    begin -= timedelta(minutes=begin.minute % 10)
    ended(store, ada, 120, queue="io", workflow="mail")
    ended(store, ada, 60, queue="io", workflow="crawl")
    ended(store, ada, 5, queue="io", workflow="mail", tenant="acme")
    minute = "CASE WHEN job <= 180 THEN job % 10 ELSE 11 END"
    execute(store_url, f"UPDATE unstuck_done SET finished_at = {microseconds(begin)} + {minute} * {MINUTE_US}")
    count_all(store)
    return begin


def test_points_are_summed_to_the_step_per_name_and_tenant(store: SqlStore, shop: datetime) -> None:
    def told(**asked: Any) -> list[tuple[str, int, int]]:
        page = series(store, **asked)
        return [
            (point.name, (point.at - shop) // timedelta(minutes=1), sum(point.ended.values()))
            for point in page.points
        ]

    assert told() == [("", n, 18) for n in range(10)] + [("", 11, 5)]
    assert told(step=300.0) == [("", 0, 90), ("", 5, 90), ("", 10, 5)]
    assert told(step=300.0, tenant="acme") == [("", 10, 5)]
    assert told(step=600.0, per="workflow") == [("crawl", 0, 60), ("mail", 0, 120), ("mail", 10, 5)]
    assert told(step=600.0, per="workflow", names=1) == [("mail", 0, 120), ("mail", 10, 5)]
    assert told(step=600.0, per="queue", workflow="crawl") == [("io", 0, 60)]
    assert told(step=600.0, per="queue", tenant="default") == [("io", 0, 180)]
    assert sum(count for *_, count in told(step=3600.0)) == 185
    assert told(queue="elsewhere") == told(tenant="nobody") == told(tenant="no\x00body") == []


def test_only_what_was_asked_for_is_read(store: SqlStore, shop: datetime) -> None:
    page = store.series(None, "total", shop + timedelta(minutes=3), shop + timedelta(minutes=5), 60.0)
    assert [point.at for point in page.points] == [shop + timedelta(minutes=3), shop + timedelta(minutes=4)]


def test_a_percentile_is_the_upper_bound_of_its_bucket() -> None:
    counts = [0] * BUCKETS
    assert percentile(counts, 0.5) is None
    counts[0], counts[3] = 94, 6
    assert [percentile(counts, share) for share in (0.5, 0.94, 0.95, 0.99, 1.0)] == [10, 10, 300, 300, 300]
    counts[-1] = 2
    assert percentile(counts, 0.99) == BEYOND_MS
