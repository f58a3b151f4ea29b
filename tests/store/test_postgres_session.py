"""Statements straight through libpq: what a cursor of the driver would answer, and plans that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.support.postgres import PostgresServer
from unstuck.store.drivers import postgres_session
from unstuck.store.drivers.postgres_session import PostgresSession

PLANS = "SELECT COUNT(*) AS plans FROM pg_prepared_statements"


@pytest.fixture
def driver(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    url = postgres_server.create()
    with psycopg.connect(url, autocommit=True, row_factory=dict_row, prepare_threshold=None) as connection:
        yield connection
    postgres_server.drop(url)


@pytest.mark.parametrize("value", [None, True, 0, -1, 40_000, 1 << 40, 1 << 80, 0.1, "", "ü\n'%s\\", b"\x00\xff", []])
def test_values_and_rows_are_those_of_a_cursor(driver: psycopg.Connection[Any], value: object) -> None:
    session = PostgresSession(driver, prepare=1)
    text = "SELECT CAST(%(value)s AS TEXT) AS written, pg_typeof(%(value)s) AS kind, '5%%' AS share"
    wanted = driver.execute(text, {"value": value}).fetchall()
    assert [session.all(text, {"value": value}) for _ in range(4)] == [wanted] * 4


@pytest.mark.parametrize(
    "expression",
    ["7", "1::bigint << 40", "1.5::numeric", "0.5::float8", "true", "NULL", "'a'", "'{\"a\": [1]}'::json",
     "'{1,2}'::int[]", "'2026-11-17 12:00+00'::timestamptz", "'\\x00ff'::bytea", "pg_advisory_lock(1)"],
)  # fmt: skip
def test_rows_are_read_as_a_cursor_reads_them(driver: psycopg.Connection[Any], expression: str) -> None:
    session = PostgresSession(driver, prepare=1)
    text = f"SELECT {expression} AS found, n FROM generate_series(1, 3) AS n"
    wanted = driver.execute(text).fetchall()
    assert [session.all(text, {}) for _ in range(4)] == [wanted] * 4


def test_a_statement_is_prepared_once_it_was_asked_often_for_each_kind_of_value(
    driver: psycopg.Connection[Any],
) -> None:
    def plans() -> int:
        return driver.execute(PLANS).fetchone()["plans"]  # type: ignore[index,no-any-return]

    text, session = "SELECT CAST(%(value)s AS BIGINT) AS value", PostgresSession(driver, prepare=2)
    for asked, wanted in ((1, 0), (2, 0), (3, 1), (4, 1)):
        assert session.all(text, {"value": asked}) == [{"value": asked}]
        assert plans() == wanted
    for _ in range(3):
        assert session.all(text, {"value": 1 << 40}) == [{"value": 1 << 40}]
    assert plans() == 2
    never = PostgresSession(driver, prepare=None)
    for _ in range(20):
        never.all(text, {"value": 1})
    assert plans() == 2


def test_a_session_keeps_so_many_plans_and_answers_all_the_same(
    driver: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_session, "MOST_PREPARED", 3)
    session = PostgresSession(driver, prepare=1)
    for _ in range(3):
        assert [session.all(f"SELECT {n} AS n", {}) for n in range(6)] == [[{"n": n}] for n in range(6)]
    assert driver.execute(PLANS).fetchall() == [{"plans": 3}]


def test_a_plan_that_the_server_has_lost_costs_no_answer(driver: psycopg.Connection[Any]) -> None:
    """It was let go by somebody, or its table has changed since."""
    session = PostgresSession(driver, prepare=1)
    driver.execute("CREATE TABLE notes (a INT); INSERT INTO notes VALUES (1)", prepare=False)
    for _ in range(3):
        assert session.all("SELECT * FROM notes", {}) == [{"a": 1}]
    driver.execute("DEALLOCATE ALL")
    for _ in range(3):
        assert session.all("SELECT * FROM notes", {}) == [{"a": 1}]
    driver.execute("ALTER TABLE notes ADD b INT DEFAULT 2")
    for _ in range(4):
        assert session.all("SELECT * FROM notes", {}) == [{"a": 1, "b": 2}]


def test_inside_of_a_transaction_a_lost_plan_fails_once(driver: psycopg.Connection[Any]) -> None:
    """The transaction is lost with it, and the next one plans anew."""
    session = PostgresSession(driver, prepare=1)
    for _ in range(3):
        session.all("SELECT 1 AS one", {})
    driver.execute("DEALLOCATE ALL")
    driver.execute("BEGIN")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        session.all("SELECT 1 AS one", {})
    driver.execute("ROLLBACK")
    assert session.all("SELECT 1 AS one", {}) == [{"one": 1}]


def test_what_fails_fails_as_with_a_cursor_and_the_session_goes_on(driver: psycopg.Connection[Any]) -> None:
    session = PostgresSession(driver, prepare=1)
    for _ in range(4):
        with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
            session.all("SELECT 1 / CAST(%(by)s AS INT) AS n", {"by": 0})
        with pytest.raises(psycopg.errors.SyntaxError):
            session.run("SELEKT", {})
        assert session.all("SELECT 1 / CAST(%(by)s AS INT) AS n", {"by": 1}) == [{"n": 1}]


def test_how_many_rows_it_wrote_or_found(driver: psycopg.Connection[Any]) -> None:
    session = PostgresSession(driver, prepare=1)
    assert session.run("CREATE TABLE notes (a INT)", {}) == 0
    assert session.run("INSERT INTO notes SELECT generate_series(1, 5)", {}) == 5
    assert session.run("DELETE FROM notes WHERE a <= %(last)s", {"last": 2}) == 2
    assert session.run("SELECT * FROM notes", {}) == 3
    assert session.all("DELETE FROM notes", {}) == []


def test_what_is_larger_than_a_socket_takes_travels_both_ways(driver: psycopg.Connection[Any]) -> None:
    session = PostgresSession(driver, prepare=1)
    large = "x" * (24 << 20)
    for _ in range(3):
        [row] = session.all("SELECT CAST(%(text)s AS TEXT) AS text", {"text": large})
        assert row["text"] == large
