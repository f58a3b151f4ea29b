"""Databases of the test PostgreSQL that serve one test after another: to copy a migrated one takes the server 30 ms,
and its first statements as long again, because all of its pages are new; to empty one takes it 3 ms.

A test gets what a fresh copy would be: no rows but those of the migrations, sequences at their start, no sessions,
settings, functions or statistics of another test. What was written is known by the server's own counts of each table,
which a session has told by the time it is gone. A database is dropped, and the next one a fresh copy, if the last
test changed its schema (a trigger, a function, an ANALYZE: any write to a catalog), left a session behind or ended
ours. Who still has the address of an earlier test cannot log in any more: each test has a user of its own.

The first connection of a test's pool is kept too (`warm`, `cool`), without its settings, prepared statements and all
else that DISCARD ALL takes from it: what remains is what the server has learned of the catalogs, which takes a new
session longer than most tests do.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow

from tests.support.postgres import EXISTING, PostgresServer
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.drivers.postgres_pool import Pool, PooledConnection

Driver = psycopg.Connection[DictRow]

#: TRUNCATE leaves dead rows in the catalogs, and each look at them takes longer.
MOST_USES = 50
MOST_IDLE = 2
#: A session takes a moment to end after its client has left.
SESSIONS_END_WITHIN = 0.25

#: In the keeper's own schema, which ends with it. Rows of a table with one page are deleted, because new files for it
#: and its indexes cost ten times as much: the next test's rows come behind them in the page, so they are found in the
#: same order as in a new one, and the planner takes both for ten pages.
_PREPARE = """
CREATE TEMP TABLE seeded (name REGCLASS PRIMARY KEY, kept REGCLASS NOT NULL);
DO $$
DECLARE
    name REGCLASS;
BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST('public' AS REGNAMESPACE)
                   AND pg_relation_size(oid) > 0 LOOP
        EXECUTE format('CREATE TEMP TABLE %I AS TABLE %s', 'kept_' || CAST(CAST(name AS OID) AS TEXT), name);
        INSERT INTO seeded VALUES (name, CAST('kept_' || CAST(CAST(name AS OID) AS TEXT) AS REGCLASS));
    END LOOP;
END
$$;
CREATE FUNCTION pg_temp.writes(name OID) RETURNS BIGINT LANGUAGE sql AS $$
    SELECT pg_stat_get_tuples_inserted(name) + pg_stat_get_tuples_updated(name) + pg_stat_get_tuples_deleted(name)
$$;
CREATE FUNCTION pg_temp.emptied() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    found REGCLASS;
    keeps REGCLASS;
    big   TEXT;
BEGIN
    IF EXISTS (SELECT 1 FROM pg_db_role_setting
                WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
        RETURN 'it has settings of its own';
    END IF;
    SELECT oid INTO found FROM pg_class
     WHERE relkind = 'r' AND relnamespace = CAST('pg_catalog' AS REGNAMESPACE) AND NOT relisshared
       AND pg_temp.writes(oid) > 0 LIMIT 1;
    IF found IS NOT NULL THEN
        RETURN format('its %s was written', found);
    END IF;

    -- VACUUM writes this in place, which does not count.
    SELECT oid INTO found FROM pg_class
     WHERE relkind = 'r' AND relnamespace = CAST('public' AS REGNAMESPACE) AND reltuples >= 0
       AND oid NOT IN (SELECT name FROM seeded) LIMIT 1;
    IF found IS NOT NULL THEN
        RETURN format('%s was vacuumed', found);
    END IF;

    FOR found IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST('public' AS REGNAMESPACE)
                    AND pg_temp.writes(oid) > 0 LOOP
        IF pg_relation_size(found) > 8192 THEN
            big := concat_ws(', ', big, found);
        ELSE
            EXECUTE format('DELETE FROM %s', found);
        END IF;
    END LOOP;
    IF big IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || big;
    END IF;
    FOR found, keeps IN SELECT name, kept FROM seeded WHERE pg_temp.writes(name) > 0 LOOP
        EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE TABLE %s', found, keeps);
    END LOOP;
    PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL;
    RETURN NULL;
END
$$;
"""
_SESSIONS = "SELECT pg_stat_get_db_numbackends(oid) FROM pg_database WHERE datname = current_database()"
#: What the keeper wrote itself is told before the counts begin anew.
_EMPTY = "SELECT pg_temp.emptied(), pg_stat_force_next_flush()"
_FLUSH = "SELECT pg_stat_force_next_flush()"
_CLOCK = "UPDATE unstuck_test_clock SET offset_us = 0 WHERE offset_us <> 0"
_COUNT_ANEW = "SELECT pg_stat_reset()"


@dataclass
class Lent:
    """A database with the session that empties it; `keeper` is free for the test's own clock meanwhile."""

    name: str
    user: str
    keeper: psycopg.Connection
    uses: int = 1
    #: Known to the server, and nobody's now.
    idle: Driver | None = None

    def empty(self) -> str | None:
        """Make it as a fresh copy would be; or why it cannot be."""
        try:
            if self.uses >= MOST_USES:
                return "it has served long enough"
            if not self._is_alone():
                return "a session is left"
            # What the keeper wrote a moment ago, a leap of the clock say, would not be counted yet.
            self.keeper.execute(_FLUSH)
            self.keeper.execute(_CLOCK)
            row = self.keeper.execute(_EMPTY).fetchone()
            assert row is not None
            if row[0] is not None:
                return str(row[0])
            self.keeper.execute(_COUNT_ANEW)
            self._rename_user()
        except psycopg.Error as error:
            return str(error)
        self.uses += 1
        return None

    def _is_alone(self) -> bool:
        ours = 1 if self.idle is None else 2
        until = time.monotonic() + SESSIONS_END_WITHIN
        while True:
            row = self.keeper.execute(_SESSIONS).fetchone()
            if row is not None and row[0] == ours:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.002)

    def close(self) -> None:
        self.keeper.close()
        if self.idle is not None:
            self.idle.close()

    def _rename_user(self) -> None:
        user = _new_name("u")
        rename = sql.SQL("ALTER ROLE {} RENAME TO {}").format(sql.Identifier(self.user), sql.Identifier(user))
        self.keeper.execute(rename)
        self.user = user


