"""Workers at a distance: a drain through one server beside the same worker on the database, how soon single jobs are
picked up over HTTP, and a thousand idle workers on one server.

The drain and the pick-up are cells as all others; the server's CPU counts as the worker's. The idle ones are
simulated by one process that speaks the workers' protocol on two connections each, as a worker does: a poll for jobs
and one for what is asked of it. Each has a key of its own, and beats. Then a job is submitted, and it is told
how soon one of them has it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import drain, environment, idle
from bench.http import Connection, Site, address, request, resident, site_of
from bench.live import MOST_SESSIONS, sessions_of

RESULTS = environment.ROOT / "bench" / "results" / "remote.jsonl"
WORKERS = 1000
#: Seconds between two beats of a worker at a distance.
BEAT = 15.0
#: Threads that a server may have, however many workers wait there.
MOST_THREADS = 60
JOBS = 20
PAIRS = {
    "postgres": {"remote": "unstuck-sync"},
    "sqlite": {"sqlite-remote": "unstuck-sqlite-sync"},
}


def run(stores: Sequence[str], rounds: int, jobs: int | None, seconds: float, workers: int, keep: bool) -> bool:
    pairs = {harder: easier for kind in stores for harder, easier in PAIRS[kind].items()}
    if rounds:
        for harder, ratio in drain.ratios(pairs, rounds, jobs, keep).items():
            print(f"{harder}: drains {ratio:.2f} × as fast as {pairs[harder]}")
        idle.run("pickup", [name for pair in pairs.items() for name in reversed(pair)], rounds, keep)
    begun, lines = datetime.now(UTC).isoformat(timespec="seconds"), list[dict[str, Any]]()
    for kind in stores:
        with site_of(kind) as site:
            found = {"run": begun, "store": kind, "workers": workers, **_idlers(site, seconds, workers)}
        lines.append(found | {"load": round(os.getloadavg()[0], 1)})
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    for line in lines:
        is_kept = line["sessions"] <= MOST_SESSIONS and line["threads"] <= MOST_THREADS
        print(
            f"{line['store']}: {workers} idle workers: {line['cpu']:.1%} of a core, "
            f"of the database's {line['database_cpu']:.1%}, "
            f"{line['bytes_each']:,} bytes each, {line['sessions']} connections to the database, "
            f"{line['threads']} threads; "
            f"a job was with one of them after {line['pickup_p50_ms']} ms (p50 of {JOBS}, slowest "
            f"{line['pickup_most_ms']} ms)  {'ok' if is_kept else 'TOO MUCH'}"
        )
    return all(line["sessions"] <= MOST_SESSIONS and line["threads"] <= MOST_THREADS for line in lines)


def _idlers(site: Site, seconds: float, workers: int) -> dict[str, Any]:
    before = resident(site.pid)
    with _crew(site, workers) as process:
        grown = resident(site.pid) - before
        cpu, began = site.cpu(), time.monotonic()
        time.sleep(seconds)
        span = time.monotonic() - began
        server, database = ((after - was) / span for after, was in zip(site.cpu(), cpu, strict=True))
        found = {
            "cpu": round(server, 4),
            "database_cpu": round(database, 4),
            "bytes_each": grown // workers,
            "sessions": sessions_of(site),
            "threads": len(list(Path(f"/proc/{site.pid}/task").iterdir())),
        }
        waits = sorted(_pickups(site, process))
    return found | {"pickup_p50_ms": round(statistics.median(waits), 1), "pickup_most_ms": round(waits[-1], 1)}


def _pickups(site: Site, process: subprocess.Popen[str]) -> Iterator[float]:
    """Milliseconds from before a direct enqueue until a worker has read its answer."""
    import unstuck

    app = unstuck.App(database=site.database)

    @app.workflow
    def plain(name: str, number: int) -> None: ...

    assert process.stdout is not None
    with app:
        for number in range(JOBS):
            sent = time.monotonic_ns()
            plain.enqueue("one", number)
            yield (int(process.stdout.readline()) - sent) / 1e6


@contextmanager
def _crew(site: Site, workers: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "bench", "remote-crew", site.url, site.database, str(workers)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        if process.stdout.readline() != "all there\n":
            raise RuntimeError("the workers could not register")
        yield process
        process.stdin.close()


# --- the workers, in one process of their own ---------------------------------------------------------------------


def crew(url: str, database: str, workers: int) -> None:
    """Until standard input ends. A line for each job that one of them is offered: when, by the monotonic clock."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_work(*address(url), _keys(database, workers)))


