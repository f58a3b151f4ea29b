"""Refusals: what workers at a distance asked and may not, told to audit and log; of a flood one line a minute.

Of one key the first is written at once, and the next after a minute at the earliest, with how many came between. So a
hostile worker can fill neither: it has as many lines as minutes, and its key is named in each.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from unstuck.clock import Clock
from unstuck.model.errors import InvalidInput, NotPermitted, StoreError
from unstuck.operations.table import Caller
from unstuck.store.port import EVERY, asking_from
from unstuck.telemetry import emit

#: Seconds between two lines about one key.
EVERY_SO_OFTEN = 60.0
#: Keys of which it is remembered.
REMEMBERED = 10_000


class Refusals:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By key: when the last line was written, and how many refusals came since.
        self._known: OrderedDict[str, tuple[float, int]] = OrderedDict()

    @contextmanager
    def told(self, caller: Caller) -> Iterator[None]:
        """Around everything that is done for a worker; what is refused is refused all the same."""
        try:
            yield
        except (NotPermitted, InvalidInput) as error:
            self.tell(caller, str(error))
            raise

    def tell(self, caller: Caller, reason: str) -> None:
        repeated = self._counted(caller.key or caller.by)
        if repeated is None:
            return
        facts = {"key": caller.by, "address": caller.address, "reason": reason, "repeated": repeated or None}
        emit("remote_worker_refused", level=logging.WARNING, **facts)
        try:
            with asking_from(caller.key, caller.address):
                caller.store.tell_refused_worker(caller.by, caller.bound or EVERY, reason, repeated)
        except StoreError as error:
            emit("refusal_not_written", level=logging.WARNING, key=caller.by, error=str(error))

    def _counted(self, key: str) -> int | None:
        """How many came since the last line; None: it is too early for another."""
        now = self._clock.boot()
        with self._lock:
            written_at, since = self._known.pop(key, (float("-inf"), 0))
            is_due = now - written_at >= EVERY_SO_OFTEN
            self._known[key] = (now, 0) if is_due else (written_at, since + 1)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return since if is_due else None
