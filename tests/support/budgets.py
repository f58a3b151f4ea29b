"""Budgets for duties that a test calls by themselves."""

from __future__ import annotations

from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget


def endless() -> Budget:
    return Budget(MachineClock(), float("inf"))
