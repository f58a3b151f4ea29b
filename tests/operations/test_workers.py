"""Workers and health, asked by whoever may: pages, and what a caller of one tenant does not see."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.support.builders import a_worker, submitted
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.operations import health, jobs, workers
from unstuck.operations.table import READER
from unstuck.store.sql_store import SqlStore
from unstuck.views import plain

GREET = WorkflowRecord("greet", "v1", "default", Policy(), {})
PROCESS = {"pid": 7, "state": "active", "running": 1, "jobs": [{"job": "a-job-of-acme", "workflow": "pay"}]}
TROUBLE = {
    "executors": [PROCESS],
    "recycled": [{"pid": 6, "reason": "job a-job-of-acme is stuck"}],
    "roles": [{"name": "settle", "failing_for": 40.0, "failures": 2, "error": "row of a-job-of-acme"}],
    "import_error": "a-job-of-acme",
}


def test_a_page_ends_where_the_next_begins_and_skips_who_left(ask: Ask, store: SqlStore) -> None:
    for name in ("left-1", "ada", "left-2", "bob", "cyd"):
        worker = a_worker(store, name)
        if name.startswith("left"):
            store.unregister_worker(worker.number)
    first = workers.list_(ask(), limit=2)
    assert [worker.name for worker in first] == ["ada", "bob"]
    second = workers.list_(ask(), limit=2, after=first.next)
    assert ([worker.name for worker in second], second.next) == (["cyd"], None)
    everybody = workers.list_(ask(), ended=True)
    assert [worker.state for worker in everybody] == ["gone", "active", "gone", "active", "active"]


def test_one_that_beats_seldom_is_silent_by_its_own_lease(ask: Ask, store: SqlStore, clock: StoreClock) -> None:
    """Workers at a distance beat every 15 s for a lease of 60, and whoever asks may expect it every 5 s."""
    far = a_worker(store, "far", lease=60.0, info={"slots": 4})
    store.register_workflows([GREET], worker=far.number, queues=["default"])
    job = submitted(store)

    def told() -> tuple[bool, str]:
        (reason,) = jobs.why(ask(), job.id).reasons
        return "silent" in {check.name for check in health.check(ask()).checks}, reason.sentence

    clock.advance(20)
    assert told() == (False, "nothing keeps it; the worker that serves it takes it within 1s")
    clock.advance(3)
    is_silent, sentence = told()
    assert is_silent
    assert sentence.endswith("the last beat came 23s ago")


def test_who_may_see_one_tenant_sees_workers_but_no_job_of_another(ask: Ask, store: SqlStore) -> None:
    a_worker(store, "ada", info=TROUBLE)
    assert "a-job-of-acme" in str(plain(workers.list_(ask())))
    assert "a-job-of-acme" in str(plain(health.check(ask())))
    other = ask(role=READER, bound="globex")
    [seen] = workers.list_(other)
    assert (seen.name, seen.processes, seen.info) == ("ada", (), {})
    for answer in (seen, health.check(other)):
        assert "a-job-of-acme" not in str(plain(answer))
