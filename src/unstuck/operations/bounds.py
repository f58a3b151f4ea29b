"""Bounds: a page has so many things, and stops sooner where they are large. One thing it has in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from unstuck.model.job import AttemptRecord, EventRecord
from unstuck.model.waits import WaitRecord
from unstuck.store.port import MOST_CHARACTERS
from unstuck.views.flow import FeedEventView

T = TypeVar("T")


def bounded(found: Iterable[T], most: int, size: Callable[[T], int]) -> tuple[list[T], bool]:
    """As many as fit, and whether there may be more. No more is read than that."""
    taken: list[T] = []
    held = 0
    for each in found:
        taken.append(each)
        held += size(each)
        if len(taken) == most or held >= MOST_CHARACTERS:
            return taken, True
    return taken, False


def size_of_attempt(attempt: AttemptRecord | None) -> int:
    if attempt is None:
        return 0
    return sum(len(text or "") for text in (attempt.framed, attempt.stack, attempt.error_message))


def size_of_event(event: EventRecord) -> int:
    """Roughly: what is long in its data is text, at its top."""
    return sum(len(value) for value in event.data.values() if isinstance(value, str))


def size_of_wait(record: WaitRecord) -> int:
    return len(record.payload or "") + sum(map(len, record.wait.children))


def size_of_news(event: FeedEventView) -> int:
    """As long as its data is written: what is published may be nested."""
    return len(str(event.data)) if event.data else 0
