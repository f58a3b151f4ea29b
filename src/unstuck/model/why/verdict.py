"""The table of all rules, in the order in which they are asked, and the verdict over what they find."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.times import Times
from unstuck.model.why.blacklist import blacklisted
from unstuck.model.why.bodies import body_may_live, stuck
from unstuck.model.why.codes import AMISS, URGENCY
from unstuck.model.why.ended import dead, ended, paused
from unstuck.model.why.facts import Facts
from unstuck.model.why.limits import concurrency_limit, rate_limited
from unstuck.model.why.locks import row_locked
from unstuck.model.why.pauses import queue_paused, tenant_paused, workflow_paused
from unstuck.model.why.quarantine import quarantined
from unstuck.model.why.rule import Reason, Rule, Why, WhyView
from unstuck.model.why.runnable import claimable, lower_priority, others_first, runs_alone, workers_full
from unstuck.model.why.running import cancelling, lease_expired, running
from unstuck.model.why.start import held, retry_backoff, scheduled, unplaced, waiting_dependencies
from unstuck.model.why.targets import target_blocked, target_busy, target_paused
from unstuck.model.why.waits import waiting, waiting_approval, waiting_children, waiting_event, waiting_time
from unstuck.model.why.workers import (
    app_not_loaded,
    engine_stalled,
    no_worker,
    not_granted,
    worker_failing,
    worker_lacks_code,
    workers_draining,
)

#: Every rule once. Of reasons that are equally urgent, the one whose rule stands first here is told first.
_TABLE: tuple[Rule, ...] = (
    scheduled,
    retry_backoff,
    held,
    waiting_dependencies,
    unplaced,
    row_locked,
    quarantined,
    worker_failing,
    waiting_event,
    waiting_approval,
    waiting_children,
    waiting_time,
    waiting,
    paused,
    body_may_live,
    stuck,
    target_blocked,
    target_paused,
    target_busy,
    queue_paused,
    tenant_paused,
    workflow_paused,
    blacklisted,
    concurrency_limit,
    rate_limited,
    no_worker,
    not_granted,
    worker_lacks_code,
    app_not_loaded,
    workers_draining,
    engine_stalled,
    workers_full,
    lower_priority,
    others_first,
    claimable,
    runs_alone,
    running,
    cancelling,
    lease_expired,
    ended,
    dead,
)
RULES = {rule.code: rule for rule in _TABLE}

_STANDS = {JobState.RUNNING: "running", JobState.WAITING: "parked", **dict.fromkeys(FINAL, "ended")}


def explain(facts: Facts, now: datetime, times: Times | None = None) -> Why:
    """The answer to "why is this job not running?"; pure."""
    view = WhyView(facts, now, times or Times())
    state = facts.job.state
    asked = [rule for rule in RULES.values() if state in rule.states]
    found = [each for rule in asked if rule.shuts for each in rule.reasons(view)]
    is_runnable = state is JobState.QUEUED and not any(shuts for _, shuts in found)
    if is_runnable:
        found += [each for rule in asked if not rule.shuts for each in rule.reasons(view)]
    reasons = [reason for reason, _ in found]
    reasons.sort(key=lambda reason: (URGENCY[reason.actor], reason.code not in AMISS))
    return Why(facts.job.id, state, is_runnable, _verdict(state, is_runnable, reasons), tuple(reasons), now)


def _verdict(state: JobState, is_runnable: bool, reasons: list[Reason]) -> str:
    stand = "runnable" if is_runnable else _STANDS.get(state, "not runnable")
    if not reasons:
        return stand
    more = len(reasons) - 1
    rest = f" (and {more} more {'reason' if more == 1 else 'reasons'})" if more and not is_runnable else ""
    return f"{stand}: {reasons[0].sentence}{rest}"
