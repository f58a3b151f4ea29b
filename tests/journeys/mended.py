"""The app of test_mended: a handler of the worst kind."""

from __future__ import annotations

import re

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1")


@app.workflow
def noop() -> None: ...


@app.workflow
def hold_the_interpreter() -> bool:
    """From its first line and for minutes: nothing else of Python runs in its process."""
    return re.match(r"(a+)+$", "a" * 60 + "b") is not None
