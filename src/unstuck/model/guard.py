"""The guard: what counts against a workflow, when its breaker trips, and the words for it.

Theory of operation. An attempt that got stuck leaves a mark against its (tenant, workflow); by setting so does an
attempt that took its process down, or was lost with its worker. An attempt that was past its grace in a process that
was silent as a whole cannot be convicted of it; it counts once its workflow is found so a second time. As many marks
as the threshold inside the window put the workflow on the blacklist: nothing of it is accepted or started until the
entry is lifted. Pure: the store counts and writes in the transaction of the very settlement that brought the last
mark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Final, Literal

from unstuck.model.alerts import CLOSE_AFTER, CLOSE_AFTER_DEFAULT, RULES, AlertNumbers, AlertRule
from unstuck.model.errors import InvalidInput, UnknownSetting, WorkflowBlacklisted, quoted
from unstuck.model.hooks import HookRules
from unstuck.model.schedules import ScheduleRules
from unstuck.model.settlement import Lost, Outcome, Settlement, Stuck
from unstuck.model.spelling import about, given
from unstuck.model.webhooks import WebhookRules
from unstuck.records import dataclass

Harm = Literal["stuck", "freeze", "crash", "loss"]

#: One freeze may be another job's doing; a workflow that is there a second time was not only nearby.
LEAST_FREEZES: Final = 2

#: In place of a tenant: all of them.
EVERY: Final = "*"
#: The author of an entry that the breaker made.
SYSTEM: Final = "system"
AUTO: Final = "auto:"
MANUAL: Final = "manual:"

TITLE: Final = "Workflow Auto-Blacklisted"
LINK: Final = "/platform/diagnostics?tab=blacklist"


# --- what is kept -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlacklistEntry:
    """A workflow on the blacklist, or once on it (`removed_at`). `tenant` may be EVERY. `probe`: the one job that was
    let through to see whether the workflow is well again."""

    number: int
    tenant: str
    workflow: str
    reason: str
    blacklisted_by: str
    blacklisted_at: datetime
    stuck_count: int | None = None
    removed_at: datetime | None = None
    removed_by: str | None = None
    renewed_at: datetime | None = None
    probe: int | None = None

    @property
    def is_active(self) -> bool:
        return self.removed_at is None

    @property
    def is_auto(self) -> bool:
        return self.reason.startswith(AUTO)

    def bars(self, tenant: str, workflow: str) -> bool:
        return self.is_active and workflow == self.workflow and self.tenant in (tenant, EVERY)


@dataclass(frozen=True, slots=True)
class Notification:
    """News for operators, until one of them has acknowledged it."""

    number: int
    at: datetime
    title: str
    message: str
    severity: str
    link: str
    tenant: str
    workflow: str
    count: int | None = None
    acked_at: datetime | None = None
    acked_by: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A line of the audit: who did what, to what."""

    number: int
    at: datetime
    by: str
    verb: str
    subject: str
    tenant: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    #: The id of the API key by which it was asked, and the address from which; None: not over HTTP.
    key: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """A runtime setting as it stands; `set_at` is None if it was never changed."""

    name: str
    value: Any
    default: Any
    meaning: str
    set_at: datetime | None = None
    set_by: str | None = None


# --- the audit ----------------------------------------------------------------------------------------------------

#: What a limit can be set for; of `workflow_keys`: `unstuck workflows limit NAME --each-key`.
LIMITED: Final = ("keys", "queues", "tenants", "workflows", "workflow_keys")
#: What people can do that is written down: the noun and the verb of the command line.
VERBS: Final = (
    *(f"jobs.{verb}" for verb in ("cancel", "interrupt", "release", "replay", "reprioritise", "resolve")),
    *(f"jobs.{verb}" for verb in ("resume", "retry", "skip")),
    *(f"approvals.{verb}" for verb in ("approve", "reject")),
    *(f"bulks.{verb}" for verb in ("start", "cancel")),
    *(f"schedules.{verb}" for verb in ("create", "update", "delete", "pause", "resume", "run_now", "backfill")),
    *(f"webhooks.{verb}" for verb in ("create", "update", "rotate", "pause", "enable", "disable")),
    *(f"webhooks.{verb}" for verb in ("test", "replay", "delete")),
    *(f"hooks.{verb}" for verb in ("create", "update", "rotate", "pause", "resume", "delete")),
    "events.send",
    *(f"blacklist.{verb}" for verb in ("add", "remove")),
    *(f"keys.{verb}" for verb in ("create", "revoke", "rotate")),
    *(f"sessions.{verb}" for verb in ("begin", "end")),
    *(f"signing.{verb}" for verb in ("refuse", "revoke", "unrevoke")),
    "settings.set",
    "notifications.ack",
    *(f"alerts.{verb}" for verb in ("ack", "mute", "unmute")),
    "quarantine.retry",
    "doctor.fix",
    *(f"dead_letters.{verb}" for verb in ("redrive", "resign", "discard")),
    *(f"workers.{verb}" for verb in ("drain", "kill", "recycle", "refuse", "stack")),
    *(f"{noun}.{verb}" for noun in ("queues", "targets", "tenants", "workflows") for verb in ("pause", "unpause")),
    *(f"{noun}.{verb}" for noun in LIMITED for verb in ("limit", "unlimit")),
    "tenants.weight",
)


