"""Search by argument: a bounded look at payloads that says how far it went."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job
from tests.support.troubles import execute
from unstuck.intake.bulks import BulkVerbs
from unstuck.model.bulk import BulkState
from unstuck.model.call import WantedArgument
from unstuck.model.errors import InvalidInput
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.observe.lookup import Lookup
from unstuck.operations.filters import job_filter
from unstuck.operations.table import Caller
from unstuck.store.port import JobFilter, JobPage
from unstuck.store.read import arguments
from unstuck.store.sql_store import SqlStore

SCHEMA = {
    "x-positional": ["customer", "amount"],
    "properties": {"customer": {"type": "string"}, "amount": {"type": "number"}, "rush": {"default": False}},
}


def call(*args: Any, workflow: str = "bill", **kwargs: Any) -> NewJob:
    return a_job(workflow=workflow, payload=json.dumps({"args": list(args), "kwargs": kwargs}))


def stored(store: SqlStore, *jobs: NewJob) -> list[str]:
    store.submit(jobs)
    return [job.id for job in jobs]


def find(store: SqlStore, name: str, value: Any, limit: int = 50, after: str | None = None, **more: Any) -> JobPage:
    return store.jobs(TENANT, JobFilter(argument=WantedArgument(name, value), **more), limit, after)


def ids(page: JobPage) -> list[str]:
    return [job.id for job in page.jobs]


@pytest.fixture
def registered(store: SqlStore) -> None:
    store.register_workflows([WorkflowRecord("bill", "v1", "default", Policy(), SCHEMA)])


@pytest.mark.usefixtures("registered")
def test_an_argument_is_found_by_name_however_it_was_given(store: SqlStore) -> None:
    by_place, by_name, other = stored(
        store, call("acme", 3), call(customer="acme", amount=3.0, rush=True), call("zeta", "3")
    )
    assert ids(find(store, "customer", "acme")) == [by_name, by_place]
    assert ids(find(store, "amount", 3, newest_first=False)) == [by_place, by_name], "3 is 3.0, and not '3'"
    assert ids(find(store, "amount", "3")) == [other]
    assert ids(find(store, "rush", True)) == [by_name]
    assert ids(find(store, "rush", False)) == [other, by_place], "as the handler gets it: by default"
    assert find(store, "colour", "red") == JobPage((), None, looked=3)


def test_what_nobody_registered_is_found_by_keyword_and_inside_objects(store: SqlStore) -> None:
    nested, plain, none = stored(
        store, call(order={"customer": {"id": 7}}), call(order=7, flag=True), call(order=None, flag=1)
    )
    assert ids(find(store, "order.customer.id", 7)) == [nested]
    assert ids(find(store, "order", 7)) == [plain]
    assert ids(find(store, "order", None)) == [none]
    assert ids(find(store, "flag", True)) == [plain]
    assert ids(find(store, "flag", 1)) == [none]
    assert ids(find(store, "order.customer", 7)) == []


def test_other_words_of_the_filter_hold_too_and_are_asked_first(store: SqlStore) -> None:
    _, wanted, _ = stored(store, call(x=1), call(x=1, workflow="ship"), call(x=1, workflow="mail"))
    page = find(store, "x", 1, workflow="ship", states=(JobState.QUEUED,))
    assert (ids(page), page.looked, page.is_complete) == ([wanted], 1, True)
    assert find(store, "x", 1, states=(JobState.FAILED,)).looked == 0


def test_a_look_is_bounded_and_says_how_far_it_went(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MOST_PAYLOADS", 70)
    jobs = stored(store, *(call(x=n) for n in range(200)))

    page = find(store, "x", 5)
    assert (ids(page), page.looked, page.is_complete) == ([], 70, False)
    looked, found = page.looked, ids(page)
    while page.next is not None:
        page = find(store, "x", 5, after=page.next)
        looked += page.looked
        found += ids(page)
    assert (found, looked) == ([jobs[5]], 200)


def test_many_characters_end_a_look_too(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MOST_CHARACTERS", 30_000)
    stored(store, *(call(x=n, text="a" * 10_000) for n in range(10)))
    assert find(store, "x", -1).looked == 3


def test_a_full_page_has_a_cursor_and_pages_fit_together(store: SqlStore) -> None:
    jobs = stored(store, *(call(x=n % 3) for n in range(90)))
    found: list[str] = []
    after: str | None = None
    while True:
        page = find(store, "x", 1, limit=7, after=after)
        found += ids(page)
        if page.is_complete:
            break
        assert len(page.jobs) == 7
        after = page.next
    assert found == [job for place, job in enumerate(jobs) if place % 3 == 1][::-1]


def test_a_damaged_payload_matches_nothing(store: SqlStore, store_url: str) -> None:
    _, good = stored(store, call(x=1), call(x=1))
    execute(store_url, "UPDATE unstuck_jobs SET payload = '[{' WHERE id = 1")
    assert ids(find(store, "x", 1)) == [good]
    execute(store_url, "UPDATE unstuck_jobs SET payload = '[1]' WHERE id = 1")
    assert ids(find(store, "x", 1)) == [good]


def test_a_bulk_by_argument_freezes_it(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MOST_PAYLOADS", 20)
    jobs = stored(store, *(call(x=n % 10) for n in range(100)))
    bulks = BulkVerbs(store, by="ada")
    by_argument = JobFilter(argument=WantedArgument("x", 4))
    assert bulks.count(by_argument) == (2, False), "as far as it looked"

    bulk = bulks.start("cancel", by_argument)
    store.carry_bulks()

    done = bulks.get(bulk.number)
    assert (done.state, done.done, done.filter.argument) == (BulkState.DONE, 10, WantedArgument("x", 4))
    cancelled = store.jobs(TENANT, JobFilter(states=(JobState.CANCELLED,), newest_first=False))
    assert ids(cancelled) == jobs[4::10]


def test_the_list_of_people_takes_it_and_asks_once(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MOST_PAYLOADS", 30)
    jobs = stored(store, *(call(x=n) for n in range(100)))
    page = Lookup(store).jobs(job_filter(Caller(store, "ada"), argument=("x", 99)))
    assert (ids(page), page.looked, page.is_complete) == ([jobs[99]], 30, False), "the rest is for who asks for it"


@pytest.mark.parametrize(
    "given", [("x",), "x=1", ("x", [1]), ("x", {"a": 1}), ("", 1), (3, 1), ("x", float("nan")), ("x", "a\x00b")]
)
def test_what_cannot_be_looked_for_is_refused(store: SqlStore, given: Any) -> None:
    with pytest.raises(InvalidInput):
        job_filter(Caller(store, "ada"), argument=given)
    with pytest.raises(InvalidInput):
        BulkVerbs(store).count(JobFilter(argument=given))
