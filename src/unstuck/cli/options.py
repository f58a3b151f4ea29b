"""Options that mean the same everywhere, spelled once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from unstuck.cli.parser import Argument, Command, Option, option
from unstuck.model.budget import check_amounts
from unstuck.model.errors import InvalidInput, quoted, told
from unstuck.model.job import DEFAULT_TENANT as DEFAULT_TENANT
from unstuck.records import dataclass

T = TypeVar("T")


def seconds(text: str | float) -> float:
    """90, 90s, 5m, 2h, 1d, 1h30m."""
    from unstuck.config import seconds as read
    from unstuck.model.policy import LONGEST

    found = _read(read, text)
    if not 0 <= found <= LONGEST or not str(text).isascii():
        raise InvalidInput(f"{told(text)}: not a duration between 0 and {LONGEST / 86400:.0f} days")
    return found


def amount(text: str) -> tuple[str, float]:
    """tokens=5000: a unit and how much of it."""
    unit, _, most = text.partition("=")
    try:
        found = (unit.strip(), float(most))
        check_amounts(dict([found]))
    except (ValueError, InvalidInput):
        raise InvalidInput(f"{quoted(text)} is not a unit and a number, like tokens=5000") from None
    return found


def time_limit(text: str) -> float | str:
    """A duration, or "unlimited"."""
    return text if text == "unlimited" else seconds(text)


def instant(text: str) -> datetime:
    """2030-01-31T18:00:00Z: a time that says its zone."""
    words = text.strip()
    try:
        found = datetime.fromisoformat(words)
    except ValueError:
        raise InvalidInput(f"{quoted(text)} is not a time like 2030-01-31T18:00:00Z") from None
    if found.tzinfo is None:
        whole = found.isoformat()
        raise InvalidInput(f"{quoted(text)} does not say in which zone; write {whole}Z for UTC, or {whole}+02:00")
    return found


def byte_count(text: str | int) -> int:
    """1073741824, 512M, 2G (powers of 1024)."""
    from unstuck.config import byte_count as read

    return _read(read, text)


def _read(read: Callable[[Any], T], text: object) -> T:
    try:
        return read(text)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{told(text)}: {told(str(error))}") from None


Database = Annotated[
    str | None,
    option(
        "--database",
        "-d",
        metavar="URL",
        help="sqlite:///FILE or postgresql://…  [UNSTUCK_DATABASE]",
    ),
]
AppName = Annotated[
    str | None,
    option("--app", "-a", metavar="MODULE:APP", help="where the App is  [UNSTUCK_APP]"),
]
Tenant = Annotated[
    str | None,
    option("--tenant", metavar="NAME", help="whose jobs  [UNSTUCK_TENANT; default]"),
]
OneTenant = Annotated[
    str | None,
    option("--tenant", metavar="NAME", help="of this tenant only  [UNSTUCK_TENANT; of all]"),
]
Json = Annotated[bool, option("--json", help="for programs: stable keys")]
JobName = Annotated[str, Argument(metavar="JOB", help="a job's id, or enough of its beginning")]
JobNames = Annotated[list[str], Argument(metavar="JOB", help="ids, or enough of their beginnings")]
JobsOrFilter = Annotated[
    list[str] | None, Argument(metavar="JOB", help="ids, or enough of their beginnings; without any: a filter")
]


def rows(most: int) -> Option:
    return option("--limit", "-n", help="maximum rows", least=1, most=most)


By = Annotated[str | None, option("--by", metavar="NAME", help="who asks; else whose shell this is")]
AfterNumber = Annotated[str | None, option("--after", metavar="NUMBER", help="go on where the last page ended")]
Timeout = Annotated[
    float | None,
    option("--timeout", read=seconds, metavar="DURATION", help="how long to wait at most, e.g. 90s"),
]


@dataclass(frozen=True)
class CommonPlatform:
    """What a command about the whole platform takes besides its own options."""

    json: Json = False
    database: Database = None

    @property
    def flags(self) -> Mapping[str, str | None]:
        """The settings that these options name; None: another place may name them."""
        return {"database": self.database}


@dataclass(frozen=True)
class Common(CommonPlatform):
    """What a command about one tenant's things takes besides its own options."""

    tenant: Tenant = None

    @property
    def flags(self) -> Mapping[str, str | None]:
        return {"database": self.database, "tenant": self.tenant}


@dataclass(frozen=True)
class CommonOneTenant(Common):
    """The same where no tenant means all of them."""

    tenant: OneTenant = None


@dataclass(frozen=True)
class CommonAnywhere(Common):
    """The same where a server may be asked instead of the database."""

    server: Annotated[
        str | None, option("--server", metavar="URL", help="ask this server instead of the database")
    ] = None
    key: Annotated[
        str | None,
        option("--key", metavar="usk_…", help="by which it is asked; better in UNSTUCK_KEY or UNSTUCK_KEY_FILE"),
    ] = None
    allow_http: Annotated[
        bool, option("--allow-http", help="send the key by http://, also to another machine; others may read it")
    ] = False


#: Of what takes a job's id: an id is one job's.
Anybodys = Annotated[bool, option("--all-tenants", help="whoever's job it is")]


def check_whose(all_tenants: bool, common: CommonPlatform) -> None:
    if all_tenants and common.flags.get("tenant") is not None:
        raise InvalidInput("--all-tenants and --tenant exclude each other")


def check_timeout(wait: bool, timeout: float | None, hint: str = "") -> None:
    """`--timeout` means the same in every command: how long this command waits. Alone it would mean nothing."""
    if timeout is not None and not wait:
        raise InvalidInput(f"--timeout says how long --wait waits{hint}")


def group(summary: str, default: str | None = None, remark: str | None = None) -> Command:
    """A command with verbs; `default` is meant when none is given, `remark` is the end of its help."""
    return Command(summary, default, remark)


def single() -> Command:
    """A command without verbs."""
    return Command()


#: Not the secret itself: what a command line says, every process of the host can read.
SecretFile = Annotated[
    str | None,
    option("--secret-file", metavar="FILE", help="a secret that the other side has; - for stdin; else one is made"),
]


def secret_in(file: str | None) -> str | None:
    return None if file is None else text_in(file).strip()


def text_in(file: str) -> str:
    """All of a file, or with - of stdin."""
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
