"""Connect: from a URL to a Database."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from unstuck.model.address import masked
from unstuck.model.errors import InvalidSettings, StoreUnavailable
from unstuck.store.database import Database
from unstuck.store.drivers.leaps import Witness

_PREPARE = re.compile(r"(?<=[?&])prepare=([^&]*)(?:&|$)")


def open_database(
    url: str,
    *,
    store_call: float = 3.0,
    application: str = "unstuck",
    max_connections: int = 8,
    now_offset: float = 0.0,
    prepare: int | None = 5,
    witness: Witness | None = None,
) -> Database:
    """Reaches nothing yet: the first call connects. `?prepare=off` in a PostgreSQL URL suits transaction poolers;
    `now_offset` moves the clock of a SQLite store (PostgreSQL has its own); `witness` notices that PostgreSQL's has
    leapt, one for all that a worker opens."""
    if is_postgres(url):
        return _open_postgres(url, store_call, application, max_connections, prepare, witness)
    from unstuck.store.drivers.sqlite import SqliteDatabase

    return SqliteDatabase(sqlite_path(url), store_call=store_call, now_offset=now_offset)


def is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> Path:
    """`sqlite:///relative.db`, `sqlite:////absolute.db` or a plain path."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        path = url
    elif scheme == "sqlite":
        path = unquote(rest.removeprefix("/")) if rest.startswith("/") else ""
    else:
        server = (
            "; it is a server's address, and this needs the database itself" if scheme in ("http", "https") else ""
        )
        raise InvalidSettings([f"database={masked(url)!r} begins with neither sqlite:/// nor postgresql://{server}"])
    if not path or path == ":memory:":
        raise InvalidSettings([f"database={url!r} names no file; say sqlite:///unstuck.db, or a path"])
    return Path(path)


def _open_postgres(
    url: str,
    store_call: float,
    application: str,
    max_connections: int,
    prepare: int | None,
    witness: Witness | None,
) -> Database:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise StoreUnavailable('PostgreSQL needs its driver: pip install "unstuck[postgres]"')
    from unstuck.store.drivers.postgres import PostgresDatabase

    address, asked = _split_prepare(url)
    return PostgresDatabase(
        address,
        store_call=store_call,
        application=application,
        max_connections=max_connections,
        prepare=prepare if asked is None else _threshold(asked),
        witness=witness,
    )


def _split_prepare(url: str) -> tuple[str, str | None]:
    """`prepare` is ours; libpq would refuse the whole URL because of it. It reads the rest as it was written: a URL
    that is taken apart and put together again loses an empty host, and its spaces become plus signs."""
    ours = _PREPARE.findall(url)
    return (_PREPARE.sub("", url).rstrip("?&"), unquote(ours[-1])) if ours else (url, None)


def _threshold(asked: str) -> int | None:
    if asked == "off":
        return None
    if asked.isdecimal():
        return int(asked)
    raise InvalidSettings([f"prepare={asked!r} is neither `off` nor a number of executions"])
