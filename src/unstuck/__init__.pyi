"""What `import unstuck` offers, for type checkers; at run time each name is imported when it is first asked for."""

from unstuck.app import App as App
from unstuck.app import Job as Job
from unstuck.app import Workflow as Workflow
from unstuck.app.client import AsyncClient as AsyncClient
from unstuck.app.client import Client as Client
from unstuck.executor.context import AsyncContext as AsyncContext
from unstuck.executor.context import Context as Context
from unstuck.executor.context import current as current
from unstuck.model import errors as errors
from unstuck.model.bulk import BulkState as BulkState
from unstuck.model.bulk import BulkVerb as BulkVerb
from unstuck.model.ends import EndedJob as EndedJob
from unstuck.model.errors import AddressRefused as AddressRefused
from unstuck.model.errors import AmbiguousJob as AmbiguousJob
from unstuck.model.errors import AmbiguousWorker as AmbiguousWorker
from unstuck.model.errors import ApprovalRejected as ApprovalRejected
from unstuck.model.errors import BudgetExceeded as BudgetExceeded
from unstuck.model.errors import BulkEnded as BulkEnded
from unstuck.model.errors import CanaryNotCompleted as CanaryNotCompleted
from unstuck.model.errors import Cancelled as Cancelled
from unstuck.model.errors import ChildrenFailed as ChildrenFailed
from unstuck.model.errors import Conflict as Conflict
from unstuck.model.errors import DeclaredByCode as DeclaredByCode
from unstuck.model.errors import ErrorType as ErrorType
from unstuck.model.errors import EventConflict as EventConflict
from unstuck.model.errors import Fail as Fail
from unstuck.model.errors import HookExists as HookExists
from unstuck.model.errors import IdConflict as IdConflict
from unstuck.model.errors import IllegalMove as IllegalMove
from unstuck.model.errors import InvalidArguments as InvalidArguments
from unstuck.model.errors import InvalidInput as InvalidInput
from unstuck.model.errors import InvalidPolicy as InvalidPolicy
from unstuck.model.errors import InvalidResult as InvalidResult
from unstuck.model.errors import InvalidSettings as InvalidSettings
from unstuck.model.errors import JobFailed as JobFailed
from unstuck.model.errors import KeyConflict as KeyConflict
from unstuck.model.errors import KeyEnded as KeyEnded
from unstuck.model.errors import NeedsSignature as NeedsSignature
from unstuck.model.errors import NoAnswer as NoAnswer
from unstuck.model.errors import NoDeadLetter as NoDeadLetter
from unstuck.model.errors import NoSigningKey as NoSigningKey
from unstuck.model.errors import NoStack as NoStack
from unstuck.model.errors import NotActive as NotActive
from unstuck.model.errors import NotAnApp as NotAnApp
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
from unstuck.model.errors import ScheduleExists as ScheduleExists
from unstuck.model.errors import SchemaMismatch as SchemaMismatch
from unstuck.model.errors import SecretNotOpened as SecretNotOpened
from unstuck.model.errors import SignatureRefused as SignatureRefused
from unstuck.model.errors import StaleCursor as StaleCursor
from unstuck.model.errors import StepTimeout as StepTimeout
from unstuck.model.errors import StillRunning as StillRunning
from unstuck.model.errors import StoreBusy as StoreBusy
from unstuck.model.errors import StoreError as StoreError
from unstuck.model.errors import StoreLocked as StoreLocked
from unstuck.model.errors import StoreUnavailable as StoreUnavailable
from unstuck.model.errors import TargetDeadlock as TargetDeadlock
from unstuck.model.errors import TooManyAttempts as TooManyAttempts
from unstuck.model.errors import TooManyHooks as TooManyHooks
from unstuck.model.errors import TooManyQueued as TooManyQueued
from unstuck.model.errors import TooManySchedules as TooManySchedules
from unstuck.model.errors import TooManyWebhooks as TooManyWebhooks
from unstuck.model.errors import Unauthenticated as Unauthenticated
from unstuck.model.errors import UnknownAlert as UnknownAlert
from unstuck.model.errors import UnknownBulk as UnknownBulk
from unstuck.model.errors import UnknownDelivery as UnknownDelivery
from unstuck.model.errors import UnknownHook as UnknownHook
from unstuck.model.errors import UnknownJob as UnknownJob
from unstuck.model.errors import UnknownKey as UnknownKey
from unstuck.model.errors import UnknownNotification as UnknownNotification
from unstuck.model.errors import UnknownOrder as UnknownOrder
from unstuck.model.errors import UnknownProcess as UnknownProcess
from unstuck.model.errors import UnknownSchedule as UnknownSchedule
from unstuck.model.errors import UnknownSession as UnknownSession
from unstuck.model.errors import UnknownSetting as UnknownSetting
from unstuck.model.errors import UnknownTarget as UnknownTarget
from unstuck.model.errors import UnknownTenant as UnknownTenant
from unstuck.model.errors import UnknownWebhook as UnknownWebhook
from unstuck.model.errors import UnknownWorker as UnknownWorker
from unstuck.model.errors import UnknownWorkflowName as UnknownWorkflowName
from unstuck.model.errors import UnstuckError as UnstuckError
from unstuck.model.errors import Unwind as Unwind
from unstuck.model.errors import WebhookExists as WebhookExists
from unstuck.model.errors import WorkflowBlacklisted as WorkflowBlacklisted
from unstuck.model.errors import WrongArguments as WrongArguments
from unstuck.model.lifecycle import JobState as JobState
from unstuck.model.lifecycle import Shown as Shown
from unstuck.model.policy import Policy as Policy
from unstuck.model.schedules import ScheduleState as ScheduleState
from unstuck.model.waits import Answer as Answer
from unstuck.model.waits import ChildEnd as ChildEnd
from unstuck.model.waits import ChildRef as ChildRef
from unstuck.model.waits import Decision as Decision
from unstuck.model.waits import Spent as Spent
from unstuck.model.waits import TreeSpent as TreeSpent
from unstuck.model.waits import WaitKind as WaitKind
from unstuck.model.webhooks import DeliveryState as DeliveryState
from unstuck.model.webhooks import WebhookState as WebhookState
from unstuck.model.why import Actor as Actor
from unstuck.model.why import Code as Code
from unstuck.observe.stream import AsyncStream as AsyncStream
from unstuck.observe.stream import Stream as Stream
from unstuck.server.who import Who as Who
from unstuck.version import __version__ as __version__
from unstuck.views import Page as Page
from unstuck.views.alerts import AlertRuleView as AlertRuleView
from unstuck.views.alerts import AlertView as AlertView
from unstuck.views.bulks import BulkView as BulkView
from unstuck.views.bulks import CountView as CountView
from unstuck.views.bulks import FilterView as FilterView
from unstuck.views.bulks import RefusalView as RefusalView
from unstuck.views.dead_letters import LetterStory as LetterStory
from unstuck.views.dead_letters import LetterView as LetterView
from unstuck.views.dead_letters import LetterWhole as LetterWhole
from unstuck.views.doctor import DoctorView as DoctorView
from unstuck.views.doctor import ExaminedView as ExaminedView
from unstuck.views.doctor import FindingView as FindingView
from unstuck.views.doctor import FixView as FixView
from unstuck.views.flow import ApprovalView as ApprovalView
from unstuck.views.flow import BranchView as BranchView
from unstuck.views.flow import ChildView as ChildView
from unstuck.views.flow import FeedEventView as FeedEventView
from unstuck.views.flow import PartialView as PartialView
from unstuck.views.flow import PublishedView as PublishedView
from unstuck.views.flow import SentView as SentView
from unstuck.views.flow import StepView as StepView
from unstuck.views.flow import TreeUsageView as TreeUsageView
from unstuck.views.flow import UsageView as UsageView
from unstuck.views.flow import WaitView as WaitView
from unstuck.views.gates import BreakerView as BreakerView
from unstuck.views.gates import LimitChange as LimitChange
from unstuck.views.gates import LimitView as LimitView
from unstuck.views.gates import MarkView as MarkView
from unstuck.views.gates import PauseView as PauseView
from unstuck.views.gates import QueueView as QueueView
from unstuck.views.gates import TargetView as TargetView
from unstuck.views.gates import TargetWhole as TargetWhole
from unstuck.views.gates import TenantView as TenantView
from unstuck.views.gates import TenantWhole as TenantWhole
from unstuck.views.gates import UnpauseView as UnpauseView
from unstuck.views.gates import WeightView as WeightView
from unstuck.views.gates import WorkflowView as WorkflowView
from unstuck.views.gates import WorkflowWhole as WorkflowWhole
from unstuck.views.guard import ActionView as ActionView
from unstuck.views.guard import BlacklistAdded as BlacklistAdded
from unstuck.views.guard import BlacklistRemoved as BlacklistRemoved
from unstuck.views.guard import BlacklistView as BlacklistView
from unstuck.views.guard import NotificationView as NotificationView
from unstuck.views.guard import QuarantineRetry as QuarantineRetry
from unstuck.views.guard import QuarantineView as QuarantineView
from unstuck.views.guard import SettingView as SettingView
from unstuck.views.health import CheckView as CheckView
from unstuck.views.health import HealthView as HealthView
from unstuck.views.hooks import HookDeliveryView as HookDeliveryView
from unstuck.views.hooks import HookDryRunView as HookDryRunView
from unstuck.views.hooks import HookSecretView as HookSecretView
from unstuck.views.hooks import HookView as HookView
from unstuck.views.hooks import NewHookView as NewHookView
from unstuck.views.jobs import AttemptView as AttemptView
from unstuck.views.jobs import AwaitedView as AwaitedView
from unstuck.views.jobs import EventView as EventView
from unstuck.views.jobs import EventWhole as EventWhole
from unstuck.views.jobs import JobList as JobList
from unstuck.views.jobs import JobView as JobView
from unstuck.views.jobs import JobWhole as JobWhole
from unstuck.views.jobs import LogView as LogView
from unstuck.views.jobs import NewJobView as NewJobView
from unstuck.views.jobs import StackView as StackView
from unstuck.views.keys import KeyView as KeyView
from unstuck.views.keys import NewKeyView as NewKeyView
from unstuck.views.keys import SessionView as SessionView
from unstuck.views.schedules import FiringView as FiringView
from unstuck.views.schedules import ScheduleView as ScheduleView
from unstuck.views.schedules import TicksView as TicksView
from unstuck.views.series import PointView as PointView
from unstuck.views.series import SeriesView as SeriesView
from unstuck.views.signing import RevocationAdded as RevocationAdded
from unstuck.views.signing import RevocationRemoved as RevocationRemoved
from unstuck.views.signing import RevocationView as RevocationView
from unstuck.views.stats import StatsView as StatsView
from unstuck.views.stats import TallyView as TallyView
from unstuck.views.stats import WorkersCount as WorkersCount
from unstuck.views.top import NeedView as NeedView
from unstuck.views.top import RunningView as RunningView
from unstuck.views.top import TopView as TopView
from unstuck.views.webhooks import DeliveryAttemptView as DeliveryAttemptView
from unstuck.views.webhooks import DeliveryDetailsView as DeliveryDetailsView
from unstuck.views.webhooks import DeliveryView as DeliveryView
from unstuck.views.webhooks import NewWebhookView as NewWebhookView
from unstuck.views.webhooks import ReplayView as ReplayView
from unstuck.views.webhooks import WebhookView as WebhookView
from unstuck.views.why import ReasonView as ReasonView
from unstuck.views.why import WhyAnswer as WhyAnswer
from unstuck.views.workers import BodyView as BodyView
from unstuck.views.workers import GoneProcess as GoneProcess
from unstuck.views.workers import OrderView as OrderView
from unstuck.views.workers import ProcessView as ProcessView
from unstuck.views.workers import RoleView as RoleView
from unstuck.views.workers import WorkerView as WorkerView

