"""A program without the database, a real server and a real worker: from enqueue to result."""

from __future__ import annotations

import asyncio
from pathlib import Path

import unstuck
from tests.support.eventually import eventually
from tests.support.workers import workers
from tests.tiers import slow

APP = "tests.client.far_app:app"


@slow
def test_a_job_is_enqueued_from_afar_run_beside_the_database_and_read_from_afar(
    store_url: str, url: str, here: unstuck.App, tmp_path: Path
) -> None:
    with workers(store_url, tmp_path, UNSTUCK_DATABASE=store_url) as start, unstuck.App(url) as far:
        start(app=APP)
        eventually(lambda: len(here.workflows.list()) == 1)

        @far.workflow
        def greet(name: str) -> str:
            raise AssertionError("it runs where the worker is")

        job = greet.enqueue("Ada")
        assert job.result(timeout=30) == "Hello Ada"
        assert "".join(piece.text for piece in job.logs(follow=True)) == "hi Ada\n"
        many = greet.enqueue_many([f"n{n}" for n in range(50)])
        assert [each.result(timeout=30) for each in many] == [f"Hello n{n}" for n in range(50)]
        assert asyncio.run(greet.enqueue("Bo").aresult(timeout=30)) == "Hello Bo"
        assert far.health.check().healthy
