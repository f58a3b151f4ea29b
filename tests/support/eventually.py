"""eventually(...): wait for something to become true, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], timeout: float = 10.0, every: float = 0.02) -> T:
    """The first true answer of a predicate, or the first that passes its own assertions and answers None.

    A predicate that stays false and an assertion that keeps failing both end as AssertionError.
    """
    until = time.monotonic() + timeout
    while True:
        failure: AssertionError | None = None
        try:
            answer = check()
            if answer is None or answer:
                return answer
        except AssertionError as error:
            failure = error
        if time.monotonic() >= until:
            raise failure or AssertionError(f"not within {timeout:g} s: the last answer was {answer!r}")
        time.sleep(every)
