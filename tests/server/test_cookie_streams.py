"""A stream by cookie: as an EventSource asks, which can send no header."""

from __future__ import annotations

import time

import pytest

from tests.server.conftest import Site, problem
from tests.support.builders import submitted
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_stream_by_cookie_is_told_and_ends_with_its_key(site: Site, store: SqlStore) -> None:
    """Check 20."""
    key = keys.create(Caller(store, "ada", "acme"), "anna", role="reader")
    assert site.post("/api/v1/session", {"key": key.key}).status_code == 201
    asked = {"accept": "text/event-stream"}
    problem(site.get("/api/v1/events", headers=asked | {"sec-fetch-site": "cross-site"}), 403, "CrossSite")
    job = submitted(store, tenant="acme").id
    with site.client.stream("GET", "/api/v1/events?after=start", headers=asked) as stream:
        assert stream.status_code == 200
        lines = stream.iter_lines()
        assert any(job in line for line in lines)
        store.revoke_key(key.id, "ada")
        begun = time.monotonic()
        rest = list(lines)
        assert time.monotonic() - begun < 6, rest
    problem(site.get("/api/v1/events", headers=asked), 401, "Unauthenticated")