def _keys(database: str, count: int) -> list[str]:
    from unstuck.operations import keys
    from unstuck.operations.table import Caller
    from unstuck.store.drivers.connect import open_database
    from unstuck.store.sql_store import SqlStore

    with closing(SqlStore(open_database(database))) as store:
        caller = Caller(store, "bench")
        return [keys.create(caller, f"host-{number}", role="worker").key for number in range(count)]


async def _work(host: str, port: int, keys: list[str]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(over.set)), daemon=True).start()
    far = [FarWorker(host, port, key) for key in keys]
    for worker in far:
        await worker.register()
    tasks = [asyncio.create_task(each) for worker in far for each in (worker.take(), worker.listen(), worker.beat())]
    await asyncio.sleep(5)  # all of them wait
    for task in tasks:
        if task.done():
            task.result()
    print("all there", flush=True)
    await over.wait()
    os._exit(0)


class FarWorker:
    """What an idle worker says, and nothing else."""

    def __init__(self, host: str, port: int, key: str) -> None:
        from unstuck.chance import SystemChance
        from unstuck.model.keys import id_in
        from unstuck.model.offers import remote_incarnation

        self._place = (host, port)
        self._key = key
        self._chance = SystemChance()
        self._incarnation = remote_incarnation(id_in(key), self._chance.nonce())
        self._number = 0

    async def register(self) -> None:
        from unstuck.store.port import NewWorker, wire

        own: dict[str, Any] = {
            "incarnation": self._incarnation,
            "name": self._incarnation[:8],
            "host": "bench",
            "boot_id": "b",
        }
        made = NewWorker(**own, pid_namespace="1", pid=1, pid_start=1, queues=(), code_version="v1", lease=60.0)
        connection = await self._connected()
        answer = await self._ask(connection, "register", wire.RegisterBody(wire.PROTOCOL, made))
        self._number = wire.decoded(wire.RegisterAnswer, answer, "the answer").worker.number
        connection.close()

    async def take(self) -> None:
        from unstuck.model.offers import claim_id
        from unstuck.store.port import Wanted, wire

        connection = await self._connected()
        wanted = Wanted(slots=1, workflows=("plain",), queues=("default",), wait=30.0)
        while True:
            claim = claim_id(self._number, self._chance.nonce())
            body = wire.TakeBody(self._number, self._incarnation, claim=claim, wanted=wanted)
            answer = await self._ask(connection, "take", body)
            if jobs := wire.decoded(wire.TakeAnswer, answer, "the answer").jobs:
                print(time.monotonic_ns(), flush=True)
                offers = tuple(job.ref for job in jobs)
                acknowledged = wire.AcknowledgeBody(self._number, self._incarnation, claim=claim, offers=offers)
                await self._ask(connection, "acknowledge", acknowledged)

    async def listen(self) -> None:
        from unstuck.store.port import wire

        connection, seen = await self._connected(), ""
        while True:
            body = wire.ControlBody(self._number, self._incarnation, seen=seen, wait=25.0)
            seen = wire.decoded(wire.ControlAnswer, await self._ask(connection, "control", body), "the answer").seen

    async def beat(self) -> None:
        from unstuck.store.port import wire

        await asyncio.sleep(BEAT * int(self._incarnation[-4:], 16) / 0xFFFF)
        connection = await self._connected()
        while True:
            body = wire.verbs()["renew"].body(
                worker=self._number, incarnation=self._incarnation, lease=60.0, info={"slots": 1}
            )
            await self._ask(connection, "renew", body)
            await asyncio.sleep(BEAT)
            if connection.is_lost:  # servers close what rests
                connection = await self._connected()

    async def _connected(self) -> Connection:
        return (await asyncio.get_running_loop().create_connection(Connection, *self._place))[1]

    async def _ask(self, connection: Connection, verb: str, body: Any) -> bytes:
        from unstuck.store.port import wire

        text = request("POST", f"/api/v1/worker/{verb}", self._place[0], wire.encoded(body))
        return await connection.ask(
            text.replace(b"Accept:", f"Authorization: Bearer {self._key}\r\nAccept:".encode(), 1), 200
        )
