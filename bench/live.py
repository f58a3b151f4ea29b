"""What those who stay cost: 1000 long polls and 500 streams on one server, and clients that hardly read.

The server is a process of its own, and so are its guests. Idle guests want what never happens; submits by 16 clients
are measured alone and beside them. The delay is from the return of a direct `enqueue`, a moment after its commit,
until a stream that wants everything has its event. Clients that read one byte in ten seconds are cut and come again;
meanwhile jobs are submitted and claimed directly, and memory, WAL and claims are watched.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import environment
from bench.http import Connection, Site, address, request, resident, site_of

RESULTS = environment.ROOT / "bench" / "results" / "live.jsonl"
POLLS, STREAMS, SUBMITTERS, SLOW = 1000, 500, 16, 30
#: Streams that one key asks for, far more than it may have.
CROWD = 10_000
#: The p99 of submits beside the guests, in multiples of that without them.
MOST = 3.0
#: Connections to the database that a server may hold, however many guests it has.
MOST_SESSIONS = 30
NOTHING = "workflow=nobody"


def run(stores: Sequence[str], rounds: int, seconds: float, slow_seconds: float, keep: bool) -> bool:
    begun, lines = datetime.now(UTC).isoformat(timespec="seconds"), list[dict[str, Any]]()
    for kind in stores:
        with site_of(kind) as site:
            line = {"run": begun, "store": kind, **_beside_guests(site, seconds, rounds), **_delay(site, seconds)}
        with site_of(kind) as site:
            line |= _crowd(site)
        with site_of(kind) as site:
            line |= _slow(site, slow_seconds)
        lines.append(line | {"load": round(os.getloadavg()[0], 1)})
        print(json.dumps(lines[-1], indent=1), flush=True)
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    for line in lines:
        ratio = line["with_p99_ms"] / line["without_p99_ms"]
        verdict = "ok" if ratio <= MOST and line["sessions"] <= MOST_SESSIONS else "TOO MUCH"
        print(
            f"{line['store']}: submits beside {POLLS} polls and {STREAMS} streams: p99 {ratio:.2f} × that without, "
            f"{line['sessions']} connections to the database, idle {line['idle_cpu']:.1%} of a core; commit to "
            f"client p50 {line['delay_p50_ms']} ms, p99 {line['delay_p99_ms']} ms  {verdict}"
        )
        print(
            f"{line['store']}: {CROWD:,} streams asked by one key: {line['crowd_answers']}; meanwhile requests of "
            f"another key p99 {line['crowd_others_p99_ms']} ms, its stream opened in {line['crowd_stream_ms']} ms; "
            f"memory {line['crowd_memory_mib']} MiB"
        )
    return all(line["with_p99_ms"] <= MOST * line["without_p99_ms"] for line in lines)


def _beside_guests(site: Site, seconds: float, rounds: int) -> dict[str, Any]:
    """The p99 of some seconds is a matter of luck: of several rounds, each without and with guests, the medians."""
    _submits(site, min(2.0, seconds))  # warms up
    found = [_round(site, seconds) for _ in range(rounds)]
    return {name: statistics.median([each[name] for each in found]) for name in found[0]} | {
        "bytes_each": found[0]["bytes_each"],  # later ones find memory that the first have left
        "with_p99s_ms": [each["with_p99_ms"] for each in found],
        "without_p99s_ms": [each["without_p99_ms"] for each in found],
    }


def _round(site: Site, seconds: float) -> dict[str, Any]:
    alone, before = _submits(site, seconds), resident(site.pid)
    with _guests(site.url):
        grown = resident(site.pid) - before
        cpu = site.cpu()
        time.sleep(seconds)
        server, database = (after - was for after, was in zip(site.cpu(), cpu, strict=True))
        sessions, beside = sessions_of(site), _submits(site, seconds)
    return {
        "idle_cpu": round(server / seconds, 4),
        "idle_database_cpu": round(database / seconds, 4),
        "bytes_each": grown // (POLLS + STREAMS),
        "sessions": sessions,
        **{f"without_{name}": alone[name] for name in ("p50_ms", "p99_ms", "requests")},
        **{f"with_{name}": beside[name] for name in ("p50_ms", "p99_ms", "requests")},
    }


def _submits(site: Site, seconds: float) -> dict[str, Any]:
    words = ["http-clients", site.url, "submit", str(SUBMITTERS), str(seconds)]
    done = subprocess.run([sys.executable, "-m", "bench", *words], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sessions_of(site: Site) -> int:
    """Connections to the database: sessions of PostgreSQL, or how often the server has the file open."""
    if site.database_pid is not None:
        import psycopg

        with psycopg.connect(site.database) as session:
            row = session.execute(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name LIKE 'unstuck server%'"
            ).fetchone()
        assert row is not None
        return int(row[0])
    file, count = site.database.removeprefix("sqlite:///"), 0
    for each in Path(f"/proc/{site.pid}/fd").iterdir():
        with suppress(OSError):
            count += os.readlink(each) == file
    return count


# --- guests -------------------------------------------------------------------------------------------------------


@contextmanager
def _guests(url: str) -> Iterator[None]:
    words = [sys.executable, "-m", "bench", "live-guests", url]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "all there\n"
        yield
        process.stdin.close()


def guests(url: str) -> None:
    """Until standard input ends."""
    asyncio.run(_stay(*address(url)))


async def _stay(host: str, port: int) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(over.set)), daemon=True).start()
    poll = request("GET", f"/api/v1/events?after=now&wait=60&{NOTHING}", host)
    tasks: list[asyncio.Task[Any]] = []
    for _ in range(POLLS):
        _, connection = await loop.create_connection(Connection, host, port)
        tasks.append(asyncio.create_task(_poll(connection, poll)))
    stream = request("GET", f"/api/v1/events?{NOTHING}", host).replace(b"application/json", b"text/event-stream")
    for _ in range(STREAMS):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(stream)
        while not (await reader.readline()).startswith(b"id:"):
            pass
        tasks.append(asyncio.create_task(reader.read()))
    await asyncio.sleep(3)  # the polls have joined too
    print("all there", flush=True)
    await over.wait()
    os._exit(0)


async def _poll(connection: Connection, asked: bytes) -> None:
    while True:
        await connection.ask(asked, 200)


# --- how soon -----------------------------------------------------------------------------------------------------


def _delay(site: Site, seconds: float) -> dict[str, Any]:
    """Of jobs that are submitted directly, 20 a second, each at its own moment."""
    heard: dict[str, float] = {}
    stream = socket.create_connection(address(site.url))
    stream.sendall(request("GET", "/api/v1/events", "localhost").replace(b"application/json", b"text/event-stream"))
    begun = threading.Event()

    def listen() -> None:
        with stream.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"data: ") and (job := json.loads(line[6:]).get("job")):
                    heard[job] = time.perf_counter()
                elif line.startswith(b"id: "):
                    begun.set()

    threading.Thread(target=listen, daemon=True).start()
    begun.wait(10)
    sent = dict(_submitted(site.database, seconds, every=0.05))
    time.sleep(1)
    delays = sorted(1000 * (heard[job] - at) for job, at in sent.items())
    stream.close()
    p50, p99 = (round(delays[int(len(delays) * share)], 1) for share in (0.5, 0.99))
    return {"delay_p50_ms": p50, "delay_p99_ms": p99, "delays": len(delays)}


def _submitted(database: str, seconds: float, every: float) -> Iterator[tuple[str, float]]:
    import random

    import unstuck

    app = unstuck.App(database=database)

    @app.workflow
    def plain(name: str, number: int) -> None: ...

    with app:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            job = plain.enqueue("a name", 7).id
            yield job, time.perf_counter()
            time.sleep(every * random.uniform(0.5, 1.5))


# --- far too many ---------------------------------------------------------------------------------------------------


def _crowd(site: Site) -> dict[str, Any]:
    """One key asks for ten thousand streams; another one asks small things all the while, and for one stream."""
    greedy, other = _keys(site.database)
    memory = [resident(site.pid)]
    over = threading.Event()
    words = [sys.executable, "-m", "bench", "live-crowd", site.url, greedy]
    took: list[float] = []
    asking = threading.Thread(target=_ask_on, args=(site, other, over, took))
    asking.start()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        time.sleep(1)  # in the middle of it
        began = time.perf_counter()
        with socket.create_connection(address(site.url)) as stream:
            stream.sendall(_stream_of(other))
            with stream.makefile("rb") as lines:
                while not lines.readline().startswith(b"id:"):
                    pass
            opened = time.perf_counter() - began
        answers = json.loads(process.stdout.readline())
        memory.append(resident(site.pid))
        process.stdin.close()
    time.sleep(3)
    memory.append(resident(site.pid))
    over.set()
    asking.join()
    took.sort()
    return {
        "crowd_answers": answers,
        "crowd_memory_mib": [round(each / 2**20, 1) for each in memory],
        "crowd_stream_ms": round(1000 * opened, 1),
        "crowd_others": len(took),
        "crowd_others_p50_ms": round(1000 * took[len(took) // 2], 1),
        "crowd_others_p99_ms": round(1000 * took[int(len(took) * 0.99)], 1),
    }


def _keys(database: str) -> tuple[str, str]:
    import unstuck

    with unstuck.App(database=database) as app:
        greedy, other = (app.keys.create(name, role="reader").key for name in ("greedy", "other"))
    return greedy, other


def _stream_of(key: str) -> bytes:
    accepts = f"text/event-stream\r\nAuthorization: Bearer {key}".encode()
    return request("GET", "/api/v1/events", "localhost").replace(b"application/json", accepts)


def _ask_on(site: Site, key: str, over: threading.Event, took: list[float]) -> None:
    """Each time on a connection of its own: who comes anew must get in too."""
    import http.client

    while not over.wait(0.02):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(*address(site.url), timeout=30)
        connection.request("GET", "/api/v1/jobs?limit=1", headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"another key was answered {answer.status}")
        took.append(time.perf_counter() - began)


def crowd(url: str, key: str) -> None:
    """Tells what was answered, and goes when standard input ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, CROWD + 1000)), hard))
    asyncio.run(_come(*address(url), _stream_of(key)))
    sys.stdin.read()
    os._exit(0)