@dataclass
class Lender:
    """Of one process."""

    server: PostgresServer
    reuses: bool = True
    _back: deque[Lent] = field(default_factory=deque)
    _out: dict[str, Lent] = field(default_factory=dict)
    _hands: dict[str, psycopg.Connection] = field(default_factory=dict)

    def lend(self) -> str:
        """The URL of a migrated database that is empty and nobody else's until it comes back."""
        if not self.reuses:
            return self.server.create()
        while self._back:
            lent = self._back.popleft()
            if lent.empty() is None:
                break
            self._drop(lent)
        else:
            lent = self._copy()
        url = self.server.url(lent.name, lent.user)
        self._out[url] = lent
        return url

    def take_back(self, url: str) -> None:
        """It is emptied when it is needed again: by then the sessions of its last test are gone."""
        lent = self._out.pop(url, None)
        if lent is None:
            if url in self._hands:
                self._hands.pop(url).close()
            self.server.leave(url)
        elif len(self._back) < MOST_IDLE:
            self._back.append(lent)
        else:
            self._drop(lent)

    def keeper(self, url: str) -> psycopg.Connection:
        """A session of this database that need not be opened; for one that is not lent, one of its own."""
        lent = self._out.get(url)
        if lent is not None:
            return lent.keeper
        if url not in self._hands:
            self._hands[url] = psycopg.connect(url, autocommit=True)
        return self._hands[url]

    @contextmanager
    def warm(self, url: str, database: PostgresDatabase) -> Iterator[None]:
        """The session of the last test is the first of this pool, and stays when the pool is closed."""
        lent, pool = self._out.get(url), database._pool
        if lent is None:
            yield
            return
        if lent.idle is None:
            first = pool._dialler._connect()
        else:
            pool._dialler._introduce(lent.idle)
            first, lent.idle = PooledConnection(lent.idle, database._prepare), None
        driver = first.driver
        pool.adopt(first)
        try:
            yield
        finally:
            lent.idle = self._withdrawn(pool, driver)

    def _withdrawn(self, pool: Pool, driver: Driver) -> Driver | None:
        """None if it is not as good as a new one."""
        with pool._lock:
            found = [connection for connection in pool._idle if connection.driver is driver]
            pool._idle[:] = [connection for connection in pool._idle if connection.driver is not driver]
        for connection in found:
            pool._one_less()
            connection.line.close()
            if not connection.is_lost and not connection.owes_answer and _is_like_new(driver):
                return driver
            driver.close()
        return None

    def _copy(self) -> Lent:
        name = str(conninfo_to_dict(self.server.create())["dbname"])
        user = _new_name("u")
        keeper = psycopg.connect(self.server.url(name), autocommit=True, application_name="unstuck-test-keeper")
        keeper.execute(sql.SQL("CREATE ROLE {} LOGIN SUPERUSER").format(sql.Identifier(user)))
        keeper.execute(_PREPARE)
        keeper.execute("SELECT pg_stat_force_next_flush()")
        keeper.execute(_COUNT_ANEW)
        return Lent(name, user, keeper)

    def close(self) -> None:
        for lent in (*self._back, *self._out.values()):
            self._drop(lent)

    def _drop(self, lent: Lent) -> None:
        lent.close()
        self.server.leave(self.server.url(lent.name))


def _is_like_new(driver: Driver) -> bool:
    """Of what it wrote, the server's counts know afterwards."""
    try:
        driver.execute("DISCARD ALL")
        driver.execute("SELECT pg_stat_force_next_flush()")
    except psycopg.Error:
        return False
    return True


@cache
def lender(server: PostgresServer, process: int) -> Lender:
    # The user of a server that runs already need not be one that may make users.
    return Lender(server, reuses=not os.environ.get(EXISTING))


def _new_name(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:12]}"
