"""The app that our workers import: two no-op workflows, one of each colour."""

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
