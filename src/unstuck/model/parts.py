"""Parts: what a handler gives of its result before it has ended, under names, and how much of that is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from unstuck.model.errors import InvalidInput, NotStorable
from unstuck.model.payload import check_name, check_text
from unstuck.records import dataclass

#: Names of one job, over all its runs.
MOST_PARTS: Final = 1000
#: Bytes of JSON of one value.
MAX_PART: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Part:
    """One partial result: its value is JSON text. `number` grows with every one that a job gives, over all its runs,
    also when it replaces another: a reader that has seen up to a number asks for what came after it."""

    name: str
    value: str
    number: int
    run: int
    token: int
    at: datetime


def check_part(name: str, value: str) -> str:
    """Its name; before anything is sent or written."""
    name = check_name(name, "partial result")
    where = called(name)
    check_text(value, where)
    size = len(value) if value.isascii() else len(value.encode())
    if size > MAX_PART:
        raise NotStorable(
            where,
            f"it is {size:,} bytes of JSON; the limit is {MAX_PART:,}: give smaller parts under names of their own, "
            "record it as the result of a step, or keep it in a storage of your own and give its address",
        )
    return name


def one_too_many(name: str) -> InvalidInput:
    return InvalidInput(
        f"{called(name)} is one too many: a job has {MOST_PARTS:,} names of partial results at most; "
        "use a name again, which replaces its value, or keep them as results of steps or in a storage of your own"
    )


def called(name: str) -> str:
    return f"partial result {name!r}"
