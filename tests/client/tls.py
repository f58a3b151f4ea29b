"""TlsFront: TLS in front of a server, as a proxy has it; it shows whatever certificate a test wants."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Self

import trustme


class TlsFront:
    def __init__(self, backend: str, certificate: trustme.LeafCert) -> None:
        host, port = backend.removeprefix("http://").split(":")
        self._backend = host, int(port)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(self._context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: Connections whose other side was content with the certificate.
        self.trusted = 0
        self._thread = threading.Thread(target=self._serve, name="tls-front")

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
            threading.Thread(target=self._pass_on, args=(connection,), daemon=True).start()

    def _pass_on(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(20)
            with self._context.wrap_socket(connection, server_side=True) as caller:
                # TLS 1.3 is done here before the other side has judged: what it sends tells that it trusts.
                first = caller.recv(65536)
                self.trusted += bool(first)
                with socket.create_connection(self._backend, timeout=20) as server:
                    server.sendall(first)
                    back = threading.Thread(target=_pump, args=(server, caller), daemon=True)
                    back.start()
                    _pump(caller, server)
                    back.join(20)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
