"""Writers that are slow to commit, and a reader that can be killed, for the tests of the feed.

As a program: `read URL AFTER` prints a line per event for ever; `write URL JOB EVENTS SEED DELAY LASTING` writes and
ends.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg

from unstuck.observe.feed import Reader
from unstuck.observe.stream import Stream
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.port import FeedEvent, FeedFilter
from unstuck.store.sql_store import SqlStore
from unstuck.views.flow import FeedEventView

ROLLBACKS = 0.2
LARGEST = 120
KEPT = 86400.0


@contextmanager
def following(url: str, after: str = "start", *, follow: bool = True) -> Iterator[Stream[FeedEventView]]:
    store = SqlStore(open_database(url))
    try:
        yield Stream(Reader(store, after, FeedFilter(), FeedEventView.of, kept=KEPT), follow=follow)
    finally:
        store.close()


def listed(url: str) -> list[str]:
    with following(url, follow=False) as feed:
        return [named(event) for event in feed]


def named(event: FeedEvent | FeedEventView) -> str:
    return f"{event.job}:{event.number}"


def write(url: str, job: int, events: int, seed: int, delay: float, lasting: float = 0.0) -> None:
    """Committed events of one job, numbered from 2; batches that are rolled back number theirs anew. `lasting`: it
    takes so many seconds at least, evenly."""
    if url.startswith("sqlite"):
        _write_file(url, job, events, random.Random(seed), delay, lasting)
    else:
        _write_server(url, job, events, random.Random(seed), delay, lasting)


def _write_server(url: str, job: int, events: int, chance: random.Random, delay: float, lasting: float) -> None:
    with psycopg.connect(url) as session:

        def insert(n: int, count: int) -> None:
            session.execute(
                "INSERT INTO unstuck_events (job, number, at, kind, run, token)"
                " SELECT %s, g, unstuck_now(), 'requested', 1, 0"
                " FROM generate_series(CAST(%s AS INT), CAST(%s AS INT)) g",
                (job, n, n + count - 1),
            )

        _transactions(events, chance, delay, lasting, lambda: None, insert, session.commit, session.rollback)


def _write_file(url: str, job: int, events: int, chance: random.Random, delay: float, lasting: float) -> None:
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=60)) as session:

        def insert(n: int, count: int) -> None:
            session.executemany(
                "INSERT INTO unstuck_events (job, number, at, kind, run, token) VALUES (?, ?, ?, 'requested', 1, 0)",
                [(job, g, time.time_ns() // 1000) for g in range(n, n + count)],
            )

        def run(word: str) -> Callable[[], object]:
            return lambda: session.execute(word)

        _transactions(events, chance, delay, lasting, run("BEGIN IMMEDIATE"), insert, run("COMMIT"), run("ROLLBACK"))


def _transactions(
    events: int,
    chance: random.Random,
    delay: float,
    lasting: float,
    begin: Callable[[], object],
    insert: Callable[[int, int], None],
    commit: Callable[[], object],
    roll_back: Callable[[], object],
) -> None:
    done, began = 0, time.monotonic()
    while done < events:
        count = min(chance.randint(1, LARGEST), events - done)
        early = chance.randint(0, count)
        begin()
        insert(2 + done, early)
        time.sleep(chance.uniform(0, delay) / 2)
        insert(2 + done + early, count - early)
        time.sleep(chance.uniform(0, delay) / 2)
        if chance.random() < ROLLBACKS:
            roll_back()
        else:
            commit()
            done += count
            time.sleep(max(0.0, began + lasting * done / events - time.monotonic()))


def main(words: list[str]) -> None:
    match words:
        case ["read", url, after]:
            with following(url, after) as feed:
                for event in feed:
                    print(event.cursor, named(event), flush=True)
        case ["write", url, job, events, seed, delay, lasting]:
            write(url, int(job), int(events), int(seed), float(delay), float(lasting))


if __name__ == "__main__":
    main(sys.argv[1:])
