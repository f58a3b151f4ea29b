"""Partial results on their way from the executor to the database."""

from __future__ import annotations

import pytest

from tests.support.builders import TENANT, settle
from tests.worker.test_flow_calls import Desk
from unstuck.executor.messages import Done, Fenced, KeepPart, RefusedMessage
from unstuck.model.errors import OutcomeUnknown
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.settlement import Returned
from unstuck.store.flow import parts as parts_module
from unstuck.store.port import Verdict
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def desk(store: SqlStore) -> Desk:
    return Desk(store)


def kept(store: SqlStore, job: ClaimedJob) -> list[tuple[str, str, int]]:
    return [(part.name, part.value, part.number) for part in store.parts_of(TENANT, job.id)]


def test_parts_are_kept_in_the_order_they_were_sent_and_answered_each(desk: Desk, store: SqlStore) -> None:
    one, other = desk.job(), desk.job()
    for serial in range(1, 8):
        desk.ask(one, serial, KeepPart("a", str(serial)))
    desk.ask(other, 1, KeepPart("b", "true"))
    desk.run(3)
    assert [answer for _, _, answer in desk.answers] == [Done()] * 8
    assert kept(store, one) == [("a", "7", 7)]
    assert kept(store, other) == [("b", "true", 1)]


def test_a_part_of_an_attempt_that_is_not_ours_any_more_is_told_and_revoked(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    settle(store, desk.worker, job.ref, Returned("1"))
    desk.ask(job, 1, KeepPart("a", "1"))
    desk.run()
    assert [answer for _, _, answer in desk.answers] == [Fenced()]
    assert desk.revoked == [job.ref]
    assert kept(store, job) == []


def test_a_refusal_is_an_answer_and_costs_nobody_else(
    desk: Desk, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "MOST_PARTS", 1)
    job = desk.job()
    for serial, name in enumerate(["a", "b", "a"], start=1):
        desk.ask(job, serial, KeepPart(name, str(serial)))
    desk.run()
    first, second, third = (answer for _, _, answer in desk.answers)
    assert (first, third) == (Done(), Done())
    assert isinstance(second, RefusedMessage)
    assert (second.type, "'b' is one too many" in second.message) == ("InvalidInput", True)
    assert kept(store, job) == [("a", "3", 2)]


def test_parts_outlast_a_store_that_is_away_and_a_lost_answer_doubles_none(
    desk: Desk, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = desk.job()
    is_first = True

    def keep_and_lose_the_answer(ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        nonlocal is_first
        verdict = store.keep_part(ref, serial, name, value)
        if is_first:
            is_first = False
            raise OutcomeUnknown("the connection was lost")
        return verdict

    desk.store.is_away = True
    desk.ask(job, 1, KeepPart("a", "1"))
    desk.ask(job, 2, KeepPart("b", "2"))
    desk.run(3)
    assert desk.answers == []
    desk.store.is_away = False
    monkeypatch.setattr(desk.store, "keep_part", keep_and_lose_the_answer, raising=False)
    desk.run(3)
    assert [(serial, answer) for _, serial, answer in desk.answers] == [(1, Done()), (2, Done())]
    assert kept(store, job) == [("a", "1", 1), ("b", "2", 2)]


def test_a_report_goes_behind_the_part_that_was_sent_before_it(desk: Desk, store: SqlStore) -> None:
    """So whoever sees the end has seen, or will see, the part."""
    job = desk.job()
    desk.ask(job, 1, KeepPart("last", "1"))
    assert desk.end(job)
    assert desk.reports == []
    desk.run()
    assert [report.ref for report in desk.reports] == [job.ref]
    assert kept(store, job) == [("last", "1", 1)]
