"""Who may ask what, by a key: roles, tenants, and what a key that does not work is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.server.conftest import Site, problem, running
from tests.support.builders import a_worker, submitted
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck import machine
from unstuck.assembly.server import ServerOptions
from unstuck.operations import keys
from unstuck.operations.keyring import FRESH
from unstuck.operations.routes import PREFIX, HttpRoute, routes
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.store.drivers import leaps
from unstuck.store.sql_store import SqlStore
from unstuck.views.keys import NewKeyView

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
Make = Callable[..., NewKeyView]


@pytest.fixture
def make(store: SqlStore) -> Make:
    """A key for a role, made before the server is asked for the first time."""

    def made(role: str, tenant: str | None = None, name: str = "deploy", **more: Any) -> NewKeyView:
        return keys.create(Caller(store, "ada", tenant), name, role=role, **more)

    return made


def shown(key: NewKeyView | str) -> dict[str, str]:
    return {"authorization": f"Bearer {key if isinstance(key, str) else key.key}"}


def ask(site: Site, route: HttpRoute, key: NewKeyView, thing: str = "1") -> Any:
    path = PREFIX + "/".join(thing if part.startswith("{") else part for part in route.path.split("/"))
    body: Any = None if route.body is None else {}
    return site.client.request(route.method, path, json=body, headers=shown(key))


def test_once_there_is_a_key_one_is_needed(make: Make, site: Site) -> None:
    key = make("reader")
    for path in ("/api/v1/jobs", "/openapi.json", "/api/platform/blacklist", "/api/v1/workers"):
        refused = site.get(path)
        problem(refused, 401, "Unauthenticated")
        assert refused.headers["www-authenticate"] == 'Bearer realm="unstuck"'
        assert site.get(path, headers=shown(key)).status_code == 200
    problem(site.post("/api/v1/jobs", {"workflow": "x"}), 401, "Unauthenticated")
    assert site.get("/healthz").status_code == 200


@SQLITE
def test_each_role_may_ask_what_the_table_says_and_nothing_else(make: Make, site: Site) -> None:
    """Deny by default, every role and every route."""
    made = {role: make(role, None if role is Role.PLATFORM_ADMIN else "acme") for role in Role}
    for role, key in made.items():
        for route in routes().values():
            if route.name.startswith("keys."):
                continue  # they end each other
            answer = ask(site, route, key)
            if route.operation.entry.role in INCLUDED[role]:
                assert answer.status_code not in (401, 500), f"{role} {route.name}: {answer.text}"
                assert "needs the role" not in answer.text, f"{role} {route.name}: {answer.text}"
            else:
                assert "needs the role" in problem(answer, 403, "NotPermitted")["detail"], f"{role} {route.name}"


def test_a_foreign_id_and_an_unknown_one_look_alike(make: Make, site: Site, store: SqlStore) -> None:
    """Check 1, check 2. A55"""
    foreign = submitted(store, tenant="beta", tags=("canary",), target="canary").id
    unknown = "01900000-0000-7000-8000-000000000000"
    key = make("tenant-admin", "acme")
    for route in routes().values():
        if "job" not in route.names:
            continue
        answers = [ask(site, route, key, thing) for thing in (foreign, unknown)]
        told = [answer.text.replace(foreign, "X").replace(unknown, "X") for answer in answers]
        told = [text.replace(answer.headers["x-request-id"], "") for text, answer in zip(told, answers, strict=True)]
        assert answers[0].status_code == answers[1].status_code, f"{route.name}: {told}"
        assert told[0] == told[1], route.name
    for route in routes().values():
        if route.method == "GET" and not route.names:
            answer = ask(site, route, key)
            assert "canary" not in answer.text, route.name
            assert foreign not in answer.text, route.name
    problem(site.get("/api/v1/jobs?tenant=beta", headers=shown(key)), 403, "NotPermitted")
    problem(site.get("/api/v1/jobs?tenant=*", headers=shown(key)), 403, "NotPermitted")
    assert store.get("beta", foreign).state == "QUEUED"  # type: ignore[union-attr]


@SQLITE
def test_who_asks_is_the_keys_owner_and_only_who_may_names_another(make: Make, site: Site, store: SqlStore) -> None:
    """Check 27."""
    submitted(store, tenant="acme")
    key, speaker = make("operator", "acme", "deploy"), make("operator", "acme", "portal", scopes=["act-as"])
    pause = "/api/v1/queues/io/pause"
    answer = site.post(pause, headers=shown(key))
    assert answer.status_code == 200, answer.text
    assert answer.json()["by"] == "deploy"
    problem(site.post(pause, {"by": "anna"}, headers=shown(key)), 403, "NotPermitted")
    said = site.post(pause, {"by": "anna"}, headers=shown(speaker)).json()["by"]
    assert "anna" in said
    assert "portal" in said


@SQLITE
def test_keys_that_do_not_work_are_told_the_same(make: Make, site: Site, store: SqlStore) -> None:
    """Check 6."""
    revoked, expired = make("reader"), make("reader", expires=0.01)
    working = make("platform-admin")
    assert site.client.delete(f"/api/v1/keys/{revoked.id}", headers=shown(working)).json()["state"] == "revoked"
    unknown = make("reader").key[:-10] + "0000000000"
    eventually(lambda: expired.expires_at is not None and store.now() > expired.expires_at)
    told = set()
    for key in (revoked.key, expired.key, unknown, "nonsense", working.key[:-1]):
        answer = site.get("/api/v1/jobs", headers=shown(key))
        told.add(problem(answer, 401, "Unauthenticated")["detail"])
        assert key not in answer.text
    assert len(told) == 1
    for _ in range(10):
        answer = site.get("/api/v1/jobs", headers=shown("nonsense"))
    problem(answer, 429, "TooManyAttempts")
    assert int(answer.headers["retry-after"]) >= 1
    assert site.get("/api/v1/jobs", headers=shown(working)).status_code == 200


def test_a_revoked_key_works_no_more_within_five_seconds(make: Make, site: Site, store: SqlStore) -> None:
    """Check 5: the server is another process to the one that revokes."""
    key = make("reader")
    assert site.get("/api/v1/jobs", headers=shown(key)).status_code == 200
    store.revoke_key(key.id, "ada")
    eventually(lambda: site.get("/api/v1/jobs", headers=shown(key)).status_code == 401, timeout=5)


@slow
def test_a_key_is_rotated_while_it_is_used_and_nobody_is_turned_away(make: Make, site: Site) -> None:
    """Check 5: the old one works until its overlap is over, the new one from the first moment on."""
    admin, old = make("platform-admin"), make("reader", "acme")
    stop, told = threading.Event(), list[tuple[str, int]]()
    in_use = {"old": old.key}

    def go_on(which: str) -> None:
        with httpx2.Client(base_url=site.url, headers=shown(in_use[which])) as client:
            status = 200
            while status == 200 and not stop.wait(0.005):  # a flood, of refusals too, is answered with 429
                status = client.get("/api/v1/pauses").status_code
                told.append((which, status))

    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            threads.submit(go_on, "old")
        eventually(lambda: len(told) > 5)
        new = site.post(f"/api/v1/keys/{old.id}/rotate", {"overlap": 3}, headers=shown(admin)).json()
        in_use["new"] = new["key"]
        for _ in range(2):
            threads.submit(go_on, "new")
        eventually(lambda: ("old", 401) in told, timeout=15)
        stop.set()
    assert {status for which, status in told if which == "new"} == {200}
    olds = [status for which, status in told if which == "old"]
    assert set(olds) == {200, 401}
    assert site.get(f"/api/v1/keys/{old.id}", headers=shown(admin)).json()["rotated_to"] == new["id"]
    problem(site.post(f"/api/v1/keys/{old.id}/rotate", headers=shown(admin)), 409, "KeyEnded")


@slow
@pytest.mark.parametrize("hours", [5, -5])
def test_a_leap_of_the_databases_clock_ends_no_key_and_revives_none(
    make: Make, store_url: str, leap: Callable[[float], None], hours: int
) -> None:
    """A key lives by the engine's time, which does not leap for a server that has known it for a while."""
    lasting, ended = make("reader", expires=3600), make("reader", expires=0.5)
    with running(ServerOptions(store_url, port=0)) as site:
        assert site.get("/api/v1/pauses", headers=shown(lasting)).status_code == 200
        eventually(lambda: site.get("/api/v1/pauses", headers=shown(ended)).status_code == 401, timeout=5)
        began = time.monotonic()
        while time.monotonic() - began < leaps._YOUTH + FRESH:
            assert site.get("/api/v1/pauses", headers=shown(lasting)).status_code == 200
            time.sleep(0.5)
        leap(hours * 3600)
        began = time.monotonic()
        while time.monotonic() - began < FRESH + 0.5:  # it is looked up again in this time
            assert site.get("/api/v1/pauses", headers=shown(lasting)).status_code == 200
            assert site.get("/api/v1/pauses", headers=shown(ended)).status_code in (401, 429)
            time.sleep(0.2)


