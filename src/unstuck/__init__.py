"""Durable jobs that never get stuck.

Nothing is imported before it is asked for: every executor process and every command pays for this file. Type
checkers read `__init__.pyi` beside it, which says the same.
"""

_ROOMS = {
    "unstuck.app": ("App", "Job", "Workflow"),
    "unstuck.app.client": ("AsyncClient", "Client"),
    "unstuck.executor.context": ("AsyncContext", "Context", "current"),
    "unstuck.model.errors": (
        "AmbiguousJob",
        "AmbiguousWorker",
        "ApprovalRejected",
        "BudgetExceeded",
        "BulkEnded",
        "Cancelled",
        "ChildrenFailed",
        "Conflict",
        "DeclaredByCode",
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
        "KeyEnded",
        "NoAnswer",
        "NoStack",
        "NotAnApp",
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
        "ScheduleExists",
        "SchemaMismatch",
        "StaleCursor",
        "StepTimeout",
        "StillRunning",
        "StoreBusy",
        "StoreError",
        "StoreLocked",
        "StoreUnavailable",
        "TargetDeadlock",
        "TooManyAttempts",
        "TooManyQueued",
        "TooManySchedules",
        "Unauthenticated",
        "UnknownBulk",
        "UnknownJob",
        "UnknownKey",
        "UnknownNotification",
        "UnknownOrder",
        "UnknownProcess",
        "UnknownSchedule",
        "UnknownSession",
        "UnknownSetting",
        "UnknownTarget",
        "UnknownTenant",
        "UnknownWorker",
        "UnknownWorkflowName",
        "UnstuckError",
        "Unwind",
        "WorkflowBlacklisted",
        "WrongArguments",
    ),
    "unstuck.model.bulk": ("BulkState", "BulkVerb"),
    "unstuck.model.lifecycle": ("JobState", "Shown"),
    "unstuck.model.policy": ("Policy",),
    "unstuck.model.schedules": ("ScheduleState",),
    "unstuck.model.waits": ("Answer", "ChildEnd", "ChildRef", "Decision", "Spent", "TreeSpent", "WaitKind"),
    "unstuck.model.why": ("Actor", "Code"),
    "unstuck.observe.stream": ("AsyncStream", "Stream"),
    "unstuck.server.who": ("Who",),
    "unstuck.version": ("__version__",),
    "unstuck.views": ("Page",),
    "unstuck.views.bulks": ("BulkView", "CountView", "FilterView", "RefusalView"),
    "unstuck.views.flow": (
        "ApprovalView",
        "BranchView",
        "ChildView",
        "FeedEventView",
        "PartialView",
        "PublishedView",
        "SentView",
        "StepView",
        "TreeUsageView",
        "UsageView",
        "WaitView",
    ),
    "unstuck.views.gates": (
        "LimitChange",
        "LimitView",
        "PauseView",
        "QueueView",
        "TargetView",
        "TargetWhole",
        "TenantView",
        "TenantWhole",
        "UnpauseView",
        "WeightView",
        "WorkflowView",
    ),
    "unstuck.views.guard": (
        "ActionView",
        "BlacklistAdded",
        "BlacklistRemoved",
        "BlacklistView",
        "NotificationView",
        "QuarantineRetry",
        "QuarantineView",
        "SettingView",
    ),
    "unstuck.views.health": ("CheckView", "HealthView"),
    "unstuck.views.jobs": (
        "AttemptView",
        "AwaitedView",
        "EventView",
        "EventWhole",
        "JobList",
        "JobView",
        "JobWhole",
        "LogView",
        "NewJobView",
        "StackView",
    ),
    "unstuck.views.keys": ("KeyView", "NewKeyView", "SessionView"),
    "unstuck.views.schedules": ("FiringView", "ScheduleView", "TicksView"),
    "unstuck.views.series": ("PointView", "SeriesView"),
    "unstuck.views.stats": ("StatsView", "TallyView", "WorkersCount"),
    "unstuck.views.why": ("ReasonView", "WhyAnswer"),
    "unstuck.views.workers": ("BodyView", "GoneProcess", "OrderView", "ProcessView", "RoleView", "WorkerView"),
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
