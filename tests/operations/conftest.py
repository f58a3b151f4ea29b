"""A caller of operations, over a fresh database of each kind."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore


class Ask(Protocol):
    def __call__(self, **facts: Any) -> Caller: ...


@pytest.fixture
def ask(store: SqlStore) -> Ask:
    def caller(**facts: Any) -> Caller:
        return Caller(store, facts.pop("by", "ada"), **facts)

    return caller
