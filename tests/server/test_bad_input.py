"""What no decent client sends: each a problem of the 400s, nothing stored, never a 500. The numbers are those of the
security checks in docs/http.md."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import JSON, Raw, Site, problem
from tests.support.eventually import eventually
from unstuck.model.job import NewJob
from unstuck.server import bodies, connections
from unstuck.store.sql_store import SqlStore

JOBS = "/api/v1/jobs"
GET = b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n"


def submit(site: Site, body: bytes, **headers: str) -> Any:
    return site.client.post(
        JOBS, content=body, headers={**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


DEEP = 200
BODIES = {
    "nothing": b"",
    "no json": b"{'workflow': 'greet'}",
    "half": b'{"workflow": "greet"',
    "two": b'{"workflow": "greet"}{}',
    "a list": b"[]",
    "a text": b'"greet"',
    "null": b"null",
    "a key twice": b'{"workflow": "greet", "workflow": "greet"}',
    "a key twice inside": b'{"workflow": "greet", "kwargs": {"a": 1, "a": 2}}',
    "NaN": b'{"workflow": "greet", "args": [NaN]}',
    "infinity": b'{"workflow": "greet", "args": [-Infinity]}',
    "beyond a float": b'{"workflow": "greet", "args": [1e999]}',
    "NUL": b'{"workflow": "greet", "args": ["\\u0000"]}',
    "NUL in a key": b'{"workflow": "greet", "kwargs": {"\\u0000": 1}}',
    "half a character": b'{"workflow": "greet", "args": ["\\ud800"]}',
    "half a character in a name": b'{"workflow": "\\udfff"}',
    "latin-1": '{"workflow": "gréet"}'.encode("latin-1"),
    "UTF-16": '{"workflow": "greet"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"workflow": "greet"}',
    "deep lists": b'{"workflow": "greet", "args": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"workflow": "greet", "args": [' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"]}",
    "very deep": b"[" * 1_000_000,
    "a long number": b'{"workflow": "greet", "args": [' + b"9" * 10_000 + b"]}",
    "many keys": b'{"workflow": "greet", "kwargs": {' + b",".join(b'"%d":1' % n for n in range(60_000)) + b"}}",
    "a wrong type": b'{"workflow": 5}',
    "a number as text": b'{"workflow": "greet", "priority": "5"}',
    "true for a number": b'{"workflow": "greet", "priority": true}',
    "a huge priority": b'{"workflow": "greet", "priority": 99999999999999999999}',
    "a wrong instant": b'{"workflow": "greet", "at": "yesterday"}',
    "an instant of nowhere": b'{"workflow": "greet", "at": "2030-01-01T00:00:00"}',
    "a number for an instant": b'{"workflow": "greet", "at": 5}',
    "an endless delay": b'{"workflow": "greet", "delay": 1e300}',
    "a wrong id": b'{"workflow": "greet", "id": "1"}',
    "a policy that is none": b'{"workflow": "greet", "policy": {"nonsense": 1}}',
    "code": b'{"workflow": "os:system", "args": ["true"]}',
    "a job that is not there": b'{"workflow": "greet", "after": ["0190"]}',
    "too many tags": json.dumps({"workflow": "greet", "tags": [str(n) for n in range(50)]}).encode(),
    "a payload that is too large": json.dumps({"workflow": "greet", "args": ["x" * (1 << 20)]}).encode(),
}


def test_a_body_that_cannot_be_accepted(site: Site, greet: str) -> None:
    """Check 8, check 10."""
    for name, body in BODIES.items():
        refused = submit(site, body)
        assert 400 <= refused.status_code < 500, f"{name}: {refused.text}"
        problem(refused, refused.status_code, refused.json()["code"])
    assert site.get(JOBS).json()["items"] == []
    assert submit(site, b'{"workflow": "greet"}').status_code == 201


def test_a_body_that_is_no_object_is_refused_where_nothing_is_needed_too(shared_site: Site) -> None:
    for body in (b"null", b"[]", b"5", b'""'):
        refused = shared_site.client.post("/api/v1/queues/io/unpause", content=body, headers=JSON)
        problem(refused, 422, "WrongArguments")
    assert shared_site.client.post("/api/v1/queues/io/unpause", headers=JSON).status_code == 200


def test_no_field_of_a_row_can_be_set_besides_what_a_submit_takes(shared_site: Site) -> None:
    """Check 4."""
    taken = {"workflow", "args", "kwargs", "key", "id", "priority", "delay", "queue", "target", "limit_key", "tags",
             "after", "after_failure", "policy", "tenant", "payload", "signature"}  # fmt: skip
    fields = {*NewJob.__dataclass_fields__, "state", "token", "number", "attempts", "result"} - taken
    for name in sorted(fields):
        refused = submit(shared_site, json.dumps({"workflow": "greet", name: "x"}).encode())
        found = problem(refused, 422, "WrongArguments")
        assert found["errors"][0]["pointer"] == f"/{name}"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_change_is_declared_as_json(shared_site: Site, kind: str) -> None:
    """Check 18: all that a form of another site can send."""
    declared = {"content-type": kind}
    problem(shared_site.client.post(JOBS, content=b'{"workflow": "greet"}', headers=declared), 415, "NotAsJson")
    problem(shared_site.client.post(f"{JOBS}/0190/cancel"), 415, "NotAsJson")


def resident() -> int:
    """Bytes of memory that this process holds: the server runs in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_body_that_is_too_large_is_not_read_to_its_end(shared_site: Site) -> None:
    """Check 7."""
    before = resident()
    head = POST + b"content-type: application/json\r\n"
    declared = shared_site.raw(head + b"content-length: 104857600\r\n\r\n" + b"x" * 1000)
    assert (declared.status, declared.problem["code"]) == (413, "TooLarge")
    # In chunks, without a length: it is told as soon as it is too much, though its end is not there.
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with connected(shared_site) as connection:
        connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n" + chunk * (bodies.MOST_BYTES // 0x10000 + 1))
        answer = Raw.read(connection)
        assert (answer.status, answer.problem["code"]) == (413, "TooLarge")
    # 100 MiB: as many as it takes.
    with connected(shared_site) as connection:
        connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
        sent = 0
        try:
            for _ in range(1600):
                connection.sendall(chunk)
                sent += 0x10000
        except OSError:
            pass
        assert sent < 50 << 20, "it hung up long before"
    assert resident() - before < 40 << 20, "what it read it did not keep"


