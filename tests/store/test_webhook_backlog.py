"""A hundred thousand deliveries that wait: they cost the next one nothing, and nobody else."""

from __future__ import annotations

import time

from tests.support.builders import submitted
from tests.support.webhooks import BROKEN, copied, deliveries, leased, made, seen, settled
from tests.tiers import slow
from unstuck.store.rows import packed
from unstuck.store.sql_store import SqlStore

HALF, CHUNK = 50_000, 5_000


@slow
def test_a_hundred_thousand_that_wait_delay_neither_the_next_nor_another_webhook(store: SqlStore) -> None:
    """Half of them about one job, whose first message is refused, half about others."""
    made(store, "full", kinds=("submitted",))
    made(store, "other", kinds=("submitted",))
    job = submitted(store)
    copied(store)
    number = seen(store, "full").number
    for begin in range(0, HALF, CHUNK):
        _wait(store, number, [f"job:{job.id}"] * CHUNK, begin + 1000)
        _wait(store, number, [f"job:{begin + n}" for n in range(CHUNK)], begin + 1_000_000)

    def timed() -> float:
        began = time.monotonic()
        found = {each.name: each for each in leased(store, "a lease")}
        settled(store, found["full"], BROKEN, go_on=False)
        if "other" in found:
            settled(store, found["other"], go_on=False)
        submitted(store)
        copied(store)
        return time.monotonic() - began

    # Some tens of milliseconds where the machine is idle; what reads all that waits takes seconds.
    assert min(timed() for _ in range(3)) < 1.5
    assert seen(store, "full").waiting == 10_000  # counted up to there
    assert len(deliveries(store, "other")) == 4


def _wait(store: SqlStore, webhook: int, abouts: list[str], place: int) -> None:
    rows = [
        {"webhook": webhook, "tenant": "default", "message": f"msg_{place + n}", "place": place + n, "about": about}
        | {"kind": "submitted", "job": about, "happened_at": 0, "body": "{}"}
        for n, about in enumerate(abouts)
    ]

    def write(t) -> None:  # type: ignore[no-untyped-def]
        t.run("add_deliveries", rows=packed(rows))
        t.run("seat_deliveries", webhook=webhook, abouts=sorted(set(abouts)))

    store._database.write(write, within=60.0)
