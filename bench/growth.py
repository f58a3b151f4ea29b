"""Growth: what a claim, a submit, a settle, retention and `why` cost beside much of each thing that grows.
`python -m bench growth`.

One thing at a time: a database for each size, all open at once; a repeat does each of the five in every one of them,
beginning with another one each time. The jobs have to do with the thing: they name a key, a target, an end of their
stay. Figures are ratios to the smallest size: of time, and of the CPU of this process and of the database's sessions,
which hardly depends on what else the machine does. Where one misses the bound, all are measured again, and the median
of all samples counts: on a busy machine a single bad moment is no cost.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import environment, limits, postgres, processes, worlds
from bench.contender import StoreKind
from bench.worlds import COPY_DONE, COPY_EVENTS, COPY_JOBS, TENANT, Workshop, chance
from unstuck.model.job import ClaimedJob, NewJob
from unstuck.model.policy import Policy
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.observe.why import why
from unstuck.store.port import Limit, NameKind, Share
from unstuck.store.sql_store import SqlStore

RESULTS = environment.ROOT / "bench" / "results" / "growth.jsonl"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK = (1_000, 100_000)
BOUND = 1.5
WARM_UP = 10
#: So often in all, where a figure misses the bound.
MEASURED = 3
CLAIMED = "claimed"
#: More than are claimed: on one target nobody comes to the job that `why` is asked about.
WAITING = 1_000
#: Older than any clock: all that has ended may go.
EVERYTHING = -3600.0

_SERIES = "WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {size})"
_LIMITS = "INSERT INTO unstuck_limits (kind, name, tenant, concurrency, set_at, set_by) "
#: Names that nobody has meant for so many microseconds may go.
_LONG_AGO = "unstuck_now() - 864000000000"
_PER_DAY = 86400.0
_SESSIONS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""


@dataclass(frozen=True)
class Thing:
    """What grows. `fill` makes so many of it, `job` is what a job must say to have to do with it, `limit` makes it
    count, `forget` has one of it go."""

    fill: tuple[str, ...]
    job: dict[str, Any] = field(default_factory=dict)
    limit: Limit | None = None
    forget: Callable[[SqlStore], int] | None = None


def _forget_name(kind: NameKind) -> Callable[[SqlStore], int]:
    return lambda store: store.forget_names(kind, store.now(), 1)


THINGS: dict[str, Thing] = {
    # As the store keeps them: a hundred slices to a window.
    "starts in a window": Thing(
        (limits.SPREAD.format(slices=limits.SLICES - 2, each="{size} / 98"),),
        limit=Limit("workflow", CLAIMED, "*", "bench", rate=10_000_000, per=_PER_DAY),
    ),
    "starts of keys": Thing(
        (
            f"INSERT INTO unstuck_starts (limit_id, bucket, at, job, starts, until_at) {_SERIES}"
            " SELECT l.id, 'key:' || copy.i, unstuck_now() + 1000000, 0, 1, unstuck_now() + l.per_us"
            " FROM copy CROSS JOIN unstuck_limits l",
        ),
        {"limit_key": "key:7"},
        Limit("key", "key:*", "*", "bench", rate=10_000_000, per=_PER_DAY),
    ),
    "limit keys": Thing(
        (
            f"INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key) {_SERIES}"
            " SELECT 'default', 'default', 'keyed', 'key:' || copy.i FROM copy",
            f"{_LIMITS}{_SERIES} SELECT 'key', 'key:' || copy.i, '*', 10, 0, 'bench' FROM copy",
        ),
        {"limit_key": "key:0"},
        Limit("key", "key:0", "*", "bench", concurrency=1_000),
    ),
    "routes": Thing(
        (
            f"INSERT INTO unstuck_routes (tenant, queue, workflow, named_at) {_SERIES}"
            " SELECT 'tenant-' || (copy.i / 20), 'default', 'workflow-' || (copy.i % 20), "
            + _LONG_AGO
            + " FROM copy",
        ),
        forget=_forget_name("routes"),
    ),
    "targets": Thing(
        (
            f"INSERT INTO unstuck_targets (tenant, name, named_at) {_SERIES}"
            " SELECT 'default', 'target-' || copy.i, " + _LONG_AGO + " FROM copy",
        ),
        {"target": "target-0"},
        forget=_forget_name("targets"),
    ),
    "timers": Thing(
        (
            f"INSERT INTO unstuck_timers (kind, due_at, job) {_SERIES}"
            " SELECT CASE copy.i % 2 WHEN 0 THEN 'start' ELSE 'expire' END,"
            " unstuck_now() + 86400000000 + copy.i, -copy.i FROM copy",
        ),
        {"policy": Policy(retries=0, expires_after=_PER_DAY)},
    ),
    "gone workers": Thing(
        (
            "INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues,"
            f" code_version, state, started_at, beat_at, lease_until, ended_at, info) {_SERIES}"
            " SELECT 'gone-' || copy.i, 'gone', 'h', 'bench', 'bench', copy.i, 1, '[]', 'v', 'lost',"
            ' now.at, now.at, now.at, now.at, \'{{"executors": [{{"pid": 1, "jobs": []}}], "slots": 10}}\''
            " FROM copy CROSS JOIN (SELECT unstuck_now() - 7200000000 AS at) AS now",
        ),
        forget=lambda store: store.forget_workers(3600.0, 1),
    ),
    "ended jobs": Thing((COPY_JOBS, COPY_DONE, COPY_EVENTS)),
    "inbox": Thing((f"INSERT INTO unstuck_inbox (job) {_SERIES} SELECT -copy.i FROM copy",)),
}


@dataclass
class World:
    """A database with so many of one thing, and what the next act needs."""

    size: int
    thing: Thing
    shop: Workshop
    route: int
    is_limited: bool
    waits: str
    claimed: ClaimedJob | None = None
    sessions: list[int] = field(default_factory=list)

    def ready(self) -> None:
        """Whoever claims has looked first; what that costs beside much is bench flat's."""
        if "target" in self.thing.job:
            self.shop.store.ingest()

    def cpu(self) -> float:
        """Seconds of CPU of this process and of the database's sessions for it, so far."""
        return time.process_time() + sum(processes.exact_cpu_of(pid) for pid in self.sessions)

    def find_sessions(self) -> None:
        if self.shop.url.startswith("postgresql:"):
            with worlds.by_hand(self.shop.url) as execute:
                self.sessions = [pid for (pid,) in execute(_SESSIONS)]


