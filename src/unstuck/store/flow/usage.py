"""Usage: what a job has spent in its present run, kept over retries and wakes, and held against its budget.

A spending is counted and, if it was too much, the request to stop made durable in one transaction under the lock of
the running row: whatever the handler does after it, the settle finds the request. Each unit remembers the last
spending that was counted, so a repeated one is not counted again; an attempt's spendings come one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from unstuck.model.budget import exceeded
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.policy import Policy
from unstuck.model.waits import Spent
from unstuck.store.database import Row, Transaction
from unstuck.store.life.control import request
from unstuck.store.order.name_ids import NameIds
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import packed

BY = "budget"


def spend(
    t: Transaction, name_ids: NameIds, ref: AttemptRef, serial: int, amounts: Mapping[str, float]
) -> Spent | None:
    running = t.one("lock_running", job=ref.job)
    if running is None or (running["token"], running["claim"]) != (ref.token, ref.claim):
        return None
    rows = [{"unit": unit, "amount": float(amount)} for unit, amount in sorted(amounts.items())]
    t.run("add_usage", job=ref.job, run=running["run"], token=ref.token, serial=serial, rows=packed(rows))
    spent = _spent(t, ref.job, running["run"], _policy(t, name_ids, ref.job))
    if spent.exceeded is not None:
        request(t, running, RequestKind.BUDGET, spent.exceeded, BY)
    return spent


def usage_of(t: Transaction, name_ids: NameIds, tenant: str, uid: str) -> Spent:
    row = job_row(t, tenant, uid)
    return _spent(t, row["number"], row["run"], name_ids.policy(t, row["policy"]))


def used(t: Transaction, job: int, run: int) -> dict[str, float]:
    return {row["unit"]: float(row["used"]) for row in t.all("usage", job=job, run=run)}


def _spent(t: Transaction, job: int, run: int, policy: Policy) -> Spent:
    so_far, budget = used(t, job, run), dict(policy.budget)
    return Spent(so_far, budget, exceeded(so_far, budget))


def _policy(t: Transaction, name_ids: NameIds, job: int) -> Policy:
    row: Row | None = t.one("policy_of_job", job=job)
    assert row is not None, "a running job without its row"
    return name_ids.policy(t, row["policy"])
