"""Orders: what people ask of a worker itself. They are given once, read by their worker, and answered once."""

from __future__ import annotations

from unstuck.model.errors import UnknownWorker
from unstuck.model.payload import clean_text
from unstuck.store.database import Row, Transaction
from unstuck.store.life.changes import MAX_STACK
from unstuck.store.port import OrderKind, WorkerOrder
from unstuck.store.rows import instant, instant_or_none

_GONE = "its lease is over, so nobody would carry it out; `unstuck workers` shows the ones there are"


def give(t: Transaction, worker: int, kind: OrderKind, subject: str, by: str) -> WorkerOrder:
    """An order that is open already is given no second time: the answer to it is the answer to both."""
    row = t.one("give_order", worker=worker, kind=kind, subject=subject, by=clean_text(by, 200))
    if row is None:
        raise _nobody(t, worker)
    return order_of(row)


def _nobody(t: Transaction, worker: int) -> UnknownWorker:
    known = t.one("worker_named", worker=worker)
    if known is None:
        return UnknownWorker(str(worker))
    return UnknownWorker(known["name"], hint=f"it was on {known['host']}, but {_GONE}", is_past=True)


def waiting(t: Transaction, worker: int) -> list[WorkerOrder]:
    return [order_of(row) for row in t.all("open_orders", worker=worker)]


def given(t: Transaction, number: int) -> WorkerOrder | None:
    row = t.one("order_given", number=number)
    return None if row is None else order_of(row)


def answer(t: Transaction, number: int, text: str, refused: bool) -> None:
    """The first answer counts; one that comes late, or twice because its outcome was unknown, changes nothing."""
    t.run("answer_order", number=number, answer=clean_text(text, MAX_STACK), refused=int(refused))


def order_of(row: Row) -> WorkerOrder:
    return WorkerOrder(
        number=row["id"],
        worker=row["worker"],
        kind=row["kind"],
        subject=row["subject"],
        by=row["by"],
        given_at=instant(row["given_at"]),
        done_at=instant_or_none(row["done_at"]),
        answer=row["answer"],
        is_refused=bool(row["is_refused"]),
    )
