"""Processes that do not last: BRITTLE says what their start hook does to them."""

from __future__ import annotations

import os
import threading
import time

import unstuck

app = unstuck.App()


@app.on_executor_start
def doom() -> None:
    match os.environ.get("BRITTLE", "").split(":"):
        case ["dies", seconds]:
            threading.Timer(float(seconds), os._exit, (5,)).start()
        case ["heals", seconds, file] if not os.path.exists(file):
            threading.Timer(float(seconds), os._exit, (5,)).start()
        case ["hangs"]:
            time.sleep(1000)


@app.workflow(name="brittle.quick", timeout=60, retries=0)
def quick() -> str:
    time.sleep(0.5)
    return "done"


@app.workflow(name="brittle.poison", timeout=60, retries=0, max_lost=1)
def poison() -> None:
    os._exit(7)
