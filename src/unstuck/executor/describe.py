"""An exception in words: class name, message and stack. What is kept of it is bounded."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from unstuck.model.payload import clean_text

MAX_MESSAGE = 8 << 10
MAX_STACK = 32 << 10
MAX_FRAMES = 80
_OUR_FOLDER = os.path.dirname(__file__) + os.sep


def describe(error: BaseException) -> tuple[str, str, str | None]:
    """Class name, message and stack, bounded, whatever the exception's own methods do."""
    name = class_name(error)
    try:
        message = str(error)
    except BaseException:
        message = f"<{name}: its own message could not be made>"
    return name, clean_text(message, MAX_MESSAGE), _stack(error)


def _stack(error: BaseException) -> str | None:
    try:
        shown = _within_handler(error.__traceback__)
        lines = traceback.format_exception(type(error), error, shown, limit=-MAX_FRAMES)
        return clean_text("".join(lines), MAX_STACK)
    except BaseException:
        return None


def _within_handler(trace: TracebackType | None) -> TracebackType | None:
    """Without our own frames at the top: people look for theirs."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
        inner = inner.tb_next
    return inner or trace


def last_line(error: BaseException) -> str:
    name, message, _ = describe(error)
    return f"{name}: {message}" if message else name


def class_name(error: BaseException) -> str:
    """As the interpreter keeps it, whatever its metaclass would say."""
    return clean_text(type.__dict__["__name__"].__get__(type(error)), 200)
