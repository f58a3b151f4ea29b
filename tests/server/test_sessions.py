"""Browsers: logged in with a key, known by a cookie, and kept from asking for pages of other sites."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import Site, problem, running
from tests.support.builders import submitted
from tests.support.eventually import eventually
from unstuck import App, Who
from unstuck.assembly.server import ServerOptions, build_server
from unstuck.assembly.store import open_store
from unstuck.model.errors import InvalidInput
from unstuck.model.keys import digest
from unstuck.model.times import Times
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.port import Store
from unstuck.store.sql_store import SqlStore
from unstuck.views.keys import NewKeyView

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
SESSION = "/api/v1/session"
PAUSE = "/api/v1/queues/io/pause"
PLAIN = "unstuck-session"


@dataclass
class Desk:
    """A server that many tests share, and the database behind it."""

    site: Site
    store: Store
    file: Path

    def key(
        self, role: str = "operator", tenant: str | None = "acme", name: str = "deploy", **more: Any
    ) -> NewKeyView:
        return keys.create(Caller(self.store, "ada", tenant), name, role=role, **more)

    def browser(self) -> httpx2.Client:
        """With a jar of cookies of its own."""
        return httpx2.Client(base_url=self.site.url, timeout=20)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Desk]:
    file = tmp_path_factory.mktemp("sessions") / "unstuck.db"
    shutil.copyfile(sqlite_template, file)
    store = open_store(f"sqlite:///{file}", Times())
    keys.create(Caller(store, "ada"), "first", role="reader")
    with running(ServerOptions(f"sqlite:///{file}", port=0)) as site:
        yield Desk(site, store, file)
    store.close()


def logged_in(browser: httpx2.Client, key: NewKeyView) -> dict[str, str]:
    """The headers that its page adds to changes."""
    answer = browser.post(SESSION, json={"key": key.key})
    assert answer.status_code == 201, answer.text
    return {"x-csrf-token": answer.json()["csrf"]}


def test_a_browser_logs_in_asks_changes_and_logs_out(site: Site, store: SqlStore) -> None:
    """Check 18, check 27."""
    submitted(store, tenant="acme")
    key = keys.create(Caller(store, "ada", "acme"), "deploy", role="operator")
    browser = site.client
    answer = browser.post(SESSION, json={"key": key.key})
    assert answer.status_code == 201, answer.text
    cookie = answer.headers["set-cookie"]
    secret = browser.cookies[PLAIN]
    assert cookie == f"{PLAIN}={secret}; Path=/; HttpOnly; SameSite=Strict"
    assert (secret not in answer.text, key.key not in answer.text) == (True, True)
    told = answer.json()
    assert (told["by"], told["role"], told["tenant"], told["key"]) == ("deploy", "operator", "acme", key.id)
    again = browser.get(SESSION)
    assert (again.json(), again.headers["cache-control"]) == (told, "no-store")
    assert browser.get("/api/v1/jobs").status_code == 200
    problem(browser.get("/api/v1/jobs?tenant=beta"), 403, "NotPermitted")
    problem(browser.post(PAUSE, json={}), 403, "CrossSite")
    problem(browser.post(PAUSE, json={}, headers={"x-csrf-token": "x"}), 403, "CrossSite")
    token = {"x-csrf-token": told["csrf"]}
    assert browser.post(PAUSE, json={}, headers=token).json()["by"] == "deploy"
    [line] = store.audit("acme", verb="queues.pause")
    assert (line.by, line.key, line.address) == ("deploy", key.id, "127.0.0.1")
    problem(browser.delete(SESSION), 403, "CrossSite")
    gone = browser.delete(SESSION, headers=token)
    assert gone.json() == {"ended": True}
    assert "Max-Age=0" in gone.headers["set-cookie"]
    assert PLAIN not in browser.cookies
    problem(browser.get("/api/v1/jobs", headers={"cookie": f"{PLAIN}={secret}"}), 401, "Unauthenticated")
    assert [line.verb for line in store.audit("acme", verb="sessions")] == ["sessions.end", "sessions.begin"]
    assert {line.key for line in store.audit("acme", verb="sessions")} == {key.id}


def test_what_is_stored_of_a_session_opens_nothing(desk: Desk) -> None:
    """Check 5: neither the secret nor its token is in the file."""
    with desk.browser() as browser:
        token = logged_in(browser, desk.key())["x-csrf-token"]
        secret = browser.cookies[PLAIN]
        assert desk.store.browser_session(digest(secret)) is not None
        for file in desk.file.parent.iterdir():
            content = file.read_bytes()
            assert secret.encode() not in content, file
            assert token.encode() not in content, file
        stored = {"cookie": f"{PLAIN}={digest(secret)}"}
    problem(desk.site.get("/api/v1/jobs", headers=stored), 401, "Unauthenticated")


ELSEWHERE = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", ELSEWHERE, ids=lambda headers: "-".join(next(iter(headers.items()))))
def test_what_a_page_of_another_site_sends_with_the_cookie_is_refused(desk: Desk, headers: dict[str, str]) -> None:
    """Check 18: also with the token, also what only reads, and also logging in, under somebody else's name."""
    key = desk.key()
    with desk.browser() as browser:
        token = logged_in(browser, key)
        problem(browser.post(PAUSE, json={}, headers=token | headers), 403, "CrossSite")
        problem(browser.get("/api/v1/jobs", headers=headers), 403, "CrossSite")
        problem(browser.post(SESSION, json={"key": key.key}, headers=headers), 403, "CrossSite")
        assert browser.get(
            "/api/v1/jobs", headers={"origin": desk.site.url, "sec-fetch-site": "same-origin"}
        ).is_success