def check_verb(asked: str | None) -> str | None:
    """One of them, or all of a noun; a misspelt one must not read as "nobody did that"."""
    nouns = {verb.split(".")[0] for verb in VERBS}
    if asked is None or asked in VERBS or asked in nouns:
        return asked
    from difflib import get_close_matches  # imported only where a mistake was made

    near = get_close_matches(asked, [*VERBS, *nouns], 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(VERBS)}, or the noun alone"
    raise InvalidInput(f"there is no verb {quoted(asked)} in the audit; {hint}")


# --- the rules ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rules:
    """The runtime settings of the breaker; `window` and `probe_after` in seconds, a threshold of 0 never trips."""

    threshold: int = 5
    window: float = 3600.0
    counts_crashes: bool = False
    counts_losses: bool = False
    #: From this number of tenants on, their marks count together, against the workflow of every tenant; 0: never.
    tenants: int = 3
    probe_after: float | None = None

    @property
    def counted(self) -> tuple[Harm, ...]:
        """What a mark may be made of."""
        more: list[tuple[Harm, bool]] = [("crash", self.counts_crashes), ("loss", self.counts_losses)]
        return ("stuck", "freeze", *(harm for harm, counts in more if counts))

    def trips(self, marks: Mapping[Harm, int]) -> bool:
        return 0 < self.threshold <= total(self.counting(marks))

    def trips_for_all(self, marks: Mapping[Harm, int], tenants: int) -> bool:
        return 0 < self.tenants <= tenants and self.trips(marks)

    def counting(self, marks: Mapping[Harm, int]) -> dict[Harm, int]:
        return {harm: marks[harm] for harm in self.counted if marks.get(harm, 0) >= _LEAST.get(harm, 1)}


_LEAST: dict[Harm, int] = {"freeze": LEAST_FREEZES}


@dataclass(frozen=True, slots=True)
class BreakerMark:
    """What an attempt's end said against its workflow, until it has left the window. `job` None: it is forgotten."""

    at: datetime
    until_at: datetime
    harm: Harm
    job: str | None


@dataclass(frozen=True, slots=True)
class BreakerStand:
    """How far the breaker of one tenant's workflow is from shutting it out: so many marks count (`number`), and the
    newest of all that are inside the window. A mark there that counts nothing yet is a single freeze."""

    rules: Rules
    number: int
    marks: tuple[BreakerMark, ...]


def total(marks: Mapping[Harm, int]) -> int:
    return sum(marks.values())


def harm_of(outcome: Outcome, settlement: Settlement) -> Harm | None:
    """What this end says against its workflow. That of a neighbour, a suspect or a bystander says nothing, nor
    does a loss that cost nothing because a stop was requested or the worker announced its end."""
    match outcome:
        case Stuck():
            return "stuck" if outcome.is_proven else "freeze"
        case Lost(_, "own") if settlement.loss:
            return "crash"
        case Lost(_, "worker") if settlement.loss:
            return "loss"
        case _:
            return None


def auto_reason(marks: Mapping[Harm, int]) -> str:
    """auto:stuck:5; with crashes or losses among them auto:stuck+crash:5."""
    return f"{AUTO}{'+'.join(marks)}:{total(marks)}"


# --- the words ----------------------------------------------------------------------------------------------------


def notice(tenant: str, workflow: str, marks: Mapping[Harm, int], rules: Rules, tenants: int = 1) -> str:
    """What the notification of an entry says beside its title; `tenants`: how many brought the marks."""
    whose = f"for every tenant, after those of {tenants} tenants" if tenant == EVERY else f"for tenant {tenant}"
    times = _listed([f"{count} {(_NOUNS if count == 1 else _PLURALS)[harm]}" for harm, count in marks.items()])
    return (
        f"Workflow '{workflow}' was blacklisted after {times}. All execution paths are blocked until manually "
        f"re-enabled. They came within {rules.window / 60:g} minutes, {whose}; "
        f"to lift it: {how_to_lift(tenant, workflow)}"
    )


