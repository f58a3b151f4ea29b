"""A slow link to a PostgreSQL that listens on a unix socket: TCP on this machine, so many bytes per second back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict

#: Little enough for a steady flow at the rates of tests.
_PIECE = 16 << 10


@contextmanager
def slow_link(url: str, bytes_per_second: float) -> Iterator[str]:
    """The URL of the same database at the other end of the link."""
    known = conninfo_to_dict(url)
    place = f"{known['host']}/.s.PGSQL.{known['port']}"
    door = socket.create_server(("127.0.0.1", 0))
    ends: list[socket.socket] = []
    carriers: list[threading.Thread] = []

    def serve() -> None:
        while True:
            try:
                client, _ = door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            ends.extend((client, server))
            server.connect(place)
            for source, sink, rate in ((client, server, None), (server, client, bytes_per_second)):
                carriers.append(threading.Thread(target=_carry, args=(source, sink, rate), daemon=True))
                carriers[-1].start()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield f"postgresql://{known['user']}@127.0.0.1:{door.getsockname()[1]}/{known['dbname']}?sslmode=disable"
    finally:
        _hang_up(door)
        server.join(10)
        for end in ends:
            _hang_up(end)
        for carrier in carriers:
            carrier.join(10)
        for end in (door, *ends):
            end.close()


def _carry(source: socket.socket, sink: socket.socket, rate: float | None) -> None:
    try:
        while piece := source.recv(_PIECE):
            if rate is not None:
                time.sleep(len(piece) / rate)
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
