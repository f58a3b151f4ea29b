"""CPU time of process trees, read from /proc: who used the machine while a cell ran."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def _stat(path: Path) -> list[str] | None:
    """The fields after the command name, which may itself hold spaces and brackets."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return None


def tree(root: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(entry / "stat")):
            children[int(fields[1])].append(int(entry.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children[pid]
    return found


def cpu_of(root: int) -> float:
    """Seconds of CPU of the tree, those of children that were waited for included."""
    return _ticks(root, slice(11, 15)) / TICK


def kernel_of(root: int) -> float:
    """The part of it that was spent in the system."""
    return _ticks(root, slice(12, 15, 2)) / TICK


def _ticks(root: int, columns: slice) -> int:
    lines = (_stat(Path(f"/proc/{pid}/stat")) for pid in tree(root))
    return sum(int(field) for fields in lines if fields for field in fields[columns])


def own_cpu_of(pid: int) -> float:
    """Seconds of CPU of this process alone, all its threads."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return sum(int(field) for field in fields[11:13]) / TICK if fields else 0.0


def exact_cpu_of(pid: int) -> float:
    """Seconds of CPU of the main thread of one process, to the microsecond; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def threads_of(root: int) -> dict[tuple[int, str, int, str], float]:
    """Seconds of CPU per thread: (pid, process name, tid, thread name) -> seconds."""
    seconds = {}
    for pid in tree(root):
        name = _comm(Path(f"/proc/{pid}/comm"))
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        for task in tasks:
            if fields := _stat(task / "stat"):
                key = (pid, name, int(task.name), _comm(task / "comm"))
                seconds[key] = (int(fields[11]) + int(fields[12])) / TICK
    return seconds


def _comm(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return "?"


def machine_busy() -> float:
    """Seconds of CPU used by everybody since boot, all cores together."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / TICK


def wait_for_quiet(share: float = 0.15, patience: float | None = None) -> float:
    """Wait until at most this share of one core is used by others; the share seen last."""
    until = time.monotonic() + float(os.environ.get("BENCH_PATIENCE") or 60.0 if patience is None else patience)
    while True:
        before, began = machine_busy(), time.monotonic()
        time.sleep(0.5)
        busy = (machine_busy() - before) / (time.monotonic() - began)
        if busy <= share or time.monotonic() > until:
            return busy
