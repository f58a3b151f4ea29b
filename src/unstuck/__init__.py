"""Durable jobs that never get stuck.

Nothing is imported before it is asked for: every executor process and every command pays for this file. Type
checkers read `__init__.pyi` beside it, which says the same.
"""

_ROOMS = {
    "unstuck.app": ("App", "Job", "Workflow"),
    "unstuck.executor.context": ("Context", "current"),
    "unstuck.model.errors": (
        "AmbiguousJob",
        "AmbiguousWorker",
        "ApprovalRejected",
        "BudgetExceeded",
        "BulkEnded",
        "Cancelled",
        "ChildrenFailed",
        "Conflict",
        "ErrorType",
        "EventConflict",
        "Fail",
        "IdConflict",
        "IllegalMove",
        "InvalidArguments",
        "InvalidInput",
        "InvalidPolicy",
        "InvalidResult",
        "InvalidSettings",
        "JobFailed",
        "KeyConflict",
        "NoAnswer",
        "NoStack",
        "NotBlacklisted",
        "NotQuarantined",
        "NotBlocking",
        "NotPermitted",
        "NotStorable",
        "NotAsked",
        "NotWaiting",
        "OtherCount",
        "OutcomeUnknown",
        "Retry",
        "SchemaMismatch",
        "StepTimeout",
        "StillRunning",
        "StoreBusy",
        "StoreError",
        "StoreUnavailable",
        "TargetDeadlock",
        "TooManyQueued",
        "UnknownBulk",
        "UnknownJob",
        "UnknownNotification",
        "UnknownOrder",
        "UnknownProcess",
        "UnknownSetting",
        "UnknownTarget",
        "UnknownTenant",
        "UnknownWorker",
        "UnknownWorkflowName",
        "UnstuckError",
        "Unwind",
        "WorkflowBlacklisted",
    ),
    "unstuck.model.job": ("AttemptRecord", "EventRecord", "JobRecord"),
    "unstuck.model.lifecycle": ("JobState",),
    "unstuck.model.policy": ("Policy",),
    "unstuck.model.why": ("Reason", "Why"),
    "unstuck.model.waits": ("ChildEnd", "ChildRef", "Decision", "Spent"),
    "unstuck.version": ("__version__",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [*_ROOM_OF, "errors"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "errors":
        value: object = import_module("unstuck.model.errors")
    elif name in _ROOM_OF:
        value = getattr(import_module(_ROOM_OF[name]), name)
    else:
        raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
