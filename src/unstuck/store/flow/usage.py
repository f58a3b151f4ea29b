"""Usage: what a job has spent in its present run, kept over retries and wakes, and held against its budget.

A budget may be that of a tree (`budget_scope="tree"`): then what all jobs below spend is added to a sum in the job's
own row, that of its present run, in the transaction that counts the spending. A child's row names the nearest such
job above it, its payer; payers may have payers. So a spending costs a row for each, however large the tree, and who
spends at the same time waits for that row until the other has committed.

A spending is counted and, if it was too much, the request to stop made durable in one transaction under the lock of
the running row: whatever the handler does after it, the settle finds the request. Each unit remembers the last
spending that was counted, so a repeated one is not counted again; an attempt's spendings come one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from unstuck.model.budget import exceeded, told
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.policy import Policy
from unstuck.model.waits import Spent, TreeSpent
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.life import control
from unstuck.store.order.name_ids import NameIds
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import packed

BY = "budget"


@dataclass(frozen=True, slots=True)
class _Payer:
    """A job whose budget is its tree's."""

    number: int
    uid: str
    run: int
    policy: Policy


def spend(
    t: Transaction, name_ids: NameIds, ref: AttemptRef, serial: int, amounts: Mapping[str, float]
) -> Spent | None:
    running = t.one("lock_running", job=ref.job)
    if running is None or (running["token"], running["claim"]) != (ref.token, ref.claim):
        return None
    run, job = running["run"], _job(t, ref.job)
    policy = name_ids.policy(t, job["policy"])
    rows = packed([{"unit": unit, "amount": float(amount)} for unit, amount in sorted(amounts.items())])
    of_tree = policy.budget_scope == "tree"
    count = {"job": ref.job, "run": run, "token": ref.token, "serial": serial, "rows": rows}
    is_new = t.run("add_usage", **count, in_tree=int(of_tree)) > 0
    payers = _payers(t, name_ids, ref.job) if job["payer"] is not None else []
    for payer in payers if is_new else ():
        t.run("charge_payer", payer=payer.number, run=payer.run, rows=rows)
    spent = _spent(t, [_Payer(ref.job, job["uid"], run, policy), *payers])
    if spent.exceeded is not None:
        control.request(t, running, RequestKind.BUDGET, spent.exceeded, BY)
    return spent


def usage_of(t: Transaction, name_ids: NameIds, tenant: str, uid: str) -> Spent:
    return by_row(t, name_ids, job_row(t, tenant, uid))


def by_row(t: Transaction, name_ids: NameIds, row: Row) -> Spent:
    own = _Payer(row["number"], row["uid"], row["run"], name_ids.policy(t, row["policy"]))
    return _spent(t, [own, *_payers(t, name_ids, row["number"])])


def nothing_spent(uid: str, policy: Policy) -> Spent:
    """Of a job that has spent nothing, and for which nobody pays."""
    budget = dict(policy.budget)
    return Spent({}, budget, None, (TreeSpent(uid, {}, budget),) if policy.budget_scope == "tree" else ())


def payer_below(t: Transaction, name_ids: NameIds, parent: Row) -> int | None:
    """Who pays for what the children of this job spend, besides themselves."""
    is_tree = name_ids.policy(t, parent["policy"]).budget_scope == "tree"
    payer: int | None = parent["number"] if is_tree else parent["payer"]
    return payer


def used(t: Transaction, job: int, run: int) -> dict[str, float]:
    return {row["unit"]: float(row["used"]) for row in t.all("usage", job=job, run=run)}


def _spent(t: Transaction, jobs: list[_Payer]) -> Spent:
    """The job itself first, then who pays for it."""
    own, *payers = jobs
    so_far, budget = used(t, own.number, own.run), dict(own.policy.budget)
    is_root = own.policy.budget_scope == "tree"
    trees = tuple(_tree(t, payer) for payer in (jobs if is_root else payers))
    over = [] if is_root else [exceeded(so_far, budget)]
    over += [told(tree, own.uid) for tree in trees]
    return Spent(so_far, budget, "; ".join(filter(None, over)) or None, trees)


def _tree(t: Transaction, payer: _Payer) -> TreeSpent:
    rows = t.all("tree_usage", job=payer.number, run=payer.run)
    return TreeSpent(payer.uid, {row["unit"]: float(row["tree"]) for row in rows}, dict(payer.policy.budget))


def _payers(t: Transaction, name_ids: NameIds, job: int) -> list[_Payer]:
    return [
        _Payer(row["number"], row["uid"], row["run"], name_ids.policy(t, row["policy"]))
        for row in t.all("payers", job=job)
    ]


def _job(t: Transaction, job: int) -> Row:
    row: Row | None = t.one("policy_of_job", job=job)
    assert row is not None, "a running job without its row"
    return row
