"""The OpenAPI document is as the routes say, and says everything of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.server.conftest import Site
from unstuck.assembly import RATE
from unstuck.model.payload import MAX_DEPTH, MAX_DIGITS
from unstuck.operations import together
from unstuck.operations.kinds import MOST_WAITED
from unstuck.operations.routes import PREFIX, routes
from unstuck.server import api, bodies, connections, exchange, lanes, openapi, submits
from unstuck.server.problems import ERRORS
from unstuck.store.port import MOST_CHARACTERS

PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"


def each(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {told["operationId"]: told for path in document["paths"].values() for told in path.values()}


def test_the_document_is_current() -> None:
    assert PAGE.read_text() == openapi.text(), "it is old: run python docs/draw_openapi.py"


def test_it_is_served(shared_site: Site) -> None:
    answer = shared_site.get("/openapi.json")
    assert answer.text == openapi.text()
    assert shared_site.get("/openapi.json", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_every_route_is_there_once_with_its_arguments_and_errors() -> None:
    document = json.loads(openapi.text())
    told = each(document)
    beside = {"jobs.batch", "jobs.status", "targets.resume", "session.begin", "session.get", "session.end"}
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
    text = openapi.text()
    schemas = json.loads(text)["components"]["schemas"]
    for piece in text.split('"#/components/schemas/')[1:]:
        assert piece.partition('"')[0] in schemas


def test_the_guide_names_the_limits_that_hold() -> None:
    guide = (PAGE.parent / "http.md").read_text()
    rows = [
        f"| body | {bodies.MOST_BYTES:,} bytes |",
        f"| time until the body is there | {bodies.LONGEST:g} s |",
        f"| {bodies.MOST_KEYS:,}; {MAX_DEPTH}; {MAX_DIGITS:,} |",
        f"| {exchange.MOST_HEADERS} headers, {exchange.MOST_HEADER_BYTES:,} bytes |",
        f"| time until the head is there | {connections.LONGEST_HEAD:g} s |",
        f"between two requests | {connections.LONGEST_REST} s |",
        f"| time in which an answer must be taken | {connections.LONGEST_ANSWER:g} s |",
        f"| arguments and results of one page of jobs | {MOST_CHARACTERS:,} characters |",
        f"| connections | {connections.MOST_CONNECTIONS:,} |",
        f"| requests that wait for a thread | {lanes.WAITING} |",
        f"| requests of one key | {RATE:,.0f} a second",
        f"| one wait | {MOST_WAITED:g} s, {api.PATIENT} at a time |",
        f"`, {submits.MOST:,} at most",
        f"| {together.MOST_UNTOLD:,} |",
        f"| {together.MOST:,}, or {together.MOST_CHARACTERS:,} characters",
    ]
    for row in rows:
        assert row in guide
