"""Resolver: the addresses of a host's name, within a time. The port by which tests say what DNS answers."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, Protocol

from unstuck.model.destination import Address

#: The system's resolver cannot be interrupted: so many questions may hang at once.
MOST_ASKED: Final = 32
#: Addresses of one name that are looked at.
MOST_ADDRESSES: Final = 64


class NoAddress(Exception):
    """The name is nobody's, or nobody told in time."""


class Resolver(Protocol):
    def addresses(self, host: str, port: int, within: float) -> Sequence[Address]:
        """All that the name has. NoAddress."""
        ...


class SystemResolver:
    """Asks as every program of this machine does; on a thread of its own, which is left behind if it takes too
    long."""

    def __init__(self) -> None:
        self._room = threading.BoundedSemaphore(MOST_ASKED)

    def addresses(self, host: str, port: int, within: float) -> Sequence[Address]:
        if not self._room.acquire(blocking=False):
            raise NoAddress("too many names are being looked up")
        answer: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()
        threading.Thread(target=self._ask, args=(host, port, answer), name="unstuck-resolve", daemon=True).start()
        try:
            found = answer.get(timeout=max(0.0, within))
        except queue.Empty:
            raise NoAddress("its name was not resolved in time") from None
        if isinstance(found, Exception):
            raise NoAddress("its name cannot be resolved") from found
        return found

    def _ask(self, host: str, port: int, answer: queue.SimpleQueue[list[Address] | Exception]) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
            answer.put(_listed([str(each[4][0]) for each in found]))
        except Exception as error:
            answer.put(error)
        finally:
            self._room.release()


def _listed(texts: Sequence[str]) -> list[Address]:
    return [ip_address(text) for text in dict.fromkeys(texts)][:MOST_ADDRESSES]
