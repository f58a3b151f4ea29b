"""The code of an app that a worker runs beside the database, and a program elsewhere enqueues over HTTP."""

from __future__ import annotations

import os

import unstuck

app = unstuck.App(os.environ.get("FAR_APP", "sqlite:///nowhere.db"))


@app.workflow
def greet(name: str) -> str:
    print("hi", name)
    return f"Hello {name}"