@pytest.mark.parametrize("hours", [5, -5])
def test_a_server_that_begins_after_a_leap_goes_by_what_a_worker_of_its_machine_saw(
    make: Make, store: SqlStore, store_url: str, leap: Callable[[float], None], hours: int
) -> None:
    lasting, ended = make("reader", expires=3600), make("reader", expires=0.01)
    a_worker(store, boot_id=machine.boot_id())
    leap(hours * 3600)
    with running(ServerOptions(store_url, port=0)) as site:
        assert site.get("/api/v1/pauses", headers=shown(lasting)).status_code == 200
        assert site.get("/api/v1/pauses", headers=shown(ended)).status_code == 401


@SQLITE
def test_one_key_that_asks_too_often_is_refused_and_no_other(make: Make, store_url: str) -> None:
    """Check 9."""
    busy, calm = make("reader", name="busy"), make("reader", name="calm")
    with running(ServerOptions(store_url, port=0, rate=5)) as site:
        answers = [site.get("/api/v1/pauses", headers=shown(busy)) for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        problem(refused[0], 429, "TooManyRequests")
        assert int(refused[0].headers["retry-after"]) >= 1
        assert site.get("/api/v1/pauses", headers=shown(calm)).status_code == 200


@SQLITE
def test_with_a_key_it_may_listen_anywhere_and_be_asked_by_any_name(make: Make, store_url: str) -> None:
    key = make("reader")
    with running(ServerOptions(store_url, host="0.0.0.0", port=0)) as site:
        url = site.url.replace("0.0.0.0", "127.0.0.1")
        asked = {"host": "jobs.example", "x-forwarded-for": "10.0.0.1"}
        assert site.client.get(f"{url}/api/v1/jobs", headers=shown(key) | asked).status_code == 200
        problem(site.client.get(f"{url}/api/v1/jobs"), 401, "Unauthenticated")


@SQLITE
def test_no_secret_is_logged(make: Make, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Check 24."""
    key = make("platform-admin")
    caplog.set_level("DEBUG")
    for path in ("/api/v1/jobs", "/api/v1/jobs/zzz", "/nowhere"):
        site.get(path, headers=shown(key))
    site.get("/api/v1/jobs", headers=shown(key.key[:-1]))
    assert key.key[:-1] not in "\n".join(
        r.getMessage() for r in caplog.records if r.name.startswith(("unstuck", "uvicorn"))
    )


def test_a_limited_key_waits_for_no_job_outside_by_giving_its_id_first(
    make: Make, site: Site, store: SqlStore, greet: str
) -> None:
    """In a batch a job may come after one whose id was given before it; that may be somebody else's."""
    outside = submitted(store, tenant="acme", queue="money").id
    key = make("submitter", "acme", queues=["default"])
    for after in ([outside], ["01a1eb64-1124-7c59-ae74-42da5f66bfd9"]):
        jobs = [{"workflow": greet, "id": after[0]}, {"workflow": greet, "after": after}]
        items = site.post("/api/v1/jobs/batch", {"jobs": jobs}, headers=shown(key)).json()["items"]
        is_ours = after != [outside]
        assert [item["status"] for item in items] == ([201, 201] if is_ours else [409, 404])
