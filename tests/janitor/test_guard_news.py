"""An entry that a breaker made is told in the log of every worker, once and only after it is committed."""

from __future__ import annotations

from typing import Any

from tests.support.budgets import endless
from tests.support.builders import a_worker, begin, claimed
from unstuck import telemetry
from unstuck.janitor.guard import GuardDuty
from unstuck.model.errors import ErrorType
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.model.times import Times
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore


def test_an_automatic_entry_is_told_once(store: SqlStore) -> None:
    heard: list[dict[str, Any]] = []
    end = telemetry.subscribe(lambda name, facts: heard.append(facts) if name == "blacklisted" else None)
    try:
        store.blacklist_add("default", "by hand", "old news", "dana")
        duty = GuardDuty(store, Times())
        duty.tick(0.0, endless())
        worker = a_worker(store)
        for _ in range(5):
            attempt = claimed(store, worker, workflow="deploy")
            begin(store, worker, attempt)
            verdict = Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, "did not stop"))
            store.settle(worker.number, [Report(attempt.ref, verdict)])
        store.blacklist_add("default", "also by hand", "a person knows", "dana")
        duty.tick(5.0, endless())
        duty.tick(10.0, endless())
    finally:
        end()
    assert [(facts["workflow"], facts["tenant"]) for facts in heard] == [("deploy", "default")]
    assert "5" in heard[0]["reason"]
