"""The probe tells a store that can be written to from one that only answers."""

from __future__ import annotations

import pytest

from tests.support.outage import database_away
from unstuck.model.errors import StoreError
from unstuck.store.sql_store import SqlStore


def test_a_probe_fails_while_nothing_can_be_written_though_questions_are_answered(
    store: SqlStore, store_url: str
) -> None:
    store.probe()
    with database_away(store_url):
        assert store.now()
        with pytest.raises(StoreError):
            store.probe()
    store.probe()
