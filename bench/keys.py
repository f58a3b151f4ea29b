"""What limits cost a drain over 10 000 keys: `python -m bench keys`.

Time and CPU per job (the worker's and the database's together) of four kinds of limit, each as a multiple of the same
drain without limits: medians of the ratios within each round, so that a machine that is busy now is so for both.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench import drain

BOUND = 2.0
FREE = "keys"
LIMITED = ("keys-family-limit", "keys-own-limits", "keys-two-limits", "keys-rate")
PREFIX = {"postgres": "", "sqlite": "sqlite-"}


def run(stores: Sequence[str], rounds: int, keep: bool) -> bool:
    """Whether each kind of limit costs at most twice as much, on each database."""
    prefixes = [PREFIX[store] for store in stores]
    names = [prefix + name for prefix in prefixes for name in (FREE, *LIMITED)]
    lines = drain.run(names, rounds, None, keep, [prefix + FREE for prefix in prefixes])
    print("| × without limits | time | CPU per job |\n|---|---|---|")
    kept = [_is_kept(prefix + name, prefix + FREE, lines) for prefix in prefixes for name in LIMITED]
    return all(kept)


def _is_kept(name: str, free: str, lines: Sequence[dict[str, Any]]) -> bool:
    rounds: dict[int, dict[str, dict[str, Any]]] = {}
    for line in lines:
        if "error" not in line:
            rounds.setdefault(line["round"], {})[line["contender"]] = line
    pairs = [(of[name], of[free]) for of in rounds.values() if name in of and free in of]
    if not pairs:
        return False
    times = [free["jobs_per_s"] / limited["jobs_per_s"] for limited, free in pairs]
    costs = [_cpu(limited) / _cpu(free) for limited, free in pairs]
    print(f"| {name} | {_shown(times)} | {_shown(costs)} |")
    return max(statistics.median(times), statistics.median(costs)) <= BOUND


def _cpu(line: dict[str, Any]) -> float:
    return float(line["worker_us"] + line["database_us"])


def _shown(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
