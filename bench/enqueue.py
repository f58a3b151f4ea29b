"""What it costs to ask for a job: one by one and in bulk, two signatures, beside the peers.

Each contender is one caller in a process of its own, which stays; they take turns of a second or so, because the
machine's mood changes faster than that. Everybody keeps his defaults: durable commits, one connection. The peers get
the same arguments: PgQueuer and the hand-written queue as JSON, which they leave to their users; Procrastinate
and taskiq write JSON themselves, Huey pickles.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bench import contender, drain, environment, processes

RESULTS = environment.ROOT / "bench" / "results" / "enqueue.jsonl"
SIGNATURES = ("plain", "rich")
WAYS = ("single", "bulk")


@dataclasses.dataclass
class Order:
    number: int
    customer: str
    total: float = 0.0
    lines: list[str] = dataclasses.field(default_factory=list)


class Arguments(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(signature: str, number: int) -> Arguments:
    """`plain` is (str, int); `rich` has a dataclass, keywords and defaults that are left to be."""
    if signature == "plain":
        return Arguments(("a name", number), {})
    return Arguments((Order(number, "a customer", 12.5, ["a", "b"]),), {"urgent": True, "note": "by noon"})


def as_json(each: Arguments) -> str:
    return json.dumps([each.args, each.kwargs], default=dataclasses.asdict)


#: Asks for these jobs of that signature.
Ask = Callable[[str, Sequence[Arguments]], object]


@contextmanager
def ours(name: str) -> Iterator[dict[str, Ask]]:
    import unstuck
    from unstuck.app.workflow import Call

    entry = contender.load(name)
    entry.prepare()
    app = unstuck.App(database=entry.url())  # type: ignore[attr-defined]

    @app.workflow
    def plain(name: str, number: int) -> None: ...

    @app.workflow
    def rich(order: Order, *, urgent: bool = False, note: str = "", attempts: int = 3) -> None: ...

    workflows: dict[str, Any] = {"plain": plain, "rich": rich}
    with app:
        yield {
            "single": lambda of, calls: [workflows[of].enqueue(*each.args, **each.kwargs) for each in calls],
            "bulk": lambda of, calls: workflows[of].enqueue_many([Call(*each) for each in calls]),
        }


@contextmanager
def pgqueuer(name: str) -> Iterator[dict[str, Ask]]:
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    from bench.contenders.pgqueuer_ import DATABASE

    contender.load(name).prepare()
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(contender.postgres_url(DATABASE)))
    queries = Queries(AsyncpgDriver(connection))

    async def single(calls: Sequence[Arguments]) -> None:
        for each in calls:
            await queries.enqueue("work", as_json(each).encode())

    async def bulk(calls: Sequence[Arguments]) -> None:
        await queries.enqueue(["work"] * len(calls), [as_json(each).encode() for each in calls], [0] * len(calls))

    yield {
        "single": lambda _, calls: loop.run_until_complete(single(calls)),
        "bulk": lambda _, calls: loop.run_until_complete(bulk(calls)),
    }
    loop.run_until_complete(connection.close())
    loop.close()


@contextmanager
def huey(name: str) -> Iterator[dict[str, Ask]]:
    from bench.contenders import huey_

    entry = contender.load(name)
    entry.prepare()

    def work(*args: Any, **kwargs: Any) -> None: ...

    task = huey_.made(entry.kind).engine.task(name="asked")(work)  # type: ignore[attr-defined]
    yield {"single": lambda _, calls: [task(*each.args, **each.kwargs) for each in calls]}


@contextmanager
def procrastinate(name: str) -> Iterator[dict[str, Ask]]:
    from bench.contenders.procrastinate_ import made

    contender.load(name).prepare()
    loop = asyncio.new_event_loop()
    app, work, _ = made()
    loop.run_until_complete(app.open_async())

    def named(each: Arguments) -> dict[str, Any]:
        """It takes keywords only."""
        if each.kwargs:
            return {"order": dataclasses.asdict(each.args[0]), **each.kwargs}
        return dict(zip(("name", "number"), each.args, strict=True))

    async def single(calls: Sequence[Arguments]) -> None:
        for each in calls:
            await work.defer_async(**named(each))

    yield {
        "single": lambda _, calls: loop.run_until_complete(single(calls)),
        "bulk": lambda _, calls: loop.run_until_complete(work.batch_defer_async(*map(named, calls))),
    }
    loop.run_until_complete(app.close_async())
    loop.close()


@contextmanager
def hand_written(name: str) -> Iterator[dict[str, Ask]]:
    import asyncpg

    from bench.contenders.hand_written import DATABASE, INSERT, put

    contender.load(name).prepare()
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(contender.postgres_url(DATABASE)))

    async def single(calls: Sequence[Arguments]) -> None:
        for each in calls:
            await connection.execute(INSERT, "work", as_json(each))

    yield {
        "single": lambda _, calls: loop.run_until_complete(single(calls)),
        "bulk": lambda _, calls: loop.run_until_complete(put(connection, "work", [as_json(each) for each in calls])),
    }
    loop.run_until_complete(connection.close())
    loop.close()


@contextmanager
def taskiq(name: str) -> Iterator[dict[str, Ask]]:
    from bench.contenders.taskiq_ import broker

    entry = contender.load(name)
    entry.prepare()

    @broker.task(task_name="asked")
    async def asked(*args: Any, **kwargs: Any) -> None: ...

    async def single(calls: Sequence[Arguments]) -> None:
        for each in calls:
            await asked.kiq(*each.args, **each.kwargs)

    yield {"single": lambda _, calls: entry.run(single(calls))}  # type: ignore[attr-defined]


ASKERS: dict[str, Callable[[str], Any]] = {
    "unstuck-sync": ours,
    "pgqueuer": pgqueuer,
    "procrastinate": procrastinate,
    "hand-written": hand_written,
    "unstuck-sqlite-sync": ours,
    "huey-sqlite": huey,
    "huey-redis": huey,
    "taskiq": taskiq,
}
#: Whom ours is compared with, by database.
PEERS = {"postgres": "pgqueuer", "sqlite": "huey-sqlite", "redis": "huey-redis"}


def serve(name: str) -> None:
    """Inside a contender's process: a line `plain single 300` is a turn, and is answered by a line of JSON."""
    with ASKERS[name](name) as ways:
        for turn in sys.stdin:
            signature, way, count = turn.split()
            if way not in ways:
                print("{}", flush=True)
                continue
            calls = [call(signature, number) for number in range(int(count))]
            began, client, database = time.perf_counter(), time.process_time(), _database_cpu()
            ways[way](signature, calls)
            span = {"s": time.perf_counter() - began, "client": time.process_time() - client}
            print(json.dumps({**span, "database": _database_cpu() - database, "jobs": len(calls)}), flush=True)