__all__ = [
    "ActionView",
    "Actor",
    "AddressRefused",
    "AlertRuleView",
    "AlertView",
    "AmbiguousJob",
    "AmbiguousWorker",
    "Answer",
    "App",
    "ApprovalRejected",
    "ApprovalView",
    "AsyncClient",
    "AsyncContext",
    "AsyncStream",
    "AttemptView",
    "AwaitedView",
    "BlacklistAdded",
    "BlacklistRemoved",
    "BlacklistView",
    "BodyView",
    "BranchView",
    "BudgetExceeded",
    "BulkEnded",
    "BulkState",
    "BulkVerb",
    "BulkView",
    "CanaryNotCompleted",
    "Cancelled",
    "CheckView",
    "ChildEnd",
    "ChildRef",
    "ChildView",
    "ChildrenFailed",
    "Client",
    "Code",
    "Conflict",
    "Context",
    "CountView",
    "Decision",
    "DeclaredByCode",
    "DeliveryAttemptView",
    "DeliveryDetailsView",
    "DeliveryState",
    "DeliveryView",
    "DoctorView",
    "EndedJob",
    "ErrorType",
    "EventConflict",
    "EventView",
    "EventWhole",
    "ExaminedView",
    "Fail",
    "FeedEventView",
    "FilterView",
    "FindingView",
    "FiringView",
    "FixView",
    "GoneProcess",
    "HealthView",
    "HookDeliveryView",
    "HookDryRunView",
    "HookExists",
    "HookSecretView",
    "HookView",
    "IdConflict",
    "IllegalMove",
    "InvalidArguments",
    "InvalidInput",
    "InvalidPolicy",
    "InvalidResult",
    "InvalidSettings",
    "Job",
    "JobFailed",
    "JobList",
    "JobState",
    "JobView",
    "JobWhole",
    "KeyConflict",
    "KeyEnded",
    "KeyView",
    "LetterStory",
    "LetterView",
    "LetterWhole",
    "LimitChange",
    "LimitView",
    "LogView",
    "NeedView",
    "NeedsSignature",
    "NewHookView",
    "NewJobView",
    "NewKeyView",
    "NewWebhookView",
    "NoAnswer",
    "NoDeadLetter",
    "NoSigningKey",
    "NoStack",
    "NotActive",
    "NotAnApp",
    "NotAsked",
    "NotBlacklisted",
    "NotBlocking",
    "NotPermitted",
    "NotQuarantined",
    "NotStorable",
    "NotWaiting",
    "NotificationView",
    "OrderView",
    "OtherCount",
    "OutcomeUnknown",
    "Page",
    "PartialView",
    "PauseView",
    "PointView",
    "Policy",
    "ProcessView",
    "PublishedView",
    "QuarantineRetry",
    "QuarantineView",
    "QueueView",
    "ReasonView",
    "RefusalView",
    "ReplayView",
    "Retry",
    "RevocationAdded",
    "RevocationRemoved",
    "RevocationView",
    "RoleView",
    "RunningView",
    "ScheduleExists",
    "ScheduleState",
    "ScheduleView",
    "SchemaMismatch",
    "SecretNotOpened",
    "SentView",
    "SeriesView",
    "SessionView",
    "SettingView",
    "Shown",
    "SignatureRefused",
    "Spent",
    "StackView",
    "StaleCursor",
    "StatsView",
    "StepTimeout",
    "StepView",
    "StillRunning",
    "StoreBusy",
    "StoreError",
    "StoreLocked",
    "StoreUnavailable",
    "Stream",
    "TallyView",
    "TargetDeadlock",
    "TargetView",
    "TargetWhole",
    "TenantView",
    "TenantWhole",
    "TicksView",
    "TooManyAttempts",
    "TooManyHooks",
    "TooManyQueued",
    "TooManySchedules",
    "TooManyWebhooks",
    "TopView",
    "TreeSpent",
    "TreeUsageView",
    "Unauthenticated",
    "UnknownAlert",
    "UnknownBulk",
    "UnknownDelivery",
    "UnknownHook",
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
    "UnknownWebhook",
    "UnknownWorker",
    "UnknownWorkflowName",
    "UnpauseView",
    "UnstuckError",
    "Unwind",
    "UsageView",
    "WaitKind",
    "WaitView",
    "WebhookExists",
    "WebhookState",
    "WebhookView",
    "WeightView",
    "Who",
    "WhyAnswer",
    "WorkerView",
    "WorkersCount",
    "Workflow",
    "WorkflowBlacklisted",
    "WorkflowView",
    "WrongArguments",
    "__version__",
    "current",
    "errors",
]
