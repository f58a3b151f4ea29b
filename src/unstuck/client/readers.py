"""ServerReaders: the keys by which a worker's port is asked from afar, where only its server knows whose they are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from unstuck.client.problems import ToldProblem
from unstuck.client.transport import Transport
from unstuck.client.wire import NoAnswerHeard, Sending
from unstuck.clock import Clock
from unstuck.model.errors import StoreUnavailable, TooManyAttempts
from unstuck.model.keys import digest
from unstuck.operations.keyring import Throttle
from unstuck.operations.routes import PREFIX
from unstuck.store.port import wire

#: Seconds for which an answer about a key is told again; as many keys are remembered; and for so long a server may
#: say nothing.
FRESH = 5.0
REMEMBERED = 100
PATIENCE = 3.0


class ServerReaders:
    """As `PlatformReaders`, by asking the server with the key that was shown. `transport`: to it, with a key."""

    def __init__(self, transport: Callable[[str], Transport], clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._throttle = Throttle(clock)
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, str | None]] = OrderedDict()

    def start(self) -> None:
        """There is nothing to do before somebody asks."""

    def close(self) -> None:
        """Nothing is open between two questions."""

    def refusal(self, key: str, address: str) -> str | None:
        """Why not. TooManyAttempts; StoreUnavailable: nobody can say."""
        place, now = digest(key), self._clock.boot()
        with self._lock:
            asked_at, known = self._known.get(place, (float("-inf"), None))
        if now - asked_at < FRESH:
            return known
        self._throttle.check(address, None)
        found = self._asked(key)
        if found is not None:
            self._throttle.failed(address, None)
        with self._lock:
            self._known.pop(place, None)
            self._known[place] = (now, found)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _asked(self, key: str) -> str | None:
        transport = self._transport(key)
        try:
            heard = transport.send(Sending("GET", f"{PREFIX}{wire.PATH}/{wire.READER}", None, PATIENCE))
        finally:
            transport.close()
        if isinstance(heard, NoAnswerHeard):
            raise StoreUnavailable(f"no answer from {transport.address} ({heard.reason})")
        if heard.status == 200:
            return None
        problem = ToldProblem.of(heard, transport.address)
        if heard.status not in (401, 403) or isinstance(problem.error, TooManyAttempts):
            raise StoreUnavailable(str(problem.error))
        return str(problem.error)
