"""The alerts' port: what is wrong and was, whose turn it is to look, and what the rules look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from unstuck.model.alerts import AlertFinding, AlertNumbers, AlertRecord, RuleStand, Severity
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class AlertTurn:
    """A rule's turn, which nobody else has meanwhile. `place`: how far its round has come; empty: it begins one.
    `open`: the causes of its open alerts, what each is about, and when its message was last told. `by`: whose it
    is."""

    rule: str
    now: datetime
    began_at: datetime
    place: str
    open: Mapping[str, tuple[str, datetime]]
    by: str


@dataclass(frozen=True, slots=True)
class SeenAlerts:
    """What became of findings: alerts that are new, and those that could not be written."""

    opened: tuple[AlertRecord, ...] = ()
    problems: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AlertStand:
    """So many alerts of a rule are open, of which so many are muted; the oldest since then."""

    rule: str
    severity: Severity
    number: int
    muted: int
    since_at: datetime


@dataclass(frozen=True, slots=True)
class Repeated:
    """What was recovered from so many lost workers, so many jobs in all: those of a workflow, or of a worker's
    name."""

    times: int
    jobs: int
    tenant: str | None = None
    workflow: str | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class StuckRate:
    """Of a tenant: how many executions got stuck, of which workflow most; how many ended."""

    tenant: str
    stucks: int
    ends: int
    workflow: str


@dataclass(frozen=True, slots=True)
class Resting:
    """Jobs of a tenant that have rested in a state for long: how many (as far as was looked), the first of them."""

    tenant: str
    jobs: int
    job: str | None = None
    workflow: str = ""
    since_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LongBlocked:
    """Targets of a tenant that are blocked for long."""

    tenant: str
    targets: int
    target: str = ""
    job: str | None = None
    workflow: str = ""
    since_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LetterStand:
    """Dead letters of one tenant, workflow and reason."""

    tenant: str
    workflow: str
    reason: str
    letters: int
    since_at: datetime


class AlertsPort(Protocol):
    # --- alerts ---------------------------------------------------------------------------------------------------
    def alert_numbers(self) -> AlertNumbers:
        """The runtime settings of the rules, as they stand."""
        ...

    def alert_rules(self) -> list[RuleStand]: ...

    def add_alert_rules(self) -> None:
        """That there is a row for each rule to take turns by."""
        ...

    def take_alert_turn(self, rule: str, by: str, every: float) -> AlertTurn | None:
        """None: somebody has had it within so many seconds, or is just taking it."""
        ...

    def end_alert_turn(self, turn: AlertTurn, place: str, error: str | None = None) -> bool:
        """How far the round has come (empty: to its end), or why the turn failed. False: it took so long that another
        has the rule's turn; nothing is written."""
        ...

    def see_alerts(self, rule: str, findings: Sequence[AlertFinding]) -> SeenAlerts:
        """Those that are open were seen now; others are opened, with a notification and an event. What somebody
        holds stays as it is. One that cannot be written keeps no other from it."""
        ...

    def close_alerts(self, rule: str, began_at: datetime, after: float) -> list[AlertRecord]:
        """Those that were not seen since the round began, nor for so many seconds. Told in the feed."""
        ...

    def alerts(
        self,
        tenant: str | None = None,
        *,
        closed: bool = False,
        rule: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AlertRecord]:
        """The open ones, with `closed` all that are kept, the newest first."""
        ...

    def alert(self, number: int, tenant: str | None = None) -> AlertRecord:
        """UnknownAlert; also for one that is not this tenant's (None: whosever it is)."""
        ...

    def ack_alert(self, number: int, by: str, tenant: str | None = None) -> AlertRecord:
        """And its notification."""
        ...

    def mute_alert(self, number: int, seconds: float | None, by: str, tenant: str | None = None) -> AlertRecord:
        """For so long nobody is told of it, nor of the next one of its cause; None: no longer."""
        ...

    def alert_stands(self, tenant: str | None = None) -> list[AlertStand]: ...

    def forget_alerts(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Those closed longer ago than this."""
        ...

    def forget_recoveries(self, retention: float, batch: int = 1000, past: int = 0) -> int: ...

    # --- what the rules look at -----------------------------------------------------------------------------------
    def recoveries(self, seconds: float, least: int, most: int = 100) -> list[Repeated]:
        """What was recovered at least so often within so many seconds."""
        ...

    def stuck_rates(self, seconds: float) -> list[StuckRate]:
        """Of the tenants of which something got stuck within so many seconds."""
        ...

    def resting_for(self, state: str, seconds: float, after: str = "", looked: int = 1000) -> Resting | None:
        """Of the next tenant behind `after` with jobs at rest, those that have been in this state for so long; of the
        oldest `looked` of it. None: there is no other tenant."""
        ...

    def blocked_for(self, seconds: float, after: str = "", looked: int = 100) -> LongBlocked | None:
        """Of the next tenant with blocked targets."""
        ...

    def letters_of_next(self, least: int, after: str = "", looked: int = 1000) -> tuple[str, list[LetterStand]]:
        """Of the next tenant with dead letters those of which there are so many; of the newest `looked`. Empty: there
        is no other."""
        ...

    def unforgotten(self, retention: float, looked: int = 1000) -> tuple[int, datetime | None]:
        """Of the first jobs that ended longer ago than this, how many could be forgotten; when the oldest ended."""
        ...

    def feed_waits_since(self) -> datetime | None:
        """Since when the first event without a place in the feed has been there; None: each has its place."""
        ...
