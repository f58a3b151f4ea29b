"""The feed under a storm: writers that commit late or not at all, readers that are killed, servers that restart."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Literal

import psycopg
import pytest

from tests.store import feed_crowd
from tests.store.feed_crowd import following, listed, named
from tests.support.builders import submitted
from tests.support.eventually import eventually
from tests.support.postgres import Postgres, PostgresServer
from tests.support.tables import ask
from tests.support.warm import PATHS, Forked, warm_process
from tests.support.workers import ROOT
from tests.tiers import in_tiers
from unstuck.model.errors import StoreUnavailable
from unstuck.observe.stream import Stream
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import FeedFilter
from unstuck.store.sql_store import SqlStore
from unstuck.views.flow import FeedEventView

WRITERS = 8


class KilledReader:
    """A reader in a process of its own, killed again and again; it goes on from the last cursor it printed."""

    def __init__(self, url: str, log: Path) -> None:
        self._url = url
        self._log = log
        self.deaths = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    @property
    def seen(self) -> list[str]:
        return [line.split()[1] for line in self._whole_lines()]

    def end(self) -> None:
        self._stop.set()
        self._thread.join(20)

    def _live(self) -> None:
        while not self._stop.is_set():
            process = self._start()
            # Killed a moment after its first line, wherever it is then.
            size = self._size()
            while self._size() == size and not self._stop.wait(0.05):
                pass
            self._stop.wait(0.3)
            process.kill()
            process.wait(10)
            self.deaths += 1

    def _size(self) -> int:
        return self._log.stat().st_size

    def _start(self) -> Forked:
        lines = self._whole_lines()
        self._log.write_text("".join(f"{line}\n" for line in lines))
        after = lines[-1].split()[0] if lines else "start"
        with self._log.open("ab") as out:
            return start("read", self._url, after, out=out.fileno())

    def _whole_lines(self) -> list[str]:
        text = self._log.read_text() if self._log.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def expected(jobs: list[str], each: int) -> list[str]:
    return sorted(f"{job}:{n}" for job in jobs for n in range(1, each + 2))


def in_order_of_each_job(seen: list[str]) -> bool:
    last: dict[str, int] = {}
    for name in seen:
        job, n = name.split(":")
        if int(n) != last.get(job, 0) + 1:
            return False
        last[job] = int(n)
    return True


@pytest.mark.timeout(240)
@in_tiers("events", 3_000, 30_000)
def test_no_event_is_lost_or_doubled_and_all_readers_see_one_order(
    store_url: str, store: SqlStore, tmp_path: Path, events: int
) -> None:
    """A51 without SSE: eight writers, 20 % rollbacks, commits delayed up to 300 ms (10 ms in a file, which has one
    writer at a time), 30 000 events, an unrelated transaction open all the while, a reader killed again and again."""
    is_file = store_url.startswith("sqlite")
    jobs = [submitted(store).id for _ in range(WRITERS)]
    numbers = {uid: number for number, uid in ask(store_url, "SELECT id, uid FROM unstuck_jobs")}
    each = events // WRITERS
    write, delay = (written_by_process, 0.01) if is_file else (feed_crowd.write, 0.3)
    killed = KilledReader(store_url, tmp_path / "killed.log")
    with (
        held_open(store_url),
        following(store_url) as one,
        following(store_url) as other,
        ThreadPoolExecutor(WRITERS + 2) as pool,
    ):
        readers = [pool.submit(read, feed, WRITERS * (each + 1)) for feed in (one, other)]
        try:
            list(pool.map(lambda n: write(store_url, numbers[jobs[n]], each, n, delay), range(WRITERS)))
            first, second = (reader.result(max(100, events / 200)) for reader in readers)
            eventually(lambda: len(killed.seen) >= len(first), timeout=60, every=0.2)
        finally:
            one.close()
            other.close()
            killed.end()
    assert sorted(first) == expected(jobs, each)
    assert first == second
    assert killed.seen == first
    assert killed.deaths >= 2
    assert in_order_of_each_job(first)
    assert listed(store_url) == first


def read(feed: Stream[FeedEventView], count: int) -> list[str]:
    return [named(event) for event in islice(feed, count)]


def written_by_process(url: str, job: int, events: int, seed: int, delay: float, lasting: float = 0.0) -> None:
    writer = start("write", url, str(job), str(events), str(seed), str(delay), str(lasting))
    assert writer.wait(max(200, events / 20) + lasting) == 0


def start(*words: str, out: int = 1) -> Forked:
    """The crowd's program, in a process of its own."""
    return warm_process().start(["-m", "tests.store.feed_crowd", *words], ROOT, os.environ | PATHS, out, 2)


