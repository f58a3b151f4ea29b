"""Statements: SQL by its name, macros expanded, from the rooms under `store/sql/`.

A file is one statement, called as the file; or a family of small ones, each below a line `-- name: add_audit`. A file
`claim.postgres.sql` is PostgreSQL's alone; what it says goes before what a file without a suffix, which serves both
databases, says under the same name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from unstuck.store.drivers import macros

SQL = Path(__file__).parents[1] / "sql"
#: Begins every statement that we send to a server: so it is known whose they are in its list of sessions, whatever
#: application a URL names and whoever shares a pooler's sessions with us.
MARK = "/* unstuck */"

# Order matters: what is quoted or commented is recognised before parameters are looked for inside it.
_PIECES = re.compile(
    r"""
    (?P<quoted>  '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>[A-Za-z_]?\w*)\$.*?\$(?P=tag)\$ )
  | (?P<comment> --[^\n]* | /\*.*?\*/ )
  | (?P<cast>    :: )
  | (?P<name>    :[A-Za-z_]\w* )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
# A brace inside quotes or a comment is none of ours.
_MACRO = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \{(?P<name>[a-z_]+)(?P<body>[^{}]*)\}""",
    re.VERBOSE | re.DOTALL,
)


class UnknownStatement(LookupError):
    def __init__(self, name: str, dialect: str) -> None:
        super().__init__(
            f"there is no statement {name!r} for {dialect}: neither a file of that name nor a line `-- name: {name}`"
        )
        self.name = name


class Statements:
    """Answers with what the driver of this dialect can send; a process reads each file once."""

    def __init__(self, dialect: str, folder: Path = SQL) -> None:
        self._dialect = dialect
        self._folder = folder

    def __getitem__(self, name: str) -> str:
        return _load(self._folder, self._dialect, name)

    def names(self) -> list[str]:
        return sorted(_texts(self._folder, self._dialect))


@cache
def _load(folder: Path, dialect: str, name: str) -> str:
    text = _texts(folder, dialect).get(name)
    if text is None:
        raise UnknownStatement(name, dialect)
    text = translate(text, dialect)
    return f"{MARK} {text}" if dialect == "postgres" else text


@cache
def _texts(folder: Path, dialect: str) -> dict[str, str]:
    """By name, whatever their rooms and files: a name means one statement."""
    found: dict[str, tuple[str, bool, str]] = {}
    for is_own, path, file in sorted(_files(folder, dialect)):
        with open(path, encoding="utf-8") as text:
            statements = _statements(file, text.read())
        for name, statement in statements:
            if name in found and found[name][1] == is_own:
                raise ValueError(f"two statements are called {name!r}: in {found[name][2]} and in {path}")
            found[name] = (statement, is_own, path)
    return {name: statement for name, (statement, _, _) in found.items()}


def _files(folder: Path, dialect: str) -> Iterator[tuple[bool, str, str]]:
    """Whether it is the dialect's own, its path, and what its statement is called if it has one alone. Those of both
    databases come first: a suffix is more than none. Every process looks: with paths as texts in half of the time."""
    for room, _, names in os.walk(folder):
        for name in names:
            file, _, kind = name.removesuffix(".sql").partition(".")
            if name.endswith(".sql") and kind in ("", dialect):
                yield bool(kind), os.path.join(room, name), file


def _statements(file: str, text: str) -> Iterable[tuple[str, str]]:
    """A family of them, each below its name; or one, which is called as its file."""
    pieces = _NAME.split(text)
    return zip(pieces[1::2], pieces[2::2], strict=True) if len(pieces) > 1 else [(file, text)]


def translate(text: str, dialect: str) -> str:
    """Without comments, macros expanded, and with parameters as the dialect's driver wants them."""
    postgres = dialect == "postgres"
    before = ""
    while text != before:  # one that has another inside is read once that one is
        before, text = text, _MACRO.sub(lambda found: _expanded(found, postgres), text)
    pieces: list[str] = []
    end = 0
    for found in _PIECES.finditer(text):
        pieces.append(_literal(text[end : found.start()], postgres))
        pieces.append(_piece(found, postgres))
        end = found.end()
    pieces.append(_literal(text[end:], postgres))
    lines = (line.rstrip() for line in "".join(pieces).splitlines())
    return "\n".join(line for line in lines if line).strip().rstrip(";").rstrip()


def _expanded(found: re.Match[str], postgres: bool) -> str:
    return found[0] if found["name"] is None else macros.expand(found["name"], found["body"], postgres)


def _piece(found: re.Match[str], postgres: bool) -> str:
    match found.lastgroup:
        case "comment":
            return " "
        case "name" if postgres:
            return f"%({found[0][1:]})s"
        case "quoted" | "tag":
            return _literal(found[0], postgres)
        case _:
            return found[0]


def _literal(text: str, postgres: bool) -> str:
    """psycopg reads every percent sign as the start of a parameter, in string literals too."""
    return text.replace("%", "%%") if postgres else text
