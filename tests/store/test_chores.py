"""One question tells which duties of the janitor would find nothing: never one that would find something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.store.test_children import ends_badly, spawned
from tests.support.builders import TENANT, a_worker, chance, claimed, settle, submitted
from tests.support.troubles import raising
from tests.support.webhooks import made
from unstuck.model.bulk import BulkOptions, BulkVerb
from unstuck.model.lifecycle import JobState
from unstuck.model.offers import remote_incarnation
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import JobFilter, NewBulk
from unstuck.store.sql_store import SqlStore

DUTIES = frozenset({"inbox", "children", "bulks", "offers", "body_marks", "guard", "ends", "webhooks"})


def test_where_nothing_has_happened_every_one_of_them_is_idle(store: SqlStore) -> None:
    a_worker(store)
    submitted(store)
    assert store.idle_duties() == DUTIES


def _something_in_the_inbox(store: SqlStore) -> None:
    submitted(store, target="acme")


def _a_child_to_be_cancelled(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    spawned(store, parent)
    ends_badly(store, worker, parent, JobState.FAILED)


def _a_bulk(store: SqlStore) -> None:
    submitted(store)
    store.start_bulk(NewBulk(chance.nonce(), TENANT, BulkVerb.CANCEL, JobFilter(), "ada", BulkOptions(), None))


def _a_worker_at_a_distance(store: SqlStore) -> None:
    a_worker(store, incarnation=remote_incarnation("a" * 8, chance.nonce()))


def _a_body_that_may_live(store: SqlStore) -> None:
    worker = a_worker(store)
    settle(store, worker, claimed(store, worker).ref, Stuck(ErrorInfo("ExecutionStuck", "did not respond")))


def _a_blacklisted_workflow(store: SqlStore) -> None:
    store.blacklist_add(TENANT, "greet", "it eats the disk", "kim")


@pytest.mark.parametrize(
    ("duty", "makes_work"),
    [
        ("inbox", _something_in_the_inbox),
        ("children", _a_child_to_be_cancelled),
        ("bulks", _a_bulk),
        ("offers", _a_worker_at_a_distance),
        ("body_marks", _a_body_that_may_live),
        ("guard", _a_blacklisted_workflow),
        ("webhooks", made),
    ],
)
def test_a_duty_with_something_to_look_for_is_not_idle(
    store: SqlStore, duty: str, makes_work: Callable[[SqlStore], None]
) -> None:
    makes_work(store)
    assert duty not in store.idle_duties()


def test_while_anything_is_set_aside_no_duty_is_idle(store: SqlStore, store_url: str) -> None:
    submitted(store, target="acme")
    with raising(store_url, "unstuck_ready", "NEW.job > 0"):
        store.ingest()
    assert store.quarantined()
    assert store.idle_duties() == frozenset()