def test_what_a_form_or_an_image_of_another_site_can_send_changes_nothing(desk: Desk) -> None:
    """Check 18: no state changes by GET, and a form is not JSON."""
    with desk.browser() as browser:
        token = logged_in(browser, desk.key())
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"):
            sent = {"content-type": kind} | token
            problem(browser.post(PAUSE, content=b"{}", headers=sent), 415, "NotAsJson")
            problem(browser.post(SESSION, content=b"{}", headers=sent), 415, "NotAsJson")
        problem(browser.get(PAUSE), 405, "MethodNotAllowed")


def test_of_a_key_and_a_cookie_the_key_counts(desk: Desk) -> None:
    """No page of another site can add one; whoever can needs no token."""
    reader = desk.key("reader", name="reader")
    with desk.browser() as browser:
        logged_in(browser, desk.key())
        shown = {"authorization": f"Bearer {reader.key}"}
        assert browser.get(SESSION, headers=shown).json()["by"] == "reader"
        assert browser.get(SESSION, headers=shown).json()["csrf"] is None
        problem(browser.post(PAUSE, json={}, headers=shown), 403, "NotPermitted")
        problem(browser.get("/api/v1/jobs", headers={"authorization": "Bearer nonsense"}), 401, "Unauthenticated")
        problem(browser.delete(SESSION, headers=shown), 404, "NotFound")
        assert browser.get(SESSION).json()["by"] == "deploy"


def test_nobody_can_plant_a_session(desk: Desk) -> None:
    """What the browser had before is not taken, and ends."""
    with desk.browser() as browser:
        logged_in(browser, desk.key())
        first = browser.cookies[PLAIN]
        logged_in(browser, desk.key())
        second = browser.cookies[PLAIN]
    assert first != second
    problem(desk.site.get(SESSION, headers={"cookie": f"{PLAIN}={first}"}), 401, "Unauthenticated")
    assert desk.site.get(SESSION, headers={"cookie": f"a=b; {PLAIN}={second}"}).is_success
    both = {"cookie": f"{PLAIN}={second}; {PLAIN}={first}"}
    problem(desk.site.get(SESSION, headers=both), 401, "Unauthenticated")
    chosen = "uss_" + "a" * 43
    answer = desk.site.post(SESSION, {"key": desk.key().key}, headers={"cookie": f"{PLAIN}={chosen}"})
    assert chosen not in answer.headers["set-cookie"]
    desk.site.client.cookies.clear()


@pytest.mark.parametrize(
    "value", ["", "x", "uss_", "uss_" + "a" * 42, "uss_" + "a" * 44, "é", "%00", "uss_" + "a" * 43]
)
def test_what_is_no_session_is_none(desk: Desk, value: str) -> None:
    cookie = f"{PLAIN}={value}".encode()
    problem(desk.site.get("/api/v1/jobs", headers=[(b"cookie", cookie)]), 401, "Unauthenticated")


