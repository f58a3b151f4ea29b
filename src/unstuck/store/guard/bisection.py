"""Bisection: a batch that cannot be written is cut in two, and again, until a single item is left that cannot.

A failure that takes long is cut in more pieces, and these come after all others: the item is then found by fewer
failures, and items that are not near it do not wait for them.

The others are written on the way. What was found goes to quarantine (see there), and batches leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TypeVar

from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreLocked, StoreUnavailable

K = TypeVar("K", bound=Hashable)

#: Of these no item is to blame, and each further call would cost as much again: they are the caller's.
AWAY = (StoreUnavailable, StoreLocked, OutcomeUnknown, SchemaMismatch)
#: If this number of items fail alone, likely all do: the rest stays where it is until these are set aside.
MOST_FAILURES = 20
#: What fails slowly, for locks say, must not keep its caller from everything else.
WITHIN = 5.0
#: A failure that takes longer is slow, and how many pieces are made then.
SLOW = 0.2
PIECES = 8


def bisect_batch(
    items: Sequence[K],
    act: Callable[[Sequence[K]], object],
    *,
    within: float = WITHIN,
    most: int = MOST_FAILURES,
    pieces: int = 1,
) -> dict[K, Exception]:
    """`act` is one transaction over some of the items, in their order: which of them it cannot do alone, and why.
    `pieces`: the number of parts to begin with, because all of them together have failed already.

    Once time is up or many have failed, nothing more is begun; what was not tried is nobody's failure. If not a
    single one was found by then, the last error is raised: the caller comes back with fewer.
    """
    until = boot() + within
    failed: dict[K, Exception] = {}
    problem: Exception | None = None
    left = _cut(items, pieces) if items else []
    while left:
        if problem is not None and (len(failed) >= most or boot() >= until):
            break
        some, began = left.pop(), boot()
        try:
            act(some)
        except AWAY:
            raise
        except Exception as error:
            problem = error
            if len(some) == 1:
                failed[some[0]] = error
            elif boot() - began > SLOW:
                left = _cut(some, PIECES) + left
            else:
                left += _cut(some, 2)
    if left and not failed and problem is not None:
        raise problem
    return failed


def _cut(items: Sequence[K], pieces: int) -> list[Sequence[K]]:
    """The first piece last: that is where the next one is taken from."""
    pieces = min(pieces, len(items))
    ends = [len(items) * piece // pieces for piece in range(pieces + 1)]
    return [items[start:end] for start, end in pairwise(ends)][::-1]
