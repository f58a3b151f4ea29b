"""Tickets: a stream that is opened without a header, once, by whoever was given a ticket for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import Site, problem, running
from tests.server.test_browser import serving
from tests.support.builders import a_worker, claimed, submitted
from tests.support.eventually import eventually
from tests.support.sse import SseReader
from tests.support.tables import ask
from unstuck import App
from unstuck.assembly.server import ServerOptions
from unstuck.operations import keys, tickets
from unstuck.operations.table import Caller
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore
from unstuck.views.keys import NewKeyView

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
PATH = "/api/v1/tickets"
STREAM = {"accept": "text/event-stream"}
EVENTS = "/api/v1/events"


def shown(key: NewKeyView) -> dict[str, str]:
    return {"authorization": f"Bearer {key.key}"}


@pytest.fixture
def make(store: SqlStore) -> Callable[..., NewKeyView]:
    def key(role: str = "reader", tenant: str | None = "acme", name: str = "page", **more: Any) -> NewKeyView:
        return keys.create(Caller(store, "ada", tenant), name, role=role, **more)

    return key


@pytest.fixture
def key(make: Callable[..., NewKeyView]) -> NewKeyView:
    return make()


def ticket(site: Site, key: NewKeyView, path: str = EVENTS) -> dict[str, Any]:
    answer = site.post(PATH, {"path": path}, headers=shown(key))
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


def refused(site: Site, url: str) -> None:
    found = problem(site.get(url, headers=STREAM), 401, "Unauthenticated")
    assert "ticket" in found["detail"]


def test_a_ticket_opens_its_stream_once_on_whichever_server(
    site: Site, store_url: str, store: SqlStore, key: NewKeyView, caplog: pytest.LogCaptureFixture
) -> None:
    """Check 20: made at one server, used at another, and never again at either; no key stands in an address."""
    caplog.set_level(logging.DEBUG)
    submitted(store, tenant="beta", workflow="greet")
    job = submitted(store, tenant="acme", workflow="greet").id
    submitted(store, tenant="acme", workflow="other")
    with running(ServerOptions(store_url, port=0)) as second:
        made = ticket(site, key, f"{EVENTS}?workflow=greet&after=start")
        assert key.key not in str(made)
        assert made["url"].startswith(f"{EVENTS}?workflow=greet&after=start&ticket=ust_")
        with SseReader(second.url, made["url"]) as reader:
            assert reader.status == 200
            assert next(reader.events())["job"] == job
            later = submitted(store, tenant="acme", workflow="greet").id
            assert next(reader.events())["job"] == later
            last = reader.last
        for each in (site, second):
            refused(each, made["url"])
        again = ticket(second, key, f"{EVENTS}?workflow=greet")
        missed = submitted(store, tenant="acme", workflow="greet").id
        with SseReader(site.url, f"{again['url']}&after={last}") as reader:  # where it begins is the reader's own
            assert next(reader.events())["job"] == missed
    assert key.key not in caplog.text


def test_of_many_who_use_one_ticket_at_once_one_gets_in(
    site: Site, store_url: str, store: SqlStore, key: NewKeyView
) -> None:
    made = ticket(site, key)

    def use(number: int) -> int:
        with SseReader((site, second)[number % 2].url, made["url"]) as reader:
            return reader.status

    with running(ServerOptions(store_url, port=0)) as second, ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(use, range(8))) == [200] + [401] * 7


def test_a_ticket_is_for_one_stream_and_for_a_minute(
    site: Site, store_url: str, store: SqlStore, key: NewKeyView, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ticket(site, key, f"{EVENTS}?workflow=greet&kinds=completed")
    secret = made["ticket"]
    job = submitted(store, tenant="acme").id
    for path in (
        f"{EVENTS}?ticket={secret}",
        f"{EVENTS}?workflow=other&kinds=completed&ticket={secret}",
        f"{EVENTS}?workflow=greet&kinds=completed&tenant=beta&ticket={secret}",
        f"{EVENTS}?workflow=greet&kinds=completed&kinds=failed&ticket={secret}",
        f"/api/v1/jobs/{job}/logs?workflow=greet&kinds=completed&ticket={secret}",
        f"{EVENTS}?workflow=greet&kinds=completed&ticket=ust_{'0' * 43}",
        f"{EVENTS}?workflow=greet&kinds=completed&ticket=",
        f"{EVENTS}?workflow=greet&kinds=completed&ticket={key.key}",
    ):
        refused(site, path)
    for path in (f"{EVENTS}?ticket={secret}", f"/api/v1/jobs?ticket={secret}", f"{EVENTS}?wait=1&ticket={secret}"):
        problem(site.get(path), 401, "Unauthenticated")  # it opens nothing but a stream
    problem(site.post(f"/api/v1/jobs/{job}/cancel?ticket={secret}"), 401, "Unauthenticated")
    problem(site.get(f"{EVENTS}?ticket={secret}", headers=STREAM | shown(key)), 422, "WrongArguments")
    with SseReader(site.url, f"{EVENTS}?kinds=completed&workflow=greet&ticket={secret}") as reader:
        assert reader.status == 200  # in whichever order
    assert tickets.LASTING <= 60
    monkeypatch.setattr(tickets, "LASTING", 0.0)
    old = [ticket(site, key) for _ in range(3)]
    refused(site, old[-1]["url"])
    assert len(ask(store_url, "SELECT digest FROM unstuck_tickets")) == 1, "the next one takes away what is too old"


@SQLITE
def test_a_stream_by_ticket_ends_with_its_key_and_sees_what_that_may(
    site: Site, store: SqlStore, make: Callable[..., NewKeyView]
) -> None:
    """Check 20, check 2: revoked while it is open, and between the ticket and its use."""
    key, limited = make(), make(queues=["mail"], name="mailer")
    with ExitStack() as stack:
        streams = [
            stack.enter_context(SseReader(site.url, ticket(site, each)["url"])).begun()
            for each in (key, limited, limited)
        ]
        for tenant, queue in (("beta", "mail"), ("acme", "default"), ("acme", "mail")):
            job = submitted(store, tenant=tenant, queue=queue).id
        assert [event["queue"] for event in (next(streams[0].events()), next(streams[0].events()))] == [
            "default",
            "mail",
        ]
        assert next(streams[1].events())["job"] == next(streams[2].events())["job"] == job
        unused = ticket(site, key)
        store.revoke_key(key.id, "ada")
        assert [frame.data["reason"] for frame in streams[0].frames()] == ["revoked"]
        submitted(store, tenant="acme", queue="mail")
        assert next(streams[1].events())
    problem(site.get(unused["url"], headers=STREAM), 401, "Unauthenticated")
    eventually(lambda: len(site.server._api._guests) == 0)


@SQLITE
def test_logs_and_partial_results_have_tickets_too(site: Site, store: SqlStore, key: NewKeyView) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker, tenant="acme")
    store.keep_output([AttemptOutput(attempt.ref, output="hello\n")])
    store.keep_part(attempt.ref, 1, "page", "1")
    for name, told in (("logs", "text"), ("partials", "value")):
        with SseReader(site.url, ticket(site, key, f"/api/v1/jobs/{attempt.id}/{name}")["url"]) as reader:
            assert next(reader.frames()).data[told] in ("hello\n", 1)


@SQLITE
def test_tickets_are_for_streams_and_for_those_who_show_a_key(
    site: Site, store: SqlStore, make: Callable[..., NewKeyView]
) -> None:
    key = make()
    bodies: list[Any] = [
        {"path": "/api/v1/jobs"}, {"path": "https://evil.example/api/v1/events"}, {"path": f"{EVENTS}/../jobs"},
        {"path": f"{EVENTS}?ticket=x"}, {"path": f"{EVENTS}?a=%ff"}, {"path": f"{EVENTS}?{'a' * 5000}=1"},
        {"path": f"{EVENTS}\r\nSet-Cookie: a=b"}, {"path": f"{EVENTS}?&;"}, {"path": 5}, {}, [],
        {"path": EVENTS, "x": 1},
    ]  # fmt: skip
    for body in bodies:
        problem(site.client.post(PATH, json=body, headers=shown(key)), 422, "WrongArguments")
    problem(site.post(PATH, {"path": EVENTS}), 401, "Unauthenticated")
    problem(site.post(PATH, {"path": EVENTS}, headers=shown(make("worker", None))), 403, "NotPermitted")
    with httpx2.Client(base_url=site.url, timeout=20) as browser:
        csrf = browser.post("/api/v1/session", json={"key": key.key}).json()["csrf"]
        problem(browser.post(PATH, json={"path": EVENTS}, headers={"x-csrf-token": csrf}), 422, "InvalidInput")


@SQLITE
def test_where_nobody_needs_a_key_nobody_needs_a_ticket(site: Site) -> None:
    problem(site.post(PATH, {"path": EVENTS}), 422, "InvalidInput")


@SQLITE
def test_what_is_stored_of_a_ticket_opens_nothing(
    site: Site, store_url: str, store: SqlStore, key: NewKeyView
) -> None:
    """Check 5."""
    made = ticket(site, key)
    [(digest,)] = ask(store_url, "SELECT digest FROM unstuck_tickets")
    assert made["ticket"] not in digest
    refused(site, f"{EVENTS}?ticket=ust_{digest[:43]}")
    refused(site, f"{EVENTS}?ticket={digest}")


@SQLITE
def test_a_guess_begins_no_write(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can show a ticket: a file has one writer."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it writes")

    monkeypatch.setattr(store._database, "write", never)
    assert store.use_ticket("0" * 64) is None


@SQLITE
def test_below_a_path_of_another_program_a_ticket_is_the_same(
    store_url: str, store: SqlStore, key: NewKeyView
) -> None:
    with App(store_url) as app:
        mounted = app.asgi(auth=lambda _: None)  # it knows nobody: neither key nor ticket is its own
        with serving(Starlette(routes=[Mount("/jobs-api", app=mounted)])) as port:
            url = f"http://127.0.0.1:{port}"
            made = httpx2.post(f"{url}/jobs-api{PATH}", json={"path": EVENTS}, headers=shown(key)).json()
            assert made["url"].startswith(f"/jobs-api{EVENTS}?ticket=ust_")
            with SseReader(url, made["url"]) as reader:
                reader.begun()
                job = submitted(store, tenant="acme").id
                assert next(reader.events())["job"] == job
            problem(httpx2.get(f"{url}{made['url']}", headers=STREAM), 401, "Unauthenticated")
            mounted.leave()
        mounted.close()
