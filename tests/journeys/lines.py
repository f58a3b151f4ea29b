"""The app of the target journeys: every body writes down which job it is, where it runs, and when."""

from __future__ import annotations

import os
import time
from pathlib import Path

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1")


def say(path: str, *words: object) -> None:
    line = " ".join(map(str, [*words, os.getpid(), f"{time.clock_gettime(time.CLOCK_BOOTTIME):.6f}"])) + "\n"
    with Path(path).open("a") as file:
        file.write(line)


@app.workflow(target="{repo}", retries=0)
def build(ctx: unstuck.Context, path: str, repo: str, seconds: float = 0.05) -> str:
    say(path, "begun", repo, ctx.job)
    ctx.sleep(seconds)
    say(path, "ended", repo, ctx.job)
    return repo


@app.workflow(target="{repo}", retries=0)
def breaks(ctx: unstuck.Context, path: str, repo: str) -> str:
    """Fails in its first run, works in any later one."""
    say(path, "begun", repo, ctx.job)
    if ctx.run == 1:
        raise RuntimeError("the disk of the builder is full")
    say(path, "ended", repo, ctx.job)
    return repo


@app.workflow(target="{repo}", retries=0, timeout=0.3, grace=5.0)
def dawdles(ctx: unstuck.Context, path: str, repo: str) -> None:
    say(path, "begun", repo, ctx.job)
    ctx.sleep(30)
