"""A real server on loopback, over a fresh database of each kind."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from unstuck.assembly.server import ServerOptions, build_server
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.server.listening import address_of, listen
from unstuck.server.run import HttpServer
from unstuck.store.sql_store import SqlStore

JSON = {"content-type": "application/json"}


@dataclass
class Site:
    """Where the server is, and a client that speaks to it."""

    url: str
    client: httpx2.Client
    server: HttpServer

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self.client.get(path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return self.client.post(path, json={} if body is None else body, **more)

    def raw(self, *pieces: bytes, patience: float = 10.0) -> Raw:
        """What is answered to these very bytes."""
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=patience) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass  # it may have answered, and hung up, before all was said
            return Raw.read(connection)


@dataclass
class Raw:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def read(cls, connection: socket.socket) -> Raw:
        """One answer; status 0: it hung up without one."""
        try:
            with connection.makefile("rb") as stream:
                first = stream.readline().decode("latin-1")
                headers: dict[str, str] = {}
                while line := stream.readline().decode("latin-1").strip():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                return cls(int(first.split(" ")[1]) if first else 0, headers, stream.read(_length(headers)))
        except ConnectionResetError:
            return cls(0, {}, b"")

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        return found


def _length(headers: Mapping[str, str]) -> int:
    return int(headers.get("content-length", "0"))


@contextmanager
def running(options: ServerOptions) -> Iterator[Site]:
    built = build_server(options)
    listener = listen(options.host, options.port)
    url = address_of(listener)
    thread = threading.Thread(target=built.run, args=(listener,), name="server")
    thread.start()
    try:
        with httpx2.Client(base_url=url, timeout=20) as client:
            yield Site(url, client, built)
    finally:
        built.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def site(store_url: str, store: SqlStore) -> Iterator[Site]:
    with running(ServerOptions(store_url, port=0)) as found:
        yield found


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Site]:
    """One for all tests of a module that store nothing."""
    file = tmp_path_factory.mktemp("shared") / "unstuck.db"
    shutil.copyfile(sqlite_template, file)
    with running(ServerOptions(f"sqlite:///{file}", port=0)) as found:
        yield found
        assert found.get("/api/v1/jobs?limit=1").json()["items"] == []


@pytest.fixture
def greet(store: SqlStore) -> str:
    """A workflow that a worker has registered."""
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    return "greet"


def problem(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert (found["status"], found["code"]) == (status, code)
    assert found["request_id"] == response.headers["x-request-id"]
    assert found["type"].endswith(f"/problems/{code}")
    assert found["title"]
    assert found["remedy"]
    return found
