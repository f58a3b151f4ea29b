"""A link between workers at a distance and their server that answers some of what is asked by itself, as a server
without a free hand does, or a proxy in between."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from unstuck.server.problems import MEDIA_TYPE, problem_of
from unstuck.store.port import wire

#: Seconds for which the server may say nothing: longer than a poll.
_PATIENCE = 60.0


class LinkAnswer(NamedTuple):
    status: int
    media_type: str
    body: bytes
    retry_after: str | None = None

    @classmethod
    def of(cls, error: Exception) -> Self:
        """As our server tells this error."""
        told = problem_of(error, "by-the-link")
        return cls(told.status, MEDIA_TYPE, told.encoded(), told.headers.get("Retry-After"))


class RefusingLink:
    """Passes requests on to a server. `answer`: told the verb of each, "" for the greeting; what it gives is said
    instead, and the server hears nothing of the request."""

    def __init__(self, url: str, answer: Callable[[str], LinkAnswer | None]) -> None:
        server = urlsplit(url).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with suppress(OSError):  # whoever asked has left
                    super().handle()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                given = answer(self.path.partition(wire.PATH)[2].lstrip("/"))
                self._say(given or self._asked(body))

            do_GET = do_POST

            def _asked(self, body: bytes) -> LinkAnswer:
                connection = http.client.HTTPConnection(server, timeout=_PATIENCE)
                try:
                    connection.request(self.command, self.path, body or None, dict(self.headers))
                    heard = connection.getresponse()
                    kind, after = heard.headers.get("content-type", ""), heard.headers.get("retry-after")
                    return LinkAnswer(heard.status, kind, heard.read(), after)
                except (OSError, http.client.HTTPException):
                    return LinkAnswer(502, "text/html", b"<h1>502 Bad Gateway</h1>")
                finally:
                    connection.close()

            def _say(self, said: LinkAnswer) -> None:
                self.send_response(said.status)
                self.send_header("Content-Type", said.media_type)
                self.send_header("Content-Length", str(len(said.body)))
                if said.retry_after is not None:
                    self.send_header("Retry-After", said.retry_after)
                self.end_headers()
                self.wfile.write(said.body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
