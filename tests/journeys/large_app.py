"""The app of journeys with payloads and results as large as there may be."""

from __future__ import annotations

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1", name="large")


@app.workflow(queue="far")
def takes(text: str) -> int:
    return len(text)


@app.workflow(queue="far", max_result=8 << 20)
def gives(count: int) -> str:
    return '"' * count


@app.workflow(queue="far")
def small() -> str:
    return "here"


@app.workflow(queue="near")
def small_elsewhere() -> str:
    return "there"
