"""What the kernel says about memory: how much a process holds, and whether it ended one for want of it."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> int:
    """Bytes in memory, shared ones included; 0 for a process that is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def oom_kills(counters: tuple[str, ...]) -> int:
    """How many processes the kernel has ended for want of memory, by the first counter that can be read."""
    for path in counters:
        try:
            with open(path) as file:
                lines = dict(line.split()[:2] for line in file if len(line.split()) >= 2)
            return int(lines["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def oom_counters(pid: int) -> tuple[str, ...]:
    """Where that process's control group keeps the count (v2 or v1, as the host or its container names it)."""
    found: list[str] = []
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            entries = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        entries = []
    for number, controllers, path in entries:
        if "memory" in controllers.split(","):
            found += [f"/sys/fs/cgroup/memory{p}/memory.oom_control" for p in (path, "")]
        elif number == "0":
            found += [f"/sys/fs/cgroup{p}/memory.events" for p in (path, "")]
    return tuple(found)