class held_open:
    """A transaction of somebody else's that has written something and does not end."""

    def __init__(self, url: str) -> None:
        self._session = None if url.startswith("sqlite") else psycopg.connect(url)

    def __enter__(self) -> None:
        if self._session is not None:
            self._session.execute("CREATE TABLE somebodys_own AS SELECT 1 AS one")

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.rollback()
            self._session.close()


def test_a_reader_goes_on_over_a_crash_of_the_server(own_server: Postgres) -> None:
    """Ids that were drawn and not committed are gaps afterwards; transactions that were open are gone."""
    url = PostgresServer(own_server.dsn).url("postgres")
    database = open_database(url)
    database.migrate()
    store = SqlStore(database)
    with following(url) as feed, closing(psycopg.connect(url)) as lost:
        before = submitted(store)
        assert next(feed).job == before.id
        insert_event(lost, before.id, 2)
        also = submitted(store)  # above the gap that the crash leaves
        assert next(feed).job == also.id
        insert_event(lost, before.id, 3)
        own_server.stop(signal.SIGQUIT)
        own_server.start()
        after = eventually(lambda: tried(store), timeout=30)
        assert next(feed).job == after
    assert listed(url) == [f"{job}:1" for job in (before.id, also.id, after)]
    store.close()


def tried(store: SqlStore) -> str | Literal[False]:
    """False while it recovers. That a connection is lost is known before anything is sent: no outcome is unknown."""
    try:
        return submitted(store).id
    except StoreUnavailable:
        return False


def insert_event(session: psycopg.Connection, job: str, n: int) -> None:
    session.execute(
        "INSERT INTO unstuck_events (job, number, at, kind, run, token)"
        " SELECT id, %s, unstuck_now(), 'requested', 1, 0 FROM unstuck_jobs WHERE uid = %s",
        (n, job),
    )


@pytest.fixture
def server_store(server_url: str) -> Iterator[SqlStore]:
    store = SqlStore(open_database(server_url))
    yield store
    store.close()


def everything(store: SqlStore, after: str | None = None) -> list[str]:
    while store.sequence() > 0:
        pass
    page = store.feed(after or store.feed_bounds().oldest, FeedFilter(), 100_000)
    assert page.is_last
    return [named(event) for event in page.events]


def test_an_open_transaction_hides_nobodys_events_but_its_own(server_url: str, server_store: SqlStore) -> None:
    """A51: what is committed is seen by the next look, however long another transaction stays open; the late one's
    events come when they are committed, behind what readers have seen meanwhile."""
    first = submitted(server_store)
    with psycopg.connect(server_url) as slow:
        insert_event(slow, first.id, 2)
        later = [submitted(server_store).id for _ in range(3)]
        seen = everything(server_store)
        assert seen == [f"{job}:1" for job in (first.id, *later)]
        for job in later:
            server_store.cancel("default", job, "me")
            assert everything(server_store)[-1] == f"{job}:2"
        seen = everything(server_store)
        insert_event(slow, first.id, 3)
        assert everything(server_store) == seen
        slow.commit()
    assert everything(server_store) == [*seen, f"{first.id}:2", f"{first.id}:3"]


def test_a_position_is_given_once_even_while_many_give_them(server_url: str, server_store: SqlStore) -> None:
    stores = [SqlStore(open_database(server_url)) for _ in range(4)]
    stop = threading.Event()

    def sequence(store: SqlStore) -> None:
        while not stop.is_set():
            store.sequence()

    with ThreadPoolExecutor(8) as pool:
        for store in stores:
            pool.submit(sequence, store)
        jobs = [job.id for _ in range(100) for job in [submitted(server_store)]]
        stop.set()
    for store in stores:
        store.close()
    assert everything(server_store) == [f"{job}:1" for job in jobs]


