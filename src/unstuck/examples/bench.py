"""The app behind `unstuck bench`: jobs that do nothing, so that only the engine is measured."""

from __future__ import annotations

import unstuck

app = unstuck.App()


@app.workflow
def nothing() -> None:
    """A sync handler that returns at once."""


@app.workflow
async def nothing_async() -> None:
    """A coroutine that returns at once."""
