"""Fixtures: the command on each database, and a worker of the test app beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import APP, Command, ended


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Command:
    """No database is named."""
    return Command(None, tmp_path)


@pytest.fixture
def worker(unstuck: Command, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that ends with the test, however the test ends."""
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            unstuck.words("worker", APP, "--concurrency", "4", "--processes", "1", "--drain", "15s", "--name", "w1"),
            cwd=tmp_path,
            env=unstuck.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    with ended(process, within=20):
        yield process
