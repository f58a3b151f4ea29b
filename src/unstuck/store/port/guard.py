"""The guard's port: blacklist, runtime settings, notifications, quarantine and audit."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from unstuck.model.errors import SignatureRefused
from unstuck.model.guard import EVERY as EVERY
from unstuck.model.guard import Action, BlacklistEntry, BreakerStand, Notification, SettingRecord
from unstuck.records import dataclass

#: What can fail for one thing alone while the store answers: the settle of an attempt, one item of a sweep or ingest.
QuarantineDuty = Literal[
    "claim",
    "settle",
    "recover",
    "overdue",
    "start",
    "expire",
    "wait",
    "orphan",
    "blacklist",
    "children",
    "dependants",
    "target",
    "body_mark",
    "retention",
]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One thing that could not be written although the store answered. Every sweep tries it again, alone; it delays
    nothing but itself. `item`: the job's number (of duty "target": the target's)."""

    duty: QuarantineDuty
    item: int
    tenant: str
    since_at: datetime
    tried_at: datetime
    tries: int
    error: str
    by: str
    job: str | None = None
    workflow: str | None = None
    target: str | None = None


class GuardPort(Protocol):
    """What is shut out or set aside, and who did what."""

    def blacklist(self, tenant: str | None = None) -> list[BlacklistEntry]:
        """The active entries that bar something of this tenant (None: all there are), the oldest first."""
        ...

    def blacklist_add(self, tenant: str, workflow: str, reason: str, by: str) -> tuple[BlacklistEntry, bool]:
        """No claim that commits after this returns a job of it. `tenant` may be EVERY. An entry that stands already
        stays as it is, and then the second answer is False."""
        ...

    def blacklist_remove(self, tenant: str | None, workflow: str, by: str) -> list[BlacklistEntry]:
        """The entry of this tenant (EVERY: that of all tenants), or with None all that stand against the workflow.
        The window begins anew, and what was held goes on."""
        ...

    def blacklist_history(
        self, tenant: str | None = None, workflow: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BlacklistEntry]:
        """All there ever were, the newest first."""
        ...

    def marks_against(self, tenant: str, workflow: str) -> int:
        """How many stuck executions count against it at this moment."""
        ...

    def breaker_stand(self, tenant: str, workflow: str, limit: int = 50) -> BreakerStand:
        """The same with the rules, and with the newest marks of the window."""
        ...

    def settings(self) -> list[SettingRecord]:
        """The runtime settings as they are in force."""
        ...

    def set_setting(self, name: str, value: str | None, by: str) -> SettingRecord:
        """`value` is checked JSON text; None: the default again. Holds everywhere from the commit on."""
        ...

    def notifications(
        self, tenant: str | None = None, *, acked: bool = False, before: int | None = None, limit: int = 100
    ) -> list[Notification]:
        """Those that nobody has taken note of, with `acked` all, the newest first."""
        ...

    def ack_notification(self, number: int, by: str, tenant: str | None = None) -> Notification:
        """UnknownNotification; also for one that is not this tenant's (None: whosever it is)."""
        ...

    def quarantine_due(self, duty: QuarantineDuty, batch: int = 100) -> list[int]:
        """Items to try again, alone, those that were not tried for longest first."""
        ...

    def quarantined(
        self,
        tenant: str | None = None,
        *,
        job: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[Quarantined]:
        """What is set aside, by duty and item, beyond `after`; of one job, or of all."""
        ...

    def retry_quarantined(
        self,
        duty: QuarantineDuty | None = None,
        item: int | None = None,
        *,
        job: str = "all",
        tenant: str = EVERY,
        by: str = "",
    ) -> int:
        """A person asks for these next: how many. `job`, `tenant` and `by` are for the audit."""
        ...

    def tell_refused_signature(self, error: SignatureRefused, by: str) -> None:
        """A door refused a job for its signature: an event in the feed and a line of audit."""
        ...

    def audit(
        self,
        tenant: str | None = None,
        *,
        verb: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
        with_platform: bool = True,
    ) -> list[Action]:
        """What people did to a tenant's things, and with `with_platform` to everybody's, the newest first. `verb` is
        one, or the noun of several (jobs, blacklist)."""
        ...
