"""A real server over a fresh database of each kind, a Client of it, and an App on the database itself beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import unstuck
from tests.server.conftest import running
from unstuck.assembly.server import ServerOptions
from unstuck.store.sql_store import SqlStore


@pytest.fixture(autouse=True)
def _no_key_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UNSTUCK_KEY", "UNSTUCK_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def url(store_url: str, store: SqlStore) -> Iterator[str]:
    """Where a server is."""
    with running(ServerOptions(store_url, port=0)) as site:
        yield site.url


@pytest.fixture
def client(url: str) -> Iterator[unstuck.Client]:
    with unstuck.Client(url) as opened:
        yield opened


@pytest.fixture
def here(store_url: str) -> Iterator[unstuck.App]:
    """What the same questions answer without a server."""
    with unstuck.App(store_url, name="here") as opened:
        yield opened
