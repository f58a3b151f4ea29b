"""What could not be written is set aside with a reason and one piece of news, found by its job, and tried again."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.support.builders import a_job, submitted
from unstuck.model.errors import StoreBusy
from unstuck.store.guard import quarantine
from unstuck.store.sql_store import SqlStore


def _number(store: SqlStore, uid: str) -> int:
    found = store.get("default", uid)
    assert found is not None
    return found.number


def test_what_is_set_aside_names_its_job_and_its_error(store: SqlStore) -> None:
    job = a_job()
    store.submit([job])

    store.quarantine("recover", {_number(store, job.id): "check violated"}, by="w1")

    (found,) = store.quarantined("default", job=job.id)
    assert (found.duty, found.job, found.workflow, found.error, found.by, found.tries) == (
        ("recover", job.id, job.workflow, "check violated", "w1", 1)
    )
    assert store.quarantined("another") == []
    assert store.quarantined(job="unheard-of") == []


def test_many_bad_rows_of_one_workflow_are_one_piece_of_news(store: SqlStore) -> None:
    jobs = [a_job() for _ in range(20)]
    store.submit(jobs)

    numbers = [_number(store, job.id) for job in jobs]
    store.quarantine("recover", dict.fromkeys(numbers, "it raises"), by="w1")
    store.quarantine("recover", dict.fromkeys(numbers, "it raises still"), by="w2")

    (news,) = store.notifications()
    assert news.title == "Set aside: recover"
    assert jobs[0].id in news.message
    assert {(one.tries, one.error) for one in store.quarantined()} == {(2, "it raises still")}


def test_news_of_a_lock_do_not_say_that_nothing_else_waits(store: SqlStore) -> None:
    """It may be that of a whole table; `health` names its holder."""
    held, refused = submitted(store, workflow="held"), submitted(store, workflow="refused")
    lock = quarantine.reason(StoreBusy("a lock timeout"))
    errors = {_number(store, held.id): lock, _number(store, refused.id): "CheckViolation: no"}
    store.quarantine("settle", errors, "ada")
    news = {found.workflow: found.message for found in store.notifications()}
    assert "unstuck health" in news["held"]
    assert "Nothing else waits" not in news["held"]
    assert "Nothing else waits for it" in news["refused"]


def test_those_tried_longest_ago_are_due_first_and_a_person_can_ask_for_one(
    store: SqlStore, clock: StoreClock
) -> None:
    jobs = [a_job() for _ in range(3)]
    store.submit(jobs)
    first, second, third = (_number(store, job.id) for job in jobs)
    for number in (third, first, second):
        store.quarantine("settle", {number: "no"}, by="w1")
        clock.advance(1)

    assert store.quarantine_due("settle") == [third, first, second]
    assert store.quarantine_due("settle", batch=1) == [third]
    assert store.quarantine_due("recover") == []

    assert store.retry_quarantined("settle", second) == 1
    assert store.quarantine_due("settle") == [second, third, first]

    store.leave_quarantine("settle", third)
    assert store.quarantine_due("settle") == [second, first]


def test_pages_of_what_is_set_aside_go_on_where_the_last_one_ended(store: SqlStore) -> None:
    jobs = [a_job() for _ in range(5)]
    store.submit(jobs)
    store.quarantine("start", {_number(store, job.id): "no" for job in jobs}, by="w1")

    page = store.quarantined(limit=2)
    rest = store.quarantined(after=(page[-1].duty, page[-1].item), limit=10)

    assert [one.job for one in (*page, *rest)] == [job.id for job in jobs]
