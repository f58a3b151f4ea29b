"""Statements: SQL by the name of its file. A file under a database's name shadows the shared one."""

from __future__ import annotations

import re
from pathlib import Path

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


class UnknownStatement(LookupError):
    def __init__(self, name: str, dialect: str) -> None:
        super().__init__(
            f"there is no statement {name!r}: neither sql/{dialect}/{name}.sql nor sql/shared/{name}.sql"
        )
        self.name = name


class Statements:
    """Reads each file once; answers with what the driver of this dialect can send."""

    def __init__(self, dialect: str, folder: Path = SQL) -> None:
        self._dialect = dialect
        self._folder = folder
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self._load(name)
        return text

    def names(self) -> list[str]:
        found = {path.stem for place in ("shared", self._dialect) for path in (self._folder / place).glob("*.sql")}
        return sorted(found)

    def _load(self, name: str) -> str:
        for place in (self._dialect, "shared"):
            path = self._folder / place / f"{name}.sql"
            if path.is_file():
                text = translate(path.read_text(encoding="utf-8"), self._dialect)
                return f"{MARK} {text}" if self._dialect == "postgres" else text
        raise UnknownStatement(name, self._dialect)


def translate(text: str, dialect: str) -> str:
    """Without comments, and with parameters as the dialect's driver wants them."""
    postgres = dialect == "postgres"
    pieces: list[str] = []
    end = 0
    for found in _PIECES.finditer(text):
        pieces.append(_literal(text[end : found.start()], postgres))
        pieces.append(_piece(found, postgres))
        end = found.end()
    pieces.append(_literal(text[end:], postgres))
    lines = (line.rstrip() for line in "".join(pieces).splitlines())
    return "\n".join(line for line in lines if line).strip().rstrip(";").rstrip()


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
