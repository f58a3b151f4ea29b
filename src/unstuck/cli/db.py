"""unstuck db …: the database's schema, and the secrets in it."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import exits, options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, how_to_migrate, opened, sealer_of, settings_of

app = options.group("The database's schema: bring it up to date, ask which it is, check it; reseal its secrets.")


@app.command()
def migrate(
    sql: Annotated[bool, option("--sql", help="print the statements instead of running them")] = False,
    *,
    common: options.CommonPlatform,
) -> None:
    """Create the tables, or bring them up to date. Under a lock, safe to run from everywhere at once."""
    if sql:
        output.say(_statements(common.database).rstrip())
        return
    with opened(common, missing="ignore") as session:
        applied = session.store.migrate()
        version = session.store.schema_version()
    if common.json:
        output.emit_json({"applied": applied, "version": version})
        return
    for name in applied:
        output.say(f"applied {name}")
    output.note(f"schema version {version} is in place" if applied else f"nothing to do: schema version {version}")


def _statements(database: str | None) -> str:
    """Reaches no database: its kind is all that matters."""
    from unstuck.store.drivers.connect import open_database

    opened_database = open_database(settings_of({"database": database}).database)
    try:
        return opened_database.migration_sql()
    finally:
        opened_database.close()


@app.command()
def current(common: options.CommonPlatform) -> None:
    """Which schema version the database has."""
    with opened(common) as session:
        found, wanted = versions(session)
    if common.json:
        output.emit_json({"version": found, "shipped": wanted})
    else:
        output.say(str(found))


@app.command()
def check(common: options.CommonPlatform) -> int:
    """Does the schema fit this code? Exit code 10 if not."""
    with opened(common) as session:
        found, wanted = versions(session)
    if common.json:
        output.emit_json({"ok": found >= wanted, "version": found, "shipped": wanted})
    elif found >= wanted:
        output.say(f"schema version {found} fits this code")
    else:
        remedy = how_to_migrate(session.settings)
        output.note(f"schema version {found} is behind this code, which needs {wanted}; run: {remedy}")
    return exits.OK if found >= wanted else exits.UNHEALTHY


@app.command()
def reseal(common: options.CommonPlatform) -> int:
    """Seal the secrets of all hooks and webhooks by the first of the sealing keys. Once every process has it. Exit
    code 10 if some cannot be opened here."""
    from unstuck.intake import secrets

    with opened(common) as session:
        done = secrets.reseal(session.store, sealer_of(session.settings), session.caller.by)
    if common.json:
        output.emit_json({"resealed": done.resealed, "kept": done.kept, "problems": done.problems})
    else:
        output.say(f"{done.resealed} sealed anew, {done.kept} were so already")
        for whose, problem in done.problems.items():
            output.note(f"{whose}: {output.visible(problem)}")
    return exits.UNHEALTHY if done.problems else exits.OK


def versions(session: Session) -> tuple[int, int]:
    """What the database has, and what this code brings. A newer database is fine: rolling deploys meet it."""
    return session.store.schema_version(), session.store.shipped_version()
