"""ServerMetrics: what /metrics answers. Read anew every few seconds at most, by one thread for the whole process; who
asks meanwhile gets the same text, so that ten scrapers cost as much as one and hold up nobody else."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field, replace

from unstuck.clock import Clock
from unstuck.model.errors import InvalidInput, NotPermitted
from unstuck.model.metrics import Measures
from unstuck.observe import exposition
from unstuck.operations.metrics import MetricsMemory, measure
from unstuck.operations.table import INCLUDED, READER, Caller
from unstuck.records import dataclass
from unstuck.server.exchange import HttpAnswer
from unstuck.server.lanes import Lane
from unstuck.server.problems import HttpProblem

#: Seconds for which a reading is told again; and so many times as long as it took, where that is longer.
FRESH = 5.0
TIMES_AS_LONG = 20
#: Tenants whose readings are remembered, and as many may wait for one.
MOST_TENANTS = 256


@dataclass(slots=True)
class _Reading:
    memory: MetricsMemory = field(default_factory=MetricsMemory)
    text: bytes = b""
    fresh_until: float = float("-inf")
    under_way: asyncio.Future[bytes] | None = None


class ServerMetrics:
    """`own`: what this process tells of itself, to who may see the platform."""

    def __init__(self, clock: Clock, own: Callable[[], Measures] | None = None) -> None:
        self._clock = clock
        self._own = own
        self._lane = Lane("metrics", 1, MOST_TENANTS)
        self._readings: OrderedDict[str | None, _Reading] = OrderedDict()

    def close(self) -> None:
        self._lane.close()

    async def answer(self, caller: Caller) -> HttpAnswer:
        """On the loop's thread; the reading is not."""
        asking = _admitted(caller)
        reading = self._readings.setdefault(asking.own, _Reading())
        self._readings.move_to_end(asking.own)
        if len(self._readings) > MOST_TENANTS:
            self._readings.popitem(last=False)
        return HttpAnswer(200, await self._text(asking, reading), exposition.MEDIA_TYPE)

    async def _text(self, caller: Caller, reading: _Reading) -> bytes:
        if self._clock.boot() < reading.fresh_until:
            return reading.text
        reader = reading.under_way
        if reader is None or reader.get_loop() is not asyncio.get_running_loop():
            reader = asyncio.ensure_future(self._lane.run(lambda: self._read(caller, reading)))
            reader.add_done_callback(lambda _: self._done(reading))
            reading.under_way = reader
        return await asyncio.shield(reader)  # whoever leaves takes it from nobody

    def _read(self, caller: Caller, reading: _Reading) -> bytes:
        began = self._clock.boot()
        found = measure(caller, reading.memory)
        if caller.own is None and self._own is not None:
            found.update(self._own())
        try:
            text = exposition.text_of(found).encode(errors="replace")
        except InvalidInput as missing:
            raise HttpProblem("NotInstalled", str(missing)) from None
        now = self._clock.boot()
        reading.text, reading.fresh_until = text, now + max(FRESH, TIMES_AS_LONG * (now - began))
        return text

    def _done(self, reading: _Reading) -> None:
        reading.under_way = None


def _admitted(caller: Caller) -> Caller:
    """About its own tenant, or where it is bound to none about all."""
    if READER not in INCLUDED[caller.role]:
        raise NotPermitted(f"metrics need the role {READER}; {caller.by} is {caller.role}")
    if caller.within is not None:
        raise NotPermitted(f"metrics are about more than the queues and workflows that the key of {caller.by} names")
    return replace(caller, tenant=caller.bound)
