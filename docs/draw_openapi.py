"""Writes the OpenAPI document of the server: `python docs/draw_openapi.py` after changing an operation. A test
compares the two."""

from __future__ import annotations

from pathlib import Path

from unstuck.server import openapi

PAGE = Path(__file__).parent / "openapi.json"

if __name__ == "__main__":
    PAGE.write_text(openapi.text())
