from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.executor.watch import APP, Watch


@pytest.fixture(scope="module", params=["fork", "spawn"])
def mode(request: pytest.FixtureRequest) -> str:
    """How executors start: every journey is made both ways."""
    return str(request.param)


@pytest.fixture(scope="module")
def watch(mode: str, request: pytest.FixtureRequest) -> Iterator[Watch]:
    """One fleet for a module; tests that end an executor take one of their own."""
    watch = Watch(mode, app=getattr(request.module, "HANDLERS", APP))
    assert watch.imported().mode == mode
    yield watch
    watch.close()


@pytest.fixture(scope="module")
def shared(watch: Watch) -> int:
    return watch.executor()


@pytest.fixture(scope="module")
def solo(watch: Watch) -> int:
    return watch.executor(alone=True)
