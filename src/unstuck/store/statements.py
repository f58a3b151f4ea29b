"""Statements: SQL by the name of its file, macros expanded. A database's own file shadows the shared one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from unstuck.store import macros

SQL = Path(__file__).parent / "sql"
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
# A brace inside quotes or a comment is none of ours.
_MACRO = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \{(?P<name>[a-z_]+)(?P<body>[^{}]*)\}""",
    re.VERBOSE | re.DOTALL,
)


class UnknownStatement(LookupError):
    def __init__(self, name: str, dialect: str) -> None:
        super().__init__(
            f"there is no statement {name!r}: neither sql/{dialect}/{name}.sql nor sql/shared/{name}.sql"
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
        found = {path.stem for place in ("shared", self._dialect) for path in (self._folder / place).glob("*.sql")}
        return sorted(found)


@cache
def _load(folder: Path, dialect: str, name: str) -> str:
    for place in (dialect, "shared"):
        path = folder / place / f"{name}.sql"
        if path.is_file():
            text = translate(path.read_text(encoding="utf-8"), dialect)
            return f"{MARK} {text}" if dialect == "postgres" else text
    raise UnknownStatement(name, dialect)


def translate(text: str, dialect: str) -> str:
    """Without comments, macros expanded, and with parameters as the dialect's driver wants them."""
    postgres = dialect == "postgres"
    text = _MACRO.sub(lambda found: _expanded(found, postgres), text)
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