_NOUNS: dict[Harm, str] = {
    "stuck": "stuck execution",
    "freeze": "freeze of a shared process",
    "crash": "crash",
    "loss": "loss",
}
_PLURALS: dict[Harm, str] = {
    "stuck": "stuck executions",
    "freeze": "freezes of a shared process",
    "crash": "crashes",
    "loss": "losses",
}


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def refusal(entry: BlacklistEntry) -> str:
    """The refusal: that the workflow is blacklisted, why, by whom, since when, and how to lift it."""
    cause = next(
        (f" due to repeated {what}." for harm, what in _CAUSES if entry.is_auto and harm in entry.reason), "."
    )
    whose = "for every tenant" if entry.tenant == EVERY else f"for tenant {entry.tenant}"
    return (
        f"Workflow is blacklisted{cause} {entry.workflow} was shut out {whose} by {entry.blacklisted_by} at "
        f"{entry.blacklisted_at:%Y-%m-%d %H:%M:%S} UTC ({entry.reason}); "
        f"to lift it: {how_to_lift(entry.tenant, entry.workflow)}"
    )


_CAUSES = (
    ("stuck", "stuck executions"),
    ("freeze", "freezes of its process"),
    ("crash", "crashes"),
    ("loss", "losses of its worker"),
)


def how_to_lift(tenant: str, workflow: str) -> str:
    """A command that means this entry in any shell: one that names a tenant of its own would mean that one."""
    whose = "--all-tenants" if tenant == EVERY else given("--tenant", tenant)
    return about("unstuck blacklist remove", workflow, whose)


def refused(entry: BlacklistEntry) -> WorkflowBlacklisted:
    return WorkflowBlacklisted(entry.workflow, entry.tenant, refusal(entry), entry)


# --- the settings -------------------------------------------------------------------------------------------------

#: The longest window, and the least that marks are kept.
LONGEST_WINDOW = 30 * 24 * 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is kept in the database and holds everywhere from the moment it is changed."""

    name: str
    default: Any
    meaning: str
    read: Callable[[Any], Any]


def _allow_list(value: Any) -> list[str]:
    from unstuck.model.destination import check_allow_list  # its networks are many, and asked for by few

    return check_allow_list(value)


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise ValueError(f"is not a whole number between {low} and {high}")
        return number

    return read


def _number(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
            raise ValueError(f"is not a number between {low:,.15g} and {high:,.15g}")
        return number

    return read


_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def _yes_or_no(value: Any) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if isinstance(word, str) and word in _TRUE + _FALSE:
        return word in _TRUE
    raise ValueError("is not true or false")


def _or_none(read: Callable[[Any], float]) -> Callable[[Any], float | None]:
    def read_or_none(value: Any) -> float | None:
        if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
            return None
        try:
            return read(value)
        except ValueError as problem:
            raise ValueError(f"{problem}, or none") from None

    return read_or_none


def _or_off(read: Callable[[Any], float]) -> Callable[[Any], float]:
    """0, or off: the rule rests."""

    def read_or_off(value: Any) -> float:
        word = value.strip().lower() if isinstance(value, str) else value
        if word in ("off", "0") or (isinstance(word, int | float) and word == 0):
            return 0
        try:
            return read(value)
        except ValueError as problem:
            raise ValueError(f"{problem}, or off (0)") from None

    return read_or_off


def _alert_setting(rule: AlertRule) -> Setting:
    read = _whole(int(rule.low), int(rule.high)) if rule.is_whole else _number(rule.low, rule.high)
    return Setting(rule.setting, rule.default, f"{rule.meaning}; 0: never", _or_off(read))


_ALL = (
    Setting(
        "stuck_circuit_breaker_threshold",
        5,
        "so many stuck executions inside the window blacklist a workflow; 0: never",
        _whole(0, 1_000_000),
    ),
    Setting(
        "stuck_circuit_breaker_window_minutes",
        60,
        "how long a stuck execution counts against its workflow",
        _number(0.01, LONGEST_WINDOW),
    ),
    Setting("breaker_counts_crashes", False, "executions that took their process down count too", _yes_or_no),
    Setting("breaker_counts_losses", False, "executions that were lost with their worker count too", _yes_or_no),
    Setting(
        "breaker_tenants",
        3,
        "executions of so many tenants count together, and blacklist a workflow for all of them; 0: never",
        _whole(0, 1_000_000),
    ),
    Setting(
        "breaker_probe_after",
        None,
        "so many seconds after an automatic entry one job is let through, and lifts it by completing; none: never",
        _or_none(_number(1.0, 30 * 86400.0)),
    ),
    Setting(
        "schedules_per_tenant",
        1000,
        "how many schedules a tenant may have; those that code declares count too",
        _whole(0, 1_000_000),
    ),
    Setting(
        "schedule_min_interval",
        1.0,
        "so many seconds must lie between two ticks of a schedule",
        _number(1.0, 86400.0),
    ),
    Setting(
        "schedule_missed_after",
        30.0,
        "a tick that nobody fired for so many seconds was missed; the schedule says whether it is made up for",
        _number(1.0, 86400.0),
    ),
    Setting("webhooks_per_tenant", 20, "how many webhooks a tenant may have, and the platform", _whole(0, 10_000)),
    Setting(
        "webhook_most_waiting",
        100_000,
        "where so many deliveries wait for one webhook, what happens meanwhile stays in the feed for it",
        _whole(1, 10_000_000),
    ),
    Setting(
        "webhook_first_retry",
        5.0,
        "so many seconds until the second try; then four times as long each time",
        _number(0.1, 3600.0),
    ),
    Setting("webhook_longest_retry", 43200.0, "and no longer than so many seconds", _number(1.0, 7 * 86400.0)),
    Setting(
        "webhook_give_up_after",
        345600.0,
        "a webhook that takes nothing for so many seconds is disabled",
        _number(1.0, 30 * 86400.0),
    ),
    Setting(
        "webhook_timeout", 10.0, "so many seconds one try may take, from the name to the answer", _number(1.0, 30.0)
    ),
    Setting(
        "webhook_allow",
        [],
        "hosts, addresses and networks that webhooks may go to although they are not public, or not by https",
        _allow_list,
    ),
    Setting("hooks_per_tenant", 100, "how many hooks a tenant may have", _whole(0, 100_000)),
    Setting(
        "hook_replay_window",
        300.0,
        "so many seconds may lie between now and the time that a delivery of a hook signs",
        _number(1.0, 3600.0),
    ),
    Setting(
        "hook_deliveries_kept",
        7 * 86400.0,
        "how many seconds a delivery of a hook is remembered: the same one makes no second job",
        _number(3600.0, 366 * 86400.0),
    ),
    *(_alert_setting(rule) for rule in RULES.values()),
    Setting(
        CLOSE_AFTER,
        CLOSE_AFTER_DEFAULT,
        "an alert whose trouble was not found for so many seconds is closed",
        _number(0.0, 86400.0),
    ),
)
SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _ALL}


def setting(name: str) -> Setting:
    if not isinstance(name, str) or name not in SETTINGS:
        raise UnknownSetting(name if isinstance(name, str) else quoted(name), SETTINGS)
    return SETTINGS[name]


def checked(name: str, value: Any) -> Any:
    """The value as it is kept, whether it was given as such or as text; InvalidInput says what it could be."""
    known = setting(name)
    try:
        return known.read(value)
    except ValueError as problem:
        raise InvalidInput(f"{name}={quoted(value)} {problem}") from None


def values_of(stored: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What is in force: as stored (JSON text), else the default. What no longer makes sense must not stop a
    settlement: the default stands for it."""
    values = {known.name: known.default for known in _ALL}
    for name, text in stored:
        if name in SETTINGS:
            try:
                values[name] = SETTINGS[name].read(json.loads(text))
            except ValueError:
                continue
    return values


