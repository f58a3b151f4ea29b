"""A link between a program and servers on this machine that can be cut, stand still, and lose what is said."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from typing import Self

Heard = Callable[[bytes], None]
#: Little enough for a steady flow at the rates of tests.
_SLOW_PIECE = 8 << 10


class CutLink:
    """Passes bytes on in both directions, each connection to the next of its servers. `answering` and `asking` are
    called with each piece of an answer or a question, before it is passed on.

    cut       every connection there is ends.
    freeze    nothing passes until `thaw`, and nobody is told; what was said meanwhile arrives then, also that of
              programs which have long given up.
    abandon   the servers' ends of all connections end, and the programs are not told.
    is_mute   what servers say is read and thrown away, and the connection ends: the question was heard.
    is_deaf   the same with what is said to servers: the question was lost.

    `linger`: for so many seconds a server does not notice that a program has hung up, as behind a proxy. A server
    that hears a question and sees its end at once lets it be.
    `bytes_per_second`: so many pass in each direction, of all connections together; each has its turn.
    """

    def __init__(
        self,
        *ports: int,
        answering: Heard | None = None,
        asking: Heard | None = None,
        linger: float = 0.0,
        bytes_per_second: float | None = None,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        #: When the last piece of each direction has passed.
        self._passed_at = {True: 0.0, False: 0.0}
        self._linger = linger
        self._is_over = threading.Event()
        self._ports = itertools.cycle(ports)
        self._heard = {True: answering, False: asking}
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.is_mute = False
        self.is_deaf = False
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        _hang_up(self._door)
        self._door.close()
        self._flows.set()
        self._is_over.set()
        self.cut()
        for thread in list(self._threads):
            thread.join(10)

    def cut(self) -> None:
        for pair in self._taken():
            pair.hang_up()

    def abandon(self) -> None:
        for pair in self._taken():
            pair.is_abandoned = True
            _hang_up(pair.far)

    def freeze(self) -> None:
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def _taken(self) -> list[_Pair]:
        with self._lock:
            return list(self._pairs)

    def _pass_slowly(self, piece: bytes, is_answer: bool) -> None:
        if self._bytes_per_second is None:
            return
        with self._lock:
            at = max(time.monotonic(), self._passed_at[is_answer]) + len(piece) / self._bytes_per_second
            self._passed_at[is_answer] = at
        self._is_over.wait(at - time.monotonic())

    def _begin(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", next(self._ports)))
            except OSError:
                near.close()
                continue
            pair = _Pair(near, far)
            with self._lock:
                self._pairs.add(pair)
            self._begin(self._carry, pair, False)
            self._begin(self._carry, pair, True)

    def _carry(self, pair: _Pair, is_answer: bool) -> None:
        source, sink = (pair.far, pair.near) if is_answer else (pair.near, pair.far)
        try:
            while piece := source.recv(64 << 10 if self._bytes_per_second is None else _SLOW_PIECE):
                self._flows.wait()
                self._pass_slowly(piece, is_answer)
                if (heard := self._heard[is_answer]) is not None:
                    heard(piece)
                if self.is_mute if is_answer else self.is_deaf:
                    break
                if not pair.is_abandoned:
                    sink.sendall(piece)
        except OSError:
            pass
        if not is_answer:
            self._is_over.wait(self._linger)
        if not (is_answer and pair.is_abandoned):
            pair.hang_up()
        if pair.is_last():
            with self._lock:
                self._pairs.discard(pair)


class _Pair:
    """One connection: the program's end and the server's."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.far = far
        self.is_abandoned = False
        self._carriers = 2
        self._lock = threading.Lock()

    def hang_up(self) -> None:
        _hang_up(self.near)
        _hang_up(self.far)

    def is_last(self) -> bool:
        """Of each carrier when it ends; the last one closes both ends."""
        with self._lock:
            self._carriers -= 1
            if self._carriers:
                return False
        self.near.close()
        self.far.close()
        return True


def _hang_up(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
