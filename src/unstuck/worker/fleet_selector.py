"""Everything the fleet listens to, each with its listener; and the nudge by which other threads end its wait."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections.abc import Callable

Source = socket.socket | int
Hear = Callable[[int], None]


class FleetSelector:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._nudge_in, self._nudge_out = os.pipe()
        os.set_blocking(self._nudge_in, False)
        os.set_blocking(self._nudge_out, False)
        self._closed = False
        self.watch(self._nudge_in, self._nudged)

    def watch(self, source: Source, hear: Hear) -> None:
        self._selector.register(source, selectors.EVENT_READ, hear)

    def unwatch(self, source: Source) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def watch_for_room(self, source: Source, wanted: bool) -> None:
        """Whether to hear of it also when it can be written to."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        with contextlib.suppress(KeyError):
            self._selector.modify(source, events, self._selector.get_key(source).data)

    def hear(self, wait: float) -> None:
        for key, mask in self._selector.select(wait):
            # What an earlier one of this round has closed, or even replaced under the same number, is past hearing.
            now_there = self._selector.get_map().get(key.fd)
            if now_there is not None and now_there.data is key.data:
                key.data(mask)

    def nudge(self) -> None:
        """From any thread."""
        if not self._closed:
            with contextlib.suppress(BlockingIOError):
                os.write(self._nudge_out, b"!")

    def close(self) -> None:
        self._closed = True
        self._selector.close()
        os.close(self._nudge_in)
        os.close(self._nudge_out)

    def _nudged(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._nudge_in, 4096)


def is_readable(mask: int) -> bool:
    return bool(mask & selectors.EVENT_READ)


def is_writable(mask: int) -> bool:
    return bool(mask & selectors.EVENT_WRITE)
