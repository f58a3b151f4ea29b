"""Jobs that differ in id and payload alone: what was found out about their pattern holds only while it is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pytest

from tests.conftest import StoreClock
from tests.store.test_policies import register, saying
from tests.support.builders import TENANT, a_job, chance, record
from unstuck.model.errors import NotStorable, TooManyQueued, WorkflowBlacklisted
from unstuck.model.job import Alike, JobRecord, NewJob
from unstuck.model.names import LIFE
from unstuck.store.port import Limit
from unstuck.store.sql_store import SqlStore

EACH = {"id", "number", "payload", "created_at", "available_at"}


def alike(pattern: NewJob, *payloads: str) -> Alike:
    return Alike(pattern, chance.job_ids(len(payloads)), list(payloads))


def stored(store: SqlStore, jobs: Sequence[NewJob]) -> list[JobRecord]:
    assert all(answer.created for answer in store.submit(jobs))
    return [record(store, job.id) for job in jobs]


@pytest.mark.parametrize("options", [{}, {"target": "acme"}, {"delay": 60.0, "tags": ("a",)}, {"on_hold": True}])
def test_they_are_stored_as_if_each_had_been_said(store: SqlStore, options: dict[str, object]) -> None:
    pattern = a_job(said="{}", priority=3, **options)
    together = stored(store, alike(pattern, '"a"', '"b"'))
    apart = [stored(store, [job])[0] for job in alike(pattern, '"a"', '"b"')]

    shared = [name.name for name in fields(JobRecord) if name.name not in EACH]
    assert [job.payload for job in together] == ['"a"', '"b"']
    for one, other in zip(together, apart, strict=True):
        assert {name: getattr(one, name) for name in shared} == {name: getattr(other, name) for name in shared}


def test_a_repeat_is_the_earlier_job(store: SqlStore) -> None:
    jobs = alike(a_job(said="{}"), "1", "2", "3")
    store.submit(jobs[1:2])
    assert [answer.created for answer in store.submit(jobs)] == [True, False, True]
    assert [answer.id for answer in store.submit(jobs)] == list(jobs.ids)


def test_a_registration_is_noticed_by_the_next_submit(store: SqlStore) -> None:
    register(store, grace=3)
    pattern = saying()
    assert [stored(store, alike(pattern, "1"))[0].policy.grace for _ in range(2)] == [3.0, 3.0]
    register(store, grace=4, expires_after=60)
    [job] = stored(store, alike(pattern, "1"))
    assert (job.policy.grace, job.policy.expires_after) == (4.0, 60.0)


@pytest.mark.parametrize("options", [{}, {"target": "acme"}])
def test_a_cap_and_the_blacklist_are_noticed_by_the_next_submit(store: SqlStore, options: dict[str, object]) -> None:
    pattern = a_job(said="{}", **options)
    stored(store, alike(pattern, "1"))
    store.set_limit(Limit("tenant", TENANT, TENANT, "ada", max_queued=2))
    stored(store, alike(pattern, "2"))
    with pytest.raises(TooManyQueued):
        store.submit(alike(pattern, "3"))
    store.remove_limit("tenant", TENANT, TENANT, "ada")
    stored(store, alike(pattern, "4"))
    store.blacklist_add(TENANT, pattern.workflow, "it eats the disk", "kim")
    with pytest.raises(WorkflowBlacklisted):
        store.submit(alike(pattern, "5"))


def test_names_are_looked_up_again_once_they_are_old(store: SqlStore, clock: StoreClock) -> None:
    pattern = a_job(said="{}")
    stored(store, alike(pattern, "1"))
    clock.advance(seconds=LIFE * 2)
    stored(store, alike(pattern, "2"))


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_what_cannot_be_stored_is_refused_each_time(store: SqlStore, text: str) -> None:
    pattern = a_job(said="{}")
    stored(store, alike(pattern, "1"))
    with pytest.raises(NotStorable):
        store.submit(alike(pattern, "2", text))
