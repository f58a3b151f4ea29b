"""Guard: what an operator may ask of the blacklist, the runtime settings, the notifications and the audit.

Tenant omitted means all of them: an entry then shuts everybody out, a removal lifts whatever stands. A caller that
speaks for one tenant (`own`) means that one instead.
"""

from __future__ import annotations

import json
from typing import Any

from unstuck.model.errors import (
    InvalidInput,
    NotBlacklisted,
    NotQuarantined,
    OutcomeUnknown,
    UnknownNotification,
    quoted,
)
from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord, check_verb, checked, setting
from unstuck.model.job import JobRecord
from unstuck.model.payload import check_name, check_wording
from unstuck.store.port import EVERY, Quarantined, Store

_MOST_LISTED = 10_000
_LARGEST = (1 << 63) - 1


class GuardVerbs:
    """`own`: the tenant that is meant when a verb names none; None: all of them. `bound`: what is everybody's is not
    for this one to see or to take note of."""

    def __init__(self, store: Store, *, own: str | None = None, by: str = "app", bound: bool = False) -> None:
        self._store = store
        self._own = own
        self._by = by
        self._bound = bound

    # --- blacklist ----------------------------------------------------------------------------------------------
    def entries(self, *, tenant: str | None = None) -> list[BlacklistEntry]:
        """What is on the blacklist and bars something of this tenant, the oldest first."""
        return self._store.blacklist(self._listed(tenant))

    def add(
        self, workflow: str, reason: str | None = None, *, tenant: str | None = None, by: str | None = None
    ) -> tuple[BlacklistEntry, bool]:
        """Accept and start nothing of this workflow any more. False: an entry stood already, and stands unchanged."""
        name, whose, who = check_name(workflow, "workflow"), self._whose(tenant), self._who(by)
        why = check_wording(reason, "reason") or "no reason given"
        try:
            return self._store.blacklist_add(whose, name, why, who)
        except OutcomeUnknown:  # a repeat finds its own entry
            entry, is_new = self._store.blacklist_add(whose, name, why, who)
            return entry, is_new or entry.blacklisted_by == who

    def remove(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> list[BlacklistEntry]:
        """Lift the entry of this tenant, or all that stand against the workflow. NotBlacklisted if there is none."""
        name, whose, who = check_name(workflow, "workflow"), self._whose(tenant), self._who(by)
        asked = None if whose == EVERY else whose
        try:
            removed = self._store.blacklist_remove(asked, name, who)
        except OutcomeUnknown:
            removed = self._store.blacklist_remove(asked, name, who) or self._removed_by(who, asked, name)
        if not removed:
            raise self._nothing_to_lift(name, asked)
        return removed

    def history(
        self, workflow: str | None = None, *, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[BlacklistEntry]:
        """Every entry there ever was, the newest first."""
        name = None if workflow is None else check_name(workflow, "workflow")
        return self._store.blacklist_history(
            self._listed(tenant), name, before=_number(before, "before"), limit=_limit(limit)
        )

    def _removed_by(self, who: str, tenant: str | None, workflow: str) -> list[BlacklistEntry]:
        """The answer was lost, and there is nothing left to lift: it was done, if the last one says it was us."""
        last = self._store.blacklist_history(tenant, workflow, limit=1)
        return [entry for entry in last if entry.removed_by == who]

    def _nothing_to_lift(self, workflow: str, tenant: str | None) -> NotBlacklisted:
        others = [e for e in self._store.blacklist() if e.workflow == workflow]
        if tenant is not None and others:
            whose = ", ".join("every tenant (omit the tenant)" if e.tenant == EVERY else e.tenant for e in others)
            return NotBlacklisted(workflow, f"not for tenant {tenant}; it is for {whose}")
        return NotBlacklisted(workflow)

    # --- settings -----------------------------------------------------------------------------------------------
    def settings(self) -> list[SettingRecord]:
        return self._store.settings()

    def get(self, name: str) -> SettingRecord:
        setting(name)
        return next(record for record in self._store.settings() if record.name == name)

    def set(self, name: str, value: Any, *, by: str | None = None) -> SettingRecord:
        """Holds everywhere at once. UnknownSetting; InvalidInput says what the value could be."""
        text = json.dumps(checked(name, value))
        return self._store.set_setting(name, text, self._who(by))

    def reset(self, name: str, *, by: str | None = None) -> SettingRecord:
        """The default again."""
        setting(name)
        return self._store.set_setting(name, None, self._who(by))

    # --- notifications ------------------------------------------------------------------------------------------
    def notifications(
        self, *, acked: bool = False, tenant: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[Notification]:
        return self._store.notifications(
            self._listed(tenant), acked=acked, before=_number(before, "before"), limit=_limit(limit)
        )

    def ack(self, number: int, *, by: str | None = None) -> Notification:
        """Take note of it; the first to do so is kept."""
        wanted = _number(number, "notification")
        if wanted is None or wanted > _LARGEST:
            raise UnknownNotification(number)
        return self._store.ack_notification(wanted, self._who(by), self._own if self._bound else None)

    # --- quarantine ---------------------------------------------------------------------------------------------
    def quarantined(self, *, tenant: str | None = None, limit: int = 100) -> list[Quarantined]:
        """What could not be written, by what was to be done."""
        return self._store.quarantined(self._listed(tenant), limit=_limit(limit))

    def retry_quarantined(self, job: JobRecord | None = None, *, by: str | None = None) -> int:
        """Of one job, or all there is: tried first by the next sweep. NotQuarantined if nothing of the job is."""
        who = self._who(by)
        if job is None and self._own is None:
            return self._store.retry_quarantined(by=who)
        if job is None:
            return sum(self._retry_one(found, who) for found in self.quarantined(limit=_MOST_LISTED))
        count = self._store.retry_quarantined(item=job.number, job=job.id, tenant=job.tenant, by=who)
        if not count:
            raise NotQuarantined(job.id)
        return count

    def _retry_one(self, found: Quarantined, who: str) -> int:
        named = found.job or found.target or str(found.item)
        return self._store.retry_quarantined(found.duty, found.item, job=named, tenant=found.tenant, by=who)

    # --- audit --------------------------------------------------------------------------------------------------
    def audit(
        self,
        *,
        verb: str | None = None,
        subject: str | None = None,
        tenant: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Action]:
        """Who did what and when, the newest first. `verb`: one ("jobs.cancel"), or all of a noun ("jobs")."""
        return self._store.audit(
            self._listed(tenant),
            verb=check_verb(check_wording(verb, "verb")),
            subject=check_wording(subject, "subject"),
            before=_number(before, "before"),
            limit=_limit(limit),
            with_platform=not self._bound,
        )

    # --- steps --------------------------------------------------------------------------------------------------
    def _who(self, by: str | None) -> str:
        return check_wording(by, "by") or self._by

    def _whose(self, tenant: str | None) -> str:
        named = tenant if tenant is not None else self._own
        return EVERY if named is None or named == EVERY else check_name(named, "tenant")

    def _listed(self, tenant: str | None) -> str | None:
        whose = self._whose(tenant)
        return None if whose == EVERY else whose


def _limit(limit: Any) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST_LISTED:
        raise InvalidInput(f"limit={quoted(limit)} is not a whole number between 1 and {_MOST_LISTED}")
    return limit


def _number(value: Any, what: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{what}={quoted(value)} is not a number of one")
    return min(value, _LARGEST)
