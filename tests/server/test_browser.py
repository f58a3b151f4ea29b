"""A real browser: what it makes of the cookie, and what a page of another site can make it send. Needs chromium."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.cli.command import ended
from tests.support.builders import submitted
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck import App
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
CHROMIUM = shutil.which("chromium")
PAUSE, UNPAUSE = "/api/v1/queues/default/pause", "/api/v1/queues/default/unpause"

#: Our own page: logs in, asks, changes with and without its token, then follows a link to the other site.
PAGE = """<script>
const json = {"Content-Type": "application/json"};
const post = (path, more = {}) => fetch(path, {method: "POST", headers: {...json, ...more}, body: "{}"});
(async () => {
  const begun = await fetch("/api/v1/session", {method: "POST", headers: json, body: JSON.stringify({key: "KEY"})});
  const me = await begun.json();
  const told = [begun.status, me.by, document.cookie, (await fetch("/api/v1/jobs")).status];
  told.push((await post("PAUSE")).status, (await post("PAUSE", {"X-CSRF-Token": me.csrf})).status);
  location = "ELSEWHERE/evil?" + encodeURIComponent(JSON.stringify(told));
})();
</script>"""

#: The other site's: all that a page can send without being allowed to. It tells its own site what came of it; at last
#: it sends a form, and its visitor with it.
EVIL = """<form id=form method=post enctype=text/plain action="HEREUNPAUSE?form">
<input name='{"a' value='":1}'></form><script>
const there = (path, how) =>
  fetch("HERE" + path, {credentials: "include", ...how}).then(a => a.status, () => "blocked");
(async () => {
  const told = JSON.parse(decodeURIComponent(location.search.slice(1)));
  told.push(await there("/api/v1/jobs", {}));
  told.push(await there("/api/v1/jobs", {mode: "no-cors"}));
  told.push(await there("UNPAUSE", {method: "POST", mode: "no-cors", body: "{}"}));
  told.push(await there("UNPAUSE", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}));
  told.push(await there("/api/v1/session", {method: "DELETE"}));
  const image = new Image();
  await new Promise(done => { image.onerror = done; image.src = "HERE/api/v1/jobs?image"; });
  await fetch("/told", {method: "POST", body: JSON.stringify(told)});
  document.getElementById("form").submit();
})();
</script>"""


class Noted:
    """What reaches the API: method, path, whether with our cookie, and the answer's status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.seen: list[tuple[str, str, bool, int]] = []
        self.set_cookies: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_cookie = any(name == b"cookie" and b"unstuck-session" in value for name, value in scope["headers"])

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                asked = scope["query_string"].decode()
                path = scope["path"] + (f"?{asked}" if asked else "")
                self.seen.append((scope["method"], path, has_cookie, message["status"]))
                self.set_cookies += [value.decode() for name, value in message["headers"] if name == b"set-cookie"]
            await send(message)

        await self._app(scope, receive, told)


@contextmanager
def serving(app: ASGIApp, **more: Any) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", **more))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        eventually(lambda: server.started)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


