"""Alerts: what is wrong now, and what was; opened and closed by themselves, by rules whose numbers are settings."""

from __future__ import annotations

from typing import Any

from unstuck.model.alerts import LONGEST_MUTE, RULES
from unstuck.model.errors import InvalidInput, UnknownAlert, quoted
from unstuck.operations.kinds import Cursor, Duration, number_of, seconds, whole_number
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.alerts import AlertRuleView, AlertView

_MOST = 10_000
#: No number that a database gives is larger.
_LARGEST = 2**63 - 1


@operation(role=READER, whose="own", paged="after")
def list_(
    caller: Caller,
    *,
    closed: bool = False,
    rule: str | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[AlertView]:
    """The open alerts, with `closed` also those that are over; the newest first. Those of the platform are shown to
    who may see all tenants."""
    most = whole_number(limit, "limit", 1, _MOST)
    found = caller.store.alerts(caller.own, closed=closed, rule=_rule(rule), before=number_of(after), limit=most)
    items = tuple(AlertView.of(record) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == most else None)


@operation(role=READER, whose="own", errors=(UnknownAlert,), command="alerts show")
def get(caller: Caller, number: int) -> AlertView:
    """One alert, open or over."""
    return AlertView.of(caller.store.alert(_number(number), _whose(caller)))


@operation(
    role=OPERATOR,
    effect="change",
    whose="own",
    repeat="same",
    audited="alerts.ack",
    errors=(UnknownAlert,),
)
def ack(caller: Caller, number: int) -> AlertView:
    """Take note of one, and of its notification, so that others need not. The first to do so is kept; it stays open
    until its trouble is over."""
    return AlertView.of(caller.store.ack_alert(_number(number), caller.by, _whose(caller)))


@operation(
    role=OPERATOR,
    effect="change",
    whose="own",
    repeat="same",
    audited="alerts.mute",
    errors=(UnknownAlert,),
)
def mute(caller: Caller, number: int, *, lasts: Duration = 3600.0) -> AlertView:
    """For so long nobody is told of this trouble: not by `health`, nor by a notification or an event if it ends and
    comes again. Others of its rule are told as ever."""
    length = seconds(lasts, "lasts")
    if not 1 <= length <= LONGEST_MUTE:
        raise InvalidInput(f"lasts={quoted(lasts)} is not between a second and {LONGEST_MUTE / 86400:.0f} days")
    return AlertView.of(caller.store.mute_alert(_number(number), length, caller.by, _whose(caller)))


@operation(
    role=OPERATOR,
    effect="change",
    whose="own",
    repeat="same",
    audited="alerts.unmute",
    errors=(UnknownAlert,),
)
def unmute(caller: Caller, number: int) -> AlertView:
    """It is told again."""
    return AlertView.of(caller.store.mute_alert(_number(number), None, caller.by, _whose(caller)))


@operation(role=READER, whose="platform")
def rules(caller: Caller) -> Page[AlertRuleView]:
    """The rules, their numbers, how many alerts of each are open, and which of them fail."""
    numbers, stands = caller.store.alert_numbers(), {each.rule: each for each in caller.store.alert_rules()}
    open_: dict[str, int] = {}
    for stand in caller.store.alert_stands(caller.own):
        open_[stand.rule] = open_.get(stand.rule, 0) + stand.number
    whole = caller.bound is None
    items = [AlertRuleView.of(name, numbers, stands.get(name), open_.get(name, 0), whole=whole) for name in RULES]
    return Page(items=tuple(items))


def _whose(caller: Caller) -> str | None:
    """A number names one, whosever it is, for who may see all."""
    return caller.own if caller.bound is not None else None


def _rule(rule: Any) -> str | None:
    if rule is None or (isinstance(rule, str) and rule in RULES):
        return rule
    raise InvalidInput(f"rule={quoted(rule)} is none of {', '.join(RULES)}")


def _number(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _LARGEST:
        raise UnknownAlert(number)
    return number
