"""A Client with signing keys signs what it enqueues before it is sent; the server verifies it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import unstuck
from tests.server.conftest import running
from tests.support.signing import OTHER, a_key, toml
from unstuck.assembly.server import ServerOptions
from unstuck.model.errors import InvalidInput, InvalidSettings, SignatureRefused
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope
from unstuck.signing import SigningKeys
from unstuck.store.sql_store import SqlStore

KEY = a_key("shop", "ed25519", tenant="shop")
SCHEMA = {"x-positional": ["card", "amount"], "properties": {"card": {}, "amount": {}}, "required": ["card"]}


@pytest.fixture
def url(store_url: str, store: SqlStore) -> Iterator[str]:
    """Of a server that has the public half, and accepts nothing that is not signed."""
    store.register_workflows(
        [WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), SCHEMA, target="card:{card}")]
    )
    signing = SigningKeys.of(toml(KEY.for_verifying()), ["*"])
    with running(ServerOptions(store_url, port=0, signing=signing)) as site:
        yield site.url


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.toml"
    file.write_text(toml(KEY))
    return file


def signed(store: SqlStore, job: Any) -> Envelope:
    record = store.get("shop", job.id)
    assert record is not None
    told = Envelope.of(record.signature or "")
    assert told is not None
    return told


def test_what_it_enqueues_is_signed_with_all_that_the_server_would_fill_in(
    url: str, keys: Path, store: SqlStore
) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    with unstuck.Client(url, tenant="shop", signing_keys=keys) as client:
        plain = client.jobs.enqueue("charge", args=["7", 3])
        odd = client.jobs.enqueue(
            "charge", kwargs={"card": "8"}, queue="slow", priority=2, at=at, policy={"retries": 0}, tags=["x"]
        )
        free = client.jobs.enqueue("charge", args=["9"], target=None, policy={"timeout": "unlimited"}, delay=5)
    assert (plain.target, odd.target, free.target) == ("card:7", "card:8", None)
    assert [signed(store, each).key for each in (plain, odd, free)] == ["shop"] * 3
    assert signed(store, odd).not_before == round(at.timestamp() * 1_000_000)
    record = store.get("shop", odd.id)
    assert record is not None
    assert (record.queue, record.priority, record.policy.retries, record.policy.timeout) == ("slow", 2, 0, 60.0)


def test_an_async_client_signs_too(url: str, keys: Path, store: SqlStore) -> None:
    async def ask() -> Any:
        async with unstuck.AsyncClient(url, tenant="shop", signing_keys=keys) as client:
            return await client.jobs.enqueue("charge", args=["7"], id="0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36")

    assert signed(store, asyncio.run(ask())).key == "shop"


def test_an_app_of_a_server_signs_one_and_many(url: str, keys: Path, store: SqlStore) -> None:
    with unstuck.App(url, tenant="shop", signing_keys=keys) as app:

        @app.workflow
        def charge(card: str, amount: int = 1) -> None: ...

        jobs = [charge.enqueue("7"), *charge.enqueue_many([("8", 2), ("9", 3)])]
    assert [signed(store, job).key for job in jobs] == ["shop"] * 3


def test_without_a_key_or_with_a_wrong_one_the_server_refuses_it(url: str, keys: Path, store: SqlStore) -> None:
    with unstuck.Client(url, tenant="shop") as client, pytest.raises(SignatureRefused) as refused:
        client.jobs.enqueue("charge", args=["7"])
    assert refused.value.problem == "missing"
    wrong = toml(a_key("shop", "ed25519", secret=OTHER))
    with unstuck.Client(url, tenant="shop", signing_keys=wrong) as client, pytest.raises(SignatureRefused) as refused:
        client.jobs.enqueue("charge", args=["7"])
    assert refused.value.problem == "altered"
    assert refused.value.checked["queue"] == "money"


def test_who_signs_names_the_tenant(url: str, keys: Path) -> None:
    with unstuck.Client(url, signing_keys=keys) as client, pytest.raises(InvalidInput, match="name the tenant"):
        client.jobs.enqueue("charge", args=["7"])


def test_keys_that_cannot_be_read_are_told_at_once() -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        unstuck.Client("http://localhost:1", signing_keys="nowhere.toml")


def test_a_remote_app_that_requires_signatures_and_has_no_key_sends_nothing(url: str) -> None:
    with unstuck.App(url, tenant="shop", require_signature="*") as app, pytest.raises(InvalidSettings):
        app.jobs.enqueue("charge", args=["7"])
