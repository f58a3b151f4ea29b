"""What users compare on the first evening, everybody in one interleaved run. `python -m bench table`.

A round measures each contender once: a drain, one worker that idles and then picks up single jobs, and turns of
enqueue. Shown are medians over the rounds; × is the median of each round's own ratio to the best peer with the same
database, and the hand-written limit is a yardstick, not a peer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench import drain, enqueue, environment, idle, plot, redis_server
from bench.contender import ENTRIES, load

HOME = environment.ROOT / "bench" / "results"
NAMES = (
    "unstuck-sync",
    "unstuck-async",
    "pgqueuer",
    "procrastinate",
    "hand-written",
    "unstuck-sqlite-sync",
    "unstuck-sqlite-async",
    "huey-sqlite",
    "huey-redis",
    "taskiq",
)
LIMIT = "hand-written"
SINGLES, BULK, TURNS = 300, 2000, 2
Line = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    title: str
    kind: str
    #: Of a line; None if the line is not about this figure.
    value: Callable[[Line], float | None]
    more_is_better: bool = False
    shown: str = ",.0f"


def _asked(way: str, signature: str) -> Callable[[Line], float | None]:
    def value(line: Line) -> float | None:
        return line["jobs"] / line["s"] if (line["way"], line["signature"]) == (way, signature) else None

    return value


def _of(key: str) -> Callable[[Line], float | None]:
    return lambda line: line[key]


FIGURES = (
    Figure("enqueue, single, jobs/s", "enqueue", _asked("single", "plain"), True),
    Figure("enqueue, single, rich arguments, jobs/s", "enqueue", _asked("single", "rich"), True),
    Figure("enqueue, bulk, jobs/s", "enqueue", _asked("bulk", "plain"), True),
    Figure("enqueue, bulk, rich arguments, jobs/s", "enqueue", _asked("bulk", "rich"), True),
    Figure("drain, jobs/s", "drain", _of("jobs_per_s"), True),
    Figure("drain, rich arguments, jobs/s", "drain-rich", _of("jobs_per_s"), True),
    Figure("pick-up at 50/s, p50, ms", "lone", _of("p50_ms"), shown=".2f"),
    Figure("pick-up at 50/s, p99, ms", "lone", _of("p99_ms"), shown=".2f"),
    Figure("worker CPU of a pick-up, ms/job", "lone", _of("worker_ms"), shown=".2f"),
    Figure("idle worker, % of a core", "lone", _of("cpu_percent"), shown=".2f"),
    Figure("start to first job, s", "lone", _of("start_s"), shown=".2f"),
)
PARTS = ("database", "supervisor", "executor")
CPU = tuple(Figure(part, "drain", _of(f"{part}_us")) for part in (*PARTS, "kernel"))


def run(names: Sequence[str], rounds: int, jobs: int | None, rich: bool, keep: bool) -> None:
    environment.setup()
    began, present = time.monotonic(), drain.measurable(names)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    lines: list[Line] = []
    with drain.surroundings(present, idle.STATEMENTS) as variables:
        for number in range(1, rounds + 1):
            for line in _round(present, jobs, rich, variables):
                lines.append({"run": started_at, **line, "round": number, "load": round(os.getloadavg()[0], 1)})
                print(json.dumps(lines[-1]), file=sys.stderr, flush=True)
        about = _about(present, variables)
    took = f"{rounds} round{'s' * (rounds > 1)} in {(time.monotonic() - began) / 60:.1f} minutes, {_loads(lines)}"
    text = "\n".join([f"Run of {started_at}: {took}.\n", *_tables(names, lines), "", *_keeps(names, about)])
    print(text)
    if keep:
        with open(HOME / "table.jsonl", "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        (HOME / "table.md").write_text(text + "\n")
        (HOME / "table.svg").write_text(_drawn(present, lines, took))


def _round(names: Sequence[str], jobs: int | None, rich: bool, variables: dict[str, str]) -> Iterator[Line]:
    for name in names:
        yield {**drain.cell(name, jobs, variables), "kind": "drain"}
        if rich and f"{name}-rich" in ENTRIES:
            yield {**drain.cell(f"{name}-rich", jobs, variables), "kind": "drain-rich", "contender": name}
    for name in names:
        yield {**drain.cell(name, None, variables, "lone-cell"), "kind": "lone"}
    askers = [name for name in names if name in enqueue.ASKERS]
    try:
        for line in enqueue.turns(askers, variables, TURNS, SINGLES, BULK):
            yield {**line, "kind": "enqueue"}
    except RuntimeError as error:
        print(f"enqueue of this round ends here: {error}", file=sys.stderr, flush=True)


def _about(names: Sequence[str], variables: dict[str, str]) -> dict[str, dict[str, str]]:
    """Setting, keeps and bodies, which only the contender's own interpreter can import."""
    found = {}
    for name in names:
        command = [str(environment.python_of(ENTRIES[name].environment)), "-m", "bench", "about", name]
        told = drain.variables_of(name, variables)
        done = subprocess.run(command, cwd=environment.ROOT, env=told, check=True, capture_output=True, text=True)
        found[name] = json.loads(done.stdout)
    return found