def _database_cpu() -> float:
    pid = os.environ.get("BENCH_POSTGRES_PID") or os.environ.get("BENCH_REDIS_PID")
    return processes.cpu_of(int(pid)) if pid else 0.0


def run(names: Sequence[str], rounds: int, singles: int, bulk: int, keep: bool) -> None:
    environment.setup()
    names = drain.measurable(names)
    run = datetime.now(UTC).isoformat(timespec="seconds")
    with drain.surroundings(names) as variables:
        lines = [{"run": run, **line} for line in turns(names, variables, rounds, singles, bulk)]
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    print(table(lines))


def turns(
    names: Sequence[str], variables: dict[str, str], rounds: int, singles: int, bulk: int
) -> Iterator[dict[str, Any]]:
    counts = {"single": singles, "bulk": bulk}
    with ExitStack() as stack:
        served = {name: stack.enter_context(_served(name, variables)) for name in names}
        for number in range(rounds + 1):  # the first warms up: names, prepared statements, the file's first pages
            for way, signature, name in ((w, s, n) for w in WAYS for s in SIGNATURES for n in names):
                took = _turn(served[name], f"{signature} {way} {counts[way]}")
                if took and number:
                    load = round(os.getloadavg()[0], 1)
                    about = {"round": number, "contender": name, "signature": signature, "way": way}
                    yield {**about, **took, "load": load}
            print(f"round {number} of {rounds}, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)


@contextmanager
def _served(name: str, variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    mine = drain.variables_of(name, variables)
    command = [str(environment.python_of(contender.ENTRIES[name].environment)), "-m", "bench", "enqueue-cell", name]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=environment.ROOT, env=mine, **pipes) as process:
        yield process  # its end follows from the end of its input


def _turn(process: subprocess.Popen[str], turn: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    print(turn, file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"a contender ended during {turn}")
    took: dict[str, Any] = json.loads(answer)
    return took


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Medians over the rounds; × is the median of each round's own ratio to the peer with the same database."""
    out = ["| | signature | | jobs/s | × peer | client µs | database µs |", "|---|---|---|---|---|---|---|"]
    kinds = dict.fromkeys((line["way"], line["contender"], line["signature"]) for line in lines)
    for way, name, signature in sorted(kinds, reverse=True):
        mine = _by_round(lines, way, name, signature)
        theirs = _by_round(lines, way, PEERS[contender.ENTRIES[name].store], signature)
        ratios = [theirs[number]["s"] / line["s"] for number, line in mine.items() if number in theirs]
        wall, client, database = (
            statistics.median(line[part] / line["jobs"] * 1e6 for line in mine.values())
            for part in ("s", "client", "database")
        )
        beside = f"{statistics.median(ratios):.2f}" if ratios else "–"
        out.append(f"| {name} | {signature} | {way} | {1e6 / wall:,.0f} | {beside} | {client:.1f} | {database:.1f} |")
    return "\n".join(out)


def _by_round(lines: Sequence[dict[str, Any]], way: str, name: str, signature: str) -> dict[int, dict[str, Any]]:
    wanted = (way, name, signature)
    return {line["round"]: line for line in lines if (line["way"], line["contender"], line["signature"]) == wanted}