@slow
@SQLITE
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_browser_is_known_on_our_page_and_unknown_on_every_other(
    scheme: str, store_url: str, store: SqlStore, tmp_path: Path
) -> None:
    """Check 18: form, fetch and image of another site, in a browser that is logged in."""
    assert CHROMIUM, "this test needs a browser: `make browser` installs Debian's, or apt-get install chromium"
    submitted(store)
    key = keys.create(Caller(store, "ada", "default"), "anna", role="operator").key
    app = App(store_url)
    api = Noted(app.asgi())
    at: dict[str, str] = {}

    def shown(page: str) -> Any:
        def answer(_: Any) -> HTMLResponse:
            text = page.replace("UNPAUSE", UNPAUSE).replace("PAUSE", PAUSE).replace("KEY", key)
            return HTMLResponse(text.replace("ELSEWHERE", at["elsewhere"]).replace("HERE", at["here"]))

        return answer

    told: list[Any] = []

    async def tell(request: Request) -> Response:
        told.extend(await request.json())
        return Response()

    own = [Route("/page", shown(PAGE)), Route("/evil", shown(EVIL)), Route("/told", tell, methods=["POST"])]
    site = Starlette(routes=[*own, Mount("/", app=api)])
    with app, serving(site, **(_certified(tmp_path) if scheme == "https" else {})) as port:
        at |= {"here": f"{scheme}://127.0.0.1:{port}", "elsewhere": f"{scheme}://localhost:{port}"}
        with browsing(f"{at['here']}/page", tmp_path):
            eventually(lambda: any(path == f"{UNPAUSE}?form" for _, path, _, _ in api.seen), timeout=90)
    # On our own page: logged in as anna, no script sees the cookie, reads work, changes need the token.
    assert told[:6] == [201, "anna", "", 200, 403, 200]
    # Elsewhere nothing can be read, and of what was sent blindly nothing came with the cookie.
    assert told[6:] == ["blocked"] * 5
    first = api.seen.index(("POST", PAUSE, True, 200))
    foreign = [each for each in api.seen[first + 1 :] if each[1] != "/favicon.ico"]
    assert {path for _, path, _, _ in foreign} >= {"/api/v1/jobs", "/api/v1/jobs?image", UNPAUSE, f"{UNPAUSE}?form"}
    assert not any(has_cookie for _, _, has_cookie, _ in foreign), foreign
    assert all(status in (401, 403, 405, 415) for *_, status in foreign), foreign
    assert [pause.name for pause in store.pauses()] == ["default"]
    [cookie] = api.set_cookies
    expected = "__Host-unstuck-session=" if scheme == "https" else "unstuck-session="
    assert cookie.startswith(expected)


def _certified(folder: Path) -> dict[str, str]:
    files = {"ssl_keyfile": str(folder / "key.pem"), "ssl_certfile": str(folder / "cert.pem")}
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    out = ["-keyout", files["ssl_keyfile"], "-out", files["ssl_certfile"]]
    subprocess.run(["openssl", *words, *out], check=True, capture_output=True, timeout=60)
    return files


@contextmanager
def browsing(url: str, folder: Path) -> Iterator[None]:
    assert CHROMIUM is not None
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--ignore-certificate-errors", f"--user-data-dir={folder / 'profile'}"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ended(subprocess.Popen([CHROMIUM, *options, url], **quiet), within=20):  # type: ignore[call-overload]
        yield


#: A page without a cookie: its stream is opened by a ticket, and not a second time.
FOLLOWS = """<script>
const told = [];
const tell = () => fetch("/told", {method: "POST", body: JSON.stringify(told)});
const events = new EventSource("URL");
events.onmessage = message => {
  told.push(JSON.parse(message.data).kind);
  events.close();
  const again = new EventSource("URL");
  again.onmessage = () => { told.push("twice"); tell(); };
  again.onerror = () => { told.push(again.readyState); again.close(); tell(); };
};
</script>"""


@slow
@SQLITE
def test_an_event_source_is_opened_by_a_ticket_once(store_url: str, store: SqlStore, tmp_path: Path) -> None:
    """Check 20."""
    assert CHROMIUM, "this test needs a browser: `make browser` installs Debian's, or apt-get install chromium"
    submitted(store, tenant="acme")
    key = keys.create(Caller(store, "ada", "acme"), "page", role="reader").key
    told: list[Any] = []

    async def tell(request: Request) -> Response:
        told.extend(await request.json())
        return Response()

    page: list[str] = []
    app = App(store_url)
    api = Noted(app.asgi())
    own = [
        Route("/page", lambda _: HTMLResponse(FOLLOWS.replace("URL", page[0]))),
        Route("/told", tell, methods=["POST"]),
    ]
    with app, serving(Starlette(routes=[*own, Mount("/", app=api)])) as port:
        here = f"http://127.0.0.1:{port}"
        asked = {"path": "/api/v1/events?after=start&kinds=submitted"}
        answer = httpx2.post(f"{here}/api/v1/tickets", json=asked, headers={"authorization": f"Bearer {key}"})
        page.append(answer.json()["url"])
        with browsing(f"{here}/page", tmp_path):
            eventually(lambda: told, timeout=90)
    assert told == ["submitted", 2]  # closed: it does not come again by itself
    streams = [(path, status) for _, path, _, status in api.seen if path.startswith("/api/v1/events")]
    assert [status for _, status in streams] == [200, 401]
    assert not any(key in path for path, _ in streams)
