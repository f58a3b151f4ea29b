"""Failures at the start: which deaths of executors count as such, and how long the next executor must live before it
is fed.

A process that dies of its start may do so a while after it said that it was ready (a thread of an on_start hook, a
broken library), and then takes with it what it was fed meanwhile. What it died of cannot be seen of one death; so the
next one is fed nothing before it has outlived the one before it. If it dies empty, no job did it.
"""

from __future__ import annotations

from unstuck.worker.processes import ExecutorDied
from unstuck.worker.roster import Post

#: An executor that dies so soon after it was ready, and has finished no job by then, died young.
YOUNG = 5.0
_SHORTEST_TRIAL = 0.5


def never_began(event: ExecutorDied, post: Post) -> bool:
    """Whether the executor died before it was ready, and neither we nor the fleet killed it."""
    return post.ready_at is None and not post.killed and not event.expected


def died_young(event: ExecutorDied, post: Post, now: float) -> bool:
    """Whether the executor died soon after it was ready, had finished no job, and no kill or culprit explains it."""
    if post.ready_at is None or post.has_finished or now >= post.ready_at + YOUNG:
        return False
    is_our_doing = bool(post.killed) or post.terminated_at is not None or event.expected
    return not (is_our_doing or event.with_others or event.culprit is not None)


def trial_after(post: Post, now: float, before: float) -> float:
    """How long the next ones have to live before they are fed; `before`: how long these had to."""
    lived = now - (post.ready_at or now)
    return min(YOUNG, max(before, 2 * lived, _SHORTEST_TRIAL))
