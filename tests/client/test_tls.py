"""Client, AsyncClient and App by https://: which certificates are trusted, and what is said of the others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

import unstuck
from tests.client.tls import TlsFront
from unstuck.model.errors import InvalidInput, StoreUnavailable
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """As the environment says it."""
    file = tmp_path / "our-ca.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return authority


@SQLITE
def test_a_ca_that_the_environment_names_is_trusted_by_all_three(
    url: str, store: SqlStore, trusted: trustme.CA
) -> None:
    key = keys.create(Caller(store, "ada"), "shop", role="operator").key
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    with TlsFront(url, trusted.issue_cert("localhost", "127.0.0.1")) as front:
        app = unstuck.App(f"https://localhost:{front.port}", key=key)

        @app.workflow
        def greet(name: str) -> str:
            return name

        job = greet.enqueue("Ada")
        assert job.state() == "QUEUED"
        with unstuck.Client(f"https://127.0.0.1:{front.port}", key=key) as client:
            assert [found.id for found in client.jobs.list().items] == [job.id]

        async def ask() -> str:
            async with unstuck.AsyncClient(f"https://localhost:{front.port}", key=key) as asking:
                return (await asking.jobs.get(job.id)).workflow

        assert asyncio.run(ask()) == "greet"


@SQLITE
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("authority", "its certificate is not trusted: .* SSL_CERT_FILE names that CA's file"),
        ("name", "its certificate is another server's: .*localhost.*; is the address right"),
        ("expired", "its certificate has expired: .* must renew it"),
        ("early", "its certificate does not hold yet: .*clock right"),
    ],
)
def test_another_certificate_is_refused_at_once_and_nothing_is_sent(
    url: str, store: SqlStore, trusted: trustme.CA, wrong: str, said: str
) -> None:
    now = datetime.now(UTC)
    certificate = {
        "authority": lambda: trustme.CA().issue_cert("localhost"),
        "name": lambda: trusted.issue_cert("jobs.example.org"),
        "expired": lambda: trusted.issue_cert("localhost", not_after=now - timedelta(hours=1)),
        "early": lambda: trusted.issue_cert(
            "localhost", not_before=now + timedelta(hours=1), not_after=now + timedelta(days=9)
        ),
    }[wrong]()
    with TlsFront(url, certificate) as front:
        address = f"https://localhost:{front.port}"
        # A minute would be too long for any test: it is not asked again.
        with unstuck.Client(address, timeout=3000) as client, pytest.raises(StoreUnavailable, match=said) as refused:
            client.jobs.list()
        assert str(refused.value).startswith(f"{address} was not asked: ")
        app = unstuck.App(address, key="usk_a_b")

        @app.workflow
        def greet(name: str) -> str:
            return name

        with pytest.raises(StoreUnavailable, match=said):
            greet.enqueue("Ada")
        assert front.trusted == 0


@SQLITE
@pytest.mark.parametrize("text", [None, "not a certificate"])
def test_a_file_of_certificates_that_cannot_be_read_is_told(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with unstuck.Client("https://localhost:1") as client, pytest.raises(InvalidInput, match="SSL_CERT_FILE"):
        client.jobs.enqueue("greet")


@SQLITE
def test_a_server_without_tls_is_no_server_by_https(url: str) -> None:
    address = url.replace("http://", "https://")
    with unstuck.Client(address, timeout=0.5) as client, pytest.raises(StoreUnavailable, match="SSL"):
        client.jobs.list()
