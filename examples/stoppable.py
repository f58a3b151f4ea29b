"""Long work that can be stopped, shows how far it is, and tells what was asked of it.

unstuck worker examples.stoppable:app
unstuck enqueue crawl 500 --app examples.stoppable:app
unstuck jobs list;  unstuck jobs cancel JOB      # or interrupt, and resume later
"""

from __future__ import annotations

import asyncio

import unstuck

app = unstuck.App()


@app.workflow(timeout=600, grace=5)
def crawl(ctx: unstuck.Context, pages: int) -> int:
    """A plain function asks: ctx.check() raises once the job was asked to stop."""
    for page in range(pages):
        ctx.check()
        ctx.progress({"done": page + 1, "of": pages})
        ctx.sleep(0.1)
    return pages


@app.workflow(timeout=600, grace=5)
async def listen(ctx: unstuck.AsyncContext, seconds: float) -> str:
    """A coroutine is told: it gets an ordinary asyncio.CancelledError at its next await."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        ctx.log("asked to stop", kind=ctx.kind, reason=ctx.reason)
        raise
    return "heard everything"
