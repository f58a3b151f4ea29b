"""A host that gives nobody another thread, as one whose limit of processes is reached."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: A stack for which no machine has an address.
_ENDLESS = 1 << 47


@contextmanager
def no_more_threads() -> Iterator[None]:
    threading.stack_size(_ENDLESS)
    try:
        yield
    finally:
        threading.stack_size(0)
