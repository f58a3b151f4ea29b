"""Two versions of one app, for rolling deploys: the newer one knows workflows that the older one does not."""

from __future__ import annotations

import unstuck
from tests.journeys.apps import mark

old = unstuck.App("journeys-never-open-this.db", version="v1")
new = unstuck.App("journeys-never-open-this.db", version="v2")


def shared(ctx: unstuck.Context, path: str, seconds: float) -> str:
    mark(path, "begun")
    ctx.sleep(seconds)
    mark(path, "ended")
    return "done"


def fresh(ctx: unstuck.Context, path: str) -> str:
    mark(path, "fresh")
    return "done"


def visit(ctx: unstuck.Context, path: str, host: str, seconds: float) -> str:
    mark(path, f"begun-{host}")
    ctx.sleep(seconds)
    mark(path, f"ended-{host}")
    return "done"


old.workflow(shared)
new.workflow(shared)
new.workflow(fresh)
new.workflow(limit_key="host:{host}", key_concurrency=1)(visit)
