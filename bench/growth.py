"""Growth: what a claim, a submit, a settle, retention and `why` cost beside much of each thing that grows.
`python -m bench growth`.

One thing at a time: a database for each size, all open at once; a repeat does each of the five in every one of them,
beginning with another one each time. Figures are ratios to the smallest size.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench import environment, limits, postgres, processes, worlds
from bench.contender import StoreKind
from bench.worlds import COPY_DONE, COPY_EVENTS, COPY_JOBS, TENANT, Workshop, chance
from unstuck.model.job import ClaimedJob
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.observe.why import why
from unstuck.store.port import JobFilter, Limit, Share

RESULTS = environment.ROOT / "bench" / "results" / "growth.jsonl"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK = (1_000, 100_000)
BOUND = 1.5
WARM_UP = 10
CLAIMED = "claimed"
#: Older than any clock: all that has ended may go.
EVERYTHING = -3600.0

_SERIES = "WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {size})"
_LIMITS = "INSERT INTO unstuck_limits (kind, name, tenant, concurrency, set_at, set_by) "
FILLS: dict[str, tuple[str, ...]] = {
    # As the store keeps them: a hundred slices to a window.
    "starts in a window": (limits.SPREAD.format(slices=limits.SLICES - 2, each="{size} / 98"),),
    "limit keys": (
        f"INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key) {_SERIES}"
        " SELECT 'default', 'default', 'keyed', 'key:' || copy.i FROM copy",
        f"{_LIMITS}{_SERIES} SELECT 'key', 'key:' || copy.i, '*', 10, 0, 'bench' FROM copy",
    ),
    "routes": (
        f"INSERT INTO unstuck_routes (tenant, queue, workflow) {_SERIES}"
        " SELECT 'tenant-' || (copy.i / 20), 'default', 'workflow-' || (copy.i % 20) FROM copy",
    ),
    "targets": (
        f"INSERT INTO unstuck_targets (tenant, name) {_SERIES} SELECT 'default', 'target-' || copy.i FROM copy",
    ),
    "timers": (
        f"INSERT INTO unstuck_timers (kind, due_at, job) {_SERIES}"
        " SELECT CASE copy.i % 2 WHEN 0 THEN 'start' ELSE 'expire' END, unstuck_now() + 86400000000 + copy.i, -copy.i"
        " FROM copy",
    ),
    "gone workers": (
        "INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues,"
        f" code_version, state, started_at, beat_at, lease_until, ended_at, info) {_SERIES}"
        " SELECT 'gone-' || copy.i, 'gone', 'h', 'bench', 'bench', copy.i, 1, '[]', 'v', 'lost',"
        ' now.at, now.at, now.at, now.at, \'{{"executors": [{{"pid": 1, "jobs": []}}], "slots": 10}}\''
        " FROM copy CROSS JOIN (SELECT unstuck_now() - 7200000000 AS at) AS now",
    ),
    "ended jobs": (COPY_JOBS, COPY_DONE, COPY_EVENTS),
    "inbox": (f"INSERT INTO unstuck_inbox (job) {_SERIES} SELECT -copy.i FROM copy",),
}


@dataclass
class World:
    """A database with so many of one thing, and what the next act needs."""

    size: int
    shop: Workshop
    route: int
    is_limited: bool
    waits: str
    claimed: ClaimedJob | None = None


@dataclass(frozen=True)
class Line:
    """Of one act beside so many of one thing: milliseconds, and how many times that of the smallest size."""

    store: str
    thing: str
    act: str
    size: int
    p50: float
    p10: float
    times: float
    times_p10: float
    busy_cores: float


def submit(world: World) -> None:
    world.shop.store.submit([worlds.a_job(CLAIMED)])


def claim(world: World) -> None:
    share = Share(world.route, 1, is_limited=world.is_limited)
    (world.claimed,) = world.shop.store.claim(world.shop.worker.number, chance.nonce(), [share])


def settle(world: World) -> None:
    assert world.claimed is not None
    worlds.settle(world.shop.store, world.shop.worker, world.claimed.ref, Returned('"ok"'))


def retention(world: World) -> None:
    assert world.shop.store.forget_ended(EVERYTHING, 1) == 1


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
        for thing in (name for name in FILLS if not only or name in only):
            with opened(store, thing, sizes) as those:
                lines += measure(store, thing, those, repeats)
            print(table([line for line in lines if (line.store, line.thing) == (store, thing)], sizes), flush=True)
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps({"run": started_at, **asdict(line)}) + "\n" for line in lines)
    print("\n" + table(lines, sizes))
    return all(line.times <= BOUND for line in lines)


@contextmanager
def opened(store: StoreKind, thing: str, sizes: Sequence[int]) -> Iterator[list[World]]:
    with ExitStack() as stack:
        if store == "postgres":
            server = stack.enter_context(postgres.server())
            urls = [server.create(f"bench_{size}") for size in sizes]
        else:
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-growth-"))
            urls = [f"sqlite:///{home}/{size}.db" for size in sizes]
        found = []
        for size, url in zip(sizes, urls, strict=True):
            began = time.monotonic()
            found.append(make(thing, size, url))
            stack.callback(found[-1].shop.store.close)
            print(f"{store}: {size:,} {thing} made in {time.monotonic() - began:.0f} s", flush=True)
        yield found


def make(thing: str, size: int, url: str) -> World:
    shop = Workshop(url)
    if thing == "starts in a window":
        shop.store.set_limit(Limit("workflow", CLAIMED, "*", "bench", rate=10_000_000, per=86400.0))
    shop.submit(CLAIMED)
    (front,) = shop.store.open_routes()
    (first,) = shop.store.claim(
        shop.worker.number, chance.nonce(), [Share(front.route, 1, is_limited=front.is_limited)]
    )
    worlds.settle(shop.store, shop.worker, first.ref, Returned('"ok"'))
    with worlds.by_hand(url) as execute:
        for text in FILLS[thing]:
            execute(text.format(size=size, copies=size, job=first.ref.job))
    shop.submit(CLAIMED, 100)
    with worlds.by_hand(url) as execute:
        # What autovacuum would have done by itself after a while.
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "ANALYZE")
    shop.submit("waits")
    (waits,) = (job.id for job in shop.store.jobs(TENANT, JobFilter(workflow="waits"), 1).jobs)
    return World(size, shop, front.route, front.is_limited, waits)


def measure(store: StoreKind, thing: str, those: Sequence[World], repeats: int) -> list[Line]:
    processes.wait_for_quiet()
    before, began = processes.machine_busy(), time.monotonic()
    seconds: dict[tuple[str, int], list[float]] = {(act, world.size): [] for act in ACTS for world in those}
    for number in range(WARM_UP + repeats):
        turn = number % len(those)
        for world in [*those[turn:], *those[:turn]]:
            for name, act in ACTS.items():
                start = time.perf_counter()
                act(world)
                if number >= WARM_UP:
                    seconds[name, world.size].append(time.perf_counter() - start)
    busy = (processes.machine_busy() - before) / (time.monotonic() - began)
    return [_line(store, thing, name, world.size, seconds, those[0].size, busy) for name in ACTS for world in those]


def _line(
    store: str,
    thing: str,
    act: str,
    size: int,
    seconds: dict[tuple[str, int], list[float]],
    smallest: int,
    busy: float,
) -> Line:
    p10, p50 = _quantiles(seconds[act, size])
    least_p10, least_p50 = _quantiles(seconds[act, smallest])
    times, times_p10 = round(p50 / least_p50, 2), round(p10 / least_p10, 2)
    return Line(store, thing, act, size, round(p50, 3), round(p10, 3), times, times_p10, round(busy, 2))


def _quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p10 and p50, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=10)
    return cuts[0] * 1e3, cuts[4] * 1e3


def table(lines: Sequence[Line], sizes: Sequence[int]) -> str:
    heads = " | ".join(f"× at {size:,}" for size in sizes[1:])
    out = []
    for store in dict.fromkeys(line.store for line in lines):
        out.append(f"| {store} | act | ms at {sizes[0]:,} | {heads} |")
        out.append("|---" * (len(sizes) + 2) + "|")
        mine = [line for line in lines if line.store == store]
        for thing, act in dict.fromkeys((line.thing, line.act) for line in mine):
            row = [line for line in mine if (line.thing, line.act) == (thing, act)]
            out.append(f"| {thing} | {act} | {row[0].p50:.2f} | {' | '.join(map(_marked, row[1:]))} |")
        out.append(f"\nbusy cores: {max(line.busy_cores for line in mine)}; in brackets the ratio of the p10\n")
    return "\n".join(out)


def _marked(line: Line) -> str:
    text = f"{line.times:.2f} ({line.times_p10:.2f})"
    return text if line.times <= BOUND else f"**{text}**"
