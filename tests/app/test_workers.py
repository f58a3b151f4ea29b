"""`app.workers` and `job.live_stack`: the same doors, from a program."""

from __future__ import annotations

import pytest

from tests.support.builders import a_worker, claim_all, settle
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
