"""Parents and children: how deep, how many, which waits for which, and when a wait could never end.

A job that waits for a child keeps its target meanwhile. If the child, or a job that the child waits for, needs that
same target, it would never get its turn: such a wait is refused at once, not discovered at its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from unstuck.model.errors import InvalidInput, TargetDeadlock
from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass

MOST_DEEP: Final = 10
MOST_CHILDREN: Final = 1000


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A job above a child, the parent first. `keeps`: the number of the target whose turn it has. `awaits`: it is
    parked until the one below it, on the way to the child, has ended."""

    number: int
    id: str
    keeps: int | None = None
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class Needed:
    """A job that has not ended and that a gather would wait for, directly or through others."""

    number: int
    id: str
    target: int | None = None
    target_name: str | None = None


def is_spent(state: str, child_run: int, run: int, *, is_doomed: bool) -> bool:
    """Whether a new child takes the place of this one: it is of an earlier run, and nothing good comes of it."""
    if child_run >= run:
        return False
    return is_doomed or (JobState(state).is_final and state != JobState.COMPLETED)


def check_place(depth: int, siblings: int) -> None:
    if depth > MOST_DEEP:
        raise InvalidInput(f"children of children go {MOST_DEEP} deep at most; this one would be number {depth}")
    if siblings >= MOST_CHILDREN:
        raise InvalidInput(f"a job has {MOST_CHILDREN:,} children at most, and this one has as many")


def check_after(after: Iterable[str], ancestors: Sequence[Ancestor]) -> None:
    above = {ancestor.id for ancestor in ancestors}
    if circle := [other for other in after if other in above]:
        raise InvalidInput(f"a child cannot wait for a job above it: after={circle[0]!r} may wait for the child")


def check_turn(target: int | None, target_name: str | None, ancestors: Sequence[Ancestor]) -> None:
    """Before a spawn: a job that waits for the parent, and so for what that may yet wait for, keeps the target."""
    for ancestor in _waiting_above(ancestors):
        if target is not None and ancestor.keeps == target:
            raise TargetDeadlock(
                f"target {target_name} is kept by job {ancestor.id}, which waits for this one: a child could not run "
                "there before both have ended; gather with release_target=True, or give the child another target"
            )


def check_wait(needed: Iterable[Needed], ancestors: Sequence[Ancestor], *, release_target: bool) -> None:
    """Before a gather: no child may need a target that the parent, or a job that waits for the parent, keeps."""
    parent, waiting = ancestors[0], _waiting_above(ancestors)
    chain = {ancestor.number for ancestor in (parent, *waiting)}
    keepers = {ancestor.keeps: ancestor for ancestor in (*waiting, *(() if release_target else (parent,)))}
    for job in needed:
        if job.number in chain:
            raise InvalidInput(f"these jobs would wait for each other for ever: {parent.id} and {job.id}")
        keeper = None if job.target is None else keepers.get(job.target)
        if keeper is not None:
            how = "gather with release_target=True, or " if keeper is parent else ""
            raise TargetDeadlock(
                f"job {job.id} waits for its turn on target {job.target_name}, which job {keeper.id} keeps while it "
                f"waits: neither would go on; {how}give the child another target"
            )


def _waiting_above(ancestors: Sequence[Ancestor]) -> list[Ancestor]:
    """Those that cannot go on before the parent has ended: an unbroken row of waits that ends at it."""
    found = []
    for ancestor in ancestors[1:]:
        if not ancestor.awaits:
            break
        found.append(ancestor)
    return found
