"""Server-sent events: how what happens is written into a stream.

What is told stands in `data`, as JSON on one line: a line break in a name or in data is escaped there, so nothing
that somebody stores can end a frame or begin another. Events of the feed have no name in the stream, whatever their
kind: one listener hears all of them, and no kind that a handler made up can be taken for our words (`reset`, `end`).
"""

from __future__ import annotations

import json
from typing import Any

from unstuck.views import plain

MEDIA_TYPE = "text/event-stream"


def encoded(view: Any) -> bytes:
    """As JSON, on one line."""
    return json.dumps(plain(view), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def frame(data: bytes, cursor: str | None = None, name: str | None = None) -> bytes:
    """`cursor` and `name` are our own words, without line breaks."""
    head = (f"id: {cursor}\n" if cursor else "") + (f"event: {name}\n" if name else "")
    return head.encode() + b"data: " + data + b"\n\n"


def mark(cursor: str | None = None) -> bytes:
    """A comment, so that nobody between takes a quiet stream for a dead one; it also says where to go on."""
    return f": \nid: {cursor}\n\n".encode() if cursor else b": \n\n"


def reset(reason: str, go_on: str) -> bytes:
    """The stream cannot go on from the reader's cursor without leaving something out; from here it does."""
    return frame(encoded({"reason": reason, "cursor": go_on}), go_on, "reset")


def end(reason: str, milliseconds: int) -> bytes:
    """The last frame, and after how long to come again."""
    return f"retry: {milliseconds}\n".encode() + frame(encoded({"reason": reason}), name="end")


def retry(milliseconds: int) -> bytes:
    return f"retry: {milliseconds}\n\n".encode()
