"""Migrations: schema/<dialect>/NNNN_name.sql, applied in order under a lock, remembered with their checksums.

A database that is ahead of this code is fine: during a rolling deploy old workers meet the new schema, and every
migration keeps what the previous version needs. A database that is behind, or that got another text under the same
number, is not.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unstuck.model.errors import SchemaMismatch
from unstuck.store.database import Row, Transaction

SCHEMA = Path(__file__).parents[1] / "schema"
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def file(self) -> str:
        return f"{self.number:04}_{self.name}.sql"


class SchemaTransaction(Transaction, Protocol):
    def script(self, sql: str) -> None:
        """Run several statements as they are."""
        ...


Run = Callable[[Callable[[SchemaTransaction], list[str]]], list[str]]


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


def pending(applied: Sequence[Row], migrations: Sequence[Migration]) -> list[Migration]:
    """What is still to be applied. Refuses a history that this code did not write."""
    by_number = {int(row["number"]): row for row in applied}
    newest = max(by_number, default=0)
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


def apply(tx: SchemaTransaction, migrations: Sequence[Migration]) -> list[str]:
    """Bring the schema up to date inside a transaction that holds the migration lock."""
    tx.run("migration_table")
    missing = pending(tx.all("migrations_applied"), migrations)
    for migration in missing:
        tx.script(migration.sql)
        tx.run("migration_record", number=migration.number, name=migration.name, checksum=migration.checksum)
    return [migration.file.removesuffix(".sql") for migration in missing]


def script(migrations: Sequence[Migration], table: str, clock: str) -> str:
    """All of it as text, for people who apply it themselves; it leaves the same records behind."""
    pieces = ["BEGIN;", f"{table};"]
    for migration in migrations:
        pieces.append(f"-- {migration.file}\n{migration.sql.strip()}")
        pieces.append(
            "INSERT INTO unstuck_migrations (number, name, checksum, applied_at)\n"
            f"VALUES ({migration.number}, '{migration.name}', '{migration.checksum}', {clock});"
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
