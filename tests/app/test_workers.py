"""`app.workers` and `job.live_stack`: the same doors, from a program."""

from __future__ import annotations

import pytest

from tests.support.builders import a_worker, claim_all, settle
from tests.support.tables import ask
from tests.support.troubles import execute
from unstuck import App, NoAnswer, NoStack, UnknownProcess, UnknownWorker
from unstuck.model.settlement import ErrorInfo, Raised


def test_workers_are_listed_recycled_and_drained(store_url: str) -> None:
    with App(store_url, name="shop") as app:
        ada = a_worker(app.store, "ada", info={"executors": [{"pid": 4121}]})

        order = app.workers.recycle(4121)
        assert (order.worker, order.by, order.subject) == (ada.number, "shop", "4121")
        app.store.answer_order(order.number, "process 4121 is draining; 0 jobs finish first")
        assert app.workers.answer(order).answer == "process 4121 is draining; 0 jobs finish first"

        assert [order.worker for order in app.workers.drain(by="kim")] == [ada.number]
        assert [order.worker for order in app.workers.drain("ada")] == [ada.number]
        assert [worker.name for worker in app.workers.list()] == ["ada"]
        with pytest.raises(UnknownProcess):
            app.workers.recycle(1)
        with pytest.raises(UnknownWorker):
            app.workers.drain("bob")


def test_whoever_is_silent_for_as_long_as_the_app_says_is_offline(store_url: str) -> None:
    with App(store_url) as app, App(store_url, offline=30) as impatient:
        a_worker(app.store, lease=600.0)
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

        ada = a_worker(app.store)
        job = greet.enqueue()
        with pytest.raises(NoStack, match="QUEUED"):
            job.live_stack()
        [attempt] = claim_all(app.store, ada)
        with pytest.raises(NoAnswer):
            job.live_stack(timeout=0.05)
        [order] = app.store.orders(ada.number)
        assert (order.kind, order.subject) == ("stack", f"{attempt.ref.job}:{attempt.ref.token}")
        settle(app.store, ada, attempt.ref, Raised(ErrorInfo("ValueError", "no", stack="File shop.py, line 3")))
        assert job.live_stack() == "File shop.py, line 3"
