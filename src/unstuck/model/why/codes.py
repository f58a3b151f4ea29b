"""The codes of all reasons, who must act, and which reasons are told first."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    SCHEDULED = "scheduled"
    RETRY_BACKOFF = "retry_backoff"
    HELD = "held"
    WAITING_DEPENDENCIES = "waiting_dependencies"
    WAITING = "waiting"
    WAITING_EVENT = "waiting_event"
    WAITING_APPROVAL = "waiting_approval"
    WAITING_CHILDREN = "waiting_children"
    WAITING_TIME = "waiting_time"
    PAUSED = "paused"
    BODY_MAY_LIVE = "body_may_live"
    TARGET_BLOCKED = "target_blocked"
    TARGET_PAUSED = "target_paused"
    TARGET_BUSY = "target_busy"
    QUEUE_PAUSED = "queue_paused"
    TENANT_PAUSED = "tenant_paused"
    WORKFLOW_PAUSED = "workflow_paused"
    BLACKLISTED = "blacklisted"
    CONCURRENCY_LIMIT = "concurrency_limit"
    RATE_LIMITED = "rate_limited"
    NO_WORKER = "no_worker"
    NOT_GRANTED = "not_granted"
    WORKER_LACKS_CODE = "worker_lacks_code"
    APP_NOT_LOADED = "app_not_loaded"
    WORKERS_DRAINING = "workers_draining"
    ENGINE_STALLED = "engine_stalled"
    UNPLACED = "unplaced"
    ROW_LOCKED = "row_locked"
    QUARANTINED = "quarantined"
    WORKER_FAILING = "worker_failing"
    WORKERS_FULL = "workers_full"
    LOWER_PRIORITY = "lower_priority"
    OTHERS_FIRST = "others_first"
    CLAIMABLE = "claimable"
    RUNS_ALONE = "runs_alone"
    RUNNING = "running"
    CANCELLING = "cancelling"
    LEASE_EXPIRED = "lease_expired"
    STUCK = "stuck"
    ENDED = "ended"
    DEAD = "dead"


class Actor(StrEnum):
    """Who must act for it to go on."""

    NOBODY = "nobody"
    ENGINE = "the engine"
    OPERATOR = "an operator"
    ADMIN = "an admin"
    OWNER = "the job's owner"
    SENDER = "whoever sends the event"
    APPROVER = "whoever is asked"


#: What a person must do is said before what passes by itself.
URGENCY = {
    Actor.OPERATOR: 0,
    Actor.ADMIN: 0,
    Actor.OWNER: 0,
    Actor.SENDER: 0,
    Actor.APPROVER: 0,
    Actor.ENGINE: 1,
    Actor.NOBODY: 2,
}
#: What is broken is said before what a person wanted so.
AMISS = {Code.ROW_LOCKED, Code.QUARANTINED, Code.WORKER_FAILING}
