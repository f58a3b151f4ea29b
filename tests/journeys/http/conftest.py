"""Journeys over HTTP: a real server, people of every role in two tenants, and a real worker, shared by a module.

Everything is asked and seen by requests alone. A test makes what it needs under names of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.conftest import Site, problem, running
from tests.support.eventually import eventually
from tests.support.far_workers import NOWHERE
from tests.support.postgres import PostgresServer
from tests.support.workers import COMPRESSED, Worker, workers
from unstuck.assembly.server import ServerOptions
from unstuck.assembly.store import open_store
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.operations import keys
from unstuck.operations.table import Caller

APP = "tests.journeys.http.app:app"
API = "/api/v1"
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As everywhere, but one for all tests of a module."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("http") / "unstuck.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), file)
        yield f"sqlite:///{file}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create()
    yield url
    server.leave(url)


@dataclass(frozen=True)
class Person:
    """Somebody with a key of some role."""

    client: httpx2.Client
    name: str

    def asks(self, method: str, path: str, body: Any = None, **query: Any) -> httpx2.Response:
        return self.client.request(method, path if path.startswith("/") else f"{API}/{path}", json=body, params=query)

    def get(self, path: str, **query: Any) -> Any:
        return told(self.asks("GET", path, **query))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return told(self.asks("POST", path, {} if body is None else body, **query))

    def may_not(self, method: str, path: str, body: Any = None) -> None:
        problem(self.asks(method, path, body), 403, "NotPermitted")

    def sees_nothing(self, method: str, path: str, body: Any = None) -> None:
        """As if it were not there."""
        assert self.asks(method, path, body).status_code == 404


def told(response: httpx2.Response) -> Any:
    assert response.is_success, response.text
    return response.json()


@dataclass(frozen=True)
class Tenancy:
    """The people of one tenant."""

    name: str
    admin: Person
    operator: Person
    submitter: Person
    reader: Person

    def submit(self, workflow: str, *args: Any, **more: Any) -> str:
        job = self.submitter.post("jobs", {"workflow": workflow, "args": list(args), **more})
        return str(job["id"])

    def job(self, job: str) -> Any:
        return self.reader.get(f"jobs/{job}")

    def until(self, job: str, *states: str, within: float = 30.0) -> Any:
        def arrived() -> Any:
            found = self.reader.get(f"jobs/{job}/status")
            assert found["status"] in states, found
            return found

        return eventually(arrived, timeout=within)

    def kinds(self, job: str) -> list[str]:
        return [event["kind"] for event in self.reader.get(f"jobs/{job}/history")["items"]]


@dataclass(frozen=True)
class House:
    site: Site
    platform: Person
    acme: Tenancy
    beta: Tenancy
    #: Its role may ask nothing that a person may.
    machine: Person


@pytest.fixture(scope="module")
def house(store_url: str) -> Iterator[House]:
    store = open_store(store_url, Times())
    first = keys.create(Caller(store, "ada"), "root", role="platform-admin").key
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    store.close()
    clients: list[httpx2.Client] = []
    with running(ServerOptions(store_url, port=0, rate=1e6)) as site:

        def person(name: str, key: str) -> Person:
            client = httpx2.Client(
                base_url=site.url, timeout=30, headers={"authorization": f"Bearer {key}"}, trust_env=False
            )
            clients.append(client)
            return Person(client, name)

        root = person("root", first)

        def made(tenant: str, role: str) -> Person:
            name = f"{tenant}-{role}"
            return person(name, root.post("keys", {"name": name, "role": role, "tenant": tenant})["key"])

        def tenancy(name: str) -> Tenancy:
            roles = ("tenant-admin", "operator", "submitter", "reader")
            people = Tenancy(name, *(made(name, role) for role in roles))
            people.operator.post(f"jobs/{people.submit('greet', delay=60)}/cancel")  # a tenant is there by its jobs
            return people

        yield House(site, root, tenancy("acme"), tenancy("beta"), made("acme", "worker"))
        for client in clients:
            client.close()


@pytest.fixture(scope="module", params=["database", "server"])
def road(request: pytest.FixtureRequest) -> str:
    """As everywhere in journeys."""
    return str(request.param)


@pytest.fixture(scope="module")
def start_worker(
    store_url: str, house: House, road: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Worker]]:
    folder = tmp_path_factory.mktemp("workers")
    is_near = road == "database"
    way: dict[str, Any] = {}
    if not is_near:
        key = house.platform.post("keys", {"name": f"far-{folder.name}", "role": "worker"})["key"]
        way = {"server": house.site.url, "key": key}
    url = store_url if is_near else NOWHERE
    with workers(url, folder, UNSTUCK_DATABASE=store_url if is_near else "") as start:

        def started(name: str, **more: Any) -> Worker:
            worker: Worker = start(name, app=APP, times=COMPRESSED, **way, **more)
            eventually(lambda: [w for w in seen(house) if w["name"] == name and w["ready"]], timeout=30)
            return worker

        yield started


@pytest.fixture(scope="module")
def worker(start_worker: Callable[..., Worker]) -> Worker:
    return start_worker("ada", concurrency=6, processes=2, queues=["default", "gated"])


def seen(house: House) -> list[Any]:
    """The workers, as the platform sees them."""
    return list(house.platform.get("workers")["items"])


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    """Once it is there, those that were deaf work."""
    return tmp_path / "mended"
