"""WorkerPort and Store: every question we ask a database, a module per noun.

One verb is one transaction with one typed outcome. A verb that could not be carried out raises a StoreError:
StoreUnavailable and StoreBusy mean that nothing was written, OutcomeUnknown that the answer was lost. Every verb
is safe to repeat: submit by the job's id and key, claim by its claim id, settle by (job, token, claim id).
Tenant is a parameter wherever a person asks; workers serve all tenants by route.
"""

from __future__ import annotations

from typing import Protocol

from unstuck.store.hint import ANYWHERE, Hint
from unstuck.store.port.alerts import (
    AlertsPort,
    AlertStand,
    AlertTurn,
    LetterStand,
    LongBlocked,
    Repeated,
    Resting,
    SeenAlerts,
    StuckRate,
)
from unstuck.store.port.bulks import BulkRecord, BulksPort, NewBulk
from unstuck.store.port.condition import (
    ClockOffset,
    ConditionPort,
    FileStand,
    LongTransaction,
    Pooler,
    ServerStand,
    TableStand,
)
from unstuck.store.port.dead_letters import DeadLetter, DeadLettersPort, LetterFilter, LetterTerms, NewLetter
from unstuck.store.port.ends import EndFacts, EndsPage, EndsPort, FollowedEnd, Follower, LateEnd, WaitingEnd
from unstuck.store.port.flow import FlowPort, Published
from unstuck.store.port.guard import GuardPort, Quarantined, QuarantineDuty
from unstuck.store.port.hooks import (
    HookDelivered,
    HookDelivery,
    HookRecord,
    HookRefusal,
    HooksPort,
    NewHook,
    NewHookDelivery,
    StoredSecret,
)
from unstuck.store.port.jobs import (
    ATTEMPTS_PAGE,
    HISTORY_PAGE,
    MOST_CHARACTERS,
    Holder,
    JobFilter,
    JobPage,
    JobsPort,
    SeenJob,
    Submitted,
)
from unstuck.store.port.keys import KeysPort, SeenKey
from unstuck.store.port.metrics import JobStand, JobStands, MetricsPort, TroubleStand
from unstuck.store.port.order import (
    BY_CODE,
    EVERY,
    TARGET_CEILING,
    Limit,
    LimitKind,
    LimitPart,
    OrderPort,
    Pause,
    PauseKind,
    TargetRecord,
    TenantRecord,
)
from unstuck.store.port.origin import Origin, asked_from, asking_from
from unstuck.store.port.read import (
    ClockStand,
    Dossier,
    FeedBounds,
    FeedEvent,
    FeedFilter,
    FeedPage,
    InboxStand,
    LockHolder,
    OutputMark,
    Overdue,
    ReadPort,
    Tally,
    TallyBy,
)
from unstuck.store.port.remote import ControlNews, Grant, OffersPort, RemotePort, Wanted
from unstuck.store.port.schedules import FiringRecord, NewFiring, Overlapped, ScheduleRecord, SchedulesPort
from unstuck.store.port.secrets import KeptSecret, SecretOwner, SecretsPort
from unstuck.store.port.series import SeriesPage, SeriesPer, SeriesPoint, SeriesPort
from unstuck.store.port.signing import Revocation, SignedFacts, SignedRow, SigningPort
from unstuck.store.port.sweeps import (
    FIRST_ENDED,
    Ended,
    EndedPauses,
    Enough,
    NameKind,
    Recovered,
    ServerSession,
    SweepsPort,
    Waiting,
    WaitingRoutes,
    never,
)
from unstuck.store.port.webhooks import (
    Copied,
    DeliveryRecord,
    DeliveryTurn,
    MakeBody,
    NewWebhook,
    Replayed,
    SettledTry,
    WebhookName,
    WebhookRecord,
    WebhooksPort,
)
from unstuck.store.port.worker import (
    HELD,
    Asked,
    AttemptOutput,
    Beat,
    Claimed,
    ClaimPort,
    Due,
    Ingested,
    NewChild,
    NewStep,
    NewWorker,
    OpenRoute,
    OpenRoutes,
    OrderKind,
    Report,
    Route,
    Settled,
    Share,
    Verdict,
    WorkerOrder,
    WorkerPort,
)

