"""An app whose code wants to hear of ends."""

from __future__ import annotations

import time

import unstuck
from tests.journeys.apps import mark

app = unstuck.App("journeys-never-open-this.db", name="ends", version="v1", grace=0.5)


@app.workflow(max_lost=0, retries=0)
def work(path: str, how: str) -> str:
    if how == "raise":
        raise ValueError(how)
    if how == "hang":
        mark(path, how)
        time.sleep(600)
    return path


@app.on_completed(work)
def cheer(ended: unstuck.EndedJob) -> None:
    mark(ended.result, f"completed {ended.id} {ended.run}")


@app.on_failed
def mourn(ended: unstuck.EndedJob) -> str:
    return f"{ended.workflow} {ended.state} {ended.error_type}"


@app.on_stuck("work")
def alarm(ended: unstuck.EndedJob) -> str:
    return f"{ended.id} {ended.error_type}"
