"""Alerts for tests: the duty as janitors have it, and what it has opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.budgets import endless
from unstuck.assembly.janitor import alert_looks
from unstuck.janitor.alerts import AlertsDuty
from unstuck.model.alerts import AlertRecord, RuleFindings, RuleLook
from unstuck.model.times import Times
from unstuck.store.port import Store

TIMES = Times()
#: More than lies between two turns of a rule, in seconds.
A_TURN = 31.0


def the_duty(
    store: Store, by: str = "ada", besides: Mapping[str, Callable[[RuleLook], RuleFindings]] | None = None
) -> AlertsDuty:
    """`besides`: looks that take the place of those that rules have."""
    return AlertsDuty(store, TIMES, {**alert_looks(store, TIMES), **(besides or {})}, by)


def turn(store: Store, by: str = "ada") -> int:
    return the_duty(store, by).tick(0.0, endless())


def open_ones(store: Store, rule: str | None = None) -> list[AlertRecord]:
    return store.alerts(rule=rule)