def about_cell(name: str) -> None:
    contender = load(name)
    print(json.dumps({key: getattr(contender, key) for key in ("setting", "keeps", "bodies")}))


def _loads(lines: Sequence[Line]) -> str:
    loads = [line["load"] for line in lines]
    others = [line["others_cores"] for line in lines if "others_cores" in line]
    used = f", others used {statistics.median(others):.2f} cores" if others else ""
    return f"load {min(loads)} to {max(loads)}{used}" if loads else "nothing was measured"


def seen(figure: Figure, name: str, lines: Sequence[Line]) -> dict[int, float]:
    """Round -> value, the median where a round has several."""
    values: dict[int, list[float]] = {}
    for line in lines:
        is_about = (line["kind"], line["contender"]) == (figure.kind, name) and "error" not in line
        if is_about and (value := figure.value(line)) is not None:
            values.setdefault(line["round"], []).append(value)
    return {number: statistics.median(of) for number, of in values.items()}


def best_peer(figure: Figure, store: str, lines: Sequence[Line]) -> str | None:
    peers = [name for name, of in ENTRIES.items() if (of.store, of.environment) == (store, "peers") and name != LIMIT]
    medians = {name: statistics.median(of.values()) for name in peers if (of := seen(figure, name, lines))}
    best = max if figure.more_is_better else min
    return best(medians, key=lambda name: medians[name]) if medians else None


def _tables(names: Sequence[str], lines: Sequence[Line]) -> Iterator[str]:
    figures = [figure for figure in FIGURES if any(seen(figure, name, lines) for name in names)]
    yield from _headed(["", *(f"{figure.title} (×)" for figure in figures)])
    for name in names:
        if ENTRIES[name].store == "redis" and redis_server.find_binary() is None:
            yield f"| {name} | {redis_server.ABSENT} {'| ' * len(figures)}"
        else:
            yield f"| {name} | {' | '.join(_shown(figure, name, lines) for figure in figures)} |"
    yield "\nCPU of a drain, µs a job. `kernel` is the part of the others that was spent in the system. A worker of"
    yield "one process has no executor apart; SQLite's work is done inside the worker.\n"
    yield from _headed(["", *(figure.title for figure in CPU)])
    for name in names:
        shares = [seen(figure, name, lines).values() for figure in CPU]
        yield f"| {name} | {' | '.join(f'{statistics.median(of):,.0f}' if of else '–' for of in shares)} |"


def _shown(figure: Figure, name: str, lines: Sequence[Line]) -> str:
    mine = seen(figure, name, lines)
    if not mine:
        return "–"
    text = format(statistics.median(mine.values()), figure.shown)
    peer = best_peer(figure, ENTRIES[name].store, lines)
    theirs = seen(figure, peer, lines) if peer and peer != name else {}
    ratios = [value / theirs[number] for number, value in mine.items() if theirs.get(number)]
    return f"{text} ({statistics.median(ratios):.2f})" if ratios else text


def _keeps(names: Sequence[str], about: dict[str, dict[str, str]]) -> Iterator[str]:
    yield from _headed(["", "store", "bodies", "keeps", "setting of the drain"])
    for name in names:
        if of := about.get(name):
            yield f"| {name} | {ENTRIES[name].store} | {of['bodies']} | {of['keeps']} | {of['setting']} |"


def _headed(titles: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"


def _drawn(names: Sequence[str], lines: Sequence[Line], took: str) -> str:
    panels = []
    for figure in FIGURES:
        values = {name: of for name in names if (of := seen(figure, name, lines))}
        if values and "rich" not in figure.title:
            better = "more is better" if figure.more_is_better else "less is better"
            bars = {name: [statistics.median(of.values())] for name, of in values.items()}
            panels.append(plot.Panel(f"{figure.title} ({better})", bars, figure.shown))
    parts = CPU[: len(PARTS)]
    drained = [name for name in names if seen(parts[0], name, lines)]
    bars = {name: [statistics.median(seen(part, name, lines).values()) for part in parts] for name in drained}
    panels.append(plot.Panel("CPU of a drain, µs a job (less is better)", bars, ",.0f", PARTS))
    return plot.draw(panels, f"Medians of {took}")
