"""An app whose code says when it runs."""

from __future__ import annotations

import unstuck
from tests.journeys.apps import mark

app = unstuck.App("journeys-never-open-this.db", name="clockwork", version="v1")
#: The next version: one line was removed, one changed.
later = unstuck.App("journeys-never-open-this.db", name="clockwork", version="v2")


def tick(path: str, tick: str = "") -> str:
    mark(path, "ticked")
    return tick


app.workflow(name="tick")(tick)
app.workflow(name="sleepy", schedule={"every": 1, "kwargs": {"path": "/dev/null"}})(tick)
app.schedules.declare("hourly", "tick", cron="@hourly", kwargs={"path": "/dev/null"})
later.workflow(name="tick")(tick)
later.schedules.declare("hourly", "tick", cron="@daily", kwargs={"path": "/dev/null"})