@pytest.mark.parametrize(
    "body", [{}, [], {"key": 1}, {"key": "x", "to": "y"}, {"secret": "usk_canary"}, "usk_canary"]
)
def test_a_log_in_that_cannot_be_read_is_refused_and_repeats_nothing(desk: Desk, body: Any) -> None:
    answer = desk.site.client.post(SESSION, json=body)
    problem(answer, 422, "WrongArguments")
    assert "canary" not in answer.text


def test_a_key_in_an_address_logs_nobody_in(desk: Desk) -> None:
    key = desk.key()
    problem(desk.site.post(f"{SESSION}?key={key.key}"), 422, "WrongArguments")
    problem(desk.site.get(f"/api/v1/jobs?key={key.key}"), 401, "Unauthenticated")


@SQLITE
def test_failed_log_ins_are_told_the_same_and_throttled(site: Site, store: SqlStore) -> None:
    """Check 6: as failed keys are."""
    working = keys.create(Caller(store, "ada"), "one", role="reader").key
    unknown = working[:-10] + "0000000000"
    told = set()
    for key in (unknown, "nonsense", working[:-1]):
        answer = site.post(SESSION, {"key": key})
        told.add(problem(answer, 401, "Unauthenticated")["detail"])
        assert "set-cookie" not in answer.headers
    assert len(told) == 1
    for _ in range(10):
        answer = site.post(SESSION, {"key": "nonsense"})
    problem(answer, 429, "TooManyAttempts")
    assert site.post(SESSION, {"key": working}).status_code == 201


def test_a_session_ends_with_its_key_within_five_seconds(desk: Desk) -> None:
    """Check 5, check 20: by whoever revokes it, wherever."""
    key = desk.key()
    with desk.browser() as browser:
        logged_in(browser, key)
        assert browser.get("/api/v1/jobs").is_success
        desk.store.revoke_key(key.id, "ada")
        eventually(lambda: browser.get("/api/v1/jobs").status_code == 401, timeout=5)


def test_an_admin_sees_and_ends_the_sessions_of_its_tenant(desk: Desk) -> None:
    admin, foreign = desk.key("tenant-admin", "gamma"), desk.key("tenant-admin", "delta")
    shown, other = ({"authorization": f"Bearer {key.key}"} for key in (admin, foreign))
    with desk.browser() as browser:
        logged_in(browser, desk.key("reader", "gamma", name="anna"))
        [listed] = desk.site.get("/api/v1/sessions", headers=shown).json()["items"]
        assert (listed["by"], listed["tenant"], listed["address"]) == ("anna", "gamma", "127.0.0.1")
        assert browser.cookies[PLAIN] not in desk.site.get("/api/v1/sessions", headers=shown).text
        assert desk.site.get("/api/v1/sessions", headers=other).json()["items"] == []
        path = f"/api/v1/sessions/{listed['number']}"
        problem(desk.site.client.delete(path, headers=other), 404, "UnknownSession")
        assert desk.site.client.delete(path, headers=shown).json()["by"] == "anna"
        problem(desk.site.client.delete(path, headers=shown), 404, "UnknownSession")
        assert desk.store.browser_session(digest(browser.cookies[PLAIN])) is None


# --- where a cookie may be given out ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{"host": "jobs.example"}, {"x-forwarded-proto": "https"}, {"forwarded": "proto=https"}, {"via": "1.1 x"}],
)
def test_over_http_and_from_elsewhere_nobody_logs_in(desk: Desk, headers: dict[str, str]) -> None:
    """A proxy that ends TLS cannot be told from none: what it says is not believed."""
    key = desk.key()
    refused = desk.site.post(SESSION, {"key": key.key}, headers=headers)
    assert "--public-url" in problem(refused, 403, "NotSecure")["remedy"]
    assert "set-cookie" not in refused.headers
    with desk.browser() as browser:
        logged_in(browser, key)
        problem(browser.get("/api/v1/jobs", headers=headers), 401, "Unauthenticated")


