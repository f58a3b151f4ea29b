"""Pauses that cannot be ended keep no other from its end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT
from tests.support.troubles import raising
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.pauses import PausesDuty
from unstuck.model.times import Times
from unstuck.store.guard.bisection import MOST_FAILURES
from unstuck.store.port import Pause
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def over(store: SqlStore, clock: StoreClock) -> list[str]:
    """The last of them is the only good one."""
    now = store.now()
    names = [f"bad{n:02}" for n in range(MOST_FAILURES + 5)] + ["good"]
    for n, name in enumerate(names, 1):
        store.pause(Pause("queue", name, TENANT, "ada", now, now + timedelta(milliseconds=n)))
    clock.advance(seconds=2)
    return names


class SmallPages(PausesDuty):
    most = 5


@pytest.mark.parametrize("duty", [PausesDuty, SmallPages])
def test_one_behind_many_that_are_refused_ends(
    store: SqlStore, store_url: str, over: list[str], duty: type[PausesDuty]
) -> None:
    sweeping = duty(store, Times())
    with raising(store_url, "unstuck_pauses", "OLD.name LIKE 'bad%'", on="DELETE"):
        assert sweeping.tick(0.0, Budget(MachineClock(), 60.0)) == 1
        assert [pause.name for pause in store.pauses(TENANT)] == []
    assert sweeping.tick(0.0, Budget(MachineClock(), 60.0)) == len(over) - 1


def test_a_turn_without_time_for_all_of_them_is_continued(store: SqlStore, store_url: str, over: list[str]) -> None:
    sweeping = SmallPages(store, Times())
    with raising(store_url, "unstuck_pauses", "OLD.name LIKE 'bad%'", on="DELETE"):
        turns = [sweeping.tick(0.0, Budget(MachineClock(), 0.0)) for _ in over]
    assert sum(turns) == 1
