"""The dashboard's files over HTTP: what stands where, how caches know it, and what a browser may do with it."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import Site, problem
from unstuck import App
from unstuck.server.page import POLICY
from unstuck.web.files import WebFiles

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
DIGEST = WebFiles().digest


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/jobs/0190", "/targets/acme%2Fsite", "/platform/diagnostics?tab=blacklist"]
)
def test_every_screen_is_the_page_without_a_key(shared_site: Site, path: str) -> None:
    answer = shared_site.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert '<base href="/">' in answer.text
    assert answer.headers["cache-control"] == "no-cache"


def test_nothing_in_the_page_may_run_but_our_own_files(shared_site: Site) -> None:
    page = shared_site.get("/")
    assert page.headers["content-security-policy"] == POLICY
    for word in ("unsafe-inline", "unsafe-eval", "http:", "https:", "*", "data:"):
        assert word not in POLICY
    assert "<style" not in page.text
    assert " style=" not in page.text
    assert "onload" not in page.text
    assert page.text.count("<script") == page.text.count('<script src="') + page.text.count(
        '<script type="module" src="'
    )
    assert page.headers["x-content-type-options"] == "nosniff"


def test_what_stands_below_the_digest_is_kept_for_good_and_known_again(shared_site: Site) -> None:
    path = f"/static/{DIGEST}/app.js"
    answer = shared_site.get(path)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    again = shared_site.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    page = shared_site.get("/")
    assert shared_site.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304


def test_of_another_release_a_file_is_ours_and_not_kept(shared_site: Site) -> None:
    answer = shared_site.get("/static/0123456789abcdef/app.js")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"


def test_it_is_sent_packed_to_whoever_takes_it(shared_site: Site) -> None:
    path = f"/static/{DIGEST}/style.css"
    plain = shared_site.get(path, headers={"accept-encoding": "identity"})
    packed = shared_site.get(path, headers={"accept-encoding": "gzip, br"})
    refused = shared_site.get(path, headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert packed.text == plain.text
    assert packed.headers["etag"] != plain.headers["etag"]
    assert plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/jobs/0190/more/words",
        "/jobs//x",
        "/index.html",
        f"/static/{DIGEST}/none.js",
        f"/static/{DIGEST}/index.html",
        f"/static/{DIGEST}/../files.py",
        f"/static/{DIGEST}/..%2Ffiles.py",
        "/static",
        "/favicon.ico",
    ],
)
def test_what_is_not_there_is_a_problem(shared_site: Site, path: str) -> None:
    problem(shared_site.get(path), 404, "NotFound")


def test_only_reads_are_answered(shared_site: Site) -> None:
    assert shared_site.client.head("/").status_code == 200
    problem(shared_site.post("/"), 404, "NotFound")


@SQLITE
def test_below_a_prefix_it_finds_itself(store_url: str, store: object) -> None:
    app = App(store_url)
    outer = Starlette(routes=[Mount("/our jobs", app=app.asgi())])

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            paths = ("/our%20jobs/jobs/0190", f"/our%20jobs/static/{DIGEST}/app.js", "/our%20jobs/nothing")
            return [await client.get(path) for path in paths]

    with app:
        page, module, nothing = asyncio.run(ask())
    assert '<base href="/our%20jobs/">' in page.text
    assert module.status_code == 200
    problem(nothing, 404, "NotFound")
