"""What a request costs: submits over HTTP by 1, 16 and 64 clients beside direct `enqueue`, reads, idle connections.

The server is a process of its own (`unstuck server`), and so are the clients: connections that are kept, each with
one request at a time, on one event loop that only writes bytes and finds the end of the answer. Turns of a few
seconds follow one another, and so do the databases: a ratio is taken within a round.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import environment, postgres, processes

RESULTS = environment.ROOT / "bench" / "results" / "http.jsonl"
CLIENTS = (1, 16, 64)
#: How much more 64 clients get through than one.
LEAST_GAIN = 3.0
IDLE = 990
MEANT = ("a name", 7)


@dataclass
class Site:
    """A server over a fresh database."""

    kind: str
    database: str
    url: str
    pid: int
    database_pid: int | None

    def cpu(self) -> tuple[float, float]:
        return processes.cpu_of(self.pid), processes.cpu_of(self.database_pid) if self.database_pid else 0.0


def run(stores: Sequence[str], rounds: int, seconds: float, keep: bool) -> bool:
    """Whether 64 clients get as much more through as they are to."""
    begun, lines = datetime.now(UTC).isoformat(timespec="seconds"), list[dict[str, Any]]()
    with ExitStack() as stack:
        sites = [stack.enter_context(site_of(kind)) for kind in stores]
        for number in range(rounds + 1):  # the first warms up
            for turn in _turns():
                for site in sites:
                    line = {"round": number, "store": site.kind, **_measured(site, turn, seconds)}
                    lines += [{"run": begun, **line}] if number else []
            print(f"round {number} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        lines += [{"run": begun, "round": 1, "store": site.kind, **_idle(site)} for site in sites]
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    print(table(lines))
    gains = {kind: _gain(lines, kind) for kind in stores}
    for kind, gain in gains.items():
        verdict = "ok" if gain >= LEAST_GAIN else f"LESS THAN {LEAST_GAIN:g}"
        print(f"{kind}: 64 clients submit {gain:.2f} × as many a second as one  {verdict}")
    return all(gain >= LEAST_GAIN for gain in gains.values())


def _turns() -> Iterator[tuple[str, int]]:
    yield "enqueue", 1
    for clients in CLIENTS:
        yield "submit", clients
    for what in ("read", "list"):
        yield what, 1
        yield what, 16


def _measured(site: Site, turn: tuple[str, int], seconds: float) -> dict[str, Any]:
    what, clients = turn
    module = ["http-direct", site.database] if what == "enqueue" else ["http-clients", site.url, what, str(clients)]
    server, database = site.cpu()
    command = [sys.executable, "-m", "bench", *module, str(seconds)]
    done = subprocess.run(command, cwd=environment.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    after = site.cpu()
    took: dict[str, Any] = json.loads(done.stdout)
    each = 1e6 / max(1, took["requests"])
    took |= {"server_us": round((after[0] - server) * each), "database_us": round((after[1] - database) * each)}
    return {"what": what, "clients": clients, **took, "load": round(os.getloadavg()[0], 1)}


def _idle(site: Site) -> dict[str, Any]:
    """What the server's memory grows by when these have asked once, and rest."""
    before = resident(site.pid)
    host, port = address(site.url)
    with ExitStack() as stack:
        for _ in range(IDLE):
            connection = stack.enter_context(closing(_asked_once(host, port)))
            assert connection.fileno() >= 0
        grown = resident(site.pid) - before
    return {"what": "idle", "clients": IDLE, "bytes": grown // IDLE, "load": round(os.getloadavg()[0], 1)}


def _asked_once(host: str, port: int) -> Any:
    import socket

    connection = socket.create_connection((host, port), timeout=10)
    connection.sendall(request("GET", "/healthz", host))
    if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
        raise RuntimeError("the server took no more connections")
    return connection


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- the server ---------------------------------------------------------------------------------------------------


@contextmanager
def site_of(kind: str, prepare: Callable[[str], None] | None = None) -> Iterator[Site]:
    """A server over a fresh database, which `prepare` fills."""
    with ExitStack() as stack:
        if kind == "postgres":
            server = stack.enter_context(postgres.server())
            database, database_pid = server.create("bench"), server.pid
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-"))
            database, database_pid = f"sqlite:///{folder}/bench.db", None
        (prepare or _prepare)(database)
        command = [sys.executable, "-m", "unstuck", "server", "--port", "0", "--database", database]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = stack.enter_context(subprocess.Popen([*command, "--stop-with-stdin"], **pipes))
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        yield Site(kind, database, url, process.pid, database_pid)
        assert process.stdin is not None
        process.stdin.close()


def _prepare(database: str) -> None:
    """The schema, and a workflow as a worker registers it."""
    from unstuck.model.job import WorkflowRecord
    from unstuck.model.policy import Policy
    from unstuck.store.drivers.connect import open_database
    from unstuck.store.sql_store import SqlStore

    with closing(SqlStore(open_database(database))) as store:
        store.migrate()
        store.register_workflows([WorkflowRecord("plain", "v1", "default", Policy(), {})])


# --- the clients, in their own process ----------------------------------------------------------------------------


def direct(database: str, seconds: float) -> None:
    """One caller that has the database itself."""
    import unstuck

    app = unstuck.App(database=database)

    @app.workflow
    def plain(name: str, number: int) -> None: ...

    with app:
        plain.enqueue(*MEANT)

        async def ask() -> None:
            plain.enqueue(*MEANT)

        print(json.dumps(asyncio.run(_asking([ask], seconds))))


def clients(url: str, what: str, count: int, seconds: float) -> None:
    host, port = address(url)
    asyncio.run(_clients(host, port, what, count, seconds))


async def _clients(host: str, port: int, what: str, count: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    connections = [(await loop.create_connection(Connection, host, port))[1] for _ in range(count)]
    made = _submit(host)
    job = json.loads(await connections[0].ask(made, 201))["id"]
    asked = {
        "submit": (made, 201),
        "read": (request("GET", f"/api/v1/jobs/{job}", host), 200),
        "list": (request("GET", "/api/v1/jobs?limit=50", host), 200),
    }[what]
    for connection in connections:  # they have all been there before the clock runs
        await connection.ask(*asked)

    def asker(connection: Connection) -> Callable[[], Any]:
        return lambda: connection.ask(*asked)

    print(json.dumps(await _asking([asker(each) for each in connections], seconds)))
    for connection in connections:
        connection.close()


async def _asking(askers: Sequence[Callable[[], Any]], seconds: float) -> dict[str, Any]:
    """All at once, each one request after the other, until time is up."""
    took: list[float] = []
    began = time.perf_counter()
    until = began + seconds

    async def go_on(ask: Callable[[], Any]) -> None:
        while (sent := time.perf_counter()) < until:
            await ask()
            took.append(time.perf_counter() - sent)

    await asyncio.gather(*map(go_on, askers))
    spent = time.perf_counter() - began
    took.sort()
    p50, p99 = (round(took[int(len(took) * share)] * 1000, 2) for share in (0.5, 0.99))
    return {"requests": len(took), "s": round(spent, 3), "p50_ms": p50, "p99_ms": p99}


class Connection(asyncio.Protocol):
    """One request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._heard = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self.is_lost = False

    async def ask(self, request: bytes, status: int) -> bytes:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        whole = await self._answer
        if not whole.startswith(b"HTTP/1.1 %d" % status):
            raise RuntimeError(f"the server answered {whole[:2000]!r}")
        return whole.partition(b"\r\n\r\n")[2]

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            whole, self._heard = bytes(self._heard), bytearray()
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(RuntimeError(f"the server hung up: {exc}"))

    def close(self) -> None:
        self._transport.close()


def _submit(host: str) -> bytes:
    return request("POST", "/api/v1/jobs", host, json.dumps({"workflow": "plain", "args": MEANT}).encode())


def request(method: str, path: str, host: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: application/json"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


# --- what was found -----------------------------------------------------------------------------------------------


def _gain(lines: Sequence[dict[str, Any]], kind: str) -> float:
    """The median of each round's own."""
    rates = {
        (line["round"], line["clients"]): line["requests"] / line["s"]
        for line in lines
        if line["store"] == kind and line["what"] == "submit"
    }
    rounds = sorted({number for number, _ in rates})
    gain: float = statistics.median(rates[number, CLIENTS[-1]] / rates[number, 1] for number in rounds)
    return gain


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Medians over the rounds."""
    out = [
        "| | | clients | requests/s | p50 ms | p99 ms | server µs | database µs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((line["store"], line["what"], line["clients"]) for line in lines):
        mine = [line for line in lines if (line["store"], line["what"], line["clients"]) == key]
        if key[1] == "idle":
            out.append(f"| {key[0]} | idle | {key[2]} | {mine[0]['bytes']:,} bytes each | | | | |")
            continue
        rate = statistics.median(line["requests"] / line["s"] for line in mine)
        parts = [statistics.median(line[name] for line in mine) for name in ("p50_ms", "p99_ms")]
        cpu = [statistics.median(line[name] for line in mine) for name in ("server_us", "database_us")]
        figures = " | ".join([f"{rate:,.0f}", *(f"{part:.1f}" for part in parts), *(f"{each:,.0f}" for each in cpu)])
        out.append(f"| {key[0]} | {key[1]} | {key[2]} | {figures} |")
    return "\n".join(out)
