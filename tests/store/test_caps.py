"""Queue caps: A46, no row left behind. On both databases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import claim
from tests.support.builders import TENANT, a_job, a_worker, submitted
from tests.support.tables import counts_of_tables
from unstuck.model.errors import TooManyQueued
from unstuck.store.port import EVERY, Limit, LimitKind
from unstuck.store.sql_store import SqlStore


def cap(store: SqlStore, kind: LimitKind, name: str, most: int, tenant: str = EVERY) -> None:
    store.set_limit(Limit(kind, name, tenant, "ada", max_queued=most))


def is_refused(store: SqlStore, number: int = 1, **options: Any) -> bool:
    """The whole batch, and nothing of it is left behind."""
    try:
        store.submit([a_job(**options) for _ in range(number)])
    except TooManyQueued:
        return True
    return False


def test_a_tenant_at_its_cap_is_refused_and_no_row_is_left_behind(store: SqlStore, store_url: str) -> None:
    """A46"""
    cap(store, "tenant", TENANT, 3)
    store.submit([a_job(), a_job()])
    submitted(store, tenant="other", target="t", tags=("x",), queue="default")
    before = counts_of_tables(store_url)

    with pytest.raises(TooManyQueued) as caught:
        store.submit([a_job(tags=("a",), key="k", fingerprint="f"), a_job(on_hold=True)])

    assert (caught.value.what, caught.value.most) == (f"tenant {TENANT}", 3)
    assert caught.value.retry_after > 0
    assert counts_of_tables(store_url) == before
    assert not is_refused(store)
    assert is_refused(store)
    assert not is_refused(store, tenant="other", number=100)


def test_every_way_to_wait_counts_and_what_runs_does_not(store: SqlStore, clock: StoreClock) -> None:
    """A46"""
    cap(store, "tenant", TENANT, 5)
    worker, first = a_worker(store), submitted(store)
    waiting: list[dict[str, Any]] = [
        {"target": "t"},
        {"delay": 60.0},
        {"on_hold": True},
        {"after": (first.id,), "workflow": "another"},
    ]
    for options in waiting:
        assert not is_refused(store, **options)
    assert is_refused(store)

    assert [attempt.id for attempt in claim(store, worker)] == [first.id]
    assert not is_refused(store)
    assert is_refused(store)


def test_a_cap_of_each_tenant_holds_for_those_that_have_none_of_their_own(store: SqlStore) -> None:
    """A46"""
    cap(store, "tenant", EVERY, 2)
    cap(store, "tenant", "big", 4)
    for tenant, most in (("a", 2), ("b", 2), ("big", 4)):
        assert not is_refused(store, number=most, tenant=tenant)
        assert is_refused(store, tenant=tenant)


def test_a_queue_is_capped_for_one_tenant_or_for_all_together(store: SqlStore) -> None:
    """A46"""
    cap(store, "queue", "mail", 4)
    cap(store, "queue", "mail", 2, tenant="a")
    assert not is_refused(store, number=2, tenant="a", queue="mail")
    with pytest.raises(TooManyQueued, match="queue mail of tenant a has 2 jobs waiting"):
        submitted(store, tenant="a", queue="mail")
    assert not is_refused(store, number=2, tenant="b", queue="mail")
    with pytest.raises(TooManyQueued, match="queue mail has 4 jobs waiting"):
        submitted(store, tenant="b", queue="mail")
    assert not is_refused(store, number=50, tenant="b", queue="other")
    assert is_refused(store, tenant="c", queue="mail", workflow="unheard of")


def test_a_repeat_is_answered_whatever_the_cap_says_now(store: SqlStore) -> None:
    job, keyed = submitted(store), submitted(store, key="k", fingerprint="f")
    cap(store, "tenant", TENANT, 0)

    answers = store.submit([job, a_job(key="k", fingerprint="f")])

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, False), (keyed.id, False)]
    assert is_refused(store)


def test_a_lifted_cap_refuses_nobody(store: SqlStore) -> None:
    cap(store, "tenant", TENANT, 1)
    assert is_refused(store, number=2)
    store.remove_limit("tenant", TENANT, EVERY)
    assert not is_refused(store, number=2)
