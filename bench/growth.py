"""Growth: what a claim, a submit, a settle, retention and `why` cost beside much of each thing that grows.
`python -m bench growth`.

One thing at a time: a database for each size, all open at once; a repeat does each of the five in every one of them,
beginning with another one each time. The jobs have to do with the thing: they name a key, a target, an end of their
stay. Figures are ratios to the smallest size.
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

    def ready(self) -> None:
        """Whoever claims has looked first; what that costs beside much is bench flat's."""
        if "target" in self.thing.job:
            self.shop.store.ingest()


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
        for thing in (name for name in THINGS if not only or name in only):
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
            found.append(make(THINGS[thing], size, url))
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
    processes.wait_for_quiet()
    before, began = processes.machine_busy(), time.monotonic()
    seconds: dict[tuple[str, int], list[float]] = {(act, world.size): [] for act in ACTS for world in those}
    for number in range(WARM_UP + repeats):
        turn = number % len(those)
        for world in [*those[turn:], *those[:turn]]:
            for name, act in ACTS.items():
                world.ready()
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