@dataclass(frozen=True)
class Line:
    """Of one act beside so many of one thing: milliseconds, and how many times that of the smallest size. `cpu`: the
    median of what it used."""

    store: str
    thing: str
    act: str
    size: int
    p50: float
    p10: float
    cpu: float
    times: float
    times_p10: float
    times_cpu: float
    busy_cores: float


@dataclass
class Samples:
    """Seconds of each time that an act was done: what passed, and what was used of the CPU."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def a_job(thing: Thing, workflow: str = CLAIMED) -> NewJob:
    return replace(worlds.a_job(workflow), **thing.job)


def submit(world: World) -> None:
    world.shop.store.submit([a_job(world.thing)])


def claim(world: World) -> None:
    share = Share(world.route, 1, is_limited=world.is_limited)
    (world.claimed,) = world.shop.store.claim(world.shop.worker.number, chance.nonce(), [share])


def settle(world: World) -> None:
    assert world.claimed is not None
    worlds.settle(world.shop.store, world.shop.worker, world.claimed.ref, Returned('"ok"'))


def retention(world: World) -> None:
    """One job that has ended, and one of the thing itself where things of its kind are forgotten."""
    assert world.shop.store.forget_ended(EVERYTHING, 1) == 1
    if world.thing.forget is not None:
        assert world.thing.forget(world.shop.store) == 1


def ask_why(world: World) -> None:
    why(world.shop.store, TENANT, world.waits, Times())


ACTS: dict[str, Callable[[World], None]] = {
    "submit": submit,
    "claim": claim,
    "settle": settle,
    "retention": retention,
    "why": ask_why,
}


def run(stores: Sequence[StoreKind], only: Sequence[str], repeats: int, keep: bool, *, quick: bool) -> bool:
    """Whether all of them keep the bound."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    sizes = QUICK if quick else SIZES
    lines: list[Line] = []
    for store in stores:
        with places(store) as place:
            for thing in (name for name in THINGS if not only or name in only):
                with opened(store, thing, sizes, place) as those:
                    found = measure(store, thing, those, repeats)
                print(table(found, sizes), flush=True)
                lines += found
                if keep:
                    with open(RESULTS, "a") as file:
                        file.writelines(json.dumps({"run": started_at, **asdict(line)}) + "\n" for line in found)
    print("\n" + table(lines, sizes))
    return not any(map(_is_missed, lines))


@contextmanager
def places(store: StoreKind) -> Iterator[Callable[[int], str]]:
    """Where the database of a size is: an empty one each time that it is asked."""
    if store == "postgres":
        with postgres.server() as server:

            def on_server(size: int) -> str:
                with worlds.by_hand(f"{server.url}/postgres") as execute:
                    execute(f"DROP DATABASE IF EXISTS bench_{size} WITH (FORCE)")
                return server.create(f"bench_{size}")

            yield on_server
        return
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-growth-") as home:

        def in_file(size: int) -> str:
            for leftover in Path(home).glob(f"{size}.db*"):
                leftover.unlink()
            return f"sqlite:///{home}/{size}.db"

        yield in_file


