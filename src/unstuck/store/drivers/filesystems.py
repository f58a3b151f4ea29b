"""Filesystems: where a SQLite file must not live, because locks there are a matter of luck."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = re.compile(r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|beegfs|ncpfs|fuse\.(?!fuseblk|bindfs)\w.*")
_MOUNTS = Path("/proc/self/mountinfo")


def network_filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network filesystem that holds this path, or None."""
    kind = filesystem(path, mounts)
    return kind if kind is not None and _NETWORK.fullmatch(kind) else None


def filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The type of the filesystem that holds this path; None where nobody says."""
    if mounts is None:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace") if _MOUNTS.exists() else ""
    return _type_of(os.path.realpath(path), mounts)


def _type_of(path: str, mounts: str) -> str | None:
    found: tuple[int, str | None] = (-1, None)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 5 or not kinds:
            continue
        place = _unescape(fields[4])
        # The last mount on the longest prefix wins: later lines are mounted over earlier ones.
        if _contains(place, path) and len(place) >= found[0]:
            found = (len(place), kinds[0])
    return found[1]


def _contains(place: str, path: str) -> bool:
    return place == "/" or path == place or path.startswith(place + "/")


def _unescape(place: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place)