def schedule_rules_of(stored: Iterable[tuple[str, str]]) -> ScheduleRules:
    values = values_of(stored)
    return ScheduleRules(
        most=values["schedules_per_tenant"],
        min_interval=values["schedule_min_interval"],
        missed_after=values["schedule_missed_after"],
    )


def webhook_rules_of(stored: Iterable[tuple[str, str]]) -> WebhookRules:
    values = values_of(stored)
    return WebhookRules(
        most=values["webhooks_per_tenant"],
        most_waiting=values["webhook_most_waiting"],
        first_retry=values["webhook_first_retry"],
        longest_retry=values["webhook_longest_retry"],
        give_up_after=values["webhook_give_up_after"],
        timeout=values["webhook_timeout"],
        allow=tuple(values["webhook_allow"]),
    )


def hook_rules_of(stored: Iterable[tuple[str, str]]) -> HookRules:
    values = values_of(stored)
    return HookRules(
        most=values["hooks_per_tenant"], window=values["hook_replay_window"], kept=values["hook_deliveries_kept"]
    )


def alert_numbers_of(stored: Iterable[tuple[str, str]]) -> AlertNumbers:
    return AlertNumbers.of(values_of(stored))


def rules_of(stored: Iterable[tuple[str, str]]) -> Rules:
    values = values_of(stored)
    return Rules(
        threshold=values["stuck_circuit_breaker_threshold"],
        window=values["stuck_circuit_breaker_window_minutes"] * 60.0,
        counts_crashes=values["breaker_counts_crashes"],
        counts_losses=values["breaker_counts_losses"],
        tenants=values["breaker_tenants"],
        probe_after=values["breaker_probe_after"],
    )
