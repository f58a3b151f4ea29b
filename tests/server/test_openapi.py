"""The OpenAPI document is as the routes say, and says everything of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Site, running
from unstuck.assembly.server import RATE, ServerOptions
from unstuck.model.payload import MAX_DEPTH, MAX_DIGITS
from unstuck.operations import keys, together
from unstuck.operations.kinds import MOST_WAITED
from unstuck.operations.routes import PREFIX, routes
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.server import api, bodies, connections, exchange, guests, hub, lanes, openapi, submits
from unstuck.server.problems import ERRORS
from unstuck.store.port import MOST_CHARACTERS
from unstuck.store.sql_store import SqlStore

PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"


def each(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {told["operationId"]: told for path in document["paths"].values() for told in path.values()}


def test_the_document_is_current() -> None:
    assert PAGE.read_text() == openapi.text(), "it is old: run python docs/draw_openapi.py"


def test_it_is_served(shared_site: Site) -> None:
    answer = shared_site.get("/openapi.json")
    assert answer.text == openapi.text()
    assert shared_site.get("/openapi.json", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("role", Role)
def test_a_role_is_shown_what_it_may_ask(role: Role) -> None:
    """Check 26: a platform admin everything; what nobody of this role is answered is not told either."""
    whole, document = json.loads(openapi.text()), json.loads(openapi.text(role))
    needed = {name: _role_of(told) for name, told in each(whole).items()}
    assert each(document).keys() == {name for name in needed if needed[name] in {None, *INCLUDED[role]}}
    for path, methods in document["paths"].items():
        assert all(whole["paths"][path][method] == told for method, told in methods.items())
    assert (document == whole) == (role is Role.PLATFORM_ADMIN)
    _check_references(openapi.text(role))
    if role is Role.READER:
        assert not {"NewKeyView", "TenantView", "OrderView"} & document["components"]["schemas"].keys()


def _role_of(told: dict[str, Any]) -> Role | None:
    """None: whoever has a key, as of a browser's session."""
    _, needed, role = told.get("description", "").rpartition("Needs the role ")
    return Role(role.rstrip(".")) if needed else None


def test_each_key_is_served_its_own(store_url: str, store: SqlStore) -> None:
    """Check 26."""
    made = {
        role: keys.create(Caller(store, "ada", None if role is Role.PLATFORM_ADMIN else "acme"), role, role=role).key
        for role in Role
    }
    with running(ServerOptions(store_url, port=0)) as site:
        assert site.get("/openapi.json").status_code == 401
        for role, key in made.items():
            shown = {"authorization": f"Bearer {key}"}
            answer = site.get("/openapi.json", headers=shown)
            assert answer.text == openapi.text(role)
            assert answer.headers["vary"] == "Authorization, Cookie"
            known = {"if-none-match": answer.headers["etag"]}
            assert site.get("/openapi.json", headers=shown | known).status_code == 304


def test_every_route_is_there_once_with_its_arguments_and_errors() -> None:
    document = json.loads(openapi.text())
    told = each(document)
    beside = {"jobs.batch", "jobs.status", "targets.resume", "session.begin", "session.get", "session.end"}
    beside.add("ticket.make")
    beside |= {f"platform.blacklist.{verb}" for verb in ("list", "add", "remove")}
    assert told.keys() == routes().keys() | beside
    for name, route in routes().items():
        one = document["paths"][PREFIX + route.path][route.method.lower()]
        assert one is told[name]
        placed = {(given["in"], given["name"]) for given in one["parameters"]}
        assert placed == {*(("path", n) for n in route.names), *(("query", n) for n in route.query.__struct_fields__)}
        assert ("requestBody" in one) == (route.body is not None)
        assert str(route.status) in one["responses"]
        for error in route.errors:
            assert error.__name__ in one["responses"][str(ERRORS[error].status)]["description"]
        assert {"400", "401", "403", "422", "429", "500", "503"} <= one["responses"].keys()


def test_every_reference_leads_somewhere() -> None:
    _check_references(openapi.text())


def _check_references(text: str) -> None:
    schemas = json.loads(text)["components"]["schemas"]
    for piece in text.split('"#/components/schemas/')[1:]:
        assert piece.partition('"')[0] in schemas


def test_the_guide_names_the_limits_that_hold() -> None:
    guide = (PAGE.parent / "http.md").read_text()
    rows = [
        f"| body | {bodies.MOST_BYTES:,} bytes |",
        f"| time until the body is there | {bodies.LONGEST:g} s |",
        f"| {bodies.MOST_LARGE}; {bodies.MOST_LARGE_OF_KEY}; {bodies.SLOWEST:,} bytes a second |",
        f"| {bodies.MOST_KEYS:,}; {MAX_DEPTH}; {MAX_DIGITS:,} |",
        f"| {exchange.MOST_HEADERS} headers, {exchange.MOST_HEADER_BYTES:,} bytes |",
        f"| time until the head is there | {connections.LONGEST_HEAD:g} s |",
        f"between two requests | {connections.LONGEST_REST} s |",
        f"| time in which an answer must be taken | {connections.LONGEST_ANSWER:g} s |",
        f"| arguments and results of one page of jobs | {MOST_CHARACTERS:,} characters |",
        f"| connections | {connections.MOST_CONNECTIONS:,} |",
        f"| requests that wait for a thread | {lanes.WAITING} |",
        f"| requests of one key | {RATE:,.0f} a second",
        f"| one wait or long poll | {MOST_WAITED:g} s |",
        f"| {api.PATIENT} at a time |",
        f"| streams, long polls and waits together | {guests.MOST_GUESTS:,} |",
        f"| those of one key | {guests.MOST_OF_KEY:,} |",
        f"| bytes that wait for one stream | {hub.MOST_BYTES:,} |",
        f"`, {submits.MOST:,} at most",
        f"| {together.MOST_UNTOLD:,} |",
        f"| {together.MOST:,}, or {together.MOST_CHARACTERS:,} characters",
    ]
    for row in rows:
        assert row in guide
