"""Who keeps a SQLite file from being written. SQLite itself cannot say; the kernel can. Reading its list touches none
of our files: closing one that SQLite has open would give up the locks of this process."""

from __future__ import annotations

import os
from pathlib import Path

#: Where SQLite's locks are, in the file that says where the log has what, and in the database itself.
_WRITE_LOCK = 120
_PENDING_LOCK = 0x40000000
#: Kind, file and byte of the locks that keep writers out; the last is ours, of whoever checkpoints.
_KINDS = (("POSIX", "-shm", _WRITE_LOCK), ("POSIX", "", _PENDING_LOCK), ("FLOCK", "-lock", 0))


def holder(path: str) -> str:
    """The process that holds such a lock at this moment, in words; "another process" where nobody says which."""
    wanted = {(kind, _place(f"{path}{end}")): byte for kind, end, byte in _KINDS}
    for line in _text("/proc/locks").splitlines():
        words = line.split()
        if len(words) != 8 or words[3] != "WRITE":  # a longer one waits
            continue
        _, kind, _, _, pid, place, first, last = words
        byte = wanted.get((kind, place))
        if byte is not None and int(first) <= byte and (last == "EOF" or byte <= int(last)):
            return _named(pid)
    return "another process"


def _place(path: str) -> str:
    """As the kernel spells it."""
    try:
        facts = os.stat(path)
    except OSError:
        return ""
    return f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"


def _named(pid: str) -> str:
    status = dict(line.split(":\t", 1) for line in _text(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    if not status:  # it is gone, or belongs to another container
        return "another process"
    stopped = ", which is stopped," if status["State"].startswith(("T", "t")) else ""
    return f"another process ({pid}, {status['Name']}){stopped}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
