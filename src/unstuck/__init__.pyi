"""What `import unstuck` offers, for type checkers; at run time each name is imported when it is first asked for."""

from unstuck.app import App as App
from unstuck.app import Job as Job
from unstuck.app import Workflow as Workflow
from unstuck.executor.context import Context as Context
from unstuck.executor.context import current as current
from unstuck.model import errors as errors
from unstuck.model.errors import AmbiguousJob as AmbiguousJob
from unstuck.model.errors import AmbiguousWorker as AmbiguousWorker
from unstuck.model.errors import ApprovalRejected as ApprovalRejected
from unstuck.model.errors import BudgetExceeded as BudgetExceeded
from unstuck.model.errors import BulkEnded as BulkEnded
from unstuck.model.errors import Cancelled as Cancelled
from unstuck.model.errors import ChildrenFailed as ChildrenFailed
from unstuck.model.errors import Conflict as Conflict
from unstuck.model.errors import ErrorType as ErrorType
from unstuck.model.errors import EventConflict as EventConflict
from unstuck.model.errors import Fail as Fail
from unstuck.model.errors import IdConflict as IdConflict
from unstuck.model.errors import IllegalMove as IllegalMove
from unstuck.model.errors import InvalidArguments as InvalidArguments
from unstuck.model.errors import InvalidInput as InvalidInput
from unstuck.model.errors import InvalidPolicy as InvalidPolicy
from unstuck.model.errors import InvalidResult as InvalidResult
from unstuck.model.errors import InvalidSettings as InvalidSettings
from unstuck.model.errors import JobFailed as JobFailed
from unstuck.model.errors import KeyConflict as KeyConflict
from unstuck.model.errors import NoAnswer as NoAnswer
from unstuck.model.errors import NoStack as NoStack
from unstuck.model.errors import NotAsked as NotAsked
from unstuck.model.errors import NotBlacklisted as NotBlacklisted
from unstuck.model.errors import NotBlocking as NotBlocking
from unstuck.model.errors import NotPermitted as NotPermitted
from unstuck.model.errors import NotQuarantined as NotQuarantined
from unstuck.model.errors import NotStorable as NotStorable
from unstuck.model.errors import NotWaiting as NotWaiting
from unstuck.model.errors import OtherCount as OtherCount
from unstuck.model.errors import OutcomeUnknown as OutcomeUnknown
from unstuck.model.errors import Retry as Retry
from unstuck.model.errors import SchemaMismatch as SchemaMismatch
from unstuck.model.errors import StepTimeout as StepTimeout
from unstuck.model.errors import StillRunning as StillRunning
from unstuck.model.errors import StoreBusy as StoreBusy
from unstuck.model.errors import StoreError as StoreError
from unstuck.model.errors import StoreUnavailable as StoreUnavailable
from unstuck.model.errors import TargetDeadlock as TargetDeadlock
from unstuck.model.errors import TooManyQueued as TooManyQueued
from unstuck.model.errors import UnknownBulk as UnknownBulk
from unstuck.model.errors import UnknownJob as UnknownJob
from unstuck.model.errors import UnknownNotification as UnknownNotification
from unstuck.model.errors import UnknownOrder as UnknownOrder
from unstuck.model.errors import UnknownProcess as UnknownProcess
from unstuck.model.errors import UnknownSetting as UnknownSetting
from unstuck.model.errors import UnknownTarget as UnknownTarget
from unstuck.model.errors import UnknownTenant as UnknownTenant
from unstuck.model.errors import UnknownWorker as UnknownWorker
from unstuck.model.errors import UnknownWorkflowName as UnknownWorkflowName
from unstuck.model.errors import UnstuckError as UnstuckError
from unstuck.model.errors import Unwind as Unwind
from unstuck.model.errors import WorkflowBlacklisted as WorkflowBlacklisted
from unstuck.model.job import AttemptRecord as AttemptRecord
from unstuck.model.job import EventRecord as EventRecord
from unstuck.model.job import JobRecord as JobRecord
from unstuck.model.lifecycle import JobState as JobState
from unstuck.model.policy import Policy as Policy
from unstuck.model.waits import ChildEnd as ChildEnd
from unstuck.model.waits import ChildRef as ChildRef
from unstuck.model.waits import Decision as Decision
from unstuck.model.waits import Spent as Spent
from unstuck.model.why import Reason as Reason
from unstuck.model.why import Why as Why
from unstuck.version import __version__ as __version__

__all__ = [
    "AmbiguousJob",
    "AmbiguousWorker",
    "App",
    "ApprovalRejected",
    "AttemptRecord",
    "BudgetExceeded",
    "BulkEnded",
    "Cancelled",
    "ChildEnd",
    "ChildRef",
    "ChildrenFailed",
    "Conflict",
    "Context",
    "Decision",
    "ErrorType",
    "EventConflict",
    "EventRecord",
    "Fail",
    "IdConflict",
    "IllegalMove",
    "InvalidArguments",
    "InvalidInput",
    "InvalidPolicy",
    "InvalidResult",
    "InvalidSettings",
    "Job",
    "JobFailed",
    "JobRecord",
    "JobState",
    "KeyConflict",
    "NoAnswer",
    "NoStack",
    "NotAsked",
    "NotBlacklisted",
    "NotBlocking",
    "NotPermitted",
    "NotQuarantined",
    "NotStorable",
    "NotWaiting",
    "OtherCount",
    "OutcomeUnknown",
    "Policy",
    "Reason",
    "Retry",
    "SchemaMismatch",
    "Spent",
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
    "Why",
    "Workflow",
    "WorkflowBlacklisted",
    "__version__",
    "current",
    "errors",
]
