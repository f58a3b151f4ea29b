"""Budgets of trees: what a job and all jobs below it spend is one sum, wherever and whenever they spend it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    boom,
    chance,
    claim_all,
    claimed,
    insist,
    kinds,
    record,
    settle,
)
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import Stopped
from unstuck.model.waits import TreeSpent
from unstuck.observe.why import why
from unstuck.store.database import Database
from unstuck.store.port import NewChild
from unstuck.store.sql_store import SqlStore

TREE: dict[str, Any] = {"budget": (("tokens", 1000.0),), "budget_scope": "tree"}


def root(store: SqlStore, worker: WorkerRecord, **options: Any) -> ClaimedJob:
    return claimed(store, worker, **{**TREE, **options})


def below(store: SqlStore, worker: WorkerRecord, parent: ClaimedJob, **options: Any) -> ClaimedJob:
    """A child of this job, running."""
    name = f"w-{chance.nonce()}"
    child = store.spawn(NewChild(parent.ref, name, 1, a_job(workflow=name, **options), "leave"))
    assert child is not None
    [attempt] = [found for found in claim_all(store, worker) if found.id == child.id]
    return attempt


def of_tree(store: SqlStore, job: str) -> dict[str, float]:
    """What the tree of this job has used."""
    [tree] = [tree for tree in store.usage_of(TENANT, job).trees if tree.job == job]
    return tree.used


def test_what_all_levels_spend_is_one_sum(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    middle = below(store, worker, top)
    lowest = below(store, worker, middle)

    store.spend(top.ref, 1, {"tokens": 100})
    store.spend(middle.ref, 1, {"tokens": 20, "euros": 2})
    spent = store.spend(lowest.ref, 1, {"tokens": 3})

    assert spent is not None
    assert (spent.used, spent.budget, spent.exceeded) == ({"tokens": 3}, {}, None)
    assert spent.trees == (TreeSpent(top.id, {"tokens": 123, "euros": 2}, {"tokens": 1000}),)
    assert store.usage_of(TENANT, lowest.id) == spent
    own = store.usage_of(TENANT, top.id)
    assert (own.used, own.trees[0].used) == ({"tokens": 100}, {"tokens": 123, "euros": 2})


def test_who_crosses_the_budget_fails_and_so_does_the_next_that_spends(store: SqlStore) -> None:
    """A20: the same end and error as of a job's own budget, whoever of the tree it hits."""
    worker = a_worker(store)
    top = root(store, worker)
    first, second, third = (below(store, worker, top) for _ in range(3))
    store.spend(first.ref, 1, {"tokens": 1000})
    assert record(store, first.id).request is None  # exactly at the limit is within

    crossing = store.spend(second.ref, 1, {"tokens": 20})
    after = store.spend(first.ref, 2, {"euros": 1})

    said = f"the tree of {top.id} used 1,020 of 1,000 tokens"
    assert crossing is not None
    assert after is not None
    assert (crossing.exceeded, after.exceeded) == (said, said)
    assert {asked.kind for asked in store.asked(worker.number)} == {RequestKind.BUDGET}
    for attempt in (first, second, third, top):
        settle(store, worker, attempt.ref)
    assert [record(store, each.id).state for each in (first, second, third, top)] == [
        JobState.FAILED,
        JobState.FAILED,
        JobState.COMPLETED,  # it spent nothing
        JobState.COMPLETED,
    ]
    ended = record(store, second.id)
    assert (ended.error_type, ended.error_message) == ("BudgetExceeded", said)


