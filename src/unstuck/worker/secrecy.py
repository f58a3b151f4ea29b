"""What keeps the supervisor's secrets from the code that it supervises, which runs under the same user.

No executor is started with a variable that carries keys. The supervisor's own memory, and what it was started with
(`/proc/PID/environ`), are closed to everybody but root: the kernel counts a process that must not be dumped as
another user's. It writes no core file either, and py-spy needs root to look into it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Final

_PR_SET_DUMPABLE: Final = 4
#: Of settings: whatever begins so may hold keys, or say where they are.
_SECRET: Final = ("UNSTUCK_SIGNING", "UNSTUCK_SEALING")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.upper().startswith(_SECRET)}


def hide_memory() -> bool:
    """Of this process, for good; False: this system has no such thing."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
