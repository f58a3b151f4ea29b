"""HealthPort: /healthz, /readyz and /metrics of one worker, for probes and Prometheus.

A few threads of its own, so that neither jobs nor the supervisor wait for whoever asks; whoever says nothing is hung
up on. Elsewhere than on this machine only /healthz answers without a key. A stuck job never fails it: the supervisor
replaces the process, and who killed the worker would kill the healthy neighbours.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from unstuck.clock import Clock
from unstuck.model.errors import InvalidInput, StoreError, UnstuckError
from unstuck.records import dataclass
from unstuck.telemetry import emit, logger

#: Who asks has so many seconds to say what, and to read the answer.
PATIENCE = 3.0
MOST_HEAD = 16 << 10
#: Requests at once, those that wait included; more are hung up on.
THREADS = 4
WAITING = 16
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
_REASONS |= {405: "Method Not Allowed", 501: "Not Implemented", 503: "Service Unavailable"}
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HealthAnswers:
    """What is answered: whether it takes jobs; its metrics and their media type; and whether a key, shown from an
    address, may see them (a reason, if not)."""

    is_ready: Callable[[], bool]
    metrics: Callable[[], tuple[str, str]]
    refusal: Callable[[str, str], str | None]


class HealthPort:
    """It listens from the moment it is made, so that a port that is taken is told at once; `start` answers."""

    def __init__(self, host: str, port: int, answers: HealthAnswers, clock: Clock) -> None:
        self._answers = answers
        self._clock = clock
        self._listener = _listen(host, port)
        place, number = self._listener.getsockname()[:2]
        self.url = f"http://[{place}]:{number}" if ":" in place else f"http://{place}:{number}"
        self._is_local = _is_loopback(place)
        self._places = threading.BoundedSemaphore(THREADS + WAITING)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="unstuck-health")
        self._thread = threading.Thread(target=self._accept, name="unstuck-health", daemon=True)
        self._is_closed = False

    def start(self) -> None:
        emit("health_port", url=self.url)
        self._thread.start()

    def close(self) -> None:
        self._is_closed = True
        # Else a thread that waits in `accept` would go on doing so.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, address = self._listener.accept()
            except OSError:
                if not self._is_closed:
                    self._clock.wait(threading.Event(), 0.1)  # out of descriptors, perhaps; not as fast as we can
                continue
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            try:
                self._pool.submit(self._serve, connection, str(address[0]))
            except RuntimeError:  # it was closed
                connection.close()
                return

    def _serve(self, connection: socket.socket, address: str) -> None:
        try:
            with connection:
                until = self._clock.boot() + PATIENCE
                head = self._head(connection, until)
                if head is not None:
                    connection.settimeout(PATIENCE)
                    connection.sendall(self._answer(head, address))
        except OSError:
            pass  # it went away
        except Exception:
            logger.exception("a request to the health port failed")
        finally:
            self._places.release()

    def _head(self, connection: socket.socket, until: float) -> bytes | None:
        """All of it, however slowly it comes, but not for longer than until then."""
        head = b""
        while b"\r\n\r\n" not in head:
            left = until - self._clock.boot()
            if left <= 0 or len(head) > MOST_HEAD:
                return None
            connection.settimeout(left)
            piece = connection.recv(4096)
            if not piece:
                return None
            head += piece
        return head

    def _answer(self, head: bytes, address: str) -> bytes:
        lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        headers = dict(_header(line) for line in lines[1:])
        if method not in ("GET", "HEAD"):
            return _bytes(405, "only GET\n")
        status, text, kind = self._told(path, headers, address)
        return _bytes(status, text, kind, with_body=method == "GET")

    def _told(self, path: str, headers: dict[str, str], address: str) -> tuple[int, str, str]:
        if path == "/healthz":
            return _json(200, alive=True)
        if path not in ("/readyz", "/metrics"):
            return 404, "there are /healthz, /readyz and /metrics\n", _TEXT
        if self._is_local:
            if not _is_loopback(_host_in(headers.get("host", ""))):
                return 403, "the Host must be this machine: localhost, 127.0.0.1 or [::1]\n", _TEXT
        elif (refusal := self._refusal(headers, address)) is not None:
            return 401, f"{refusal}\n", _TEXT
        if path == "/readyz":
            return _json(200, ready=True) if self._answers.is_ready() else _json(503, ready=False)
        try:
            return 200, *self._answers.metrics()
        except InvalidInput as missing:
            return 501, f"{missing}\n", _TEXT

    def _refusal(self, headers: dict[str, str], address: str) -> str | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return "an API key is needed: Authorization: Bearer usk_…"
        try:
            return self._answers.refusal(key.strip(), address)
        except StoreError:
            return "nobody can say now whose key this is"
        except UnstuckError as error:
            return str(error)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"--health-host {host}: {error}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(64)
    except (OSError, OverflowError) as error:
        made.close()
        told = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise InvalidInput(f"cannot listen on {host} port {port}: {told}; choose another --health-port") from None
    return made


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def _host_in(host: str) -> str:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name.strip("[]")


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _json(status: int, **facts: bool) -> tuple[int, str, str]:
    return status, json.dumps(facts), "application/json"


def _bytes(status: int, text: str, kind: str = _TEXT, *, with_body: bool = True) -> bytes:
    body = text.encode(errors="replace")
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
