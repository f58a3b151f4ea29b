"""eventually(...): wait for something to become true, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONGEST = 0.25


def eventually(check: Callable[[], T], timeout: float = 10.0, every: float = 0.02) -> T:
    """The first true answer of a predicate, or the first that passes its own assertions and answers None.

    A predicate that stays false and an assertion that keeps failing both end as AssertionError. One that takes long,
    such as a command, is asked less often: whoever waits should not keep those busy whom he waits for.
    """
    until = time.monotonic() + timeout
    while True:
        failure: AssertionError | None = None
        began = time.monotonic()
        try:
            answer = check()
            if answer is None or answer:
                return answer
        except AssertionError as error:
            failure = error
        if time.monotonic() >= until:
            raise failure or AssertionError(f"not within {timeout:g} s: the last answer was {answer!r}")
        took = time.monotonic() - began
        time.sleep(max(every, min(LONGEST, 2 * took)) if every else 0.0)
