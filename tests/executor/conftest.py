from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.executor.watch import Watch


@pytest.fixture(scope="module", params=["fork", "spawn"])
def mode(request: pytest.FixtureRequest) -> str:
    """How executors start: every journey is made both ways."""
    return str(request.param)


@pytest.fixture(scope="module")
def watch(mode: str) -> Iterator[Watch]:
    """One fleet for a module; tests that end an executor take one of their own."""
    watch = Watch(mode)
    assert watch.imported().mode == mode
    yield watch
    watch.close()


@pytest.fixture(scope="module")
def shared(watch: Watch) -> int:
    return watch.executor()


@pytest.fixture(scope="module")
def solo(watch: Watch) -> int:
    return watch.executor(alone=True)
