"""A receiver of webhooks: a real one on loopback, which answers as a test says, and remembers all it was sent."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks.webhooks import Webhook

ALLOWED = ["127.0.0.0/8"]


@dataclass(frozen=True)
class Message:
    path: str
    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """What it says, unverified."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def verified(self, secret: str) -> dict[str, Any]:
        """By the reference library."""
        found: dict[str, Any] = Webhook(secret).verify(self.body, self.headers)
        return found


#: The status of the answer to a message.
Answer = Callable[[Message], int]


@dataclass
class Receiver:
    url: str
    answer: Answer = lambda message: 200
    messages: list[Message] = field(default_factory=list)

    @property
    def taken(self) -> list[Message]:
        return [message for message in self.messages if 200 <= message.status < 300]

    def of_jobs(self) -> dict[str, list[Any]]:
        """The numbers of the moves that each job's messages tell, in the order in which they were taken."""
        found: dict[str, list[Any]] = defaultdict(list)
        for message in self.taken:
            event = message.event["data"]
            if event.get("job") and event["number"] is not None:
                found[event["job"]].append(event["number"])
        return found


@contextmanager
def receiving(answer: Answer = lambda message: 200, port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver("", answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            message = Message(self.path, headers, body, 0)
            status = receiver.answer(message)
            receiver.messages.append(Message(self.path, headers, body, status))
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def behaving(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """Whoever connects is met by `behave`, and hung up on when that is over."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            try:
                met, _ = listener.accept()
            except OSError:
                return
            with met:
                met.settimeout(30)
                try:
                    behave(met)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
    finally:
        stopping.set()
        listener.close()
        thread.join(5)
