"""SQL by name, with parameters as each driver wants them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unstuck.model.series import BUCKETS, COUNTS
from unstuck.model.totals import COLUMNS
from unstuck.store.drivers.macros import BadMacro
from unstuck.store.drivers.statements import MARK, Statements, UnknownStatement, translate
from unstuck.store.life import sweep


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT :a + :a_1", "SELECT %(a)s + %(a_1)s"),
        ("SELECT x::text, :y::int", "SELECT x::text, %(y)s::int"),
        ("SELECT ':a' || ':it''s :b'", "SELECT ':a' || ':it''s :b'"),
        ('SELECT ":a"', 'SELECT ":a"'),
        ("SELECT 10 % :n, '5 %'", "SELECT 10 %% %(n)s, '5 %%'"),
        ("-- no :a, it's 5 %\nSELECT 1 -- :b", "SELECT 1"),
        ("SELECT /* :a\n:b */ 1;", "SELECT   1"),
        ("SELECT $x$ :a -- kept $$ $x$", "SELECT $x$ :a -- kept $$ $x$"),
        ("SELECT a[1:2]", "SELECT a[1:2]"),
    ],
)
def test_parameters_are_translated_and_nothing_else(text: str, expected: str) -> None:
    assert translate(text, "postgres") == expected


def test_sqlite_takes_parameters_as_they_are() -> None:
    assert translate("-- why\nSELECT :a % 2\n\n", "sqlite") == "SELECT :a % 2"


def test_a_database_s_own_file_shadows_the_shared_one(tmp_path: Path) -> None:
    (tmp_path / "life").mkdir()
    (tmp_path / "life" / "number.sql").write_text("SELECT 1")
    (tmp_path / "life" / "number.sqlite.sql").write_text("SELECT 2")

    assert Statements("sqlite", tmp_path)["number"] == "SELECT 2"
    assert Statements("postgres", tmp_path)["number"] == f"{MARK} SELECT 1"


def test_a_name_means_one_statement_whatever_its_room(tmp_path: Path) -> None:
    for room in ("life", "order"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "number.sql").write_text("SELECT 1")

    with pytest.raises(ValueError, match="two statements are called 'number'"):
        Statements("sqlite", tmp_path)["number"]


def test_a_file_may_hold_a_family(tmp_path: Path) -> None:
    (tmp_path / "numbers.sql").write_text(
        "-- Numbers.\n\n-- name: one\nSELECT 1\n\n-- name: two\n-- Why.\nSELECT 2\n"
    )
    (tmp_path / "numbers.sqlite.sql").write_text("-- name: two\nSELECT 'two'\n")
    sqlite, postgres = Statements("sqlite", tmp_path), Statements("postgres", tmp_path)

    assert sqlite.names() == postgres.names() == ["one", "two"]
    assert (sqlite["one"], sqlite["two"]) == ("SELECT 1", "SELECT 'two'")
    assert postgres["two"] == f"{MARK} SELECT 2"


def test_a_missing_statement_says_where_it_could_be() -> None:
    with pytest.raises(
        UnknownStatement, match=r"for postgres: neither a file of that name nor a line `-- name: nothing`"
    ):
        Statements("postgres")["nothing"]


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_every_shipped_statement_can_be_read(dialect: str) -> None:
    statements = Statements(dialect)

    assert all(statements[name] for name in statements.names())


@pytest.mark.parametrize(
    ("text", "postgres", "sqlite"),
    [
        (
            "{some_by_key t AS x USING t_i ON {exactly x.id r.id} ORDER BY x.id LIMIT :most}",
            "CROSS JOIN LATERAL (SELECT x.* FROM t AS x WHERE x.id BETWEEN r.id AND r.id ORDER BY x.id"
            " LIMIT %(most)s) AS x",
            "CROSS JOIN t AS x INDEXED BY t_i ON x.id = r.id",
        ),
        (
            "DELETE FROM t {free t :rows (job BIGINT, at BIGINT) WHERE kind = 'a'}",
            "DELETE FROM t WHERE ctid = ANY (ARRAY(SELECT free.spot FROM json_to_recordset(CAST(%(rows)s AS json))"
            " AS given (job BIGINT, at BIGINT) CROSS JOIN LATERAL (SELECT found.ctid AS spot FROM t AS found"
            " WHERE found.kind = 'a' AND found.job = given.job AND found.at = given.at LIMIT 1"
            " FOR UPDATE SKIP LOCKED) AS free))",
            "DELETE FROM t WHERE kind = 'a' AND (job, at) IN"
            " (SELECT value ->> 'job', value ->> 'at' FROM json_each(:rows))",
        ),
        (
            "job {in :jobs BIGINT}",
            "job = ANY (CAST(%(jobs)s AS BIGINT[]))",
            "job IN (SELECT value FROM json_each(:jobs))",
        ),
        (
            "{list :jobs AS r (job BIGINT)}",
            "unnest(CAST(%(jobs)s AS BIGINT[])) AS r (job)",
            "(SELECT value AS job FROM json_each(:jobs)) AS r",
        ),
        (
            "{rows :rows AS r (job BIGINT,\n amount DOUBLE PRECISION)}",
            "json_to_recordset(CAST(%(rows)s AS json)) AS r (job BIGINT,\n amount DOUBLE PRECISION)",
            "(SELECT value ->> 'job' AS job, value ->> 'amount' AS amount FROM json_each(:rows)) AS r",
        ),
        (
            "{by_key t AS x ON x.id = r.id FOR SHARE SKIP LOCKED}",
            "CROSS JOIN LATERAL (SELECT x.* FROM t AS x WHERE x.id = r.id LIMIT 1 FOR SHARE SKIP LOCKED) AS x",
            "CROSS JOIN t AS x ON x.id = r.id",
        ),
        (
            "{by_key_or_null t AS x ON x.id = r.id}",
            "LEFT JOIN LATERAL (SELECT x.* FROM t AS x WHERE x.id = r.id LIMIT 1) AS x ON TRUE",
            "LEFT JOIN t AS x ON x.id = r.id",
        ),
        (
            "DELETE FROM t {matching :rows (a BIGINT, b TEXT)} AND c = 1 RETURNING {returned a}",
            "DELETE FROM t AS found USING json_to_recordset(CAST(%(rows)s AS json)) AS given (a BIGINT, b TEXT)"
            " WHERE found.a = given.a AND found.b = given.b AND c = 1 RETURNING found.a",
            "DELETE FROM t AS found WHERE (a, b) IN (SELECT value ->> 'a', value ->> 'b' FROM json_each(:rows))"
            " AND c = 1 RETURNING a",
        ),
        ("{row} {among} SELECT {row w} {end}", "ctid = ANY (ARRAY( SELECT w.ctid ))", "rowid IN ( SELECT w.rowid )"),
        ("SELECT 1 {lock FOR UPDATE}", "SELECT 1 FOR UPDATE", "SELECT 1"),
        ("{postgres a.b}{sqlite :c}", "a.b", ":c"),
        ("SELECT '{in :a}', 1 -- {in :a}", "SELECT '{in :a}', 1", "SELECT '{in :a}', 1"),
    ],
)
def test_a_macro_is_what_each_database_spells_its_own_way(text: str, postgres: str, sqlite: str) -> None:
    assert (translate(text, "postgres"), translate(text, "sqlite")) == (postgres, sqlite)


@pytest.mark.parametrize(
    "text", ["{in :jobs}", "{inn :jobs BIGINT}", "{rows :rows AS r}", "{list :a AS r (b INT, c INT)}"]
)
def test_a_macro_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadMacro, match="cannot be read"):
        translate(text, "sqlite")


def test_what_is_counted_is_named_once() -> None:
    assert translate("{counts series}", "sqlite") == ", ".join(COUNTS)
    assert translate("{counts totals BIGINT}", "postgres") == ", ".join(f"{name} BIGINT" for name in COLUMNS)
    assert translate("{counts series SUM s}", "sqlite").startswith("SUM(s.completed) AS completed, SUM(s.failed) AS")
    assert translate("{counts totals + t}", "sqlite").endswith("enqueued = t.enqueued + excluded.enqueued")
    bucket = translate("{bucket waited 1000}", "postgres")
    assert bucket.startswith("CASE WHEN waited IS NULL THEN NULL WHEN waited <= 10000 THEN 1 WHEN waited <= 30000")
    assert bucket.endswith(f"WHEN waited <= 1800000000 THEN 11 ELSE {BUCKETS} END")


def test_both_databases_forget_the_same_of_a_job() -> None:
    """One statement on PostgreSQL, one per table on SQLite."""

    def tables(text: str) -> set[str]:
        return set(re.findall(r"DELETE FROM (\w+)", text))

    names = [f"forget_{table}" for table in sweep.FORGOTTEN] + ["forget_jobs"]
    on_sqlite = set[str]().union(*(tables(Statements("sqlite")[name]) for name in names))
    assert tables(Statements("postgres")["forget_jobs"]) == on_sqlite
    assert len(on_sqlite) == len(names)
