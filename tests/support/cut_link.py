"""A link between a program and a server on this machine that can be cut, and that can lose answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Self


class CutLink:
    """Passes bytes on in both directions. `cut` ends every connection there is; while it `is_mute`, what the server
    says is read and thrown away, and the connection ends: the question was heard, its answer is lost. `answering` is
    called with each piece of an answer, before it is passed on."""

    def __init__(self, port: int, answering: Callable[[bytes], None] = lambda piece: None) -> None:
        self._to = port
        self._answering = answering
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.is_mute = False
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._all: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        _hang_up(self._door)
        self._door.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)
        for end in self._all:
            end.close()

    def cut(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            _hang_up(end)

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
            far = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                self._ends |= {near, far}
                self._all += [near, far]
            self._begin(self._carry, near, far, False)
            self._begin(self._carry, far, near, True)

    def _carry(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        try:
            while piece := source.recv(64 << 10):
                if is_answer:
                    self._answering(piece)
                if is_answer and self.is_mute:
                    break
                sink.sendall(piece)
        except OSError:
            pass
        finally:
            _hang_up(source)
            _hang_up(sink)


def _hang_up(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
