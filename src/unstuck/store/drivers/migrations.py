"""Migrations: schema/<dialect>/NNNN_name.sql, applied in order under a lock, remembered with their checksums.

What is computed (views, functions) is in schema/<dialect>/repeatable/: after the numbered files each of those is
applied whose text is not the one that was applied last. A view whose columns change is dropped by a numbered file.

A database that is ahead of this code is fine: during a rolling deploy old workers meet the new schema, and every
migration keeps what the previous version needs. Its views are left as they are; so a release that changes one of
them brings a numbered file too, be it empty. A database that is behind, or that got another text under the same
number, is not fine.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from unstuck.model.errors import SchemaMismatch
from unstuck.records import dataclass
from unstuck.store.database import Database, Row, Transaction

SCHEMA = Path(__file__).parents[1] / "schema"
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
#: What the first migration was called before all of them became one.
_OLD_FIRST = "jobs"


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        import hashlib

        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def file(self) -> str:
        return f"{self.number:04}_{self.name}.sql"


@dataclass(frozen=True, slots=True)
class Repeatable:
    """Views and functions, as they are to be."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        import hashlib

        return hashlib.sha256(self.sql.encode()).hexdigest()


class SchemaTransaction(Transaction, Protocol):
    def script(self, sql: str) -> None:
        """Run several statements as they are."""
        ...


def shipped(dialect: str, folder: Path = SCHEMA) -> list[Migration]:
    """What this version of the code brings, in order and without gaps."""
    found = [
        Migration(int(match[1]), match[2], path.read_text(encoding="utf-8"))
        for path in sorted((folder / dialect).glob("*.sql"))
        if (match := _FILE.fullmatch(path.name))
    ]
    for expected, migration in enumerate(found, start=1):
        if migration.number != expected:
            raise SchemaMismatch(f"the migrations have a gap: {expected:04}_*.sql is missing before {migration.file}")
    return found


def repeatables(dialect: str, folder: Path = SCHEMA) -> list[Repeatable]:
    """What this version computes, in the order in which one needs the other."""
    return [
        Repeatable(f"repeatable/{path.stem}", path.read_text(encoding="utf-8"))
        for path in sorted((folder / dialect / "repeatable").glob("*.sql"))
    ]


def version(t: Transaction, migrations: Sequence[Migration]) -> int:
    """The number of the newest migration that was applied; 0: none was. Refuses a database that began otherwise."""
    found = t.one("migration_table_exists")
    row = t.one("schema_version") if found and found["found"] else None
    if row is None:
        return 0
    changed = bool(migrations) and row["first_checksum"] not in (None, migrations[0].checksum)
    _refuse_old(row["first_name"], changed)
    return int(row["version"])


def _refuse_old(first: str | None, changed: bool = False) -> None:
    if first == _OLD_FIRST or changed:
        raise SchemaMismatch(
            "this database was made before the first release of unstuck, and nothing brings it up to date: "
            "name a new one with --database or UNSTUCK_DATABASE, and enqueue there what is still to be done "
            "(`unstuck jobs list --json`, of the version that made it, prints every job)"
        )


def pending(applied: Sequence[Row], migrations: Sequence[Migration]) -> list[Migration]:
    """What is still to be applied. Refuses a history that this code did not write."""
    by_number = {int(row["number"]): row for row in applied}
    newest = max(by_number, default=0)
    _refuse_old(by_number[1]["name"] if 1 in by_number else None)
    for migration in migrations:
        row = by_number.get(migration.number)
        if row is None and migration.number < newest:
            raise SchemaMismatch(
                f"the database has a gap: {migration.file} was never applied, but number {newest} was; "
                "restore the database or apply that file by hand"
            )
        if row is not None and row["checksum"] != migration.checksum:
            raise SchemaMismatch(
                f"{migration.file} is not the text that was applied to this database (as {row['name']}); "
                "migrations never change: put the old file back and add a new one"
            )
    return [migration for migration in migrations if migration.number > newest]


def apply(tx: SchemaTransaction, migrations: Sequence[Migration], computed: Sequence[Repeatable]) -> list[str]:
    """Bring the schema up to date inside a transaction that holds the migration lock; what was applied."""
    tx.run("migration_table")
    tx.run("repeatable_table")
    applied = tx.all("migrations_applied")
    missing = pending(applied, migrations)
    for migration in missing:
        tx.script(migration.sql)
        tx.run("migration_record", number=migration.number, name=migration.name, checksum=migration.checksum)
    is_ahead = bool(applied) and applied[-1]["number"] > max((m.number for m in migrations), default=0)
    changed = [] if is_ahead else _changed(tx, computed)
    for one in changed:
        tx.script(one.sql)
        tx.run("repeatable_record", name=one.name, checksum=one.checksum)
    return [migration.file.removesuffix(".sql") for migration in missing] + [one.name for one in changed]


def _changed(t: Transaction, computed: Sequence[Repeatable]) -> list[Repeatable]:
    known = {row["name"]: row["checksum"] for row in t.all("repeatables_applied")}
    return [one for one in computed if known.get(one.name) != one.checksum]


def is_current(t: Transaction, migrations: Sequence[Migration], computed: Sequence[Repeatable]) -> bool:
    """Whether there is nothing to apply; also of a database that is ahead."""
    found, newest = version(t, migrations), max((migration.number for migration in migrations), default=0)
    return found > newest or (found == newest and not _changed(t, computed))


def prepare(database: Database) -> bool:
    """The one place that decides whether somebody who only wants to work brings the schema up to date; False: it is
    behind, and stays so. An empty database gets its tables, and a file is kept up to date by whoever opens it. A
    server's database is never upgraded behind anyone's back: other versions of the program may be using it."""
    found = database.schema_version()
    if found == 0 or (database.is_file and not database.has_current_schema()):
        database.migrate()
        return True
    return found >= database.shipped_version()


def script(migrations: Sequence[Migration], computed: Sequence[Repeatable], tables: Sequence[str], clock: str) -> str:
    """All of it as text, for people who apply it themselves; it leaves the same records behind."""
    pieces = ["BEGIN;", *(f"{table};" for table in tables)]
    for migration in migrations:
        pieces.append(f"-- {migration.file}\n{migration.sql.strip()}")
        pieces.append(
            "INSERT INTO unstuck_migrations (number, name, checksum, applied_at)\n"
            f"VALUES ({migration.number}, '{migration.name}', '{migration.checksum}', {clock});"
        )
    for one in computed:
        pieces.append(f"-- {one.name}.sql\n{one.sql.strip()}")
        pieces.append(
            "INSERT INTO unstuck_repeatables (name, checksum, applied_at)\n"
            f"VALUES ('{one.name}', '{one.checksum}', {clock});"
        )
    return "\n\n".join([*pieces, "COMMIT;"]) + "\n"


def statements(sql: str) -> Iterator[str]:
    """One at a time, for SQLite: its own grammar decides where one ends, so trigger bodies stay whole."""
    gathered = ""
    for piece in re.split(r"(?<=;)", sql):
        gathered += piece
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
    if gathered.strip():
        yield gathered
