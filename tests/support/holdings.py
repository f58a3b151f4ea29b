"""Builders for what a supervisor holds: claimed jobs, holdings, posts and views."""

from __future__ import annotations

from itertools import count
from typing import Any

from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.view import FleetView, WearLimits

_numbers = count(1)


def a_claimed_job(*, alone: bool = False, workflow: str = "w", **policy: Any) -> ClaimedJob:
    number = next(_numbers)
    return ClaimedJob(
        ref=AttemptRef(number, 1, f"claim-{number}"),
        id=f"job-{number}",
        run=1,
        tenant="default",
        queue="default",
        workflow=workflow,
        payload="{}",
        policy=Policy(**policy),
        attempt=1,
        alone=alone,
    )


def a_holding(stage: Stage = Stage.RUNNING, *, at: float = 0.0, alone: bool = False, **policy: Any) -> HeldAttempt:
    """Claimed, fed and started at the same instant."""
    holding = HeldAttempt(a_claimed_job(alone=alone, **policy), claimed_at=at, stage=stage)
    holding.fed_at = at if stage >= Stage.FED else None
    holding.started_at = at if stage >= Stage.RUNNING else None
    return holding


def a_post(number: int = 1, *holdings: HeldAttempt, alone: bool = False, state: Any = "active", **facts: Any) -> Post:
    post = Post(number, alone, state=state, **{"slots": 4, "since": 0.0, **facts})
    for holding in holdings:
        holding.executor = number
        post.holdings[holding.ref] = holding
    return post


def a_view(*posts: Post, **facts: Any) -> FleetView:
    times = facts.pop("times", Times())
    return FleetView(
        posts=posts,
        unseated=facts.pop("unseated", ()),
        times=times,
        seats=facts.pop("seats", Seats(slots=10, processes=1)),
        limits=facts.pop("limits", WearLimits()),
        fence=facts.pop("fence", Fence.after(1e9, times)),
        **facts,
    )
