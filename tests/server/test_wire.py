"""HTTP itself, byte by byte: what clients and proxies may send, though ours never do."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.server.conftest import Raw, Site, problem
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck.operations.routes import PREFIX, routes
from unstuck.server.connections import MOST_CONNECTIONS, MOST_HEAD

JOBS = b"/api/v1/jobs"


@contextmanager
def dialled(site: Site) -> Iterator[socket.socket]:
    host, port = site.url.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        yield connection


def request(target: bytes, *headers: bytes, method: bytes = b"GET", body: bytes = b"") -> bytes:
    lines = [b"%s %s HTTP/1.1" % (method, target), b"Host: localhost", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def read_all(connection: socket.socket, count: int) -> list[Raw]:
    """So many answers, one behind the other."""
    found = []
    with connection.makefile("rb") as stream:
        for _ in range(count):
            first = stream.readline().decode()
            headers = {}
            while line := stream.readline().decode("latin-1").strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            found.append(Raw(int(first.split()[1]), headers, stream.read(int(headers.get("content-length", "0")))))
    return found


def test_pipelined_requests_are_answered_each_in_its_turn(shared_site: Site) -> None:
    ids = [b"first", b"second", b"third"]
    wanted = [JOBS, b"/nowhere", b"/healthz"]
    sent = b"".join(request(path, b"X-Request-Id: " + each) for path, each in zip(wanted, ids, strict=True))
    with dialled(shared_site) as connection:
        connection.sendall(sent)
        answers = read_all(connection, 3)
    assert [answer.status for answer in answers] == [200, 404, 200]
    assert [answer.headers["x-request-id"].encode() for answer in answers] == ids
    assert json.loads(answers[2].body) == {"alive": True}


def test_a_body_that_asks_first_is_told_to_come(shared_site: Site) -> None:
    """Expect: 100-continue."""
    body = b'{"workflow": "nobody"}'
    head = request(
        JOBS, b"Content-Type: application/json", b"Content-Length: %d" % len(body), b"Expect: 100-continue",
        method=b"POST",
    )  # fmt: skip
    with dialled(shared_site) as connection:
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        [answer] = read_all(connection, 1)
    assert answer.problem["code"] == "UnknownWorkflowName"


def test_a_body_that_is_refused_is_not_told_to_come(shared_site: Site) -> None:
    head = request(JOBS, b"Content-Type: text/plain", b"Content-Length: 5", b"Expect: 100-continue", method=b"POST")
    answer = shared_site.raw(head)
    assert (answer.status, answer.headers["connection"]) == (415, "close")
    huge = request(
        JOBS, b"Content-Type: application/json", b"Content-Length: 99999999", b"Expect: 100-continue", method=b"POST"
    )
    assert shared_site.raw(huge).problem["code"] == "TooLarge"


def test_what_a_stranger_sends_is_worth_no_line_of_the_log(
    shared_site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody could fill the disk with them. What it is answered says enough."""
    assert shared_site.raw(b"nonsense\r\n\r\n").status == 400
    assert shared_site.raw(request(b"/healthz", b"Connection: upgrade", b"Upgrade: websocket")).status == 200
    assert caplog.messages == []


def test_a_target_in_absolute_form_means_the_same(shared_site: Site) -> None:
    """RFC 9112, 3.2.2: what a proxy sends; but for whom it is must not be told in two ways."""
    for target in (
        b"http://localhost/healthz",
        b"HTTP://localhost/api/v1/jobs?limit=1",
        b"http://localhost/healthz?a=b",
    ):
        assert shared_site.raw(request(target)).status == 200, target
    listed = json.loads(shared_site.raw(request(b"http://localhost/api/v1/jobs?limit=1")).body)
    assert listed["items"] == []
    other = shared_site.raw(request(b"http://evil.example/api/v1/jobs"))
    assert (other.status, other.problem["code"]) == (400, "BadRequest")
    assert shared_site.raw(request(b"http://localhost")).status == 200, "the page"
    assert shared_site.raw(request(b"ftp://localhost/api/v1/jobs")).status in (400, 404)


def test_head_of_everything_is_get_without_its_body(shared_site: Site) -> None:
    tried = 0
    for route in routes().values():
        if route.method != "GET":
            continue
        path = PREFIX + "/".join("1" if part.startswith("{") else part for part in route.path.split("/"))
        asked = f"{path}?timeout=0" if "timeout" in route.query.__struct_fields__ else path
        told, head = shared_site.get(asked), shared_site.client.head(asked)
        assert head.status_code == told.status_code, asked
        assert head.content == b""
        same = [name for name in told.headers if name not in ("date", "x-request-id", "etag", "content-length")]
        assert {name: head.headers[name] for name in same} == {name: told.headers[name] for name in same}, asked
        assert "content-length" in head.headers
        tried += 1
    assert tried > 30
    for path in ("/healthz", "/readyz", "/openapi.json", "/problems/UnknownJob", "/api/platform/blacklist"):
        told, head = shared_site.get(path), shared_site.client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == told.headers["content-length"] == str(len(told.content))
    refused = shared_site.client.head(f"{PREFIX}/jobs/1/cancel")
    assert (refused.status_code, refused.content) == (405, b"")


@pytest.mark.parametrize(
    "query",
    [
        "after=" + "x" * 30_000,
        "workflow=" + "%20" * 10_000,
        "&".join(f"tag=t{n}" for n in range(5000)),
        "&" * 20_000,
        "state=" + ",".join(["QUEUED"] * 5000),
    ],
    ids=["cursor", "text", "repeated", "empty", "states"],
)
def test_a_very_long_query_is_refused_or_means_what_it_says(shared_site: Site, query: str) -> None:
    answer = shared_site.get(f"/api/v1/jobs?{query}")
    assert answer.status_code in (200, 400, 422), answer.text
    if answer.status_code != 200:
        problem(answer, answer.status_code, answer.json()["code"])


def test_a_query_longer_than_a_head_may_be_is_refused_before_it_is_there(shared_site: Site) -> None:
    answer = shared_site.raw(request(JOBS + b"?after=" + b"x" * (2 * MOST_HEAD)))
    assert answer.problem["code"] == "BadRequest"
    assert answer.headers["connection"] == "close"


@slow
def test_as_many_idle_connections_as_there_may_be_and_one_more(site: Site) -> None:
    """Whoever rests keeps nobody from asking; the one too many is told so, and there is room once one has left."""
    with ExitStack() as stack:
        idle = [stack.enter_context(dialled(site)) for _ in range(MOST_CONNECTIONS)]
        for connection in idle:
            connection.sendall(request(b"/healthz"))
        assert {read_all(connection, 1)[0].status for connection in idle} == {200}
        refused = site.raw(request(b"/healthz"))
        assert refused.problem["code"] == "Overloaded"
        for connection in idle[::100]:
            connection.sendall(request(JOBS))
            assert read_all(connection, 1)[0].status == 200
        idle[0].close()
        eventually(lambda: site.raw(request(b"/healthz")).status == 200)
