"""Rogue: a server that answers as a test wants it to, or not at all; and one that stands between a client and a real
server and loses answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self


class Rogue:
    """Each connection is one request. `script`: what happens to each in turn, the last one to all that follow."""

    def __init__(
        self,
        *script: Callable[[Rogue, socket.socket, bytes], None],
        status: int = 200,
        body: bytes = b"",
        problem: dict[str, Any] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        if problem is not None:
            body, headers = json.dumps(problem).encode(), [("Content-Type", "application/problem+json"), *headers]
        self._script = script or (answering(status, body, headers),)
        #: The requests, as they came.
        self.heard: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="rogue")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(20)
                request = _read(connection)
                act = self._script[min(len(self.heard), len(self._script) - 1)]
                self.heard.append(request.decode("latin-1"))
                try:
                    act(self, connection, request)
                except OSError:
                    pass  # the client hung up


Act = Callable[[Rogue, socket.socket, bytes], None]


def answering(status: int, body: bytes = b"", headers: Sequence[tuple[str, str]] = ()) -> Act:
    def act(_: Rogue, connection: socket.socket, request: bytes) -> None:
        lines = [f"HTTP/1.1 {status} X", "Connection: close", *(f"{name}: {value}" for name, value in headers)]
        if status not in (204, 304):
            lines.append(f"Content-Length: {len(body)}")
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    return act


def problem(status: int, code: str, headers: Sequence[tuple[str, str]] = ()) -> Act:
    body = json.dumps({"code": code, "detail": f"{code} it is", "title": code, "remedy": "r", "request_id": "q"})
    return answering(status, body.encode(), [("Content-Type", "application/problem+json"), *headers])


def hanging_up(_: Rogue, connection: socket.socket, request: bytes) -> None:
    """Takes the request, and says nothing."""


def passing_on(url: str) -> Act:
    def act(_: Rogue, connection: socket.socket, request: bytes) -> None:
        connection.sendall(_exchanged(url, request))

    return act


def losing_the_answer(url: str) -> Act:
    """The real server did it, and nobody hears of that."""

    def act(_: Rogue, connection: socket.socket, request: bytes) -> None:
        assert _exchanged(url, request)

    return act


def _exchanged(url: str, request: bytes) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as server:
        # One connection, one request: the answer ends where the server hangs up.
        server.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return b"".join(iter(lambda: server.recv(65536), b""))


def _read(connection: socket.socket) -> bytes:
    read = b""
    while b"\r\n\r\n" not in read:
        if not (piece := connection.recv(65536)):
            return read
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    lines = [line.lower() for line in head.split(b"\r\n")]
    length = sum(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        if not (piece := connection.recv(65536)):
            break
        body += piece
    return head + b"\r\n\r\n" + body
