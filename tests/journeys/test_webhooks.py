"""Webhooks with real workers, and receivers that are down for a while: everything arrives, verified and in order."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.journeys.conftest import Jobs
from tests.support.eventually import eventually
from tests.support.receiver import Message, receiving
from tests.support.webhooks import SECRET, allow, made, setting
from tests.support.workers import Worker
from unstuck.model.lifecycle import JobState
from unstuck.model.webhooks import DeliveryState
from unstuck.store.port import Store

Start = Callable[..., Worker]


def test_a_receiver_that_was_down_gets_everything_in_order_although_its_sender_is_killed(
    start: Start, db: Store, jobs: Jobs
) -> None:
    """One receiver is well, one is down and then back, and a worker dies in between: each message verified by the
    reference library, none missing, none before its time."""
    allow(db)
    setting(db, "webhook_first_retry", 0.2)
    setting(db, "webhook_longest_retry", 2.0)
    down = threading.Event()
    down.set()

    def answer(message: Message) -> int:
        return 503 if down.is_set() else 200

    first = start("first")
    with receiving(answer) as lame, receiving() as well:
        made(db, "lame", lame.url)
        made(db, "well", well.url, kinds=("completed",))
        ids = [jobs.enqueue("add", 1, number) for number in range(10)]
        for job in ids:
            jobs.until(job, JobState.COMPLETED, within=60)
        eventually(lambda: len(well.taken) == 10, timeout=30)
        eventually(lambda: len(lame.messages) >= 3, timeout=30)
        assert lame.taken == []

        first.kill_all()
        start("second")
        down.clear()
        wanted = {event.kind for event in db.history("default", ids[0])}
        total = sum(len(db.history("default", job)) for job in ids)
        # The lease of the one that was killed has to run out first.
        eventually(lambda: len({message.id for message in lame.taken}) >= total, timeout=90)
        eventually(lambda: not db.deliveries("default", state=DeliveryState.WAITING), timeout=60)

    for message in (*lame.taken, *well.taken):
        message.verified(SECRET)
    order = lame.of_jobs()
    assert wanted == {"submitted", "claimed", "completed"}
    for job in ids:
        seen = list(dict.fromkeys(order[job]))  # one that was sent twice came under one id
        assert seen == [1, 2, 3], order[job]
    assert {message.event["data"]["job"] for message in well.taken} == set(ids)
