"""What is left of an executor: every process it or its jobs started, wherever it hides.

Three signs find them, since each can be shed: the session of the executor (a daemon leaves it), the tag in the
environment (a program may clear it) and being adopted by the zygote (only once its parents are gone).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator

from unstuck.executor.process import EXECUTOR_TAG
from unstuck.machine import INCARNATION_TAG
from unstuck.records import dataclass

#: Rounds of killing: a process that forks faster than we look is caught by the next one.
_ROUNDS = 50
_PAUSE = 0.002


@dataclass(frozen=True, slots=True)
class Descendant:
    pid: int
    state: str
    parent: int
    session: int
    start: int


def look_at(pid: int) -> Descendant | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Descendant(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def processes() -> Iterator[Descendant]:
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


def attempt_tag(value: str) -> str:
    return f"{EXECUTOR_TAG}={value}"


def executor_of(pid: int, incarnation: str) -> int | None:
    """Which executor of this incarnation started it, by its tags; 0 if they do not say which."""
    found = None
    for tag in tags_of(pid):
        if tag == f"{INCARNATION_TAG}={incarnation}":
            found = found or 0
        elif tag.startswith(f"{EXECUTOR_TAG}={incarnation}/"):
            number = tag.removeprefix(f"{EXECUTOR_TAG}={incarnation}/").partition("/")[0]
            found = int(number) if number.isdigit() else found
    return found


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip().decode("utf-8", "replace")
    except OSError:
        return "?"


def children_of(pid: int) -> list[int]:
    """Of all its threads. By two looks: the kernel's list leaves out one that lives if the one before it is reaped
    at that moment."""
    return list(dict.fromkeys(_children_listed(pid) + _children_listed(pid)))


def _children_listed(pid: int) -> list[int]:
    """By a look at everybody where the kernel keeps no lists of them."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(ProcessLookupError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        return [found.pid for found in processes() if found.parent == pid]
    except OSError:
        return []
    return found


def is_dead(pid: int) -> bool:
    found = look_at(pid)
    return found is None or found.state in "ZX"


def family(heads: Iterable[int]) -> list[int]:
    """They and all below them that live."""
    found: dict[int, None] = {}
    unseen = list(heads)
    while unseen:
        pid = unseen.pop()
        if pid not in found and not is_dead(pid):
            found[pid] = None
            unseen += children_of(pid)
    return list(found)


def kill_where(is_victim: Callable[[Descendant], bool], spare: Iterable[int] = ()) -> int:
    """KILL every process that is one, until there is none; how many there were. One that is just ending has no tag
    any more: what was killed is waited for, whatever it looks like."""
    spared = {os.getpid(), 1, *spare}
    killed: set[tuple[int, int]] = set()
    for _ in range(_ROUNDS):
        living = [p for p in processes() if p.pid not in spared and p.state not in "ZX"]
        victims = [p for p in living if (p.pid, p.start) in killed or is_victim(p)]
        if not victims:
            break
        for victim in victims:
            killed.add((victim.pid, victim.start))
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(victim.pid, signal.SIGKILL)
        select.select([], [], [], _PAUSE)
    return len(killed)
