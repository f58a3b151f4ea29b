"""Submits over HTTP: many at once, each with its own answer, and nothing acknowledged that is not stored."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from tests.server.conftest import Site, problem
from tests.support.eventually import eventually
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.port import JobFilter, Limit
from unstuck.store.sql_store import SqlStore

POSTGRES = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
JOBS = "/api/v1/jobs"


class Visitor:
    """A client with a connection of its own, which is kept."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        self._connection.connect()

    def post(self, body: Any, path: str = JOBS) -> tuple[int, Any]:
        self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._connection.close()


def at_once(url: str, count: int, act: Callable[[Visitor, int], Any]) -> list[Any]:
    """What as many visitors got, who all began at the same moment."""
    ready = threading.Barrier(count)

    def visit(number: int) -> Any:
        with closing(Visitor(url)) as visitor:
            ready.wait(30)
            return act(visitor, number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(visit, range(count)))


def stored(store: SqlStore, tenant: str = "default") -> list[Any]:
    found: list[Any] = []
    after = None
    while True:
        page = store.jobs(tenant, JobFilter(), 100, after)
        found += page.jobs
        after = page.next
        if after is None:
            return found


def test_64_clients_at_once_have_each_their_own_job_once(site: Site, greet: str, store: SqlStore) -> None:
    def act(visitor: Visitor, number: int) -> list[tuple[str, Any]]:
        asked = [(f"client {number}, job {n}", number % 2) for n in range(4)]
        said = [
            visitor.post({"workflow": greet, "tags": [tag], "key": tag if keyed else None}) for tag, keyed in asked
        ]
        assert [(status, job["tags"]) for status, job in said] == [(201, [tag]) for tag, _ in asked]
        return [(tag, job["id"]) for (tag, _), (_, job) in zip(asked, said, strict=True)]

    told = dict(pair for pairs in at_once(site.url, 64, act) for pair in pairs)

    jobs = stored(store)
    assert {job.tags[0]: job.id for job in jobs} == told
    assert len(jobs) == len(told) == 256
    assert len({job.created_at for job in jobs}) < 256 / 2, "they did not share transactions"
    each = {tag: job.number for job in jobs for tag in job.tags}
    for number in range(64):
        mine = [each[f"client {number}, job {n}"] for n in range(4)]
        assert mine == sorted(mine), "in the order in which one connection asked"


def test_the_same_key_from_20_clients_is_one_job(site: Site, greet: str, store: SqlStore) -> None:
    """A45: and one with the same key for something else is refused, alone."""

    def act(visitor: Visitor, number: int) -> tuple[int, Any]:
        return visitor.post({"workflow": greet, "key": "order-7", "args": [1]})

    with closing(Visitor(site.url)) as other:
        said = at_once(site.url, 20, act)
        assert Counter(status for status, _ in said) == {201: 1, 200: 19}
        assert len({job["id"] for _, job in said}) == 1
        assert [job["created"] for _, job in said].count(True) == 1
        assert other.post({"workflow": greet, "key": "order-7", "args": [2]})[0] == 422
    assert len(stored(store)) == 1


def test_a_cap_that_is_reached_refuses_only_what_is_above_it(site: Site, greet: str, store: SqlStore) -> None:
    """A46: by many clients at once a cap may be passed by what comes at the same instant; here all comes by one
    server, one transaction after the other."""
    store.set_limit(Limit("tenant", "small", "*", "ada", max_queued=10))

    def act(visitor: Visitor, number: int) -> tuple[int, Any]:
        return visitor.post({"workflow": greet, "tenant": "small" if number % 2 else "large"})

    said = at_once(site.url, 40, act)

    assert [status for status, _ in said[::2]] == [201] * 20
    small = Counter(answer.get("code", status) for status, answer in said[1::2])
    assert small["TooManyQueued"] == 20 - small[201]
    assert small[201] == len(stored(store, "small"))
    assert 10 <= small[201] <= 12


@POSTGRES
@pytest.mark.parametrize("clients", [1, 12])
def test_a_key_that_somebody_holds_delays_only_its_own(
    site: Site, greet: str, store: SqlStore, store_url: str, clients: int
) -> None:
    """A45: however many ask for it, everybody else is answered as ever."""
    known = site.post(JOBS, {"workflow": greet, "key": "held"}).json()
    with ThreadPoolExecutor(clients) as threads, psycopg.connect(store_url) as other:
        other.execute("SELECT 1 FROM unstuck_keys WHERE key = 'held' FOR UPDATE")

        def ask(_: int) -> tuple[int, Any]:
            with closing(Visitor(site.url)) as visitor:
                return visitor.post({"workflow": greet, "key": "held"})

        waiting = [threads.submit(ask, n) for n in range(clients)]
        eventually(lambda: _are_waiting(store_url))
        began = time.monotonic()
        said = at_once(site.url, 16, lambda v, n: v.post({"workflow": greet, "key": f"k{n}" if n % 2 else None}))
        assert [status for status, _ in said] == [201] * 16
        assert site.get(f"{JOBS}/{known['id']}").status_code == 200
        assert time.monotonic() - began < 2.5
        assert not all(each.done() for each in waiting)
        other.rollback()
        for each in waiting:
            status, answer = each.result(30)
            assert (status, answer.get("id", known["id"])) in ((200, known["id"]), (503, known["id"])), answer
        assert clients > 1 or status == 200