@contextmanager
def opened(store: StoreKind, thing: str, sizes: Sequence[int], place: Callable[[int], str]) -> Iterator[list[World]]:
    with ExitStack() as stack:
        found = []
        for size in sizes:
            began = time.monotonic()
            found.append(make(THINGS[thing], size, place(size)))
            stack.callback(found[-1].shop.store.close)
            print(f"{store}: {size:,} {thing} made in {time.monotonic() - began:.0f} s", flush=True)
        yield found


def make(thing: Thing, size: int, url: str) -> World:
    shop = Workshop(url)
    if thing.limit is not None:
        shop.store.set_limit(thing.limit)
    fill(shop, thing, 1)
    (front,) = shop.store.open_routes()
    share = Share(front.route, 1, is_limited=front.is_limited)
    (first,) = shop.store.claim(shop.worker.number, chance.nonce(), [share])
    worlds.settle(shop.store, shop.worker, first.ref, Returned('"ok"'))
    with worlds.by_hand(url) as execute:
        for text in thing.fill:
            execute(text.format(size=size, copies=size, job=first.ref.job))
    fill(shop, thing, WAITING)
    with worlds.by_hand(url) as execute:
        # What autovacuum would have done by itself after a while.
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "ANALYZE")
    (waits,) = shop.store.submit([a_job(thing, "waits")])
    return World(size, thing, shop, front.route, front.is_limited, waits.id)


def fill(shop: Workshop, thing: Thing, jobs: int) -> None:
    shop.store.submit([a_job(thing) for _ in range(jobs)])
    if "target" in thing.job:
        shop.store.ingest()


def measure(store: StoreKind, thing: str, those: Sequence[World], repeats: int) -> list[Line]:
    samples: dict[tuple[str, int], Samples] = {(act, world.size): Samples() for act in ACTS for world in those}
    lines: list[Line] = []
    for _ in range(MEASURED):
        processes.wait_for_quiet()
        before, began = processes.machine_busy(), time.monotonic()
        sample(those, repeats, samples)
        busy = (processes.machine_busy() - before) / (time.monotonic() - began)
        lines = [_line(store, thing, name, world, samples, those[0], busy) for name in ACTS for world in those]
        if not any(map(_is_missed, lines)):
            break
    return lines


def sample(those: Sequence[World], repeats: int, samples: dict[tuple[str, int], Samples]) -> None:
    for number in range(WARM_UP + repeats):
        turn = number % len(those)
        for world in [*those[turn:], *those[:turn]]:
            if number == WARM_UP:
                world.find_sessions()
            for name, act in ACTS.items():
                world.ready()
                used, start = world.cpu(), time.perf_counter()
                act(world)
                end = time.perf_counter()
                if number >= WARM_UP:
                    samples[name, world.size].seconds.append(end - start)
                    samples[name, world.size].cpu.append(world.cpu() - used)


def _line(
    store: str,
    thing: str,
    act: str,
    world: World,
    samples: dict[tuple[str, int], Samples],
    smallest: World,
    busy: float,
) -> Line:
    mine, least = samples[act, world.size], samples[act, smallest.size]
    p10, p50 = _quantiles(mine.seconds)
    least_p10, least_p50 = _quantiles(least.seconds)
    cpu, least_cpu = (statistics.median(some.cpu) * 1e3 for some in (mine, least))
    return Line(
        store,
        thing,
        act,
        world.size,
        p50=round(p50, 3),
        p10=round(p10, 3),
        cpu=round(cpu, 3),
        times=round(p50 / least_p50, 2),
        times_p10=round(p10 / least_p10, 2),
        times_cpu=round(cpu / least_cpu, 2),
        busy_cores=round(busy, 2),
    )


def _is_missed(line: Line) -> bool:
    return max(line.times, line.times_cpu) > BOUND


def _quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p10 and p50, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=10)
    return cuts[0] * 1e3, cuts[4] * 1e3


def table(lines: Sequence[Line], sizes: Sequence[int]) -> str:
    heads = " | ".join(f"× at {size:,}" for size in sizes[1:])
    out = []
    for store in dict.fromkeys(line.store for line in lines):
        out.append(f"| {store} | act | ms at {sizes[0]:,} | CPU ms | {heads} |")
        out.append("|---" * (len(sizes) + 3) + "|")
        mine = [line for line in lines if line.store == store]
        for thing, act in dict.fromkeys((line.thing, line.act) for line in mine):
            row = [line for line in mine if (line.thing, line.act) == (thing, act)]
            first = f"{row[0].p50:.2f} | {row[0].cpu:.2f}"
            out.append(f"| {thing} | {act} | {first} | {' | '.join(map(_marked, row[1:]))} |")
        out.append(f"\nbusy cores: {max(line.busy_cores for line in mine)}; ratios of the median, its CPU, the p10\n")
    return "\n".join(out)


def _marked(line: Line) -> str:
    text = f"{line.times:.2f}, {line.times_cpu:.2f}, {line.times_p10:.2f}"
    return f"**{text}**" if _is_missed(line) else text
