"""What a job may use: amounts of units (tokens, euros, …) against the budget of its policy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import MAX_NAME
from unstuck.model.policy import MOST_SPENT
from unstuck.model.waits import TreeSpent

#: Of different units in one spending, and so in one job: they are the program's own words, not its data.
MOST_UNITS = 50
_OTHERS_TREE = re.compile(r"the tree of (\S+) used ")


def check_amounts(amounts: Mapping[str, float]) -> None:
    """Before anything is counted: an amount that is no number would make every later sum nonsense."""
    if not amounts:
        raise InvalidInput("nothing to spend: name a unit and how much of it, such as tokens=120")
    if len(amounts) > MOST_UNITS:
        raise InvalidInput(f"{len(amounts)} units at once; the limit is {MOST_UNITS}")
    for unit, amount in amounts.items():
        if not isinstance(unit, str) or not unit.isidentifier() or len(unit) > MAX_NAME:
            raise InvalidInput(f"{quoted(unit)} is not the name of a unit, such as tokens")
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= MOST_SPENT:
            raise InvalidInput(f"{quoted(amount)} {unit} is not a number between 0 and {MOST_SPENT:g}")


def exceeded(used: Mapping[str, float], budget: Mapping[str, float]) -> str | None:
    """The message once something is over its limit; exactly at it is still within."""
    over = [
        f"used {_counted(used[unit])} of {_counted(most)} {unit}"
        for unit, most in sorted(budget.items())
        if used.get(unit, 0.0) > most
    ]
    return "; ".join(over) or None


def told(tree: TreeSpent, own: str) -> str | None:
    """The same of a tree, to the job that was charged last: `own` is its id."""
    over = exceeded(tree.used, tree.budget)
    if over is None:
        return None
    return f"its tree {over}" if tree.job == own else f"the tree of {tree.job} {over}"


def payer_of(message: str | None) -> str | None:
    """The other job whose budget was used up, if a message of `told` says so."""
    found = _OTHERS_TREE.search(message or "")
    return found[1] if found else None


def _counted(amount: float) -> str:
    """1,020 and 0.25, not 1020.0."""
    if math.isfinite(amount) and float(amount).is_integer():
        return f"{int(amount):,}"
    return f"{amount:,.6f}".rstrip("0").rstrip(".")
