"""What is left of an executor: every process it or its jobs started, wherever it hides.

Three marks find them, since each can be shed: the session of the executor (a daemon leaves it), the tag in the
environment (a fork without exec does not have it) and being adopted by the zygote (only once its parents are gone).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from unstuck.executor.process import EXECUTOR_TAG
from unstuck.machine import INCARNATION_TAG

#: Rounds of killing: a process that forks faster than we look is caught by the next one.
_ROUNDS = 50
_PAUSE = 0.002


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    state: str
    parent: int
    session: int
    start: int


def look_at(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def processes() -> Iterator[Process]:
    """All of this host that we can see; none where there is no /proc."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (found := look_at(int(name))) is not None:
                yield found


def tags_of(pid: int) -> set[str]:
    """The tags of ours among its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return set()
    ours = (f"{INCARNATION_TAG}=".encode(), f"{EXECUTOR_TAG}=".encode())
    return {entry.decode("utf-8", "replace") for entry in entries if entry.startswith(ours)}


def executor_tag(incarnation: str, executor: int) -> str:
    return f"{EXECUTOR_TAG}={incarnation}/{executor}"


def incarnation_tag(incarnation: str) -> str:
    return f"{INCARNATION_TAG}={incarnation}"


def kill_where(is_victim: Callable[[Process], bool], spare: Iterable[int] = ()) -> int:
    """KILL every process that is one, until there is none; how many there were."""
    spared = {os.getpid(), 1, *spare}
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        victims = [p for p in processes() if p.pid not in spared and p.state not in "ZX" and is_victim(p)]
        if not victims:
            break
        for victim in victims:
            killed.add(victim.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(victim.pid, signal.SIGKILL)
        select.select([], [], [], _PAUSE)
    return len(killed)
