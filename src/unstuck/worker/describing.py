"""What a worker says about itself with every beat: its processes, the jobs in them, those that went lately, and which
of its roles fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from unstuck.model.times import Times
from unstuck.version import __version__
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.roles import describe_roles
from unstuck.worker.roster import Post
from unstuck.worker.shutdown import Phase
from unstuck.worker.state import WorkerState

#: So many jobs of a process are named.
MOST_JOBS = 50


def describe(
    state: WorkerState, pids: dict[str, Any], now: float, *, is_impatient: bool
) -> tuple[str, dict[str, Any]]:
    info: dict[str, Any] = {
        "pids": pids,
        "slots": state.seats.slots,
        "processes": state.seats.processes,
        "ready": state.is_ready(now),
        "executors": [describe_post(post, state.times, now, is_impatient) for post in state.roster.posts.values()],
        "recycled": [asdict(process) for process in state.recycled],
        "roles": describe_roles(state.troubles, now),
        "version": __version__,
        "beat": state.times.beat,
        "drain": state.times.drain,
        "kill_grace": state.times.kill_grace,
    }
    if state.draining_since is not None:
        info["draining_for"] = round(now - state.draining_since, 1)
    if (imported := state.imported) is not None:
        info |= {
            "code_version": imported.code_version,
            "mode": imported.mode,
            "mode_reason": imported.reason,
            "workflows": [w.name for w in imported.workflows],
        }
    if state.import_error is not None:
        info["import_error"] = state.import_error
    if state.start_error is not None:
        info["start_error"] = state.start_error
    return ("active" if state.phase is Phase.WORKING else "draining", info)


def describe_post(post: Post, times: Times, now: float, is_impatient: bool = False) -> dict[str, Any]:
    bodies = post.bodies
    oldest = sorted(bodies, key=lambda h: now if h.started_at is None else h.started_at)[:MOST_JOBS]
    return {
        "executor": post.number,
        "pid": post.pid,
        "state": shown_state(post),
        "generation": post.generation,
        "alone": post.alone,
        "memory": post.memory,
        "jobs_done": post.jobs_done,
        "reason": post.killed or post.reason or _continued(post),
        "running": len(bodies),
        "draining_for": 0.0 if post.draining_since is None else round(now - post.draining_since, 1),
        "silent_for": round(post.pulse_age, 1) if post.pulse_age >= times.unresponsive else 0.0,
        "jobs": [_describe_body(post, holding, times, now, is_impatient) for holding in oldest],
    }


def _continued(post: Post) -> str:
    times = "once" if post.continued == 1 else f"{post.continued} times"
    return f"somebody stopped it (state T), and it was continued, {times}" if post.continued else ""


def shown_state(post: Post) -> str:
    if post.killed or post.state == "exited":
        return "draining"
    return "spare" if post.is_spare and post.state in ("starting", "active") else post.state


def states(posts: Iterable[Post]) -> frozenset[tuple[int, str, str, int]]:
    """What people should see soon when it changes; also how many were told to stop: a grace may be over in a beat."""
    return frozenset(
        (post.number, shown_state(post), post.killed, sum(h.told_at is not None for h in post.bodies))
        for post in posts
    )


def _describe_body(post: Post, holding: HeldAttempt, times: Times, now: float, is_impatient: bool) -> dict[str, Any]:
    is_told = holding.told_at is not None and holding.stage is not Stage.STUCK
    ends_at = (holding.told_at or 0.0) + holding.patience(times, is_impatient=is_impatient)
    return {
        "job": holding.job.id,
        "workflow": holding.job.workflow,
        "for": round(now - (now if holding.started_at is None else holding.started_at), 1),
        "on": "thread" if holding.ref not in post.on_main else "main" if post.alone else "loop",
        "asked": None if holding.asked is None else str(holding.asked),
        "grace_left": round(max(0.0, ends_at - now), 1) if is_told else None,
        "stuck": holding.stage is Stage.STUCK,
    }
