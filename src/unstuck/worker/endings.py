"""How a process ended, in words."""

from __future__ import annotations

import contextlib
import os
import signal


def status(wait_status: int) -> str:
    """As waitpid gave it."""
    return ending(-os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else os.WEXITSTATUS(wait_status))


def ending(code: int | None) -> str:
    """As subprocess counts: a negative one is a signal."""
    if code is None:
        return "status unknown"
    if code >= 0:
        return f"exit {code}"
    with contextlib.suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"
