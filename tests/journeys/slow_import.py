"""The app of test_innocents whose import takes its time, once a test says so."""

from __future__ import annotations

import os
import time
from pathlib import Path

import unstuck

if os.path.exists(os.environ.get("TEST_SLOW_FROM_NOW", "")):
    time.sleep(8.0)
app = unstuck.App("journeys-never-open-this.db", version="v1")


@app.workflow(timeout=0.5, grace=0.3, retries=0, isolation="process")
def touches(path: str) -> str:
    Path(path).touch()
    return "touched"
