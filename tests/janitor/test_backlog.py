"""A backlog on a real store: each turn ends within its budget, and the others have theirs in between."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import psycopg

from tests.conftest import StoreClock
from tests.janitor.test_janitor import Note
from tests.support.builders import a_job, a_worker, claim_all, claimed, record
from tests.support.tables import ask
from tests.support.troubles import execute
from tests.tiers import in_tiers
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.janitor import Duty, Janitor
from unstuck.janitor.timers import TimersDuty
from unstuck.janitor.zombies import ZombiesDuty
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.sql_store import SqlStore

BOOT = MachineClock().boot
#: A turn of 0.1 s.
TIMES = Times(sweep=0.5)


class Watched:
    """A duty, and how long its turns were: in all, and the longest time without a sign of life."""

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.name = duty.name
        self.turns: list[tuple[float, float, float]] = []
        self.moved = 0

    @property
    def every(self) -> float:
        return self.duty.every

    def tick(self, now: float, budget: Budget) -> int:
        began, signs = BOOT(), [BOOT()]
        ask = budget.is_over

        def is_over() -> bool:
            signs.append(BOOT())
            return ask()

        budget.is_over = is_over  # type: ignore[method-assign]
        moved = self.duty.tick(now, budget)
        ended = BOOT()
        gaps = [b - a for a, b in zip(signs, [*signs[1:], ended], strict=True)]
        self.turns.append((began, ended, max(gaps)))
        self.moved += moved
        return moved


@contextmanager
def old_transaction(url: str) -> Iterator[None]:
    """Somebody reads and does not let go: nothing that is deleted meanwhile can be cleared away."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as reader:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT COUNT(*) FROM unstuck_timers")
            yield
        return
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as lite:
        lite.execute("BEGIN")
        lite.execute("SELECT COUNT(*) FROM unstuck_timers").fetchone()
        yield


def until(janitor: Janitor, is_done: Callable[[], bool], within: float) -> None:
    give_up = BOOT() + within
    while not is_done():
        assert BOOT() < give_up
        janitor.tick()


@in_tiers("due", 20_000, 30_000)
def test_many_timers_due_at_once_keep_no_turn_longer_than_its_budget_and_nobody_from_theirs(
    store: SqlStore, clock: StoreClock, store_url: str, due: int
) -> None:
    times = replace(TIMES, sweep=0.05)
    for _ in range(due // 1000):
        store.submit([a_job(delay=60.0) for _ in range(1000)])
    rescue, other = Note("zombies", every=0.5), Note("body_marks", every=0.5)
    timers = Watched(TimersDuty(store, times))
    janitor = Janitor(store.probe, times, MachineClock(), SystemChance(), sweeps=[rescue], keeping=[timers, other])
    clock.advance(seconds=61)

    with old_transaction(store_url):
        until(janitor, lambda: timers.moved >= due, within=120)

    assert timers.moved == due
    assert len(timers.turns) > 3, "a turn is a fifth of a sweep: a few were not enough"
    for began, ended, longest in timers.turns:
        assert ended - began <= times.sweep / 5 + longest + 0.01, "the budget, and the batch that was under way"
    longest_turn = max(ended - began for began, ended, _ in timers.turns)
    swept = [at for at in rescue.ran if timers.turns[0][0] <= at <= timers.turns[-1][1]]
    gaps = [b - a for a, b in itertools.pairwise(swept)]
    assert max(gaps, default=0.0) <= times.sweep + longest_turn + 0.5


def test_a_timer_that_comes_due_behind_thousands_of_others_does_not_wait_for_them(
    store: SqlStore, clock: StoreClock
) -> None:
    store.submit([a_job(delay=60.0) for _ in range(500)])
    late = a_job(delay=61.0, tenant="late")
    store.submit([late])
    clock.advance(seconds=62)

    assert store.release_due(batch=100) == 200

    assert late.id in {job.id for job in claim_all(store, a_worker(store))}


def test_a_worker_with_thousands_of_jobs_that_died_is_recovered_turn_by_turn(
    store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store)
    jobs = [a_job() for _ in range(3000)]
    store.submit(jobs)
    while claim_all(store, worker, limit=1000):
        pass
    zombies, timers = Watched(ZombiesDuty(store, TIMES)), Note("timers", every=0.01)
    janitor = Janitor(store.probe, TIMES, MachineClock(), SystemChance(), sweeps=[zombies], keeping=[timers])
    clock.advance(seconds=31)

    until(janitor, lambda: zombies.moved >= len(jobs), within=120)

    assert {record(store, job.id).state for job in jobs[::500]} == {JobState.QUEUED}
    assert 2 * len(timers.ran) >= len(zombies.turns) - 1, "in every round the others have theirs"


NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 20000)"
WORKER = "host, boot_id, pid_namespace, pid, pid_start, queues, code_version, started_at, beat_at, lease_until"


def test_thousands_of_lost_workers_and_of_stale_entries_keep_no_job_from_its_rescue_and_no_turn_long(
    store: SqlStore, clock: StoreClock, store_url: str
) -> None:
    """Workers without jobs have lower numbers than the one whose job is lost."""
    a_worker(store)
    execute(
        store_url,
        f"{NUMBERS} INSERT INTO unstuck_workers (incarnation, name, {WORKER}) "
        f"SELECT 'many-' || n, 'many-' || n, {WORKER} FROM number CROSS JOIN unstuck_workers",
    )
    execute(
        store_url,
        f"{NUMBERS} INSERT INTO unstuck_quarantine (duty, item, since_at, tried_at, tries, error, by) "
        "SELECT 'start', -n, 0, 0, 1, 'it is long gone', 'test' FROM number",
    )
    lost = claimed(store, a_worker(store, name="last"))
    zombies, timers = Watched(ZombiesDuty(store, TIMES)), Note("timers", every=0.01)
    janitor = Janitor(store.probe, TIMES, MachineClock(), SystemChance(), sweeps=[zombies], keeping=[timers])
    clock.advance(seconds=31)

    janitor.tick()
    assert record(store, lost.id).state is JobState.QUEUED
    until(janitor, lambda: not store.quarantined() and not _standing(store_url), within=120)

    assert len(zombies.turns) > 1, "a turn is a tenth of a second: one was not enough"
    for began, ended, longest in zombies.turns:
        assert ended - began <= TIMES.sweep / 5 + 3 * longest + 0.05, "the budget, and a batch of each kind"


def _standing(url: str) -> int:
    return int(ask(url, "SELECT COUNT(*) FROM unstuck_workers WHERE ended_at IS NULL")[0][0])
