"""What the caller of a Context's verb has, or has not: an event loop that runs here, a value for an option."""

from __future__ import annotations

import sys
from typing import Any, Final


class _Unset:
    """An option that was not given, where None would be a value."""

    def __repr__(self) -> str:
        return "…"


UNSET: Final[Any] = _Unset()


def running_loop() -> Any:
    # asyncio is heavy to import; a process that has not imported it has no loop.
    asyncio = sys.modules.get("asyncio")
    return asyncio._get_running_loop() if asyncio else None
