"""Halves: a batch that cannot be written is cut in two, and again, until what is left is the single item that cannot.

The others are written on the way. What was found goes to quarantine (see there), and batches leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreUnavailable

K = TypeVar("K", bound=Hashable)

#: Of these no item is to blame, and each further call would cost as much again: they are the caller's.
AWAY = (StoreUnavailable, OutcomeUnknown, SchemaMismatch)
#: Where so many single ones fail, likely all do: the rest stays where it is until these are set aside.
MOST_FAILURES = 20
#: What fails slowly, for locks say, must not keep its caller from everything else.
WITHIN = 5.0


def in_halves(
    items: Sequence[K], act: Callable[[Sequence[K]], object], *, within: float = WITHIN, most: int = MOST_FAILURES
) -> dict[K, Exception]:
    """`act` is one transaction over some of the items, in their order: which of them it cannot do alone, and why.

    Once time is up or many have failed, nothing more is begun; what was not tried is nobody's failure. If not a
    single one was found by then, the last error is raised: the caller comes back with fewer.
    """
    until = boot() + within
    failed: dict[K, Exception] = {}
    problem: Exception | None = None
    left = [items] if items else []
    while left:
        if problem is not None and (len(failed) >= most or boot() >= until):
            break
        some = left.pop()
        try:
            act(some)
        except AWAY:
            raise
        except Exception as error:
            problem = error
            if len(some) == 1:
                failed[some[0]] = error
            else:
                middle = len(some) // 2
                left += [some[middle:], some[:middle]]
    if left and not failed and problem is not None:
        raise problem
    return failed
