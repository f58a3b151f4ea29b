"""The app of the bulkheads: jobs that have nothing to do with the trouble, and one workflow per kind of trouble."""

from __future__ import annotations

import time
from pathlib import Path

import unstuck

app = unstuck.App("bulkheads-never-open-this.db", version="v1")


def mark(path: str, word: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{word} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\n")


@app.workflow
def tick(path: str, number: int) -> None:
    """One job of the stream."""
    mark(path, str(number))


@app.workflow
def work(path: str, word: str) -> str:
    """Ends at once, with its word."""
    mark(path, word)
    return word


@app.workflow(concurrency=2)
def limited(path: str, word: str) -> str:
    mark(path, word)
    return word


@app.workflow(concurrency=100)
def roomy(path: str, word: str) -> str:
    """Its limit is counted at every claim and never reached, not even by ends that are still being written."""
    mark(path, word)
    return word


@app.workflow(retries=5, backoff_base=0.2, backoff_factor=1.0)
def fails_once(path: str, word: str) -> str:
    """Its first settle has to write the job's row."""
    mark(path, word)
    if Path(path).read_text().count(f"{word} ") < 2:
        raise ValueError("not yet")
    return word


@app.workflow
def until_told(path: str, word: str, end: str) -> str:
    """Runs until the file `end` is there."""
    mark(path, word)
    while not Path(end).exists():
        time.sleep(0.02)
    return word


@app.workflow
def parent(ctx: unstuck.Context, path: str, word: str, end: str) -> int:
    children = [ctx.spawn(until_told, path, "child", end) for _ in range(2)]
    results = ctx.gather(*children)
    mark(path, word)
    return len(results)


@app.workflow
def talks(path: str, word: str) -> str:
    """What it says at its very end goes with its report."""
    mark(path, word)
    print("done")
    return word


@app.workflow
def large(path: str, word: str, filler: str) -> int:
    mark(path, word)
    return len(filler)