@SQLITE
def test_behind_a_proxy_the_public_url_decides(store_url: str, store: SqlStore) -> None:
    """Check 18: the cookie is __Host- and Secure, whatever the proxy makes of Host."""
    key = keys.create(Caller(store, "ada"), "one", role="operator").key
    public = {"origin": "https://jobs.example", "sec-fetch-site": "same-origin"}
    with running(ServerOptions(store_url, port=0, public_url="https://Jobs.Example:443/")) as site:
        for via in ({}, {"host": "jobs.example", "x-forwarded-for": "10.0.0.9", "x-forwarded-proto": "https"}):
            answer = site.post(SESSION, {"key": key}, headers=public | via)
            cookie = answer.headers["set-cookie"]
            name, _, rest = cookie.partition("=")
            secret, _, attributes = rest.partition("; ")
            assert (name, attributes) == ("__Host-unstuck-session", "Path=/; HttpOnly; SameSite=Strict; Secure")
            sent = {"cookie": f"{name}={secret}", **public, **via}
            assert site.get("/api/v1/jobs", headers=sent).is_success
            token = {"x-csrf-token": answer.json()["csrf"]}
            assert site.post(PAUSE, headers=sent | token).is_success
            problem(site.post(PAUSE, headers=sent), 403, "CrossSite")
            problem(site.post(PAUSE, headers=sent | token | {"origin": site.url}), 403, "CrossSite")
            plain = {"cookie": f"{PLAIN}={secret}"}
            problem(site.get("/api/v1/jobs", headers=plain), 401, "Unauthenticated")


@pytest.mark.parametrize(
    "url",
    ["http://jobs.example", "jobs.example", "https://", "https://jobs.example/unstuck", "https://a@b", "https://a:x",
     "https://jobs.example?x", "https://jobs.example\n", ""],
)  # fmt: skip
def test_a_public_url_that_cannot_be_kept_safe_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="--public-url"):
        build_server(ServerOptions("sqlite:///nowhere.db", public_url=url))


@SQLITE
def test_inside_another_program_the_scheme_that_it_serves_decides(store_url: str, store: SqlStore) -> None:
    key = keys.create(Caller(store, "ada"), "one", role="reader").key
    app = App(store_url)
    routes = [Mount("/jobs-api", app=app.asgi()), Mount("/of/{whom}", app=app.asgi()), Mount("/", app=app.asgi())]
    mounted = Starlette(routes=routes)

    async def ask(url: str, *, is_known: bool = True) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mounted), base_url=url) as client:
            answer = await client.post(f"{url}{SESSION}", json={"key": key})
            if answer.is_success and is_known:
                found = await client.get(f"{url}{SESSION}")
                assert found.json() == answer.json()
            return answer

    with app:
        below, root, plain = [asyncio.run(ask(url)) for url in (
            "https://shop.example/jobs-api", "https://shop.example", "http://shop.example",
        )]  # fmt: skip
        named = asyncio.run(ask("https://shop.example/of/ada"))
        crafted = asyncio.run(ask("https://shop.example/of/ada;Domain=example", is_known=False))
    assert "; Path=/of/ada; HttpOnly" in named.headers["set-cookie"]
    assert crafted.headers["set-cookie"].count(";") == named.headers["set-cookie"].count(";")
    assert below.headers["set-cookie"].startswith("__Secure-unstuck-session=uss_")
    assert "; Path=/jobs-api; HttpOnly; SameSite=Strict; Secure" in below.headers["set-cookie"]
    assert root.headers["set-cookie"].startswith("__Host-unstuck-session=uss_")
    problem(plain, 403, "NotSecure")


@SQLITE
def test_where_a_program_says_who_asks_it_knows_its_browsers_itself(store_url: str, store: SqlStore) -> None:
    key = keys.create(Caller(store, "ada"), "one", role="reader").key
    app = App(store_url)
    asgi = app.asgi(auth=lambda scope: Who(by="anna", tenant="acme"))

    async def ask() -> tuple[httpx2.Response, httpx2.Response]:
        transport = httpx2.ASGITransport(app=asgi)
        async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
            return await client.post(SESSION, json={"key": key}), await client.get(SESSION)

    with app:
        refused, known = asyncio.run(ask())
    problem(refused, 404, "NotFound")
    assert (known.json()["by"], known.json()["tenant"], known.json()["csrf"]) == ("anna", "acme", None)


@SQLITE
def test_without_keys_whoever_is_here_is_told_so(site: Site) -> None:
    told = site.get(SESSION).json()
    assert (told["key"], told["role"], told["csrf"]) == (None, "platform-admin", None)
    problem(site.post(SESSION, {"key": "usk_nothing"}), 401, "Unauthenticated")
    problem(site.client.delete(SESSION), 404, "NotFound")
