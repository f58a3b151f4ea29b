"""An entry of the inbox that is too slow to be done is found soon: until then `why` knows of nothing. So is a webhook
of which nothing can be written in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.support.budgets import endless
from tests.support.builders import record, submitted
from tests.support.troubles import slow
from tests.support.webhooks import deliveries, made, the_duty
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.model.errors import StoreError
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

STORE_CALL = 1.0


@pytest.fixture
def server(server_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(open_database(server_url, store_call=STORE_CALL))
    yield opened
    opened.close()


@pytest.mark.parametrize(("others", "most"), [(0, 1), (3, 3)])
def test_a_slow_target_is_set_aside_by_the_first_looks_at_the_inbox(
    server: SqlStore, server_url: str, others: int, most: int
) -> None:
    """It is not to be looked for among a thousand where there are four: each look takes a call's time."""
    bad = submitted(server, target="bad")
    good = [submitted(server, target=f"good-{n}") for n in range(others)]
    looks = 0
    with slow(server_url, "unstuck_line", f"OLD.job = {record(server, bad.id).number}", 2 * STORE_CALL, on="DELETE"):
        while not server.quarantined():
            looks += 1
            assert looks <= most
            with suppress(StoreError):
                server.ingest()
        for _ in good:
            with suppress(StoreError):
                server.ingest()
        assert {row.target for row in server.quarantined()} == {"bad"}
        assert server.inbox_stand().entries == 0
    server.ingest_again()
    assert server.quarantined() == []


def test_a_slow_webhook_keeps_no_other_from_its_events(server: SqlStore, server_url: str) -> None:
    bad = made(server, "bad")
    made(server, "well")
    duty, times = the_duty(server), Times()
    with slow(server_url, "unstuck_deliveries", f"NEW.webhook = {bad.number}", 2 * STORE_CALL):
        jobs = [submitted(server).id for _ in range(5)]
        for turn in range(3):
            duty.tick(float(turn), Budget(MachineClock(), times.sweep / 5))
        assert [each.job for each in deliveries(server, "well")] == jobs
    duty.tick(times.sweep, endless())
    duty.tick(times.sweep, endless())
    assert [each.job for each in deliveries(server, "bad")] == jobs
