"""Guard: the blacklist, the runtime settings, the notifications and the audit, as a program sees and changes them.

Tenant omitted means all tenants, unless the app was given a tenant of its own: then that one. In coroutines:
`await app.in_thread(…)`.
"""

from __future__ import annotations

import builtins
from typing import Any

from unstuck.app.engine import Engine
from unstuck.intake.guard import GuardVerbs
from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord


class _Part:
    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def _guard(self) -> GuardVerbs:
        settings = self._engine.settings
        own = settings.tenant if "tenant" in settings.origins else None
        return GuardVerbs(self._engine.store, own=own, by=self._engine.name)


class Blacklist(_Part):
    """`app.blacklist`: workflows of which nothing is accepted or started."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> builtins.list[BlacklistEntry]:
        """What stands, the oldest first."""
        return self._guard.entries(tenant=tenant)

    def add(
        self, workflow: str, reason: str | None = None, *, tenant: str | None = None, by: str | None = None
    ) -> BlacklistEntry:
        """Shut a workflow out on every path. One that is out already stays so, with the reason it had."""
        return self._guard.add(workflow, reason, tenant=tenant, by=by)[0]

    def remove(
        self, workflow: str, *, tenant: str | None = None, by: str | None = None
    ) -> builtins.list[BlacklistEntry]:
        """Let it run again: its stuck executions count from 0, what was held goes on. NotBlacklisted if it is not."""
        return self._guard.remove(workflow, tenant=tenant, by=by)

    def history(
        self, workflow: str | None = None, *, tenant: str | None = None, limit: int = 100
    ) -> builtins.list[BlacklistEntry]:
        """All there ever was, the newest first: who, when, why, and who lifted it when."""
        return self._guard.history(workflow, tenant=tenant, limit=limit)


class Runtime(_Part):
    """`app.runtime`: settings that are kept in the database and hold for every worker from the moment they change."""

    __slots__ = ()

    def list(self) -> builtins.list[SettingRecord]:
        return self._guard.settings()

    def get(self, name: str) -> Any:
        """The value in force. UnknownSetting for a name that is none."""
        return self._guard.get(name).value

    def set(self, name: str, value: Any, *, by: str | None = None) -> SettingRecord:
        return self._guard.set(name, value, by=by)

    def reset(self, name: str, *, by: str | None = None) -> SettingRecord:
        """The default again."""
        return self._guard.reset(name, by=by)


class Notifications(_Part):
    """`app.notifications`: news for the operators of the platform."""

    __slots__ = ()

    def list(
        self, *, acked: bool = False, tenant: str | None = None, limit: int = 100
    ) -> builtins.list[Notification]:
        """Those that nobody has taken note of, with `acked` all; the newest first."""
        return self._guard.notifications(acked=acked, tenant=tenant, limit=limit)

    def ack(self, number: int, *, by: str | None = None) -> Notification:
        return self._guard.ack(number, by=by)


class Audit(_Part):
    """`app.audit`: who did what, and when."""

    __slots__ = ()

    def list(
        self,
        *,
        verb: str | None = None,
        subject: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> builtins.list[Action]:
        """The newest first. `verb`: one ("jobs.cancel"), or all of a noun ("jobs")."""
        return self._guard.audit(verb=verb, subject=subject, tenant=tenant, limit=limit)