__all__ = [
    "ANYWHERE",
    "ATTEMPTS_PAGE",
    "BY_CODE",
    "EVERY",
    "FIRST_ENDED",
    "HELD",
    "HISTORY_PAGE",
    "MOST_CHARACTERS",
    "TARGET_CEILING",
    "AlertStand",
    "AlertTurn",
    "AlertsPort",
    "Asked",
    "AttemptOutput",
    "Beat",
    "BulkRecord",
    "BulksPort",
    "ClaimPort",
    "Claimed",
    "ClockOffset",
    "ClockStand",
    "ConditionPort",
    "ControlNews",
    "Copied",
    "DeadLetter",
    "DeadLettersPort",
    "DeliveryRecord",
    "DeliveryTurn",
    "Dossier",
    "Due",
    "EndFacts",
    "Ended",
    "EndedPauses",
    "EndsPage",
    "EndsPort",
    "Enough",
    "FeedBounds",
    "FeedEvent",
    "FeedFilter",
    "FeedPage",
    "FileStand",
    "FiringRecord",
    "FlowPort",
    "FollowedEnd",
    "Follower",
    "Grant",
    "GuardPort",
    "Hint",
    "Holder",
    "HookDelivered",
    "HookDelivery",
    "HookRecord",
    "HookRefusal",
    "HooksPort",
    "InboxStand",
    "Ingested",
    "JobFilter",
    "JobPage",
    "JobStand",
    "JobStands",
    "JobsPort",
    "KeptSecret",
    "KeysPort",
    "LateEnd",
    "LetterFilter",
    "LetterStand",
    "LetterTerms",
    "Limit",
    "LimitKind",
    "LimitPart",
    "LockHolder",
    "LongBlocked",
    "LongTransaction",
    "MakeBody",
    "MetricsPort",
    "NameKind",
    "NewBulk",
    "NewChild",
    "NewFiring",
    "NewHook",
    "NewHookDelivery",
    "NewLetter",
    "NewStep",
    "NewWebhook",
    "NewWorker",
    "OffersPort",
    "OpenRoute",
    "OpenRoutes",
    "OrderKind",
    "OrderPort",
    "Origin",
    "OutputMark",
    "Overdue",
    "Overlapped",
    "Pause",
    "PauseKind",
    "Pooler",
    "Published",
    "QuarantineDuty",
    "Quarantined",
    "ReadPort",
    "Recovered",
    "RemotePort",
    "Repeated",
    "Replayed",
    "Report",
    "Resting",
    "Revocation",
    "Route",
    "ScheduleRecord",
    "SchedulesPort",
    "SecretOwner",
    "SecretsPort",
    "SeenAlerts",
    "SeenJob",
    "SeenKey",
    "SeriesPage",
    "SeriesPer",
    "SeriesPoint",
    "SeriesPort",
    "ServerSession",
    "ServerStand",
    "Settled",
    "SettledTry",
    "Share",
    "SignedFacts",
    "SignedRow",
    "SigningPort",
    "Store",
    "StoredSecret",
    "StuckRate",
    "Submitted",
    "SweepsPort",
    "TableStand",
    "Tally",
    "TallyBy",
    "TargetRecord",
    "TenantRecord",
    "TroubleStand",
    "Verdict",
    "Waiting",
    "WaitingEnd",
    "WaitingRoutes",
    "Wanted",
    "WebhookName",
    "WebhookRecord",
    "WebhooksPort",
    "WorkerOrder",
    "WorkerPort",
    "asked_from",
    "asking_from",
    "never",
]


class Store(
    WorkerPort,
    ClaimPort,
    RemotePort,
    JobsPort,
    BulksPort,
    DeadLettersPort,
    FlowPort,
    OrderPort,
    GuardPort,
    AlertsPort,
    SigningPort,
    KeysPort,
    SweepsPort,
    ReadPort,
    SeriesPort,
    MetricsPort,
    SchedulesPort,
    WebhooksPort,
    HooksPort,
    SecretsPort,
    EndsPort,
    ConditionPort,
    Protocol,
):
    """All the verbs."""

    def recall_time(self) -> None:
        """Go by what a worker of this machine saw last, if any: a clock that has leapt since is not believed. Of who
        begins and is no worker, which is told so when it registers."""
        ...

    def migrate(self) -> list[str]:
        """Bring the schema up to date under a lock; the names of what was applied."""
        ...

    def schema_version(self) -> int:
        """The number of the newest migration that was applied; 0: none was."""
        ...

    def shipped_version(self) -> int:
        """The number of the newest migration that this code brings."""
        ...

    def prepare_schema(self) -> bool:
        """For programs that only want to work: an empty database gets its tables, a SQLite file is brought up to
        date. False: a server's database is behind, and only `migrate` changes that."""
        ...
