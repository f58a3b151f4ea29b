"""Two versions of one app whose deploy moves a workflow to another queue, renames its target's template, adds one
workflow and drops another; and one whose import fails until a file is there."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import unstuck
from tests.journeys.apps import mark

old = unstuck.App("journeys-never-open-this.db", version="v1")
new = unstuck.App("journeys-never-open-this.db", version="v2")
chain = unstuck.App("journeys-never-open-this.db", version="c1")


def build(path: str, repo: str, project: str = "p") -> str:
    mark(path, f"build-{repo}")
    time.sleep(0.02)
    mark(path, f"built-{repo}")
    return repo


def dropped(path: str) -> str:
    mark(path, "dropped")
    return "done"


def added(path: str) -> str:
    mark(path, "added")
    return "done"


old.workflow(queue="a", target="{repo}", name="build")(build)
old.workflow(queue="a", name="dropped")(dropped)
new.workflow(queue="b", target="repo-{repo}", name="build")(build)
new.workflow(queue="b", name="added")(added)


@chain.workflow(retries=1, backoff_base=0.05, name="link")
def link(seconds: float, odds: float) -> str:
    time.sleep(seconds)
    if random.random() < odds:
        raise RuntimeError("unlucky")
    return "done"


late = unstuck.App("journeys-never-open-this.db", version="v9")


@late.workflow(name="late")
def hello() -> str:
    return "done"


if (gate := os.environ.get("DEPLOY_GATE")) and not Path(gate).exists():
    raise RuntimeError("the settings are not there yet")
