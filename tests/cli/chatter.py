"""An app whose jobs talk."""

from __future__ import annotations

import logging
from pathlib import Path

import unstuck

app = unstuck.App()
log = logging.getLogger("chatter")


@app.workflow
def flood(ctx: unstuck.Context) -> None:
    for n in range(5000):
        print(f"printed {n}")
        ctx.log("logged", n=n)
    ctx.log("the end")


@app.workflow(timeout=60)
def chat(ctx: unstuck.Context, go_on: str) -> None:
    """Says the rest once a file is there."""
    print("half a line", end="")
    ctx.log("paid", order=7, by="ada lovelace")
    while not Path(go_on).exists():
        ctx.sleep(0.02)
    log.warning("low on %s", "paper", extra={"sheets": 3})
    print("\x1b[31mred", end="")
