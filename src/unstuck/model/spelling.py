"""Commands as a shell takes them, and addresses of screens, whatever the names in them hold: for what people paste
and follow.

What only the database can do is a statement to paste into its own shell (psql): it begins with SELECT.
"""

from __future__ import annotations

import shlex


def about(command: str, name: str, flags: str = "") -> str:
    """A command about a name; one that begins with a dash stands last, behind `--`."""
    flags = f" {flags}" if flags else ""
    word = shlex.quote(name)
    return f"{command}{flags} -- {word}" if name.startswith("-") else f"{command} {word}{flags}"


def given(option: str, value: str) -> str:
    """An option with its value; one that begins with a dash is tied to it."""
    return f"{option}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def ending_session(pid: int | None) -> str:
    """The last resort against a session of PostgreSQL that does not end; a prepared transaction has no session."""
    return "SELECT * FROM pg_prepared_xacts" if pid is None else f"SELECT pg_terminate_backend({pid})"


def screen(noun: str, name: str) -> str:
    """Where the dashboard shows it."""
    from urllib.parse import quote

    return f"/{noun}/{quote(name, safe='')}"
