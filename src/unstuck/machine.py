"""What this machine says about its processes: the one reader of /proc for identities.

A pid alone names nobody: it is reused. Boot id, pid namespace, pid and start time together do. Where /proc is
missing every answer is the careful one: unknown.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

#: In the environment of everything a worker starts, so that a sweep finds what escaped its process group.
INCARNATION_TAG = "UNSTUCK_INCARNATION"

_GONE_STATES = {"Z", "X", "x"}


def host() -> str:
    return socket.gethostname()


def boot_id() -> str:
    return _text("/proc/sys/kernel/random/boot_id").strip()


def pid_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def start_of(pid: int) -> int:
    """When it started, in ticks since boot; 0 if there is no such process, or only its unreaped corpse."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in _GONE_STATES:
        return 0
    return int(fields[19])


def is_gone(pid: int, start: int) -> bool:
    """Whether that very process has ended; another one under its number does not count for it."""
    now = start_of(pid)
    return now == 0 or (start != 0 and now != start)


def tagged(incarnation: str) -> Iterator[int]:
    """Living processes that carry this incarnation's tag, or that might: an environment we may not read counts
    only for a python or unstuck process, everything else of other users would make every check fail."""
    wanted = f"{INCARNATION_TAG}={incarnation}".encode()
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit() and int(entry) != os.getpid() and _may_carry(int(entry), wanted):
            yield int(entry)


def _may_carry(pid: int, wanted: bytes) -> bool:
    if start_of(pid) == 0:
        return False
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except PermissionError:
        return _looks_like_ours(pid)
    except OSError:
        return False


def _looks_like_ours(pid: int) -> bool:
    name = _text(f"/proc/{pid}/comm").strip().lower()
    return "python" in name or "unstuck" in name


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
