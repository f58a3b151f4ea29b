"""HttpServer: the API on a socket, and the janitor beside it, until it is told to stop.

First TERM or INT: no new connections, streams and waits end at once, what was asked is answered, within a limit.
Second: it ends at once.
"""

from __future__ import annotations

import gc
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from signal import SIGINT, SIGTERM, signal
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from unstuck.clock import Clock
from unstuck.janitor.janitor import Janitor
from unstuck.model.times import Times
from unstuck.server.api import Api
from unstuck.server.connections import LONGEST_REST, MOST_CONNECTIONS, MOST_HEAD, LimitedProtocol
from unstuck.worker.loops import Loop

if TYPE_CHECKING:
    from unstuck.worker.supervisor import Beside

#: Seconds that requests have to end once the server is told to stop.
LONGEST_LEAVE = 30
#: Seconds between two full runs of the collector. One looks at everything that lives, which is mostly those who stay,
#: and holds up everybody: with 1500 of them for 90 ms. Left to itself it comes every few seconds, by what is
#: allocated for requests that have long been answered.
COLLECT_EVERY = 30
#: The collector's own third threshold: never.
_NEVER = 1 << 30


class HttpServer:
    def __init__(
        self,
        api: Api,
        janitor: Janitor,
        clock: Clock,
        times: Times,
        close: Callable[[], None],
        beside: Sequence[Beside] = (),
    ) -> None:
        self._api = api
        self._close = close
        self._beside = beside
        self._times = times
        self._keeper = Loop(
            "janitor", lambda: janitor.tick(self._keeper.stamp), clock, silence=3 * times.sweep + 8 * times.store_call
        )
        self._janitor = janitor
        api.when_parked(self._hurry_waits)
        self._uvicorn = _Uvicorn(
            api.leave,
            uvicorn.Config(
                api,
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="error",  # its warnings are about what strangers send, a line for each
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=LONGEST_REST,
                timeout_graceful_shutdown=LONGEST_LEAVE,
                h11_max_incomplete_event_size=MOST_HEAD,
            ),
        )

    def run(self, listener: socket.socket) -> None:
        """Until it is told to stop; what runs then is finished first."""
        _allow_connections()
        self._keeper.start()
        for each in self._beside:
            each.start()
        try:
            with _rare_collections():
                self._uvicorn.run([listener])
        finally:
            self._keeper.stop()
            self._api.close()
            self._keeper.join(self._times.store_call)
            for each in self._beside:
                each.close()
            self._close()

    def _hurry_waits(self, seconds: float) -> None:
        """A short wait must not last until the next sweep: its worker has no janitor of its own."""
        if self._janitor.call("waits", seconds):
            self._keeper.wake()

    def stop(self) -> None:
        """As the first signal does; from any thread."""
        self._api.leave()
        self._uvicorn.should_exit = True


class _Uvicorn(uvicorn.Server):
    def __init__(self, leave: Callable[[], None], config: uvicorn.Config) -> None:
        super().__init__(config)
        self._leave = leave

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if gc.get_threshold()[2] == _NEVER and counter % (10 * COLLECT_EVERY) == 10 * COLLECT_EVERY - 1:
            gc.collect()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """An ordered end is no death by a signal. Only the main thread hears them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal(number, self._heard) for number in (SIGTERM, SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._leave()
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True


@contextmanager
def _rare_collections() -> Iterator[None]:
    """What was imported stays for good: it is not looked at again. Only in a process of our own, which runs us on its
    main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(usual[0], usual[1], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _allow_connections() -> None:
    """As many open files as there may be connections, and some: what a shell allows is often less."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 2 * MOST_CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
