"""Bulks beside everybody else: claims, settles, timers, people and other bulks, on the same few jobs and targets."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial

import psycopg

from tests.store.test_fold import OUTCOMES
from tests.store.test_pending import folds
from tests.store.test_reprioritise import WRONG_PLACES
from tests.support.builders import TENANT, a_job, a_worker, chance, everything, kinds
from tests.support.eventually import eventually
from tests.support.postgres import Postgres, PostgresServer
from tests.support.tables import ask
from tests.tiers import in_tiers, slow
from unstuck.model.bulk import BulkOptions, BulkState, BulkVerb
from unstuck.model.errors import StoreError, UnstuckError
from unstuck.model.job import ClaimedJob
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import BulkRecord, JobFilter, NewBulk, Report
from unstuck.store.sql_store import SqlStore

JOBS = 60
#: A target's head is a job that has its turn there, and nobody else runs on it.
WRONG_HEADS = """
SELECT t.id FROM unstuck_targets t
 WHERE (t.head IS NOT NULL AND EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = t.head) AND t.blocked_by IS NULL)
    OR EXISTS (SELECT 1 FROM unstuck_running r WHERE r.target = t.id AND t.head <> r.job)
"""


class Crowd:
    """Everybody in a thread of their own, with a connection of their own, until somebody says it is over."""

    def __init__(self, url: str, seed: int) -> None:
        self.url, self.seed = url, seed
        self.is_over = threading.Event()
        self.problems: list[BaseException] = []
        self.done = 0

    def is_tired(self) -> bool:
        return self.done >= 200 or bool(self.problems)

    def member(self, act: Callable[[SqlStore, random.Random], object]) -> threading.Thread:
        def live() -> None:
            self.seed += 1
            dice = random.Random(self.seed)
            with closing(SqlStore(open_database(self.url, store_call=20.0))) as mine:
                while not self.is_over.is_set():
                    try:
                        act(mine, dice)
                        self.done += 1
                    except UnstuckError:
                        pass  # what is refused, or busy, changed nothing
                    except BaseException as problem:
                        self.problems.append(problem)
                        return

        return threading.Thread(target=live)


@in_tiers("rounds", 2, 20)
def test_bulks_and_everybody_else_leave_every_job_in_one_place(store: SqlStore, store_url: str, rounds: int) -> None:
    """Every history leads to its row, every place is right, no target is forgotten, and nobody met in a circle."""
    for number in range(rounds):
        dice = random.Random(number)
        jobs = [
            a_job(
                workflow=f"w{number}",  # else the breaker shuts it out
                target=dice.choice([None, "t1", "t2", "t3"]),
                delay=dice.choice([0.0, 0.0, 0.1]),
                on_hold=dice.random() < 0.1,
                retries=2,
                tags=("round", f"r{number}"),
            )
            for _ in range(JOBS)
        ]
        store.submit(jobs)
        ids = [job.id for job in jobs]
        worker = a_worker(store, name=chance.nonce(), lease=1e6)
        crowd = Crowd(store_url, seed=number * 100)

        def work(mine: SqlStore, dice: random.Random, worker: int = worker.number) -> None:
            mine.release_due()
            mine.ingest()
            reports = [Report(one.ref, dice.choice(OUTCOMES)) for one in claim_all_of(mine, worker)]
            mine.settle(worker, reports)

        def ask_one(mine: SqlStore, dice: random.Random, ids: list[str] = ids) -> None:
            verb = dice.choice(["cancel", "interrupt", "resume", "run_now", "release", "skip"])
            getattr(mine, verb)(TENANT, dice.choice(ids), "eve")

        def reprioritise(mine: SqlStore, dice: random.Random, ids: list[str] = ids) -> None:
            mine.reprioritise(TENANT, dice.choice(ids), dice.randint(-3, 3), "eve")

        def start(mine: SqlStore, dice: random.Random, tag: str = f"r{number}") -> None:
            verb = dice.choice(list(BulkVerb))
            options = BulkOptions(from_start=verb is BulkVerb.RESUME and dice.random() < 0.5)
            if len(mine.bulks(state=BulkState.RUNNING)) < 3:
                mine.start_bulk(NewBulk(chance.nonce(), TENANT, verb, JobFilter(tag=tag), "ada", options))

        def carry(mine: SqlStore, dice: random.Random) -> None:
            mine.carry_bulks(dice.choice([5, 30]))

        threads = [crowd.member(act) for act in (work, ask_one, reprioritise, start, carry, carry)]
        for thread in threads:
            thread.start()
        eventually(crowd.is_tired, timeout=60)
        crowd.is_over.set()
        for thread in threads:
            thread.join(60)
        assert crowd.problems == []

        eventually(lambda: store.carry_bulks() == 0 and not store.bulks(state=BulkState.RUNNING), timeout=60)
        assert folds(store, jobs)
        assert ask(store_url, WRONG_PLACES) == []
        assert ask(store_url, WRONG_HEADS) == []
        for bulk in store.bulks():
            assert (bulk.left, bulk.matched) == (0, JOBS)
    assert any(bulk.done for bulk in store.bulks())
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_bulk_jobs") == [(0,)]
    assert deadlocks(store_url) == 0


def claim_all_of(store: SqlStore, worker: int) -> list[ClaimedJob]:
    return store.claim(worker, chance.nonce(), everything(store, 3))


def deadlocks(url: str) -> int:
    """As the server counts them; the driver repeats what met one, so nobody else would notice."""
    if url.startswith("sqlite"):
        return 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


@slow
def test_a_bulk_is_exact_behind_crashes_of_its_server(own_server: Postgres) -> None:
    """A commit whose answer was lost is not done again, and one that never was is; twice, while two carry it on."""
    near = PostgresServer(own_server.dsn)
    near.make_template()
    store = SqlStore(open_database(near.create(), store_call=5.0))
    jobs = [a_job(delay=3600.0) for _ in range(1500)]
    store.submit(jobs)
    bulk = store.start_bulk(NewBulk("k", TENANT, BulkVerb.CANCEL, JobFilter(), "ada"))
    is_over, met = threading.Event(), list[StoreError]()

    def progress() -> BulkRecord:
        found = store.bulk(TENANT, bulk.number)
        assert found is not None
        return found

    def carry() -> None:
        while not is_over.is_set():
            try:
                store.carry_bulks(100)
            except StoreError as problem:
                met.append(problem)

    def has_done(goal: int) -> bool:
        try:
            return progress().done >= goal
        except StoreError:
            return False

    threads = [threading.Thread(target=carry) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for goal in (100, 500):
            eventually(partial(has_done, goal), timeout=60)
            own_server.stop(signal.SIGQUIT)
            own_server.start()
        eventually(lambda: has_done(len(jobs)) and progress().state is BulkState.DONE, timeout=120)
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)

    assert met, "the crashes met it at work"
    done = progress()
    assert (done.matched, done.done, done.left) == (len(jobs), len(jobs), 0)
    assert Counter(tuple(kinds(store, job.id)) for job in jobs) == {("submitted", "cancelled"): len(jobs)}
    store.close()
