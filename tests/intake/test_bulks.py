"""Bulks at the door: what is refused before anything is written, and a lost answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.intake.test_flow import Forgetful
from tests.support.builders import TENANT, a_job, record, submitted
from unstuck.intake.bulks import BulkVerbs
from unstuck.model.bulk import BulkState, BulkVerb
from unstuck.model.errors import InvalidInput, UnknownBulk
from unstuck.model.lifecycle import JobState
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

QUEUED = JobFilter(states=(JobState.QUEUED,))


@pytest.fixture
def bulks(store: SqlStore) -> BulkVerbs:
    return BulkVerbs(store, by="ada")


def test_a_count_a_start_and_a_look(bulks: BulkVerbs, store: SqlStore) -> None:
    job = submitted(store)
    counted = bulks.count(QUEUED)
    assert counted == (1, True)

    bulk = bulks.start("cancel", QUEUED, reason="wrong", expected=counted.number, by="eve")
    store.carry_bulks()

    done = bulks.get(bulk.number)
    assert (done.state, done.done, done.by, done.options.reason) == (BulkState.DONE, 1, "eve", "wrong")
    assert record(store, job.id).error_message == "cancelled by eve: wrong"
    assert bulks.list() == bulks.list(state="DONE") == [done]
    assert bulks.list(state=BulkState.RUNNING) == []


def test_a_filter_that_matches_everything_needs_to_say_so(bulks: BulkVerbs, store: SqlStore) -> None:
    store.submit([a_job(), a_job()])
    with pytest.raises(InvalidInput, match="a filter that matches everything needs to say so"):
        bulks.start("cancel", JobFilter())
    with pytest.raises(InvalidInput, match="everything"):
        bulks.start("cancel", JobFilter(newest_first=False))
    assert bulks.list() == []

    bulks.start("cancel", JobFilter(), everything=True)
    store.carry_bulks()
    assert store.counts()[JobState.CANCELLED] == 2


@pytest.mark.parametrize(
    ("verb", "options", "says"),
    [
        ("resolve", {}, "there is no bulk of 'resolve'; known: cancel, interrupt"),
        ("retry", {"reason": "because"}, "reason says nothing about retry; it is for cancel and interrupt"),
        ("cancel", {"from_start": True}, "from_start says nothing about cancel; it is for resume"),
        ("resume", {"force": True}, "force says nothing about resume; it is for release"),
        ("resume", {"from_start": "yes"}, "neither True nor False"),
        ("cancel", {"expected": -1}, "expected=-1"),
        ("cancel", {"expected": True}, "expected=True"),
        ("cancel", {"by": 3}, "by=3 is not text"),
    ],
)
def test_what_a_verb_cannot_take_is_refused(bulks: BulkVerbs, verb: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        bulks.start(verb, QUEUED, **options)
    assert bulks.list() == []


@pytest.mark.parametrize(
    ("filter", "says"),
    [
        ("QUEUED", "is not a JobFilter"),
        (JobFilter(workflow=3), "workflow=3 is not text"),  # type: ignore[arg-type]
        (JobFilter(tag="a\x00b"), "NUL"),
        (JobFilter(states=("FAILED",)), "'FAILED' is not a state"),  # type: ignore[arg-type]
        (JobFilter(since="now"), "is not a datetime"),  # type: ignore[arg-type]
    ],
)
def test_a_filter_that_cannot_be_kept_is_refused(bulks: BulkVerbs, filter: Any, says: str) -> None:
    for ask in (bulks.count, lambda wrong: bulks.start("cancel", wrong)):
        with pytest.raises(InvalidInput, match=says):
            ask(filter)


def test_an_instant_without_a_zone_is_utc(bulks: BulkVerbs) -> None:
    bulk = bulks.start("cancel", JobFilter(before=datetime(2020, 1, 1)))
    assert bulk.filter.before == datetime(2020, 1, 1, tzinfo=UTC)


def test_what_is_not_there_is_unknown(bulks: BulkVerbs) -> None:
    with pytest.raises(UnknownBulk, match="there is no bulk 7"):
        bulks.get(7)
    with pytest.raises(UnknownBulk):
        bulks.cancel(7)
    with pytest.raises(InvalidInput):
        bulks.get(0)


def test_a_lost_answer_starts_no_second_bulk_and_a_cancel_is_repeated(store: SqlStore) -> None:
    forgetful: Any = Forgetful(store, "start_bulk")
    bulk = BulkVerbs(forgetful).start(BulkVerb.CANCEL, QUEUED)
    assert [found.number for found in store.bulks(TENANT)] == [bulk.number]

    forgetful = Forgetful(store, "cancel_bulk")
    assert BulkVerbs(forgetful).cancel(bulk.number).state is BulkState.CANCELLED
    assert len(store.audit(verb="bulks")) == 2
