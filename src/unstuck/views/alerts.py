"""Alerts, as every face shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from unstuck.model.alerts import RULES, AlertNumbers, AlertRecord, RuleStand, Severity
from unstuck.views import View

#: A code. Told as text: a newer version may know more of them.
AlertRuleName = Annotated[str, Meta(extra_json_schema={"enum": [*RULES]})]


class AlertView(View, frozen=True, kw_only=True):
    """An alert. `closed_at` null: it is open. `tenant` "*": it is the platform's. `subject`: what it is about, a job
    or a worker, say; `count`: for how many things it stands. `seen_at`: when it was last found to be so.
    `notification`: the number of the one that tells of it. Until `muted_until` nobody is told of it."""

    number: int
    rule: AlertRuleName
    severity: Severity
    title: str
    message: str
    subject: str
    link: str
    tenant: str
    workflow: str
    count: int | None
    opened_at: datetime
    seen_at: datetime
    closed_at: datetime | None
    acked_at: datetime | None
    acked_by: str | None
    muted_until: datetime | None
    muted_by: str | None
    notification: int | None

    @classmethod
    def of(cls, record: AlertRecord) -> AlertView:
        return cls(
            number=record.number,
            rule=record.rule,
            severity=record.severity,
            title=record.title,
            message=record.message,
            subject=record.subject,
            link=record.link,
            tenant=record.tenant,
            workflow=record.workflow,
            count=record.count,
            opened_at=record.opened_at,
            seen_at=record.seen_at,
            closed_at=record.closed_at,
            acked_at=record.acked_at,
            acked_by=record.acked_by,
            muted_until=record.muted_until,
            muted_by=record.muted_by,
            notification=record.notification,
        )


class AlertRuleView(View, frozen=True, kw_only=True):
    """A rule, the setting that is its number, and how it fares. `value` 0: it is off. `looked_at`: when it was last
    looked at everything, `looked_by` by whom. `failing_at`: since when it fails, for the reason `error`. What names
    workers and jobs is null for who sees one tenant alone."""

    rule: AlertRuleName
    title: str
    meaning: str
    setting: str
    value: float
    open: int
    looked_at: datetime | None
    looked_by: str | None
    failing_at: datetime | None
    error: str | None

    @classmethod
    def of(
        cls, name: str, numbers: AlertNumbers, stand: RuleStand | None, open_: int, *, whole: bool
    ) -> AlertRuleView:
        """Not `whole`: without what may name workers, and jobs of any tenant."""
        rule = RULES[name]
        return cls(
            rule=name,
            title=rule.title,
            meaning=rule.meaning,
            setting=rule.setting,
            value=float(numbers[name]),
            open=open_,
            looked_at=stand.looked_at if stand else None,
            looked_by=(stand.by or None) if stand and whole else None,
            failing_at=stand.failing_at if stand else None,
            error=stand.error if stand and whole else None,
        )
