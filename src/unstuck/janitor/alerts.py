"""What is wrong -> alerts: opened, seen again and closed by whoever has a rule's turn.

Of all workers and servers one looks by a rule at a time: a turn is a row, and whoever takes it has it until its time
has come again. So a fleet asks no more than one worker would, and one that dies leaves its turn to the next. A rule
that fails, be it that it cannot look or that what it found cannot be written, keeps no other from its turn: that is
noted in its row, and is what the rule `rule_failing` looks for. Only a store that is away ends the round for all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from unstuck.janitor.budget import Budget
from unstuck.model.alerts import (
    MOST_OPEN,
    REASON_LASTS,
    AlertFinding,
    AlertNumbers,
    AlertRecord,
    RuleFindings,
    RuleLook,
    more_of,
)
from unstuck.model.batch import Batch
from unstuck.model.errors import StoreError
from unstuck.model.times import Times
from unstuck.store.port import AlertTurn, Store
from unstuck.telemetry import emit

#: Seconds between two turns of a rule, where sweeps are as often as by default.
_EVERY = 30.0
_SWEEPS = 6
_PAGE = 1000


#: How a rule looks; given by who may import `observe`.
LookBy = Callable[[RuleLook], RuleFindings]


class AlertsDuty:
    name = "alerts"

    def __init__(self, store: Store, times: Times, looks: Mapping[str, LookBy], by: str) -> None:
        self._store = store
        self._times = times
        self._looks = looks
        self._by = by
        self._batches = {rule: Batch(_PAGE) for rule in looks}
        self._has_rows = False

    @property
    def every(self) -> float:
        return max(self._times.sweep, min(_EVERY, _SWEEPS * self._times.sweep))

    def tick(self, now: float, budget: Budget) -> int:
        numbers = self._store.alert_numbers()
        if not self._has_rows:
            self._store.add_alert_rules()
            self._has_rows = True
        moved = 0
        for rule in self._due():
            moved += self._take(rule, numbers, budget)
            if budget.is_over():
                break
        return moved

    def _due(self) -> list[str]:
        """Whose turn it may be, the longest ago first: a round that ends early goes on with the others."""
        turns = {stand.rule: stand.turn_at.timestamp() for stand in self._store.alert_rules() if stand.turn_at}
        return sorted(self._looks, key=lambda rule: turns.get(rule, 0.0))

    def _take(self, rule: str, numbers: AlertNumbers, budget: Budget) -> int:
        """One rule's turn, if it is nobody else's."""
        turn: AlertTurn | None = None
        try:
            turn = self._store.take_alert_turn(rule, self._by, 0.9 * self.every)
            if turn is None:
                return 0
            place, moved, problem = self._look(turn, numbers, budget)
            self._store.end_alert_turn(turn, place, problem)
            return moved
        except Exception as error:
            if isinstance(error, StoreError):
                self._store.probe()  # where it is away nobody can look; a question that took too long is this rule's
            self._failed(rule, turn, error)
            return 0

    def _look(self, turn: AlertTurn, numbers: AlertNumbers, budget: Budget) -> tuple[str, int, str | None]:
        number = numbers[turn.rule]
        if not number:  # it is off: what it had found is over
            return "", len(self._close(turn, 0.0)) if turn.open else 0, None
        fresh = turn.now - timedelta(seconds=REASON_LASTS)
        told = frozenset((cause, subject) for cause, (subject, at) in turn.open.items() if at > fresh)

        def look(most: int) -> RuleFindings:
            asked = RuleLook(
                now=turn.now,
                number=number,
                place=turn.place,
                most=most,
                told=told,
                open=frozenset(turn.open),
                is_over=budget.is_over,
            )
            return self._looks[turn.rule](asked)

        looked = budget.call(self._batches[turn.rule], look)
        seen = self._store.see_alerts(turn.rule, _few(turn, looked.findings))
        for alert in seen.opened:
            _tell("alert_opened", alert)
        closed = [] if looked.place else self._close(turn, numbers.close_after)
        problem = _problem(seen.problems) if seen.problems else None
        return looked.place, len(seen.opened) + len(closed), problem

    def _close(self, turn: AlertTurn, after: float) -> list[AlertRecord]:
        closed = self._store.close_alerts(turn.rule, turn.began_at, after) if turn.open else []
        for alert in closed:
            _tell("alert_closed", alert)
        return closed

    def _failed(self, rule: str, turn: AlertTurn | None, error: Exception) -> None:
        """Its next turn begins from the beginning: what it could not look at is looked at again."""
        emit("alert_rule_failed", level=logging.WARNING, rule=rule, error=repr(error))
        if turn is None:
            return
        try:
            self._store.end_alert_turn(turn, "", f"{type(error).__name__}: {error}")
        except Exception as again:
            emit("alert_rule_failed", level=logging.WARNING, rule=rule, error=repr(again))


def _few(turn: AlertTurn, findings: list[AlertFinding]) -> list[AlertFinding]:
    """As many as may be open: those that are, then others as long as there is room; and one for all the rest."""
    known = [found for found in findings if found.cause in turn.open]
    new = [found for found in findings if found.cause not in turn.open]
    room = max(0, MOST_OPEN - len(turn.open))
    rest = [more_of(turn.rule)] if len(new) > room else []
    return known + new[:room] + rest


def _problem(problems: Mapping[str, str]) -> str:
    subject, problem = next(iter(problems.items()))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"the alert about {subject} could not be written{more}: {problem}"


def _tell(event: str, alert: AlertRecord) -> None:
    emit(
        event,
        level=logging.WARNING if event == "alert_opened" else logging.INFO,
        alert=alert.number,
        rule=alert.rule,
        severity=alert.severity,
        tenant=alert.tenant,
        subject=alert.subject,
        sentence=alert.message,
    )
