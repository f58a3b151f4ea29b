"""What an App shows is what the docs teach; what it needs inside is not public."""

from __future__ import annotations

from pathlib import Path

import unstuck
from unstuck.operations.nouns import OPERATIONS

#: Besides the nouns, which the table of operations names.
TAUGHT = {
    "asgi",
    "close",
    "config",
    "job",
    "middleware",
    "name",
    "on_completed",
    "on_executor_start",
    "on_executor_stop",
    "on_failed",
    "on_stuck",
    "workflow",
}

DOCS = Path(__file__).parents[2]


def test_an_app_shows_what_the_docs_teach_and_nothing_else() -> None:
    nouns = {operation.noun for operation in OPERATIONS.values()}

    assert {name for name in dir(unstuck.App()) if not name.startswith("_")} == TAUGHT | nouns


def test_every_name_that_an_app_shows_is_in_the_docs() -> None:
    text = "\n".join(file.read_text() for file in [DOCS / "README.md", *(DOCS / "docs").rglob("*.md")])

    assert [name for name in sorted(TAUGHT) if f"app.{name}" not in text] == []
