"""Checks of what a handler gives to flow calls: durations, questions, approvers, values to store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstuck.executor.caller import UNSET
from unstuck.model.errors import InvalidInput, NotStorable, quoted
from unstuck.model.payload import check_name, check_text
from unstuck.model.policy import LONGEST

MAX_QUESTION = 2000
MAX_WHO = 100


def wait_limit(timeout: Any) -> float | None:
    if timeout is None:
        raise InvalidInput("timeout=None: every wait has an end; omit it for the default")
    return None if timeout is UNSET else check_seconds(timeout, "timeout")


def check_seconds(value: Any, what: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= LONGEST:
        raise InvalidInput(f"{what}={quoted(value)} is not a number of seconds above 0 and up to {LONGEST:g}")
    return float(value)


def check_question(question: Any) -> str:
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput(f"question={quoted(question)} is not a question that anybody could answer")
    if len(question) > MAX_QUESTION:
        raise InvalidInput(f"a question of {len(question):,} characters; the limit is {MAX_QUESTION:,}")
    check_text(question, "the question")
    return str.__str__(question)


def check_approvers(who: Any) -> tuple[str, ...]:
    if who is None:
        return ()
    several = (who,) if isinstance(who, str) else tuple(who)
    if len(several) > MAX_WHO:
        raise InvalidInput(f"who= names {len(several)}; the limit is {MAX_WHO}")
    return tuple(check_name(one, "who") for one in several)


def stored_text(pack: Callable[[Any], str], value: Any, where: str) -> str:
    """The value as JSON. An error names the place it was to be stored in."""
    try:
        return pack(value)
    except NotStorable as error:
        raise NotStorable(where, error.problem) from None
