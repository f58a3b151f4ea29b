"""`app.asgi()` inside another program: by keys, or by what that program knows of who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import problem
from tests.support.signing import a_key, toml
from unstuck import App, Who
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


def told(
    app: App,
    *requests: tuple[str, str, dict[str, str]],
    auth: Callable[[Mapping[str, Any]], Who | None] | None = None,
) -> list[httpx2.Response]:
    """What is answered below /jobs-api of a program that is no server of ours."""
    outer = Starlette(routes=[Mount("/jobs-api", app=app.asgi(auth=auth))])

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            return [
                await client.request(
                    method, f"/jobs-api{path}", headers=headers, json={} if method == "POST" else None
                )
                for method, path, headers in requests
            ]

    with app:
        return asyncio.run(ask())


def test_who_asks_shows_a_key(store_url: str, store: SqlStore) -> None:
    key = keys.create(Caller(store, "ada"), "deploy", role="operator").key
    shown = {"authorization": f"Bearer {key}"}
    alive, nobody, listed, paused, unknown = told(
        App(store_url),
        ("GET", "/healthz", {}),
        ("GET", "/api/v1/jobs", {}),
        ("GET", "/api/v1/jobs", shown),
        ("POST", "/api/v1/targets/a%2Fb/pause", shown),
        ("GET", "/api/v1/jobs/0190", shown),
    )
    assert alive.json() == {"alive": True}
    problem(nobody, 401, "Unauthenticated")
    assert listed.status_code == 200
    assert "a/b" in paused.text
    assert problem(unknown, 404, "UnknownJob")["type"] == "/jobs-api/problems/UnknownJob"


@SQLITE
@pytest.mark.parametrize(
    ("root", "is_stripped"),
    [
        ("/jobs-api", False),
        ("/api", False),
        ("/a b/ü", False),
        ("/deep/er/", False),
        ("/jobs-api", True),
        ("/ü", True),
    ],
)
def test_what_it_says_of_places_is_right_wherever_it_is_mounted(
    store_url: str, store: SqlStore, greet: str, root: str, is_stripped: bool
) -> None:
    """Some servers leave the root in the path, as ASGI has it now, some take it off."""
    key = keys.create(Caller(store, "ada"), "deploy", role="operator").key
    shown = {"authorization": f"Bearer {key}"}
    app, before = App(store_url), quote(root.rstrip("/"))
    inner = app.asgi()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        kept = "" if is_stripped else root.rstrip("/")
        raw = scope["raw_path"].removeprefix(before.encode()) if is_stripped else scope["raw_path"]
        path = kept + scope["path"].removeprefix(root.rstrip("/"))
        await inner({**scope, "root_path": root, "raw_path": raw, "path": path}, receive, send)

    async def ask() -> None:
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example", headers=shown) as client:
            made = [await client.post(f"{before}/api/v1/jobs", json={"workflow": greet}) for _ in range(2)]
            assert made[0].headers["location"] == f"{before}/api/v1/jobs/{made[0].json()['id']}"
            assert (await client.get(made[0].headers["location"])).json()["id"] == made[0].json()["id"]
            page = await client.get(f"{before}/api/v1/jobs?limit=1")
            link = page.headers["link"]
            assert link.startswith(f"<{before}/api/v1/jobs?limit=1&after=")
            assert len((await client.get(link[1 : link.index(">")])).json()["items"]) == 1
            wrong = await client.get(f"{before}/api/v1/jobs/0190")
            kind = problem(wrong, 404, "UnknownJob")["type"]
            assert kind == f"{before}/problems/UnknownJob"
            assert "There is no such job" in (await client.get(kind)).text
            assert (await client.get(f"{before}/openapi.json")).status_code == 200
            assert (await client.get(f"{before}/healthz")).status_code == 200
            target = f"{before}/targets/a%2Fb/jobs/{made[0].json()['id']}/resume/"
            problem(await client.post(target, json={}), 404, "UnknownJob")

    with app:
        asyncio.run(ask())


@SQLITE
def test_without_a_key_nobody_may_ask_even_from_this_machine(store_url: str) -> None:
    [refused] = told(App(store_url), ("GET", "/api/v1/jobs", {"host": "localhost"}))
    problem(refused, 401, "Unauthenticated")


@SQLITE
def test_the_program_says_who_asks(store_url: str, store: SqlStore) -> None:
    def auth(scope: Mapping[str, Any]) -> Who | None:
        cookies = dict(scope["headers"]).get(b"cookie")
        return Who(by="anna", role="operator", tenant="default") if cookies == b"session=anna" else None

    known = {"cookie": "session=anna"}
    nobody, paused, platform, other = told(
        App(store_url),
        ("POST", "/api/v1/queues/io/pause", {}),
        ("POST", "/api/v1/queues/io/pause", known),
        ("GET", "/api/v1/tenants", known),
        ("GET", "/api/v1/jobs?tenant=beta", known),
        auth=auth,
    )
    problem(nobody, 401, "Unauthenticated")
    assert paused.json()["by"] == "anna"
    problem(platform, 403, "NotPermitted")
    problem(other, 403, "NotPermitted")


@SQLITE
def test_a_program_that_goes_by_tokens_of_its_own_is_asked_about_those(store_url: str, store: SqlStore) -> None:
    """Many know their callers by the same header. A key of ours still counts, also one that does not work."""

    def auth(scope: Mapping[str, Any]) -> Who | None:
        shown = dict(scope["headers"]).get(b"authorization", b"")
        return Who(by="anna", tenant="acme") if shown in (b"Bearer ey.anna.x", b"Basic YW5uYQ==") else None

    key = keys.create(Caller(store, "ada"), "deploy", role="reader").key
    shown = [f"Bearer {key}", "Bearer ey.anna.x", "Basic YW5uYQ==", "Bearer ey.nobody", f"Bearer {key}x"]
    asked = [("GET", "/api/v1/session", {"authorization": text}) for text in shown]
    ours, token, basic, *refused = told(App(store_url), *asked, auth=auth)
    assert [answer.json()["by"] for answer in (ours, token, basic)] == ["deploy", "anna", "anna"]
    for answer in refused:
        problem(answer, 401, "Unauthenticated")


@SQLITE
def test_an_auth_that_finds_nothing_where_it_takes_the_first_is_an_error_and_no_silence(
    store_url: str, store: SqlStore
) -> None:
    """`next` raises StopIteration, which no asyncio.Future takes."""

    def auth(scope: Mapping[str, Any]) -> Who | None:
        return Who(by=next(value.decode() for name, value in scope["headers"] if name == b"x-user"))

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=app.asgi(auth=auth))
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            asked = [client.get("/api/v1/session", headers=headers) for headers in ({}, {"x-user": "anna"})]
            return await asyncio.wait_for(asyncio.gather(*asked), 10)

    with App(store_url) as app:
        failed, known = asyncio.run(ask())
    problem(failed, 500, "ServerError")
    assert known.json()["by"] == "anna"


@SQLITE
def test_an_app_signs_what_it_submits_and_nothing_for_those_who_ask_over_http(
    store_url: str, store: SqlStore
) -> None:
    """The program holds a secret, and who asks has a key of ours: that is no reason to vouch for it."""
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    app = App(store_url, signing_keys=toml(a_key()), require_signature=["workflow:pay"])
    outer = Starlette(routes=[Mount("/", app=app.asgi(auth=lambda _: Who(by="anna", role="operator")))])

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            return await client.post("/api/v1/jobs", json={"workflow": "greet"})

    with app:
        theirs, ours = asyncio.run(ask()).json(), app.jobs.enqueue("greet")
        assert app.jobs.get(theirs["id"]).signed_by is None
        assert app.jobs.get(ours.id).signed_by == "web"
