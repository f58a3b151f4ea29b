"""The verbs of blacklist, settings, notifications, quarantine and audit."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from unstuck.clock import boot
from unstuck.model.errors import SignatureRefused, StoreBusy
from unstuck.model.guard import Action, BlacklistEntry, BreakerStand, Notification, SettingRecord
from unstuck.store.database import Transaction
from unstuck.store.guard import audit, breaker, quarantine, signing
from unstuck.store.port import EVERY, Quarantined, QuarantineDuty
from unstuck.store.read import lookup
from unstuck.store.sql_store.verbs import SqlVerbs

_pause = threading.Event().wait


class SqlGuard(SqlVerbs):
    def blacklist(self, tenant: str | None = None) -> list[BlacklistEntry]:
        return self._database.read(lambda t: breaker.active(t, tenant)) if lookup.can_exist(tenant) else []

    def blacklist_add(self, tenant: str, workflow: str, reason: str, by: str) -> tuple[BlacklistEntry, bool]:
        """Whoever waits to shut the guard keeps claims out: for a moment at a time, with claims in between."""
        until = boot() + self._database.store_call
        while True:
            try:
                return self._database.write(
                    lambda t: breaker.add(t, tenant, workflow, reason, by), patience=breaker.PATIENCE
                )
            except StoreBusy:
                if boot() + 2 * breaker.PATIENCE >= until:
                    raise
                _pause(breaker.PATIENCE)

    def blacklist_remove(self, tenant: str | None, workflow: str, by: str) -> list[BlacklistEntry]:
        if not lookup.can_exist(tenant, workflow):
            return []
        removed = self._database.write(lambda t: breaker.lift(t, tenant, workflow, by))
        if removed:
            self._blacklist_duty.release_at_once(workflow)
        return self._transactions.hinting(removed)

    def blacklist_history(
        self, tenant: str | None = None, workflow: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BlacklistEntry]:
        if not lookup.can_exist(tenant, workflow):
            return []
        return self._database.read(lambda t: breaker.history(t, tenant, workflow, before, limit))

    def marks_against(self, tenant: str, workflow: str) -> int:
        if not lookup.can_exist(tenant, workflow):
            return 0
        return self._database.read(lambda t: breaker.marks_against(t, tenant, workflow))

    def breaker_stand(self, tenant: str, workflow: str, limit: int = 50) -> BreakerStand:
        return self._database.read(lambda t: breaker.stand(t, tenant, workflow, limit))

    def settings(self) -> list[SettingRecord]:
        return self._database.read(breaker.settings)

    def set_setting(self, name: str, value: str | None, by: str) -> SettingRecord:
        return self._database.write(lambda t: breaker.change_setting(t, name, value, by))

    def notifications(
        self, tenant: str | None = None, *, acked: bool = False, before: int | None = None, limit: int = 100
    ) -> list[Notification]:
        if not lookup.can_exist(tenant):
            return []
        return self._database.read(lambda t: audit.notifications(t, tenant, acked, before, limit))

    def ack_notification(self, number: int, by: str, tenant: str | None = None) -> Notification:
        return self._database.write(lambda t: audit.ack(t, number, by, tenant))

    def quarantine(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> frozenset[int]:
        return self._transactions.set_aside(duty, errors, by)

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        self._transactions.leave_quarantine(duty, item)

    def quarantine_due(self, duty: QuarantineDuty, batch: int = 100) -> list[int]:
        return self._transactions.quarantine_due(duty, batch)

    def quarantined(
        self,
        tenant: str | None = None,
        *,
        job: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[Quarantined]:
        if not lookup.can_exist(tenant, job):
            return []
        return self._database.read(lambda t: quarantine.page(t, tenant, job, after, limit))

    def retry_quarantined(
        self,
        duty: QuarantineDuty | None = None,
        item: int | None = None,
        *,
        job: str = "all",
        tenant: str = EVERY,
        by: str = "",
    ) -> int:
        def work(t: Transaction) -> int:
            count = t.run("retry_quarantined", duty=duty, item=item)
            if count:
                audit.note(t, by, "quarantine.retry", job, tenant)
            return count

        return self._database.write(work)

    def tell_refused_signature(self, error: SignatureRefused, by: str) -> None:
        self._database.write(lambda t: signing.tell_refused_at_door(t, error, by))

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
        if not lookup.can_exist(tenant, verb, subject):
            return []
        asked = (tenant, verb, subject, before, limit, with_platform)
        return self._database.read(lambda t: audit.actions(t, *asked))
