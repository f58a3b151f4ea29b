"""Offers: what was claimed for a worker at a distance, until that worker has said that it heard of it.

Theory of operation. The claim id of an offer has a mark behind it. An acknowledgement takes the mark away, by one
statement whose WHERE is the fence; a return settles the attempt under the id with the mark. Both write the running
row, so one of them finds nothing. What is returned had no body: a worker begins none before its acknowledgement was
answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.job import AttemptRef
from unstuck.model.offers import offered
from unstuck.store.database import Transaction
from unstuck.store.life.worker_orders import order_of
from unstuck.store.port import Asked, ControlNews, Verdict, WorkerOrder
from unstuck.store.rows import asked_of, packed, ref_of, span

UNHEARD = "its worker did not say in time that it heard of it"


def acknowledge(t: Transaction, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
    rows = [{"job": ref.job, "token": ref.token} for ref in sorted(offers)]
    t.run("acknowledge_offers", worker=worker, claim=claim, offered=offered(claim), rows=packed(rows))
    held = {(row["job"], row["token"]) for row in t.all("attempts_of_claim", worker=worker, claim=claim)}
    return [Verdict.DONE if (ref.job, ref.token) in held else Verdict.FENCED for ref in offers]


def overdue(t: Transaction, seconds: float, batch: int, worker: int | None) -> dict[int, list[AttemptRef]]:
    """By worker."""
    found: dict[int, list[AttemptRef]] = {}
    for row in t.all("overdue_offers", overdue=span(seconds), batch=batch, worker=worker):
        found.setdefault(row["worker"], []).append(ref_of(row))
    return found


def control_news(t: Transaction, workers: Sequence[int]) -> dict[int, ControlNews]:
    asked: dict[int, list[Asked]] = {}
    orders: dict[int, list[WorkerOrder]] = {}
    for row in t.all("asked_of_workers", workers=list(workers)):
        asked.setdefault(row["worker"], []).append(asked_of(row))
    for row in t.all("orders_of_workers", workers=list(workers)):
        orders.setdefault(row["worker"], []).append(order_of(row))
    known = asked.keys() | orders.keys()
    return {worker: ControlNews(tuple(asked.get(worker, ())), tuple(orders.get(worker, ()))) for worker in known}