def _are_waiting(url: str) -> bool:
    with psycopg.connect(url) as looker:
        found = looker.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
        return bool(found and found[0])


def test_a_batch_whose_query_is_wrong_is_refused_as_a_whole(site: Site, greet: str, store: SqlStore) -> None:
    """By schemathesis: each of its items said so, and the request itself was a success."""
    for query in ("tenant=", "nonsense=1", "tenant=a&tenant=b"):
        refused = site.post(f"{JOBS}/batch?{query}", {"jobs": [{"workflow": greet}]})
        assert problem(refused, 422, "WrongArguments")["errors"][0]["in"] == "query"
    assert stored(store) == []


def test_a_batch_shares_a_transaction_and_points_at_what_is_wrong(site: Site, greet: str, store: SqlStore) -> None:
    first = "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36"
    asked = [
        {"workflow": greet, "id": first},
        {"workflow": greet, "after": [first]},
        {"workflow": "unknown"},
        {"workflow": greet, "priority": "high", "tags": [1]},
        {"workflow": greet, "after": ["0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f37"]},
        *({"workflow": greet, "args": [n]} for n in range(100)),
    ]

    items = site.post(f"{JOBS}/batch", {"jobs": asked}).json()["items"]

    assert [item["status"] for item in items] == [201, 201, 404, 422, 404] + [201] * 100
    assert [item["problem"]["pointer"] for item in items[2:5]] == ["/jobs/2", "/jobs/3", "/jobs/4"]
    assert [each["pointer"] for each in items[3]["problem"]["errors"]] == ["/jobs/3/priority", "/jobs/3/tags/0"]
    assert items[1]["job"]["state"] == "PENDING"
    jobs = {job.id: job for job in stored(store)}
    assert len(jobs) == 102
    assert len({jobs[item["job"]["id"]].created_at for item in items if item["job"]}) == 1
    numbers = [jobs[item["job"]["id"]].number for item in items if item["job"]]
    assert numbers == sorted(numbers)
    assert site.post(f"{JOBS}/batch", {"jobs": []}).json() == {"items": []}


def test_whoever_may_not_submit_joins_nobody(site: Site, greet: str, store: SqlStore) -> None:
    """Role and tenant are looked at for each; in a batch too."""
    admin = Caller(store, "ada")
    made = {
        role: {"authorization": f"Bearer {keys.create(admin.about('acme'), role, role=role).key}"}
        for role in ("reader", "submitter")
    }
    asked = {"workflow": greet, "tenant": "other"}
    assert site.post(JOBS, {"workflow": greet}, headers=made["reader"]).status_code == 403
    assert site.post(f"{JOBS}/batch", {"jobs": [{"workflow": greet}]}, headers=made["reader"]).status_code == 403
    assert site.post(JOBS, asked, headers=made["submitter"]).status_code == 403
    both = site.post(f"{JOBS}/batch", {"jobs": [{"workflow": greet}, asked]}, headers=made["submitter"]).json()
    assert [item["status"] for item in both["items"]] == [201, 403]
    assert [len(stored(store, tenant)) for tenant in ("acme", "other", "default")] == [1, 0, 0]


def test_a_killed_server_never_acknowledged_what_is_not_stored(store_url: str, store: SqlStore, greet: str) -> None:
    """A5: kill -9 while 16 clients submit as fast as they can."""
    told: list[str] = []

    def submit(url: str) -> None:
        with closing(Visitor(url)) as visitor:
            while True:
                try:
                    status, job = visitor.post({"workflow": greet})
                except (OSError, http.client.HTTPException, json.JSONDecodeError):
                    return
                assert status == 201
                told.append(job["id"])

    with _process(store_url) as (process, url), ThreadPoolExecutor(16) as threads:
        clients = [threads.submit(submit, url) for _ in range(16)]
        eventually(lambda: len(told) > 150, timeout=30)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        for client in clients:
            client.result(30)

    there = {job.id for job in stored(store)}
    assert len(told) == len(set(told)) > 150
    assert set(told) <= there
    assert len(there) <= len(told) + 16, "more than the clients had under way"


@contextmanager
def _process(database: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [sys.executable, "-m", "unstuck", "server", "--port", "0", "--database", database, "--stop-with-stdin"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[3]
        finally:
            process.kill()
