"""SQL by name, with parameters as each driver wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.store.statements import MARK, Statements, UnknownStatement, translate


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
    for place, text in (("shared", "SELECT 1"), ("sqlite", "SELECT 2")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "number.sql").write_text(text)

    assert Statements("sqlite", tmp_path)["number"] == "SELECT 2"
    assert Statements("postgres", tmp_path)["number"] == f"{MARK} SELECT 1"


def test_a_missing_statement_names_both_places() -> None:
    with pytest.raises(UnknownStatement, match=r"sql/postgres/nothing\.sql nor sql/shared/nothing\.sql"):
        Statements("postgres")["nothing"]


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_every_shipped_statement_can_be_read(dialect: str) -> None:
    statements = Statements(dialect)

    assert all(statements[name] for name in statements.names())
