"""`app.workers` and `job.stack`: the same doors, from a program."""

from __future__ import annotations

import pytest

from tests.support.builders import a_worker, claim_all, settle
from tests.support.tables import ask
from tests.support.troubles import execute
from unstuck import App, InvalidInput, NoAnswer, NoStack, UnknownOrder, UnknownProcess, UnknownWorker
from unstuck.model.settlement import ErrorInfo, Raised


def test_workers_are_listed_recycled_and_drained(store_url: str) -> None:
    with App(store_url, name="shop") as app:
        ada = a_worker(app._engine.store, "ada", info={"executors": [{"pid": 4121}]})

        order = app.workers.recycle(4121)
        assert (order.worker, order.worker_number, order.given_by) == ("ada", ada.number, "shop")
        with pytest.raises(NoAnswer):
            app.workers.answer(order.number, timeout=0)
        app._engine.store.answer_order(order.number, "process 4121 is draining; 0 jobs finish first")
        assert app.workers.answer(order.number).answer == "process 4121 is draining; 0 jobs finish first"
        assert app.workers.kill(4121, by="kim").kind == "kill"

        [drained] = app.workers.drain(every=True, by="kim")
        assert (drained.worker, drained.given_by) == ("ada", "kim")
        assert [order.number for order in app.workers.drain("ada")] == [drained.number], "it is asked no second time"
        [worker] = app.workers.list()
        assert (worker.name, worker.state, [process.pid for process in worker.processes]) == ("ada", "active", [4121])
        with pytest.raises(UnknownProcess):
            app.workers.recycle(1)
        with pytest.raises(UnknownWorker):
            app.workers.drain("bob")


def test_an_order_to_nobody_in_particular_and_an_answer_to_no_order_are_refused(store_url: str) -> None:
    with App(store_url) as app:
        with pytest.raises(InvalidInput, match="say which worker"):
            app.workers.drain()
        with pytest.raises(InvalidInput, match="say which worker"):
            app.workers.drain("ada", every=True)
        for number in (7, -1, 10**30):
            with pytest.raises(UnknownOrder):
                app.workers.answer(number)
        for nonsense in ("7", True, None):
            with pytest.raises(InvalidInput):
                app.workers.answer(nonsense)  # type: ignore[arg-type]
        for cursor in ("many", "-1", "9" * 19, 10**30, -1, True):
            with pytest.raises(InvalidInput, match="cursor"):
                app.workers.list(after=cursor)


def test_an_app_asks_whether_all_is_well(store_url: str) -> None:
    with App(store_url) as app:
        found = app.health.check()
        assert (found.healthy, {check.name: check.ok for check in found.checks}["workers"]) == (False, False)
        assert app.health.check(need_workers=False).healthy
        a_worker(app._engine.store, "ada", info={"ready": True})
        assert app.health.check(worker="ada").checks[-1].detail == "ada is ready, running 0"


def test_whoever_is_silent_for_as_long_as_the_app_says_is_offline(store_url: str) -> None:
    with App(store_url) as app, App(store_url, offline=30) as impatient:
        a_worker(app._engine.store, lease=600.0)
        execute(store_url, "UPDATE unstuck_workers SET beat_at = beat_at - 60000000")
        assert [[w.state for w in each.workers.list()] for each in (app, impatient)] == [["active"], ["offline"]]


def test_keys_live_as_long_as_the_app_says(store_url: str) -> None:
    with App(store_url, key_retention=3 * 86400) as app:

        @app.workflow
        def greet() -> None: ...

        greet.using(key="once").enqueue()
    assert ask(store_url, "SELECT (expires_at - created_at) / 1000000 FROM unstuck_keys") == [(3 * 86400,)]


def test_a_job_shows_its_live_stack_or_the_one_it_left(store_url: str) -> None:
    with App(store_url) as app:

        @app.workflow(retries=0)
        def greet() -> None: ...

        ada = a_worker(app._engine.store)
        job = greet.enqueue()
        with pytest.raises(NoStack, match="QUEUED"):
            job.stack()
        [attempt] = claim_all(app._engine.store, ada)
        with pytest.raises(NoAnswer):
            job.stack(timeout=0.05)
        [order] = app._engine.store.orders(ada.number)
        assert (order.kind, order.subject) == ("stack", f"{attempt.ref.job}:{attempt.ref.token}")
        settle(
            app._engine.store, ada, attempt.ref, Raised(ErrorInfo("ValueError", "no", stack="File shop.py, line 3"))
        )
        shown = job.stack()
        assert (shown.source, shown.attempt, shown.stack) == ("stored", 1, "File shop.py, line 3")
