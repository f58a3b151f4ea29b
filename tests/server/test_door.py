"""Who may ask. Without keys this machine alone, and no page of another site through a browser on it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.server.conftest import JSON, Site, problem, running
from tests.support.eventually import eventually
from unstuck.assembly.server import ServerOptions, build_server
from unstuck.model.errors import InvalidInput

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)

FOREIGN = [
    {"host": "evil.example"},
    {"host": "localhost.evil.example"},
    {"host": "127.0.0.1.evil.example:80"},
    {"host": "user@localhost"},
    {"host": "localhost/x"},
    {"host": "local\thost"},
    {"host": "0.0.0.0"},
    {"host": "192.168.0.1"},
    {"host": "[::2]"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost.evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"x-forwarded-for": "127.0.0.1"},
    {"x-forwarded-host": "localhost"},
    {"forwarded": "for=127.0.0.1"},
    {"x-real-ip": "127.0.0.1"},
    {"via": "1.1 proxy"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda headers: "-".join(next(iter(headers.items()))))
def test_what_another_site_or_a_proxy_sends_is_refused(shared_site: Site, headers: dict[str, str]) -> None:
    """Check 18."""
    for path in ("/api/v1/jobs", "/openapi.json", "/api/platform/blacklist"):
        problem(shared_site.get(path, headers=headers), 403, "Forbidden")
    problem(shared_site.post("/api/v1/queues/io/pause", headers=headers), 403, "Forbidden")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost"},
        {"host": "LOCALHOST:80"},
        {"host": "127.0.0.1"},
        {"host": "127.1.2.3:5"},
        {"host": "[::1]:8420"},
        {"host": "localhost:9", "origin": "http://localhost:9", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_what_this_machine_sends_is_answered(shared_site: Site, headers: dict[str, str]) -> None:
    assert shared_site.get("/api/v1/jobs", headers=headers).status_code == 200
    assert shared_site.post("/api/v1/queues/io/unpause", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        b"origin: http://localhost\r\norigin: http://evil.example\r\n",
        b"sec-fetch-site: none\r\nsec-fetch-site: cross-site\r\n",
    ],
)
def test_where_it_comes_from_is_said_once(shared_site: Site, lines: bytes) -> None:
    """Else a harmless one could hide the other."""
    answer = shared_site.raw(b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n" + lines + b"\r\n")
    assert (answer.status, answer.problem["code"]) == (400, "BadRequest")


@SQLITE
def test_no_site_may_read_what_is_answered(site: Site) -> None:
    """CORS is off: a browser that asks first is told nothing."""
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = site.client.options("/api/v1/jobs", headers=asked)
    problem(answer, 405, "MethodNotAllowed")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@SQLITE
def test_a_key_that_does_not_work_is_refused_although_none_is_needed(site: Site) -> None:
    for shown in ("Bearer nonsense", "Bearer", "Basic dTpw", "usk_x", "Bearer usk_aaaaaaaa_" + "a" * 49):
        answer = site.get("/api/v1/jobs", headers={"authorization": shown})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


@SQLITE
def test_it_listens_elsewhere_only_with_a_key(store_url: str) -> None:
    with pytest.raises(InvalidInput, match="unstuck keys create"):
        build_server(ServerOptions(store_url, host="0.0.0.0"))


@SQLITE
def test_a_port_that_is_taken_is_told(store_url: str, site: Site) -> None:
    port = int(site.url.rsplit(":", 1)[1])
    with pytest.raises(InvalidInput, match="choose another --port"), running(ServerOptions(store_url, port=port)):
        pass


# --- the loop never waits -----------------------------------------------------------------------------------------


@SQLITE
def test_it_says_that_it_lives_while_the_database_does_not_answer(site: Site, tmp_path: Path) -> None:
    """Whoever holds the file's lock keeps writers waiting, and nobody else."""
    import sqlite3

    holder = sqlite3.connect(tmp_path / "unstuck.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    answers: list[int] = []
    asking = [
        threading.Thread(target=lambda: answers.append(site.post("/api/v1/queues/io/pause").status_code))
        for _ in range(12)
    ]
    for thread in asking:
        thread.start()
    try:
        for _ in range(5):
            assert site.get("/healthz", timeout=2).json() == {"alive": True}
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    for thread in asking:
        thread.join(30)
    assert len(answers) == 12
    assert set(answers) <= {200, 503}


@SQLITE
def test_what_was_asked_is_answered_before_it_ends(site: Site) -> None:
    """A graceful shutdown: a request whose body is still on its way."""
    host, port = site.url.removeprefix("http://").rsplit(":", 1)
    body = b"{}"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = f"POST /api/v1/queues/io/pause HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        connection.sendall(head.encode() + f"content-type: {JSON['content-type']}\r\n\r\n".encode() + body[:1])
        eventually(lambda: site.get("/healthz").status_code == 200)
        site.server.stop()
        connection.sendall(body[1:])
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
