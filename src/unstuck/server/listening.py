"""Where a server listens: a socket, so that the address is known, and taken, before anything else happens."""

from __future__ import annotations

import socket

from unstuck.model.errors import InvalidInput

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"--host {host}: {error}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise InvalidInput(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port") from None
    return made


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
