"""What this machine says about its processes: the one reader of /proc for identities.

A pid alone names nobody: it is reused. Boot id, pid namespace, pid and start time together do. Where /proc is
missing, or hides the processes of other users, every answer is the careful one: unknown.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path

#: In the environment of everything a worker starts, so that a sweep finds what escaped its process group.
INCARNATION_TAG = "UNSTUCK_INCARNATION"

PROC = "/proc"
_GONE_STATES = {"Z", "X", "x"}


def host() -> str:
    return os.uname().nodename


def boot_id() -> str:
    return _text(f"{PROC}/sys/kernel/random/boot_id").strip()


def pid_namespace() -> str:
    try:
        return str(os.stat(f"{PROC}/self/ns/pid").st_ino)
    except OSError:
        return ""


def start_of(pid: int) -> int:
    """When it started, in ticks since boot; 0 if we see no such process, or only its unreaped corpse."""
    fields = _stat(pid)
    return 0 if not fields or fields[0] in _GONE_STATES else int(fields[19])


def is_gone(pid: int, start: int) -> bool:
    """Whether that very process has ended for sure; another one under its number does not count for it."""
    fields = _stat(pid)
    if not fields:
        return not _may_exist(pid)
    return fields[0] in _GONE_STATES or (start != 0 and int(fields[19]) != start)


def _may_exist(pid: int) -> bool:
    """An entry that we do not see may be hidden from us; the kernel denies only those who do not exist."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is not ours to signal, but it is there
    return True


def _stat(pid: int) -> list[str]:
    """State, parent and so on, as in proc(5) after the name; nothing if it cannot be read."""
    fields = _text(f"{PROC}/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) >= 20 else []


def tagged(incarnation: str, besides: Container[int] = ()) -> Iterator[int]:
    """Living processes that carry this incarnation's tag, or that might: an environment we may not read counts
    only for a python or unstuck process, everything else of other users would make every check fail. `besides`:
    processes that are known to carry none; a supervisor with secrets lets nobody read its own."""
    wanted = f"{INCARNATION_TAG}={incarnation}".encode()
    for entry in os.listdir(PROC) if os.path.isdir(PROC) else ():
        pid = int(entry) if entry.isdigit() else 0
        if pid and pid != os.getpid() and pid not in besides and _may_carry(pid, wanted):
            yield pid


def _may_carry(pid: int, wanted: bytes) -> bool:
    if start_of(pid) == 0:
        return False
    try:
        return wanted in Path(f"{PROC}/{pid}/environ").read_bytes().split(b"\0")
    except PermissionError:
        return _looks_like_ours(pid)
    except OSError:
        return False


def _looks_like_ours(pid: int) -> bool:
    name = _text(f"{PROC}/{pid}/comm").strip().lower()
    return "python" in name or "unstuck" in name


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