def test_a_large_backlog_is_sequenced_in_bounded_passes(server_url: str, server_store: SqlStore) -> None:
    job = submitted(server_store)
    with psycopg.connect(server_url, autocommit=True) as session:
        for hundred in range(130):
            session.execute(
                "INSERT INTO unstuck_events (job, number, at, kind, run, token)"
                " SELECT j.id, %s + g, unstuck_now(), 'x', 1, 0 FROM unstuck_jobs j, generate_series(0, 99) g",
                (2 + 100 * hundred,),
            )
    taken = []
    while (some := server_store.sequence()) > 0:
        taken.append(some)
    assert sum(taken) == 13_001
    assert max(taken) < 5200
    assert everything(server_store) == [f"{job.id}:{n}" for n in range(1, 13_002)]


def test_a_pass_reads_only_what_is_new(server_url: str, server_store: SqlStore) -> None:
    """A large table without statistics must not be read from end to end for the sake of one event."""
    submitted(server_store)
    with psycopg.connect(server_url, autocommit=True) as session:
        session.execute("ALTER TABLE unstuck_events SET (autovacuum_enabled = off)")
        session.execute(
            "INSERT INTO unstuck_events (job, number, at, kind, run, token)"
            " SELECT j.id, 1 + g, unstuck_now(), 'x', 1, 0 FROM unstuck_jobs j, generate_series(1, 50000) g"
        )
        session.execute("SELECT unstuck_sequence(100000, 86400000000)")
        before = _scans(session)
        for _ in range(20):
            submitted(server_store)
            assert session.execute("SELECT unstuck_sequence(5000, 86400000000)").fetchone() == (1,)
        after = _scans(session)
    assert after[0] == before[0]
    assert 20 <= after[1] - before[1] < 1000


def _scans(session: psycopg.Connection) -> tuple[int, int]:
    session.execute("SELECT pg_stat_force_next_flush()")
    session.execute("SELECT pg_stat_clear_snapshot()")
    row = session.execute(
        "SELECT COALESCE(seq_scan, 0), COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables"
        " WHERE relname = 'unstuck_events'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_an_idle_look_writes_nothing(server_url: str, server_store: SqlStore) -> None:
    submitted(server_store)
    assert server_store.sequence() == 1
    with psycopg.connect(server_url, autocommit=True) as session:
        before = session.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())").fetchone()
        for _ in range(20):
            assert server_store.sequence() == 0
        state = session.execute("SELECT xmin, xmax, ctid FROM unstuck_sequencer").fetchone()
        assert server_store.sequence() == 0
        assert session.execute("SELECT xmin, xmax, ctid FROM unstuck_sequencer").fetchone() == state
    assert before is not None


def test_after_a_dump_is_restored_elsewhere_nothing_is_lost_or_doubled(
    server_url: str, server_store: SqlStore
) -> None:
    """There transactions count from the beginning: the rows look as if they came from the future."""
    with psycopg.connect(server_url) as slow, psycopg.connect(server_url, autocommit=True) as session:
        first = submitted(server_store)
        insert_event(slow, first.id, 2)
        second = submitted(server_store)
        assert everything(server_store) == [f"{first.id}:1", f"{second.id}:1"]
        slow.commit()
        third = submitted(server_store)  # committed, and no position yet, as is the second of the first
        ahead = 1_000_000
        shift = f"CAST(CAST(CAST(CAST(%s AS TEXT) AS BIGINT) + {ahead} AS TEXT) AS XID8)"
        session.execute(f"UPDATE unstuck_events SET xid = {shift % 'xid'}")
        session.execute(
            f"UPDATE unstuck_sequencer SET since = {shift % 'since'},"
            f" open = ARRAY(SELECT {shift % 'x'} FROM UNNEST(open) AS x)"
        )
        fourth = submitted(server_store)  # the first of the new numbering
        insert_event(slow, first.id, 3)
        server_store.forget_feed(feed_crowd.KEPT)  # what every worker does each minute
        told = [f"{first.id}:1", f"{second.id}:1", f"{first.id}:2", f"{third.id}:1", f"{fourth.id}:1"]
        assert everything(server_store) == told
        slow.commit()
        fifth = submitted(server_store)
        told += [f"{first.id}:3", f"{fifth.id}:1"]
        assert everything(server_store) == told
        # The new numbers reach the old ones: what has its position must not get another.
        session.execute(
            "UPDATE unstuck_events SET xid = pg_current_xact_id() WHERE xid > pg_snapshot_xmax(pg_current_snapshot())"
        )
        assert everything(server_store) == told
