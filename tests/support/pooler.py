"""A pooler before PostgreSQL, as far as clients notice: it announces numbers of its own instead of the server's, and
in transaction mode one session of the server serves all clients, a transaction each."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

from psycopg.conninfo import conninfo_to_dict

_PORT = 6432


class Pooler:
    def __init__(self, url: str, folder: Path, mode: Literal["session", "transaction"]) -> None:
        self._given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        self._mode = mode
        self._folder = folder
        self._ear = socket.socket(socket.AF_UNIX)
        self._sockets: list[socket.socket] = [self._ear]
        self._turn = threading.Lock()
        #: In transaction mode: the one session, and what it said when it began.
        self._shared: socket.socket | None = None
        self._greeting = b""
        self._clients = 0

    @property
    def url(self) -> str:
        user, name = self._given["user"], self._given["dbname"]
        return f"postgresql://{user}@/{name}?host={self._folder}&port={_PORT}"

    def __enter__(self) -> Pooler:
        self._ear.bind(str(self._folder / f".s.PGSQL.{_PORT}"))
        self._ear.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._ear.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError):
            startup = self._startup(client)
            with self._turn:
                self._clients += 1
                own = struct.pack("!cIII", b"K", 12, 10_000_000 + self._clients, 7)
                server = self._shared if self._mode == "transaction" else None
                if server is None:
                    server = self._connect()
                    server.sendall(startup)
                    greeting = self._until_ready(server, own)
                    if self._mode == "transaction":
                        self._shared, self._greeting = server, greeting
                else:
                    greeting = self._greeting
                client.sendall(self._with(greeting, own))
            self._exchange(client, server)

    def _exchange(self, client: socket.socket, server: socket.socket) -> None:
        """Message by message; the session is this client's until the server says that it is idle again."""
        while True:
            kind, message = _message(client)
            if kind == b"X":
                return
            with self._turn:
                server.sendall(message)
                while True:
                    while kind not in (b"Q", b"S"):  # an answer comes with the end of what is asked
                        kind, message = _message(client)
                        server.sendall(message)
                    if self._answer(client, server) == b"I":
                        break
                    kind, message = _message(client)
                    server.sendall(message)

    def _answer(self, client: socket.socket, server: socket.socket) -> bytes:
        while True:
            kind, message = _message(server)
            client.sendall(message)
            if kind == b"Z":
                return message[5:6]

    def _startup(self, client: socket.socket) -> bytes:
        while True:
            (length,) = struct.unpack("!I", _exactly(client, 4))
            rest = _exactly(client, length - 4)
            if rest[:4] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):  # TLS or GSS: no
                client.sendall(b"N")
                continue
            return struct.pack("!I", length) + rest

    def _connect(self) -> socket.socket:
        port = self._given.get("port") or "5432"
        host = self._given["host"]
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
        else:
            server = socket.create_connection((host, int(port)))
        self._sockets.append(server)
        return server

    def _until_ready(self, server: socket.socket, own: bytes) -> bytes:
        said = b""
        while True:
            kind, message = _message(server)
            said += own if kind == b"K" else message
            if kind == b"E":
                raise OSError(message)
            if kind == b"Z":
                return said

    def _with(self, greeting: bytes, own: bytes) -> bytes:
        """The same words, with this client's own number."""
        place, said = 0, b""
        while place < len(greeting):
            kind = greeting[place : place + 1]
            (length,) = struct.unpack("!I", greeting[place + 1 : place + 5])
            said += own if kind == b"K" else greeting[place : place + 1 + length]
            place += 1 + length
        return said


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    (length,) = struct.unpack("!I", head[1:])
    return head[:1], head + _exactly(source, length - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = source.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found