def test_a_body_that_comes_too_slowly_is_cut(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LONGEST", 0.3)
    slow = shared_site.raw(POST + b"content-type: application/json\r\ncontent-length: 50\r\n\r\n" + b'{"work')
    assert (slow.status, slow.problem["code"], slow.headers["connection"]) == (408, "TooSlow", "close")


@pytest.mark.parametrize("said", [b"", b"GET /api/v1/jo", b"GET /healthz HTTP/1.1\r\nhost: local"])
def test_a_head_that_does_not_come_is_cut(shared_site: Site, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", 0.3)
    cut = shared_site.raw(said)
    assert (cut.status, cut.problem["code"]) == (408, "TooSlow")


def test_a_second_head_that_does_not_come_is_cut_too(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", 0.3)
    whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with connected(shared_site) as connection:
        connection.sendall(whole)
        assert Raw.read(connection).status == 200
        connection.sendall(whole[:20])
        assert Raw.read(connection).problem["code"] == "TooSlow"


def test_a_body_that_nobody_wants_keeps_no_connection(shared_site: Site) -> None:
    """It comes letter by letter behind a request that was answered without it."""
    for path in (b"/healthz", b"/problems/NotJson", b"/openapi.json"):
        head = b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n"
        answered = shared_site.raw(head + b"x")
        assert (answered.status, answered.headers.get("connection")) == (200, "close")


def test_whoever_does_not_take_its_answer_is_cut(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each such client would keep a connection, and its answer in memory, for ever."""
    monkeypatch.setattr(connections, "LONGEST_ANSWER", 1.0)
    one = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with connected(shared_site) as idle:
        shared_site.get("/healthz")  # the client keeps its connection
        monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
        idle.sendall(200 * one)
        assert shared_site.raw(one).status == 503
        eventually(lambda: shared_site.raw(one).status == 200)


def test_there_are_only_so_many_connections(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shared_site.get("/healthz")  # the client keeps its connection
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    first, second = connected(shared_site), connected(shared_site)
    with first, second:
        refused = shared_site.raw(b"")
        assert (refused.status, refused.problem["code"]) == (503, "Overloaded")
        assert refused.headers["retry-after"]


def connected(site: Site) -> socket.socket:
    host, port = site.url.removeprefix("http://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


HEADS = {
    "no http": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
    "a header too large": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 100_000 + b"\r\n\r\n",
    "too many headers": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
    "a length that is none": POST + b"content-length: x\r\n\r\n",
    "two lengths": POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    "length and chunks": POST + b"content-type: application/json\r\n"
    b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
    "strange chunks": POST + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "another coding": POST + b"transfer-encoding: xchunked\r\n\r\n",
    "a folded header": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\r\n\t: b\x00\r\n\r\n",
    "a body on a read": b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}",
    "a NUL in the path": b"GET /api/v1/jobs/%00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "bytes in the path": b"GET /api/v1/jobs/%ff%fe HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a long path": b"GET /api/v1/jobs/" + b"a" * 10_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a NUL in the query": b"GET /api/v1/jobs?queue=%00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "bytes in the query": b"GET /api/v1/jobs?queue=%ff HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a query of a thousand": b"GET /api/v1/jobs?" + b"state=DEAD&" * 1000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "an absolute path": b"GET http://evil.example/api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "steps in the path": b"GET /api/v1/jobs/%2e%2e/%2e%2e/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "another method": b"BREW /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "connect": b"CONNECT localhost:22 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "upgrade": b"GET /api/v1/jobs/x HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=list(HEADS))
def test_a_request_that_cannot_be_read(shared_site: Site, head: bytes) -> None:
    refused = shared_site.raw(head)
    assert 400 <= refused.problem["status"] < 500


QUERIES = ["state=NOTHING", "limit=0", "limit=-1", "limit=1.5", "limit=99999999999999999999", "limit=", "after=%27",
           "before=5", "before=0001-01-01T00:00:00Z&since=x", "argument=[1,2]", "argument=%5B%22a%22%5D", "unknown=1",
           "limit=1&limit=2", "tenant=", "newest_first=maybe"]  # fmt: skip


def test_a_query_that_cannot_be_accepted(site: Site) -> None:
    for query in QUERIES:
        refused = site.get(f"{JOBS}?{query}")
        assert 400 <= refused.status_code < 500, f"{query}: {refused.text}"
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_error_that_nobody_foresaw_tells_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Check 25."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the house")

    with monkeypatch.context() as patch:
        patch.setattr(SqlStore, "pauses", fail)
        refused = site.get("/api/v1/pauses", headers={"x-request-id": "req-9"})
    found = problem(refused, 500, "ServerError")
    assert "secret" not in refused.text
    assert found["request_id"] == "req-9"
    assert "req-9" in caplog.text
    assert "secret of the house" in caplog.text
