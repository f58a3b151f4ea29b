"""`app.asgi()` inside another program: by keys, or by what that program knows of who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import problem
from unstuck import App, Who
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
