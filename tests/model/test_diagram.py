"""The page that people read is drawn from the table that the code obeys."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_diagram_in_the_docs_is_drawn_from_the_table_of_moves() -> None:
    docs = Path(__file__).parents[2] / "docs"
    draw = runpy.run_path(str(docs / "draw_lifecycle.py"))["draw"]

    assert (docs / "lifecycle.md").read_text() == draw(), "run: python docs/draw_lifecycle.py"
