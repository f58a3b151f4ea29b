"""Flat: a single claim must not cost more because much else waits, has ended, or is shut. `python -m bench flat`.

All worlds are open at the same time; one repeat claims and settles one job in each of them, in turn, so that whatever
disturbs the machine disturbs all alike. Only the claim is timed; the looks (a page of fronts, and all that a claimer
does before it claims) are timed in a second pass.
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

from bench import environment, postgres, processes, worlds
from bench.contender import StoreKind
from bench.worlds import World, chance
from unstuck.model.settlement import Returned

RESULTS = environment.ROOT / "bench" / "results" / "flat.jsonl"
BOUND = 1.5
WARM_UP = 30
LOOKS = 40
PAGE = 1000


@dataclass(frozen=True)
class Line:
    """Milliseconds, medians. p10 is what a claim costs when nothing comes between."""

    store: str
    world: str
    claim: float
    claim_p10: float
    claim_p95: float
    times_empty: float
    times_empty_p10: float
    fronts: float
    look: float
    busy_cores: float


def run(stores: Sequence[StoreKind], only: Sequence[str], repeats: int, keep: bool) -> bool:
    """Whether all of them keep the bound."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    names = ["empty", *(name for name in worlds.SITUATIONS if name != "empty" and (not only or name in only))]
    lines: list[Line] = []
    for store in stores:
        with opened(store, names) as those:
            lines += measure(store, those, repeats)
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps({"run": started_at, **asdict(line)}) + "\n" for line in lines)
    print("\n" + table(lines))
    return all(line.times_empty <= BOUND for line in lines)


@contextmanager
def opened(store: StoreKind, names: Sequence[str]) -> Iterator[list[World]]:
    with ExitStack() as stack:
        if store == "postgres":
            server = stack.enter_context(postgres.server())
            urls = [server.create(f"bench_{number}") for number in range(len(names))]
        else:
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-flat-"))
            urls = [f"sqlite:///{home}/{number}.db" for number in range(len(names))]
        found = []
        for name, url in zip(names, urls, strict=True):
            began = time.monotonic()
            found.append(worlds.make(name, url))
            stack.callback(found[-1].store.close)
            print(f"{store}: {name} made in {time.monotonic() - began:.0f} s", flush=True)
        yield found


def measure(store: StoreKind, those: Sequence[World], repeats: int) -> list[Line]:
    for world in those:
        for _ in range(WARM_UP):
            claim(world)
    processes.wait_for_quiet()
    before, began = processes.machine_busy(), time.monotonic()
    claims = interleaved(those, repeats, claim)
    busy = (processes.machine_busy() - before) / (time.monotonic() - began)
    fronts = interleaved(those, LOOKS, timed(lambda world: world.store.open_routes(0, PAGE)))
    looks = interleaved(those, LOOKS, timed(look))
    p10, p50, p95 = ({name: at(share, claims[name]) for name in claims} for share in (10, 50, 95))
    empty = those[0].name
    return [
        Line(
            store=store,
            world=world.name,
            claim=p50[world.name],
            claim_p10=p10[world.name],
            claim_p95=p95[world.name],
            times_empty=round(p50[world.name] / p50[empty], 2),
            times_empty_p10=round(p10[world.name] / p10[empty], 2),
            fronts=at(50, fronts[world.name]),
            look=at(50, looks[world.name]),
            busy_cores=round(busy, 2),
        )
        for world in those
    ]


def at(share: int, seconds: Sequence[float]) -> float:
    """A percentile, in milliseconds."""
    return round(statistics.quantiles(seconds, n=100)[share - 1] * 1e3, 3)


def interleaved(those: Sequence[World], repeats: int, one: Callable[[World], float]) -> dict[str, list[float]]:
    """Each repeat begins with another world: who comes after a large one finds colder caches."""
    seconds: dict[str, list[float]] = {world.name: [] for world in those}
    for number in range(repeats):
        turn = number % len(those)
        for world in [*those[turn:], *those[:turn]]:
            seconds[world.name].append(one(world))
    return seconds


def claim(world: World) -> float:
    share, name = world.share(), chance.nonce()
    began = time.perf_counter()
    jobs = world.store.claim(world.worker.number, name, [share])
    seconds = time.perf_counter() - began
    (job,) = jobs
    worlds.settle(world.store, world.worker, job.ref, Returned('"ok"'))
    return seconds


def timed(act: Callable[[World], object]) -> Callable[[World], float]:
    def one(world: World) -> float:
        began = time.perf_counter()
        act(world)
        return time.perf_counter() - began

    return one


def look(world: World) -> None:
    """All that a claimer that knows nothing yet does before it claims."""
    world.store.ingest()
    world.store.weights()
    world.store.routes([front.route for front in world.store.open_routes(0, PAGE)])


def table(lines: Sequence[Line]) -> str:
    out = []
    for store in dict.fromkeys(line.store for line in lines):
        out.append(f"| {store} | claim p50 ms | × empty | p10 | × empty | p95 | fronts ms | whole look ms |")
        out.append("|---|---|---|---|---|---|---|---|")
        mine = [line for line in lines if line.store == store]
        out += [
            f"| {line.world} | {line.claim:.2f} | {_marked(line.times_empty)} | {line.claim_p10:.2f} "
            f"| {line.times_empty_p10:.2f} | {line.claim_p95:.2f} | {line.fronts:.2f} | {line.look:.2f} |"
            for line in mine
        ]
        out.append(f"\nbusy cores while claiming: {mine[0].busy_cores}\n")
    return "\n".join(out)


def _marked(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio <= BOUND else f"**{ratio:.2f}, above {BOUND}**"
