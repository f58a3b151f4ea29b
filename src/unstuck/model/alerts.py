"""Alerts: what people should hear of before their users do. The rules, their numbers, and what they find.

Theory of operation. A rule looks for one kind of trouble, by a number that is a runtime setting; 0 turns it off. What
it finds has a *cause*: what would be the same trouble a minute later. Of each cause one alert is open, from when it
is first found until it has not been found for a while (`alert_close_after`), so that what comes and goes is one alert
and not many. Who looks is the janitor's business (`janitor/alerts.py`), how a rule looks that of
`observe/conditions.py`, which `health` asks as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from unstuck.records import dataclass

Severity = Literal["info", "warning", "critical"]
SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")

#: In place of a tenant: it is the platform's.
PLATFORM: Final = "*"
#: Of each rule so many are open at most; one more says that there are others.
MOST_OPEN: Final = 100
#: The cause of that one.
MORE: Final = "more"
#: Seconds over which rates and repetitions are counted.
WINDOW: Final = 3600.0
#: Seconds for which an alert's reason is good enough: asking for it costs.
REASON_LASTS: Final = 300.0
#: Nobody mutes for longer, in seconds.
LONGEST_MUTE: Final = 30 * 86400.0
#: Who closes alerts, and takes note of their notifications.
BY_ITSELF: Final = "system"
_LONGEST_CAUSE: Final = 200
_MONTH = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class AlertRule:
    """`setting` names its number: by default so much, between `low` and `high`, or 0: the rule is off."""

    name: str
    title: str
    setting: str
    default: float
    low: float
    high: float
    meaning: str
    severity: Severity = "warning"
    #: Of a count: a whole number.
    is_whole: bool = False


def _seconds(
    name: str, title: str, setting: str, default: float, meaning: str, severity: Severity = "warning"
) -> AlertRule:
    return AlertRule(name, title, setting, default, 1.0, _MONTH, meaning, severity)


_ALL = (
    _seconds(
        "job_queued", "Jobs wait too long", "alert_queued_after", 300.0,
        "alert where a job has been due and QUEUED for so many seconds, with the reason",
    ),
    _seconds(
        "job_over_limit", "A job runs over its limit", "alert_over_limit_after", 60.0,
        "alert where a job is RUNNING so many seconds after it should have ended, or its worker was lost",
        "critical",
    ),
    _seconds(
        "worker_silent", "A worker fell silent", "alert_worker_silent_after", 120.0,
        "alert where a worker that did not leave has not beaten for so many seconds",
    ),
    AlertRule(
        "stuck_rate", "Too many executions get stuck", "alert_stuck_percent", 1.0, 0.001, 100.0,
        "alert where more than so many percent of a tenant's executions of the last hour got stuck",
    ),
    _seconds(
        "draining", "A drain does not end", "alert_draining_after", 3600.0,
        "alert where a worker, or a process of one, has been draining for so many seconds",
    ),
    _seconds(
        "job_paused", "Jobs are PAUSED for long", "alert_paused_after", 86400.0,
        "alert where a job has been PAUSED for so many seconds",
    ),
    _seconds(
        "job_pending", "Jobs are PENDING for long", "alert_pending_after", 86400.0,
        "alert where a job has been PENDING for so many seconds",
    ),
    _seconds(
        "target_blocked", "A target is blocked for long", "alert_blocked_after", 86400.0,
        "alert where a target has been blocked for so many seconds",
    ),
    AlertRule(
        "recoveries", "Lost again and again", "alert_recoveries", 5, 1, 1_000_000,
        "alert where jobs of one workflow, or one worker, had to be recovered from lost workers so many times in an "
        "hour",
        is_whole=True,
    ),
    AlertRule(
        "dead_letters", "Dead letters", "alert_dead_letters", 1, 1, 1_000_000,
        "alert where there are so many dead letters of one tenant, workflow and reason",
        is_whole=True,
    ),
    _seconds(
        "schedule_silent", "Schedule fell silent", "alert_schedule_silent_after", 60.0,
        "alert where nobody has fired a schedule's tick for so many seconds, or its last ticks made no job",
    ),
    _seconds(
        "retention_lag", "Retention does not keep up", "alert_retention_lag", 3600.0,
        "alert where ended jobs are still there so many seconds after they should have been forgotten",
    ),
    _seconds(
        "feed_lag", "The feed takes no new events", "alert_feed_lag", 60.0,
        "alert where events have had no place in the feed for so many seconds, and cannot get one",
    ),
    _seconds(
        "outbox_lag", "A webhook takes nothing", "alert_outbox_lag", 600.0,
        "alert where a webhook has taken nothing of what is sent to it for so many seconds",
    ),
    AlertRule(
        "clock_leapt", "The database's clock leapt", "alert_clock_leap", 1.0, 0.001, _MONTH,
        "alert for an hour where the database's clock leapt by so many seconds",
    ),
    _seconds(
        "role_failing", "A role of a worker fails", "alert_role_failing_after", 60.0,
        "alert where something that a worker does beside running jobs has failed for so many seconds",
    ),
    _seconds(
        "rule_failing", "An alert rule fails", "alert_rule_failing_after", 60.0,
        "alert where an alert rule itself has failed for so many seconds",
    ),
)  # fmt: skip
RULES: Final[dict[str, AlertRule]] = {rule.name: rule for rule in _ALL}

CLOSE_AFTER: Final = "alert_close_after"
CLOSE_AFTER_DEFAULT: Final = 120.0


@dataclass(frozen=True, slots=True)
class AlertNumbers:
    """The numbers of all rules as they stand; 0: off."""

    values: Mapping[str, float]
    close_after: float = CLOSE_AFTER_DEFAULT

    def __getitem__(self, rule: str) -> float:
        return self.values[rule]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> AlertNumbers:
        return cls({rule.name: settings[rule.setting] for rule in _ALL}, settings[CLOSE_AFTER])


@dataclass(frozen=True, slots=True)
class AlertFinding:
    """What a rule found. `message` None: it, and how severe it is, is as it was told last. `count`: for how many
    things it stands."""

    cause: str
    subject: str
    message: str | None
    link: str
    severity: Severity
    title: str
    tenant: str = PLATFORM
    workflow: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLook:
    """One turn of a rule. `place`: where an earlier turn of the round came to; empty: it begins. `most`: how much to
    take at a time. `told`: of these causes and subjects nobody asks for the reason again.
    `open`: the causes of all its open alerts."""

    now: datetime
    number: float
    place: str = ""
    most: int = 1000
    told: frozenset[tuple[str, str]] = frozenset()
    open: frozenset[str] = frozenset()
    is_over: Callable[[], bool] = lambda: False

    @property
    def before(self) -> datetime:
        """What was so by then has been so for too long."""
        return self.now - timedelta(seconds=self.number)


class RuleFindings(NamedTuple):
    """What a look found, and how far it came; empty: to the end."""

    findings: list[AlertFinding]
    place: str = ""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """`closed_at` None: it is open. `tenant` may be PLATFORM."""

    number: int
    rule: str
    cause: str
    tenant: str
    workflow: str
    severity: Severity
    title: str
    subject: str
    message: str
    link: str
    count: int | None
    opened_at: datetime
    seen_at: datetime
    closed_at: datetime | None = None
    notification: int | None = None
    acked_at: datetime | None = None
    acked_by: str | None = None
    muted_until: datetime | None = None
    muted_by: str | None = None


@dataclass(frozen=True, slots=True)
class RuleStand:
    """When a rule had its last turn, whose that was, and since when it fails."""

    rule: str
    turn_at: datetime | None
    by: str
    looked_at: datetime | None
    failing_at: datetime | None
    failures: int
    error: str | None


def finding(
    rule: str, parts: tuple[str, ...], subject: str, message: str | None, link: str, **more: Any
) -> AlertFinding:
    """`parts` name the cause; severity and title are the rule's, unless they are said."""
    known = RULES[rule]
    return AlertFinding(
        cause_of(parts), subject, message, link, **{"severity": known.severity, "title": known.title, **more}
    )


def cause_of(parts: tuple[str, ...]) -> str:
    """Names as one text, however they are spelled; where they are long, a digest of them."""
    from hashlib import sha256

    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))[1:-1]
    return text if len(text) <= _LONGEST_CAUSE else sha256(text.encode()).hexdigest()


def more_of(rule: str) -> AlertFinding:
    """In place of those that are too many to have alerts of their own."""
    message = f"more than {MOST_OPEN} alerts of the rule {rule} are open; others have none of their own"
    return finding(rule, (MORE,), "alerts", message, "/alerts", severity="warning")
