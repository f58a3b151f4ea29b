"""The app that all culprits hang on, and how one is put there."""

from __future__ import annotations

import time

import unstuck

app = unstuck.App(version="gallery")

#: Nothing here goes on longer than this, even where nobody ends it.
LONGEST = 120.0


#: How a culprit is hung up: `@culprit(name="stuck.…")`, with little patience, so that you need none either.
culprit = app.workflow(timeout=2, grace=2, retries=0, max_lost=0)


def until(seconds: float) -> float:
    return time.monotonic() + min(seconds, LONGEST)
