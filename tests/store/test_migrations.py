"""Migrations: in order, once, under a lock, and never another text under the same number."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import PostgresServer
from unstuck.model.errors import SchemaMismatch
from unstuck.store.database import Database
from unstuck.store.drivers import migrations
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.migrations import Migration, pending, prepare, repeatables, shipped, statements


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create(migrated=False)
    yield url
    server.drop(url)


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    opened = open_database(empty_url)
    yield opened
    opened.close()


def test_an_empty_database_is_brought_up_to_date_once(empty: Database) -> None:
    assert empty.schema_version() == 0

    applied = empty.migrate()

    files = [m.file.removesuffix(".sql") for m in shipped(empty.dialect)]
    assert applied == files + [one.name for one in repeatables(empty.dialect)]
    assert empty.schema_version() == empty.shipped_version() == len(files) > 0
    assert empty.has_current_schema()
    assert empty.migrate() == []


def test_many_may_migrate_at_once_and_one_does_it(empty_url: str) -> None:
    """A45: every process of a deploy may try."""
    applied: list[str] = []

    def migrate() -> None:
        opened = open_database(empty_url)
        try:
            applied.extend(opened.migrate())
        finally:
            opened.close()

    threads = [threading.Thread(target=migrate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(applied) == len(set(applied)) > 0


def test_the_printed_script_does_the_same(empty: Database, empty_url: str) -> None:
    """For people who may not let a program change their schema."""
    run_script(empty_url, empty.migration_sql())

    assert empty.schema_version() == len(shipped(empty.dialect))
    assert empty.migrate() == []


def test_views_are_made_anew_when_their_text_has_changed(empty: Database, empty_url: str) -> None:
    empty.migrate()
    run_script(empty_url, "UPDATE unstuck_repeatables SET checksum = 'other' WHERE name = 'repeatable/3_gates'")

    assert not empty.has_current_schema()
    assert empty.migrate() == ["repeatable/3_gates"]
    assert empty.has_current_schema()
    assert empty.migrate() == []


def test_views_of_a_database_that_is_ahead_are_left_alone(empty: Database, empty_url: str) -> None:
    """The newer version made them."""
    empty.migrate()
    run_script(
        empty_url,
        "INSERT INTO unstuck_migrations (number, name, checksum, applied_at) VALUES (9000, 'new', 'x', 0);"
        "UPDATE unstuck_repeatables SET checksum = 'newer'",
    )

    assert empty.has_current_schema()
    assert empty.migrate() == []


def test_a_database_of_before_the_first_release_is_refused_with_what_to_do(empty: Database, empty_url: str) -> None:
    """Its numbers look as if it were ahead."""
    empty.migrate()
    run_script(
        empty_url,
        "UPDATE unstuck_migrations SET name = 'jobs', checksum = 'old';"
        "INSERT INTO unstuck_migrations (number, name, checksum, applied_at) VALUES (22, 'clock', 'x', 0)",
    )

    for ask in (empty.schema_version, empty.migrate, empty.has_current_schema):
        with pytest.raises(SchemaMismatch, match=r"before the first release .* a new one with --database"):
            ask()


def test_a_database_whose_first_text_was_another_is_refused_before_it_is_used(
    empty: Database, empty_url: str
) -> None:
    """As an earlier checkout made it: its numbers look right, its tables are not."""
    empty.migrate()
    run_script(empty_url, "UPDATE unstuck_migrations SET checksum = 'another' WHERE number = 1")

    for ask in (empty.schema_version, empty.has_current_schema, lambda: prepare(empty)):
        with pytest.raises(SchemaMismatch, match=r"before the first release .* a new one with --database"):
            ask()


def test_a_changed_file_is_named(empty: Database, empty_url: str) -> None:
    empty.migrate()
    run_script(empty_url, "UPDATE unstuck_migrations SET checksum = 'other' WHERE number = 1")

    with pytest.raises(SchemaMismatch, match=r"0001_\w+\.sql is not the text"):
        empty.migrate()


def test_a_database_that_is_ahead_is_left_alone(empty: Database, empty_url: str) -> None:
    """A rolling deploy: old code meets the new schema and goes on."""
    empty.migrate()
    run_script(
        empty_url, "INSERT INTO unstuck_migrations (number, name, checksum, applied_at) VALUES (9000, 'new', 'x', 0)"
    )

    assert empty.migrate() == []
    assert empty.schema_version() == 9000


def test_a_failing_migration_leaves_nothing_behind(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "schema" / empty.dialect
    folder.mkdir(parents=True)
    (folder / "0001_good.sql").write_text("CREATE TABLE good (id INTEGER);")
    (folder / "0002_bad.sql").write_text("CREATE TABLE half (id INTEGER); CREATE TABLE good (id INTEGER);")
    files = shipped(empty.dialect, tmp_path / "schema")
    monkeypatch.setattr(migrations, "shipped", lambda dialect: files)
    monkeypatch.setattr(migrations, "repeatables", lambda dialect: [])

    with pytest.raises((sqlite3.Error, psycopg.Error)):
        empty.migrate()
    assert empty.schema_version() == 0

    files.pop()
    assert empty.migrate() == ["0001_good"]


def test_a_gap_in_the_database_is_named() -> None:
    files = [Migration(n, f"m{n}", "") for n in (1, 2, 3)]
    rows = [{"number": m.number, "name": m.name, "checksum": m.checksum} for m in files if m.number != 2]

    with pytest.raises(SchemaMismatch, match=r"0002_m2\.sql was never applied"):
        pending(rows, files)


def test_a_gap_in_the_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "sqlite").mkdir()
    (tmp_path / "sqlite" / "0001_one.sql").write_text("")
    (tmp_path / "sqlite" / "0003_three.sql").write_text("")

    with pytest.raises(SchemaMismatch, match=r"0002_\*\.sql is missing before 0003_three\.sql"):
        shipped("sqlite", tmp_path)


def test_both_databases_have_the_same_migrations() -> None:
    names = [[migration.file for migration in shipped(dialect)] for dialect in ("sqlite", "postgres")]

    assert names[0] == names[1] != []


def test_statements_are_split_where_the_grammar_ends_them() -> None:
    script = """
    CREATE TABLE a (x TEXT DEFAULT ';'); -- a comment; with a semicolon
    CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET x = ';'; DELETE FROM a; END;
    CREATE INDEX i ON a (x)
    """
    found = [" ".join(piece.split()) for piece in statements(script)]

    assert found == [
        "CREATE TABLE a (x TEXT DEFAULT ';');",
        "-- a comment; with a semicolon CREATE TRIGGER t AFTER INSERT ON a "
        "BEGIN UPDATE a SET x = ';'; DELETE FROM a; END;",
        "CREATE INDEX i ON a (x)",
    ]


def run_script(url: str, sql: str) -> None:
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql)
        return
    file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    file.executescript(sql)
    file.close()
