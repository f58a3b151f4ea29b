"""The meter: what a job has spent, counted by the database and held against its budget."""

from __future__ import annotations

from typing import Any

from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.rules import FlowRules
from unstuck.executor.messages import Spend, SpentAnswer
from unstuck.model.errors import BudgetExceeded, InvalidInput, quoted
from unstuck.model.payload import check_name
from unstuck.model.policy import MOST_SPENT
from unstuck.model.waits import Spent


class FlowMeter:
    def __init__(self, rules: FlowRules, journal: AttemptJournal) -> None:
        self._rules = rules
        self._journal = journal

    def spend(self, amounts: dict[str, Any]) -> Any:
        self._rules.go_on()
        if not amounts:
            raise InvalidInput("spend what? As in ctx.spend(tokens=120)")
        checked = {unit: _amount(unit, amount) for unit, amount in amounts.items()}
        return self._rules.run("spend", self._spend(checked))

    async def _spend(self, amounts: dict[str, float]) -> Spent:
        answer = await self._journal.ask(Spend(amounts))
        assert isinstance(answer, SpentAnswer)
        if answer.spent.exceeded is not None:
            raise BudgetExceeded(answer.spent.exceeded)
        return answer.spent


def _amount(unit: str, amount: Any) -> float:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 <= amount <= MOST_SPENT:
        raise InvalidInput(f"{unit}={quoted(amount)} is not an amount between 0 and {MOST_SPENT:g}")
    check_name(unit, "unit")
    return float(amount)
