"""Handlers that leave a line behind as soon as they begin, and tell what they were started with."""

from __future__ import annotations

import os
from pathlib import Path

import unstuck

app = unstuck.App("journeys-never-open-this.db")


@app.workflow(retries=0)
def mark(path: str, word: str) -> str:
    with Path(path).open("a") as file:
        file.write(f"{word}\n")
    return word


@app.workflow(queue="other", retries=0)
def other(path: str, word: str) -> str:
    with Path(path).open("a") as file:
        file.write(f"other {word}\n")
    return word


#: Of code that runs nothing unsigned.
strict = unstuck.App("journeys-never-open-this.db")


@strict.workflow(retries=0, require_signature=True)
def strictly(path: str, word: str) -> str:
    with Path(path).open("a") as file:
        file.write(f"{word}\n")
    return word


@app.workflow
def environment() -> list[str]:
    return sorted(name for name in os.environ if "SIGN" in name.upper())
