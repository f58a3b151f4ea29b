"""Lists and statistics beside a brute-force reading of every job, on both databases, with several tenants."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.store import crowd
from tests.support.builders import TENANT, a_job, submitted
from tests.tiers import in_tiers
from unstuck.model.call import check_argument
from unstuck.model.job import JobRecord, shown_state
from unstuck.model.lifecycle import JobState, Shown
from unstuck.observe.lookup import Lookup
from unstuck.store.port import JobFilter
from unstuck.store.read import lookup, sources
from unstuck.store.sql_store import SqlStore

JOBS = 240
#: Still several pages of most lists, and somebody in every place.
FEW = 80


@pytest.fixture(params=["as shipped", "tiny"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny: every place holds too many to be gathered, every page needs several looks."""
    if request.param == "tiny":
        for module, name, value in (
            (sources, "GATHERED", 3), (sources, "MERGED_ROUTES", 1), (sources, "FIRST_CHUNK", 2),
            (sources, "CHUNK", 3), (lookup, "BATCH", 3), (lookup, "BUDGET", 10),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def jobs() -> int:
    """How many there are; `in_tiers` says otherwise."""
    return JOBS


@pytest.fixture
def people(store: SqlStore, store_url: str, jobs: int) -> list[JobRecord]:
    found = [store.get(tenant, job) for tenant, job in crowd.gather(store_url, seed=10, count=jobs)]
    return [record for record in found if record is not None]


def wants(filter: JobFilter, tenant: str | None, job: JobRecord, now: datetime) -> bool:
    """What a list means, said without a database."""
    return (
        tenant in (None, job.tenant)
        and (not filter.states or job.state in filter.states or shown_state(job, now) in filter.states)
        and filter.workflow in (None, job.workflow)
        and filter.queue in (None, job.queue)
        and filter.error_type in (None, job.error_type)
        and filter.target in (None, job.target)
        and (filter.tag is None or filter.tag in job.tags)
        and (filter.before is None or job.created_at < filter.before)
        and (filter.since is None or job.created_at >= filter.since)
    )


def listed(store: SqlStore, tenant: str | None, filter: JobFilter, limit: int = 9) -> list[str]:
    """All pages of it."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = store.jobs(tenant, filter, limit, after)
        assert len(page.jobs) <= limit
        found += [job.id for job in page.jobs]
        if page.next is None:
            return found
        assert page.next != after, "a cursor that leads nowhere"
        after = page.next


def alone(now: datetime) -> Iterator[JobFilter]:
    yield JobFilter()
    yield from (JobFilter(states=(word,)) for word in (*JobState, *Shown))
    yield from (JobFilter(workflow=name) for name in (*crowd.WORKFLOWS, "nobody's"))
    yield from (JobFilter(queue=name) for name in (*crowd.QUEUES, "nobody's"))
    yield from (JobFilter(target=name) for name in (*crowd.TARGETS, "nobody's"))
    yield from (JobFilter(tag=name) for name in (*crowd.TAGS, "nobody's"))
    yield from (JobFilter(error_type=name) for name in (*crowd.ERRORS, "Nobodys"))
    yield JobFilter(before=now - timedelta(minutes=45))
    yield JobFilter(since=now - timedelta(minutes=45))
    yield JobFilter(before=now - timedelta(minutes=30), since=now - timedelta(minutes=90))


def combined(now: datetime, chance: random.Random) -> JobFilter:
    words: tuple[JobState | Shown, ...] = (*JobState, *Shown)
    choices: dict[str, Callable[[], Any]] = {
        "states": lambda: tuple(chance.sample(words, chance.randint(1, 4))),
        "workflow": lambda: chance.choice(crowd.WORKFLOWS),
        "queue": lambda: chance.choice(crowd.QUEUES),
        "target": lambda: chance.choice(crowd.TARGETS),
        "tag": lambda: chance.choice(crowd.TAGS),
        "error_type": lambda: chance.choice(crowd.ERRORS),
        "before": lambda: now - timedelta(minutes=chance.randrange(100)),
        "since": lambda: now - timedelta(minutes=chance.randrange(30, 130)),
    }
    picked = chance.sample(sorted(choices), chance.randint(2, 4))
    return JobFilter(newest_first=chance.random() < 0.5, **{name: choices[name]() for name in picked})


def check(store: SqlStore, people: list[JobRecord], tenant: str | None, filter: JobFilter, now: datetime) -> int:
    expected = [job.id for job in people if wants(filter, tenant, job, now)]
    if filter.newest_first:
        expected.reverse()
    assert listed(store, tenant, filter) == expected, filter
    return len(expected)


@in_tiers("jobs", FEW, JOBS)
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("tenant", ["acme", None])
def test_every_filter_alone_lists_what_it_says_in_both_directions(
    store: SqlStore, people: list[JobRecord], tenant: str | None
) -> None:
    now = store.now()
    for filter in alone(now):
        check(store, people, tenant, filter, now)
        check(store, people, tenant, replace(filter, newest_first=False), now)


def test_a_time_is_kept_although_numbers_follow_the_clock_only_roughly(
    store: SqlStore, people: list[JobRecord]
) -> None:
    now = store.now()
    for job in random.Random(5).sample(people, 40):
        check(store, people, "acme", JobFilter(since=job.created_at), now)
        check(store, people, "acme", JobFilter(before=job.created_at, newest_first=False), now)


@in_tiers("jobs", FEW, JOBS)
@pytest.mark.usefixtures("sizes")
def test_filters_together_list_what_all_of_them_say(store: SqlStore, people: list[JobRecord]) -> None:
    now, chance = store.now(), random.Random(11)
    found = [
        check(store, people, chance.choice([*crowd.TENANTS, None]), combined(now, chance), now) for _ in range(120)
    ]
    assert sum(map(bool, found)) > 30, "filters that find nothing show nothing"


@pytest.mark.parametrize("jobs", [FEW, JOBS])
def test_the_crowd_stands_in_every_place(store: SqlStore, people: list[JobRecord]) -> None:
    """Else the tests above would pass for words that no job has."""
    now = store.now()
    assert {shown_state(job, now) for job in people} == {*JobState, *Shown}


def test_nothing_of_one_tenant_is_in_the_lists_or_numbers_of_another(
    store: SqlStore, people: list[JobRecord]
) -> None:
    theirs = {job.id for job in people if job.tenant != "acme"}
    now = store.now()
    for filter in alone(now):
        assert not theirs & set(listed(store, "acme", filter))
    assert sum(store.counts("acme").values()) == sum(job.tenant == "acme" for job in people)
    for by in ("queue", "workflow"):
        assert sum(sum(t.states.values()) for t in store.tallies(by, "acme")) == len(people) - len(theirs)


def test_a_page_that_spent_its_budget_is_short_and_says_where_to_go_on(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "BUDGET", 10)
    oldest = submitted(store, workflow="rare")
    store.submit([a_job(tags=("common",)) for _ in range(25)])
    # Nothing tells that no job has both but looking at all that have one.
    both = JobFilter(tag="common", error_type="Boom")
    page = store.jobs(oldest.tenant, both)
    assert (page.jobs, page.next is None) == ((), False)
    assert listed(store, oldest.tenant, both) == []
    page = store.jobs(oldest.tenant, JobFilter(), limit=50)
    assert (len(page.jobs), page.next is None) == (10, False)
    assert listed(store, oldest.tenant, JobFilter(), limit=50)[-1] == oldest.id


@pytest.mark.parametrize("wanted", [JobFilter(), JobFilter(argument=check_argument(("name", "Ada")))])
@pytest.mark.parametrize("newest_first", [True, False])
def test_a_page_holds_so_much_text_however_many_jobs_were_asked_for(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, wanted: JobFilter, newest_first: bool
) -> None:
    """Else one reader of a thousand large results takes all the memory of a server that everybody shares."""
    payload = json.dumps({"args": [], "kwargs": {"name": "Ada", "text": "x" * 300}})
    jobs = [submitted(store, payload=payload).id for _ in range(10)]
    monkeypatch.setattr(lookup, "MOST_CHARACTERS", 2 * len(payload))
    seen: list[str] = []
    after = None
    for _ in jobs:
        page = Lookup(store, tenant=TENANT).jobs(replace(wanted, newest_first=newest_first), 100_000, after)
        assert len(page.jobs) <= 2
        seen += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break
    assert seen == (jobs[::-1] if newest_first else jobs)


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_neither_repeat_nor_lose_a_job_while_others_arrive_and_move(
    store: SqlStore, newest_first: bool
) -> None:
    before = [submitted(store).id for _ in range(20)]
    filter = JobFilter(states=(JobState.QUEUED, JobState.PAUSED), newest_first=newest_first)
    found: list[str] = []
    after: str | None = None
    for turn in range(100):
        page = store.jobs("default", filter, limit=3, after=after)
        found += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break
        if turn < 5:
            submitted(store)
            store.interrupt("default", before[turn], by="me")
    assert len(found) == len(set(found))
    assert [job for job in found if job in before] == (before[::-1] if newest_first else before)


def test_a_retry_in_backoff_is_retrying_and_a_delayed_start_is_scheduled(store: SqlStore) -> None:
    later, now = submitted(store, delay=600.0), submitted(store)
    assert listed(store, "default", JobFilter(states=(Shown.SCHEDULED,))) == [later.id]
    assert listed(store, "default", JobFilter(states=(Shown.RETRYING,))) == []
    assert listed(store, "default", JobFilter(states=(JobState.QUEUED,))) == [now.id, later.id]


# --- statistics ---------------------------------------------------------------------------------------------------


def test_tallies_are_what_counting_every_job_gives(store: SqlStore, people: list[JobRecord]) -> None:
    now = store.now()
    for tenant in (*crowd.TENANTS, None):
        mine = [job for job in people if tenant in (None, job.tenant)]
        tally, shown = store.tally(tenant), Counter(shown_state(job, now) for job in mine)
        assert tally.states == {state: sum(job.state is state for job in mine) for state in JobState}
        assert tally.scheduled == shown[Shown.SCHEDULED] + shown[Shown.RETRYING]
        assert tally.at_least == frozenset()
    for tenant in crowd.TENANTS:
        in_line = [j for j in people if j.tenant == tenant and shown_state(j, now) is Shown.BLOCKED]
        assert 0 < store.tally(tenant).blocked <= len(in_line)


def test_tallies_by_tenant_queue_and_workflow_come_by_name_and_in_pages(
    store: SqlStore, people: list[JobRecord]
) -> None:
    assert [tally.name for tally in store.tallies("tenant")] == list(crowd.TENANTS)
    assert [tally.name for tally in store.tallies("tenant", limit=2)] == ["acme", "beta"]
    assert [tally.name for tally in store.tallies("tenant", after="beta")] == ["core"]
    for by in ("queue", "workflow"):
        for tally in store.tallies(by, "beta"):
            mine = [job for job in people if job.tenant == "beta" and getattr(job, by) == tally.name]
            assert tally.states == {state: sum(job.state is state for job in mine) for state in JobState}
    assert {tally.name for tally in store.tallies("workflow", "beta")} == set(crowd.WORKFLOWS)


def test_a_count_that_stopped_is_marked_whichever_place_it_stopped_in(
    store: SqlStore, people: list[JobRecord]
) -> None:
    exact = store.tally("acme")
    low = store.tally("acme", ceiling=2)
    assert low.at_least == {state for state, jobs in exact.states.items() if jobs >= 2}
    assert all(low.states[state] == min(2, jobs) for state, jobs in exact.states.items())
    everywhere = store.tally(None, ceiling=2)
    assert {state for state, jobs in store.counts().items() if jobs > everywhere.states[state]} <= everywhere.at_least


def test_more_routes_than_are_asked_make_every_count_on_them_a_lower_bound(
    store: SqlStore, people: list[JobRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unstuck.store.read.tally.ASKED_ROUTES", 2)
    tally, exact = store.tally("acme"), store.counts("acme")
    resting = {JobState.PENDING, JobState.WAITING, JobState.PAUSED}
    assert tally.at_least == set(JobState) - resting
    assert sum(tally.states.values()) < sum(j.tenant == "acme" for j in people)
    assert exact == tally.states


def test_the_oldest_due_job_is_told(store: SqlStore) -> None:
    assert store.tally("default").oldest_due_at is None
    submitted(store, delay=60.0)
    assert store.tally("default").oldest_due_at is None
    first = submitted(store, workflow="a")
    submitted(store, workflow="b")
    record = store.get("default", first.id)
    assert record is not None
    assert store.tally("default").oldest_due_at == record.available_at


def test_a_job_that_ended_at_rest_rests_no_longer(store: SqlStore) -> None:
    job = submitted(store)
    store.interrupt("default", job.id, by="me")
    assert store.counts("default")[JobState.PAUSED] == 1
    store.cancel("default", job.id, by="me")
    assert (store.counts("default")[JobState.PAUSED], store.counts()[JobState.PAUSED]) == (0, 0)
    assert listed(store, "default", JobFilter(states=(JobState.PAUSED,))) == []
