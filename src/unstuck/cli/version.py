"""unstuck version: what to quote in a report."""

from __future__ import annotations

import platform
import sqlite3
import sys

from unstuck.cli import options, output
from unstuck.version import __version__

app = options.single()


@app.command()
def version(json_: options.Json = False) -> None:
    """Which version this is; with --json also of what it stands on."""
    facts = {
        "unstuck": __version__,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "psycopg": _installed("psycopg"),
    }
    if json_:
        output.emit_json(facts)
    else:
        output.say(f"unstuck {__version__}")


def _installed(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return None
