"""What handlers publish on its way to the database, on both of them."""

from __future__ import annotations

import pytest

from tests.support.builders import settle
from tests.worker.test_flow_calls import Desk
from unstuck.executor.messages import Done, Fenced, Publish, RefusedMessage
from unstuck.model.errors import OutcomeUnknown
from unstuck.model.job import AttemptRef
from unstuck.model.news import Publication
from unstuck.model.settlement import Returned
from unstuck.store.port import FeedFilter, Verdict
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def desk(store: SqlStore) -> Desk:
    return Desk(store)


def told(store: SqlStore) -> list[tuple[str, str | None]]:
    while store.sequence() > 0:
        pass
    page = store.feed(store.feed_bounds().oldest, FeedFilter())
    return [(event.kind, event.job) for event in page.events if event.by]


def test_it_is_told_in_order_and_a_lost_answer_doubles_none(
    desk: Desk, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = desk.job()
    is_first = True

    def publish_and_lose_the_answer(ref: AttemptRef, place: int, given: Publication) -> Verdict:
        nonlocal is_first
        verdict = store.publish_from(ref, place, given)
        if is_first:
            is_first = False
            raise OutcomeUnknown("the connection was lost")
        return verdict

    monkeypatch.setattr(desk.store, "publish_from", publish_and_lose_the_answer, raising=False)
    for place in range(1, 8):
        desk.ask(job, place, Publish(place, Publication(f"n{place}", "{}")))
    desk.run(5)
    assert [answer for _, _, answer in desk.answers] == [Done()] * 7
    assert told(store) == [(f"n{place}", job.id) for place in range(1, 8)]


def test_an_attempt_that_is_not_ours_any_more_publishes_nothing(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    settle(store, desk.worker, job.ref, Returned("1"))
    desk.ask(job, 1, Publish(1, Publication("late", "{}")))
    desk.run()
    assert [answer for _, _, answer in desk.answers] == [Fenced()]
    assert desk.revoked == [job.ref]
    assert told(store) == []


def test_a_refusal_is_an_answer_and_costs_nobody_else(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    for serial, place in enumerate([1, 10_001, 2], start=1):
        desk.ask(job, serial, Publish(place, Publication("ok", "{}")))
    desk.run()
    first, second, third = (answer for _, _, answer in desk.answers)
    assert (first, third) == (Done(), Done())
    assert isinstance(second, RefusedMessage)
    assert second.type == "InvalidInput"
    assert len(told(store)) == 2
