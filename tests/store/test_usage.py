"""Budgets: what is spent is counted once, and too much of it ends the job, whatever its handler does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.builders import TENANT, a_worker, boom, claim_all, claimed, kinds, record, settle
from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import Returned, Stopped
from unstuck.store.sql_store import SqlStore

TOKENS = (("tokens", 1000.0),)


def test_what_is_spent_is_added_up(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store), budget=TOKENS)

    store.spend(attempt.ref, 1, {"tokens": 120})
    spent = store.spend(attempt.ref, 2, {"tokens": 80, "euros": 0.25})

    assert spent is not None
    assert (spent.used, spent.budget, spent.exceeded) == ({"tokens": 200, "euros": 0.25}, {"tokens": 1000}, None)
    assert store.usage_of(TENANT, attempt.id) == spent


def test_a_spending_whose_answer_was_lost_counts_once(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    store.spend(attempt.ref, 1, {"tokens": 5, "euros": 1})

    again = store.spend(attempt.ref, 1, {"tokens": 5, "euros": 1})
    later = store.spend(attempt.ref, 2, {"tokens": 5})

    assert again is not None
    assert again.used == {"tokens": 5, "euros": 1}
    assert later is not None
    assert later.used == {"tokens": 10, "euros": 1}


def test_serials_begin_anew_with_every_attempt_and_what_was_used_does_not(store: SqlStore) -> None:
    worker = a_worker(store)
    first = claimed(store, worker, backoff_base=0.0)
    store.spend(first.ref, 7, {"tokens": 5})
    settle(store, worker, first.ref, boom())
    (second,) = claim_all(store, worker)

    spent = store.spend(second.ref, 1, {"tokens": 5})

    assert spent is not None
    assert spent.used == {"tokens": 10}
    journal = store.journal(second.ref)
    assert journal is not None
    assert journal.used == {"tokens": 10}


def test_a_new_run_begins_with_nothing_used(store: SqlStore) -> None:
    worker = a_worker(store)
    first = claimed(store, worker)
    store.spend(first.ref, 1, {"tokens": 5})
    store.cancel(TENANT, first.id, "ada")
    settle(store, worker, first.ref, Stopped())
    store.resume(TENANT, first.id, "ada")

    assert store.usage_of(TENANT, first.id).used == {}


@pytest.mark.parametrize("outcome", [Returned('"ok"'), boom(), Stopped()], ids=["returned", "raised", "stopped"])
def test_over_the_budget_the_job_fails_whatever_its_handler_does(store: SqlStore, outcome: object) -> None:
    """A20: FAILED with the limit in the message, not PAUSED; also when an interrupt comes after it."""
    worker = a_worker(store)
    attempt = claimed(store, worker, budget=TOKENS)
    store.spend(attempt.ref, 1, {"tokens": 1000})
    assert record(store, attempt.id).request is None  # exactly at the limit is within

    spent = store.spend(attempt.ref, 2, {"tokens": 20})
    store.interrupt(TENANT, attempt.id, "ada")

    assert spent is not None
    assert spent.exceeded == "used 1,020 of 1,000 tokens"
    assert [asked.kind for asked in store.asked(worker.number)] == [RequestKind.BUDGET]
    settle(store, worker, attempt.ref, outcome)  # type: ignore[arg-type]
    ended = record(store, attempt.id)
    assert (ended.state, ended.error_type) == (JobState.FAILED, "BudgetExceeded")
    assert ended.error_message == "used 1,020 of 1,000 tokens"


def test_an_interrupt_within_the_budget_pauses(store: SqlStore) -> None:
    """A20"""
    worker = a_worker(store)
    attempt = claimed(store, worker, budget=TOKENS)
    store.spend(attempt.ref, 1, {"tokens": 1000})
    store.interrupt(TENANT, attempt.id, "ada")
    settle(store, worker, attempt.ref, Stopped())

    assert record(store, attempt.id).state is JobState.PAUSED


def test_a_cancel_is_stronger_than_a_budget(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker, budget=TOKENS)
    store.cancel(TENANT, attempt.id, "ada")

    spent = store.spend(attempt.ref, 1, {"tokens": 2000})

    assert spent is not None
    assert spent.exceeded
    settle(store, worker, attempt.ref, Stopped())
    assert record(store, attempt.id).state is JobState.CANCELLED


def test_who_goes_on_spending_is_asked_once(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store), budget=TOKENS)
    for serial in range(1, 5):
        store.spend(attempt.ref, serial, {"tokens": 600})

    assert list(kinds(store, attempt.id)).count("requested") == 1


def test_a_fenced_attempt_spends_nothing(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref)

    assert store.spend(attempt.ref, 1, {"tokens": 5}) is None
    assert store.usage_of(TENANT, attempt.id).used == {}


@pytest.mark.parametrize(
    "amounts",
    [
        {},
        {"tokens": -1},
        {"tokens": float("nan")},
        {"tokens": float("inf")},
        {"tokens": True},
        {"tokens": "5"},
        {"to kens": 1},
        {"": 1},
        {"\x00": 1},
        {f"u{n}": 1 for n in range(51)},
    ],
    ids=str,
)
def test_nonsense_is_refused_and_nothing_counted(store: SqlStore, amounts: dict[str, float]) -> None:
    attempt = claimed(store, a_worker(store))
    with pytest.raises(InvalidInput):
        store.spend(attempt.ref, 1, amounts)

    assert store.usage_of(TENANT, attempt.id).used == {}


def test_jobs_spend_at_once_without_waiting_in_a_circle(store: SqlStore) -> None:
    worker = a_worker(store)
    attempts = [claimed(store, worker) for _ in range(8)]

    def spend(attempt: object) -> None:
        for serial in range(1, 11):
            store.spend(attempt.ref, serial, {"tokens": 1, "euros": 2})  # type: ignore[attr-defined]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(spend, attempts))

    assert [store.usage_of(TENANT, a.id).used for a in attempts] == [{"tokens": 10, "euros": 20}] * 8


def test_the_usage_of_a_job_that_is_not_there(store: SqlStore) -> None:
    with pytest.raises(UnknownJob):
        store.usage_of(TENANT, "nobody")
