"""unstuck server: a real process, from its first line to its ordered end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.command import Command, ended
from tests.support.builders import a_worker, claim_all, submitted
from tests.support.eventually import eventually
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@contextmanager
def serving(unstuck: Command, tmp_path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            unstuck.words("server", "--port", "0", *words),
            cwd=tmp_path,
            env=unstuck.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    with process, ended(process, within=20):
        assert process.stdout is not None
        first = process.stdout.readline().decode()
        yield process, first.split()[3]


def test_it_says_where_it_is_answers_and_ends_in_order(unstuck: Command, tmp_path: Path) -> None:
    with serving(unstuck, tmp_path) as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert httpx2.get(f"{url}/readyz").json() == {"ready": True}
        assert httpx2.get(f"{url}/api/v1/jobs").json()["items"] == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@SQLITE
def test_it_ends_with_who_started_it(unstuck: Command, tmp_path: Path) -> None:
    with serving(unstuck, tmp_path, "--stop-with-stdin") as (process, url):
        assert httpx2.get(f"{url}/healthz").status_code == 200
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


def test_a_server_alone_recovers_what_a_lost_worker_held(unstuck: Command, tmp_path: Path, store: SqlStore) -> None:
    """A server runs every duty of the janitor: no other worker is there."""
    job = submitted(store).id
    ada = a_worker(store, lease=2.0)
    assert len(claim_all(store, ada)) == 1
    with serving(unstuck, tmp_path) as (_, url):
        eventually(lambda: httpx2.get(f"{url}/api/v1/jobs/{job}").json()["state"] == "QUEUED", timeout=60)
    log = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert [line["job"] for line in log if line["event"] == "recovered"] == [job]


@SQLITE
def test_it_refuses_to_listen_elsewhere_without_a_key(unstuck: Command) -> None:
    refused = unstuck("server", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert "unstuck keys create" in refused.err
    made = unstuck("keys", "create", "deploy", "--role", "reader", "--json")
    assert json.loads(made.out)["key"].startswith("usk_")


@SQLITE
@pytest.mark.parametrize("words", [["--port", "70000"], ["--rate", "0"], ["--host", "no.such.host.invalid"]])
def test_what_cannot_be_is_told(unstuck: Command, words: list[str]) -> None:
    refused = unstuck("server", *words)
    assert refused.code == 2
    assert refused.err