def test_the_top_itself_is_told_of_its_tree(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    store.spend(below(store, worker, top).ref, 1, {"tokens": 990})

    spent = store.spend(top.ref, 1, {"tokens": 11})

    assert spent is not None
    assert spent.exceeded == "its tree used 1,001 of 1,000 tokens"


def test_a_childs_own_budget_counts_besides(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top, budget=(("tokens", 10.0),))

    spent = store.spend(child.ref, 1, {"tokens": 11})

    assert spent is not None
    assert spent.exceeded == "used 11 of 10 tokens"
    assert of_tree(store, top.id) == {"tokens": 11}


def test_a_tree_within_a_tree_is_charged_to_both(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    inner = below(store, worker, top, budget=(("tokens", 50.0),), budget_scope="tree")
    between = below(store, worker, inner)
    lowest = below(store, worker, between)

    store.spend(lowest.ref, 1, {"tokens": 40})
    spent = store.spend(inner.ref, 1, {"tokens": 11})

    assert spent is not None
    assert spent.exceeded == "its tree used 51 of 50 tokens"
    assert [tree.job for tree in spent.trees] == [inner.id, top.id]
    assert (of_tree(store, inner.id), of_tree(store, top.id)) == ({"tokens": 51}, {"tokens": 51})


def test_without_a_scope_a_parent_does_not_pay_for_its_children(store: SqlStore) -> None:
    worker = a_worker(store)
    top = claimed(store, worker, budget=(("tokens", 10.0),))
    spent = store.spend(below(store, worker, top).ref, 1, {"tokens": 11})

    assert spent is not None
    assert (spent.exceeded, spent.trees) == (None, ())
    assert store.usage_of(TENANT, top.id).used == {}


def test_a_tree_without_a_budget_is_counted_all_the_same(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker, budget=())
    store.spend(below(store, worker, top).ref, 1, {"tokens": 5})

    assert of_tree(store, top.id) == {"tokens": 5}


def test_a_spending_whose_answer_was_lost_is_charged_once(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top)
    for _ in range(3):
        store.spend(child.ref, 1, {"tokens": 5})
        store.spend(top.ref, 1, {"tokens": 2})

    assert of_tree(store, top.id) == {"tokens": 7}


def test_a_fenced_attempt_charges_nobody(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top)
    settle(store, worker, child.ref)

    assert store.spend(child.ref, 1, {"tokens": 5}) is None
    assert of_tree(store, top.id) == {}


def test_a_retry_keeps_what_the_tree_has_used_and_a_resume_of_its_top_begins_anew(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker, backoff_base=0.0)
    child = below(store, worker, top)
    store.spend(child.ref, 1, {"tokens": 900})
    settle(store, worker, top.ref, boom())
    (again,) = claim_all(store, worker)
    store.spend(again.ref, 1, {"tokens": 50})
    assert of_tree(store, top.id) == {"tokens": 950}

    store.cancel(TENANT, top.id, "ada")
    settle(store, worker, again.ref, Stopped())
    store.resume(TENANT, top.id, "ada")

    assert of_tree(store, top.id) == {}
    store.spend(child.ref, 2, {"tokens": 7})  # it lived on, and is charged to the run that there is
    assert of_tree(store, top.id) == {"tokens": 7}


def test_a_resume_of_a_child_does_not_renew_the_tree(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top)
    store.spend(child.ref, 1, {"tokens": 1001})
    settle(store, worker, child.ref)
    store.resume(TENANT, child.id, "ada")
    [again] = [found for found in claim_all(store, worker) if found.id == child.id]

    spent = store.spend(again.ref, 1, {"tokens": 1})

    assert spent is not None
    assert spent.used == {"tokens": 1}
    assert spent.exceeded == f"the tree of {top.id} used 1,002 of 1,000 tokens"


def test_why_names_the_job_whose_budget_it_is(store: SqlStore) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top)
    store.spend(child.ref, 1, {"tokens": 1001})
    settle(store, worker, child.ref)

    [reason] = why(store, TENANT, child.id).reasons

    assert f"the budget is that of job {top.id}" in reason.sentence
    assert reason.remedy == f"unstuck jobs resume {top.id}"
    assert reason.details["other_remedies"] == [f"unstuck jobs replay {top.id} --budget tokens=MOST"]


def test_a_whole_tree_spends_at_once_and_nothing_is_lost_or_crossed_unseen(store: SqlStore) -> None:
    """Eight jobs of three levels, each twenty times, through threads of their own."""
    worker = a_worker(store)
    top = root(store, worker, budget=(("tokens", 100.0),))
    middle = [below(store, worker, top) for _ in range(3)]
    lowest = [below(store, worker, parent) for parent in (*middle, middle[0])]
    family = [top, *middle, *lowest]

    def spend(attempt: ClaimedJob) -> int:
        """How many of its spendings were answered as too much."""
        answers = [
            insist(lambda serial=serial: store.spend(attempt.ref, serial, {"tokens": 1.0, "euros": 2.0}))  # type: ignore[misc]
            for serial in range(1, 21)
        ]
        return sum(answer is not None and answer.exceeded is not None for answer in answers)

    with ThreadPoolExecutor(len(family)) as threads:
        refused = sum(threads.map(spend, family))

    assert of_tree(store, top.id) == {"tokens": 160, "euros": 320}
    assert [store.usage_of(TENANT, each.id).used for each in family] == [{"tokens": 20, "euros": 40}] * 8
    assert refused == 60, "each of those above the hundredth, and no other"
    assert all(list(kinds(store, each.id)).count("requested") <= 1 for each in family)


def test_nothing_of_it_is_left_when_the_jobs_are_forgotten(store: SqlStore, database: Database) -> None:
    worker = a_worker(store)
    top = root(store, worker)
    child = below(store, worker, top)
    store.spend(child.ref, 1, {"tokens": 5})
    settle(store, worker, child.ref)
    settle(store, worker, top.ref)

    for _ in range(3):
        store.forget_ended(0.0)

    assert database.read(lambda t: t.all("tree_usage", job=top.ref.job, run=1)) == []
