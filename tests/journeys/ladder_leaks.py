"""Jobs that end and leave something behind that keeps their process from the next ones."""

from __future__ import annotations

import asyncio
import threading
import time

import unstuck
from unstuck.examples.stuck.interpreter import hold_interpreter

app = unstuck.App()


@app.workflow(name="leak.callback", timeout=60, retries=0)
async def leave_callback(after: float, seconds: float) -> None:
    asyncio.get_running_loop().call_later(after, time.sleep, seconds)


@app.workflow(name="leak.thread", timeout=60, retries=0)
def leave_thread(after: float, seconds: float) -> None:
    def later() -> None:
        time.sleep(after)
        hold_interpreter(seconds)

    threading.Thread(target=later, daemon=True).start()


@app.workflow(name="leak.innocent", timeout=60, retries=0, grace=1.0)
async def innocent(seconds: float) -> None:
    await asyncio.sleep(seconds)
