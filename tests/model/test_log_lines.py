"""A line of a log for machines: one object, one line, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unstuck.model import keys
from unstuck.model.log_lines import object_line, scrubbed

KEY = keys.spell(7, 12345678901234567890)


def test_nothing_in_it_ends_the_line_or_moves_a_cursor() -> None:
    hostile = "a\nb\r\x1b[31m\x9b1m\x7f\u2028\u202e\u2066\ud800\x00\x85"
    line = object_line({"event": "log", "message": hostile, "nested": {hostile: [hostile]}})
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    line.encode()
    assert json.loads(line) == {"event": "log", "message": hostile, "nested": {hostile: [hostile]}}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no route to postgresql://ada:s3cret@db/jobs", "no route to postgresql://ada:***@db/jobs"),
        ("host=db password=s3cret user=ada", "host=db password=*** user=ada"),
        (f"Authorization: Bearer {KEY}", f"Authorization: Bearer {KEY[:13]}***"),
        ("http://127.0.0.1:8420\nmail ada@example.org", "http://127.0.0.1:8420\nmail ada@example.org"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_a_text_quotes_of_secrets_is_blanked(said: str, shown: str) -> None:
    assert scrubbed(said) == shown
    assert json.loads(object_line({"error": said})) == {"error": shown}


def test_what_is_no_json_is_said_as_text() -> None:
    assert json.loads(object_line({"path": Path("/tmp"), "error": ValueError(f"bad {KEY}")})) == {
        "path": "/tmp",
        "error": f"bad {KEY[:13]}***",
    }
