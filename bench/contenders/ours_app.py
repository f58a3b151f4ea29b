"""The app that our workers import: no-op workflows, one of each colour, and two that are told of a place."""

from __future__ import annotations

import unstuck
from bench import probe

app = unstuck.App()


@app.workflow
def no_op() -> None:
    probe.hit()


@app.workflow
async def no_op_async() -> None:
    probe.hit()


@app.workflow
def no_op_for(place: int) -> None:
    probe.hit()


@app.workflow(target="{place}")
def no_op_on(place: int) -> None:
    """The same, one at a time per place."""
    probe.hit()
