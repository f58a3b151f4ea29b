"""What arguments of operations are, besides the plain types."""

from __future__ import annotations

from typing import Any

from unstuck.intake.submit import UNSAID as UNSAID
from unstuck.intake.submit import Unsaid as Unsaid
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.hooks import HookOutcome as HookOutcome
from unstuck.model.hooks import Scheme as Scheme
from unstuck.model.policy import LONGEST
from unstuck.model.schedules import CatchUp as CatchUp
from unstuck.model.schedules import Overlap as Overlap
from unstuck.model.times import seconds as read

#: Seconds as a number, or as people write them: 90, "90s", "5m", "1h30m".
Duration = float | str


#: Seconds: whoever stands between may cut off what is silent for longer.
MOST_WAITED = 60.0

#: Where a page of numbered things ended: its `next`, or the number itself.
Cursor = str | int


#: No number that a database gives is larger.
_LARGEST = 2**63 - 1


def number_of(cursor: Any) -> int | None:
    if cursor is None:
        return None
    is_text = isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 20
    number = int(cursor) if is_text else cursor
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _LARGEST:
        return number
    raise InvalidInput(f"after={quoted(cursor)} is not a cursor that a page gave out")


def seconds(value: Any, name: str) -> float:
    """A duration in seconds, however it was written."""
    try:
        found = read(value)
    except (ValueError, OverflowError, TypeError):
        raise InvalidInput(f'{name}={quoted(value)} is neither a number of seconds nor a text like "5m"') from None
    if not 0 <= found <= LONGEST:
        raise InvalidInput(f"{name}={quoted(value)} is not between 0 and {LONGEST / 86400:.0f} days")
    return found


def patience(timeout: Any, name: str = "timeout") -> float:
    """How long one call waits at most."""
    found = seconds(timeout, name)
    if found > MOST_WAITED:
        raise InvalidInput(f"{name}={quoted(timeout)}: one call waits for at most {MOST_WAITED:g} seconds; ask again")
    return found


def seconds_or_none(value: Any, name: str) -> float | None:
    return None if value is None else seconds(value, name)


def whole_number(value: Any, name: str, least: int = 0, most: int | None = None) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or value < least or (most is not None and value > most):
        bounds = f"of {least} or more" if most is None else f"between {least} and {most}"
        raise InvalidInput(f"{name}={quoted(value)} is not a whole number {bounds}")
    return int(value)
