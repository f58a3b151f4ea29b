"""A workflow that ignores its cancel until its file says that it was mended."""

from __future__ import annotations

import time
from pathlib import Path

import unstuck

app = unstuck.App("journeys-never-open-this.db")


@app.workflow(timeout=0.3, grace=0.2, retries=0)
def deploy(path: str) -> str:
    until = time.monotonic() + 20
    while not Path(path).exists() and time.monotonic() < until:
        time.sleep(0.05)
    return "deployed"


@app.workflow
def other() -> str:
    return "done"
