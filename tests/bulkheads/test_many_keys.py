"""Thousands of limit keys whose jobs wait for one limit hide no other workflow."""

from __future__ import annotations

import time

import pytest

from tests.bulkheads.conftest import SOON, TROUBLE, House, boot
from tests.bulkheads.ship import app as ship
from tests.support.eventually import eventually
from unstuck.chance import SystemChance
from unstuck.model.job import NewJob
from unstuck.model.payload import encode

pytestmark = pytest.mark.timeout(180)

KEYS = 20_000


def test_many_keys_behind_one_limit_hide_no_quiet_workflow(house: House) -> None:
    """One of which nothing was heard for a while, unlike that of the stream: it is found by looking."""
    house.begin()
    house.completes(house.send_one("work", "first"))
    send_keyed(house)
    since, waits = boot(), []
    for number in range(int(TROUBLE)):
        sent = boot()
        house.send_one("work", f"quiet{number}")
        eventually(lambda: f"quiet{number}" in house.marks(), timeout=20)  # noqa: B023
        waits.append(boot() - sent)
        time.sleep(max(0.0, 1.0 - waits[-1]))

    # What the stream waits for meanwhile is this machine's doing: its route is never lost from sight.
    assert max(waits) <= SOON + house.stream.worst(since), waits
    assert house.marks().count("keyed") < KEYS, "they have all gone by"


def send_keyed(house: House) -> None:
    handler, chance = ship._registry.handler("limited"), SystemChance()
    payload = encode({"args": [house.path, "keyed"], "kwargs": {}}, "arguments")
    for first in range(0, KEYS, 1000):
        house.store.submit(
            [
                NewJob(
                    id=chance.job_id(),
                    payload=payload,
                    tenant="default",
                    queue=handler.queue,
                    workflow="limited",
                    policy=handler.policy,
                    limit_key=f"key{number}",
                )
                for number in range(first, first + 1000)
            ]
        )