async def _come(host: str, port: int, asked: bytes) -> None:
    """Five hundred at a time are on their way."""
    answers: Counter[str] = Counter()
    places, held = asyncio.Semaphore(500), list[asyncio.StreamWriter]()

    async def one() -> None:
        async with places:
            answer = b""
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, port)
                held.append(writer)
                writer.write(asked)
                answer = await reader.readuntil(b"\r\n\r\n")
            is_told = b"retry-after: " in answer.lower()
            answers[answer[9:12].decode() + (" with Retry-After" if is_told else "")] += 1

    await asyncio.gather(*(one() for _ in range(CROWD)))
    print(json.dumps(answers), flush=True)


# --- clients that hardly read ---------------------------------------------------------------------------------------


def _slow(site: Site, seconds: float) -> dict[str, Any]:
    over = threading.Event()
    threads = [threading.Thread(target=_read_slowly, args=(site, over), daemon=True) for _ in range(SLOW)]
    for thread in threads:
        thread.start()
    memory, logs, claims = list[int](), list[int](), list[float]()
    until = time.perf_counter() + seconds
    from unstuck.store.drivers.connect import open_database
    from unstuck.store.sql_store import SqlStore

    store = SqlStore(open_database(site.database))
    worker = _worker(store)
    while time.perf_counter() < until:
        next_at = time.perf_counter() + 1
        claims += _jobs_of_a_second(store, worker)
        memory.append(resident(site.pid))
        logs.append(_wal(site))
        time.sleep(max(0.0, next_at - time.perf_counter()))
    over.set()
    store.close()
    claims.sort()
    third = max(1, len(memory) // 3)
    return {
        "slow_seconds": seconds,
        "slow_jobs": len(claims),
        "slow_memory_first_mib": round(max(memory[:third]) / 2**20, 1),
        "slow_memory_last_mib": round(max(memory[-third:]) / 2**20, 1),
        "slow_wal_first_mib": round(max(logs[:third]) / 2**20, 1),
        "slow_wal_last_mib": round(max(logs[-third:]) / 2**20, 1),
        "slow_claim_p99_ms": round(1000 * claims[int(len(claims) * 0.99)], 1),
    }


def _read_slowly(site: Site, over: threading.Event) -> None:
    asked = request("GET", "/api/v1/events", "localhost").replace(b"application/json", b"text/event-stream")
    while not over.is_set():
        with suppress(OSError), socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(address(site.url))
            connection.sendall(asked)
            while not over.wait(10) and connection.recv(1):
                pass


def _jobs_of_a_second(store: Any, worker: int) -> Iterator[float]:
    """A hundred jobs, and how long each claim took."""
    from unstuck.chance import SystemChance
    from unstuck.model.job import NewJob
    from unstuck.model.policy import Policy
    from unstuck.model.settlement import Returned
    from unstuck.store.port import Report, Share

    chance, size = SystemChance(), 10
    for _ in range(10):
        ids = chance.job_ids(size)
        store.submit([NewJob(each, "default", "default", "plain", "{}", Policy()) for each in ids])
        shares = [Share(front.route, size) for front in store.open_routes()]
        began = time.perf_counter()
        attempts = list(store.claim(worker, chance.nonce(), shares))
        yield time.perf_counter() - began
        store.settle(worker, [Report(each.ref, Returned("null"), duration_ms=1) for each in attempts])


def _worker(store: Any) -> int:
    from unstuck.store.port import NewWorker

    me = NewWorker(
        name="bench", lease=3600.0, incarnation="bench", host="bench", boot_id="bench", pid_namespace="0", pid=1,
        pid_start=1, queues=("default",), code_version="v1",
    )  # fmt: skip
    number: int = store.register_worker(me).number
    return number


def _wal(site: Site) -> int:
    """What is written and not yet let go of; of PostgreSQL what an old transaction would keep is none of ours."""
    if site.database_pid is not None:
        folder = Path(os.readlink(f"/proc/{site.database_pid}/cwd")) / "pg_wal"
        return sum(each.stat().st_size for each in folder.iterdir() if each.is_file())
    file = Path(site.database.removeprefix("sqlite:///") + "-wal")
    return file.stat().st_size if file.exists() else 0
