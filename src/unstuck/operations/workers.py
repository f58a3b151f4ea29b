"""Workers: who runs the jobs, in which processes, and what may be ordered of them.

An order is carried out by the worker it is given to; `answer` waits for what it says. A worker is named by its name,
by NAME@HOST where several hosts have one of that name, or by its number.
"""

from __future__ import annotations

from itertools import islice

from unstuck.intake import workers as doors
from unstuck.model.errors import (
    AmbiguousWorker,
    InvalidInput,
    NoAnswer,
    UnknownOrder,
    UnknownProcess,
    UnknownWorker,
    quoted,
)
from unstuck.observe.lookup import WORKERS_SHOWN, check_limit
from unstuck.operations.kinds import Cursor, Duration, number_of, seconds
from unstuck.operations.table import PLATFORM_ADMIN, READER, Caller, operation
from unstuck.store.port import WorkerOrder
from unstuck.views import Page
from unstuck.views.workers import OrderView, WorkerView

#: No number that a database gives has more.
_DIGITS = 18


@operation(role=READER, whose="platform", paged="after")
def list_(caller: Caller, *, ended: bool = False, after: Cursor | None = None, limit: int = 500) -> Page[WorkerView]:
    """The workers, each with its processes and the jobs in them; with `ended` also those that left, or fell silent
    more than an hour ago."""
    check_limit(limit)
    now = caller.store.now()
    found = caller.lookup.each_worker(None if ended else WORKERS_SHOWN, number_of(after) or 0)
    seen = (WorkerView.of(worker, now, whole=caller.bound is None) for worker in found)
    items = tuple(islice((worker for worker in seen if ended or worker.is_news(now)), limit))
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="workers.recycle",
    errors=(UnknownProcess, UnknownWorker, AmbiguousWorker), route="POST /workers/processes/{pid}/recycle",
)  # fmt: skip
def recycle(caller: Caller, pid: int, *, worker: str | None = None) -> OrderView:
    """Replace a process. It takes no more jobs, those in it finish and are stored, then it ends; a new one starts.
    Name the worker where two hosts have that pid."""
    return _view(caller, doors.recycle(caller.store, pid, caller.by, worker))


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="workers.kill",
    errors=(UnknownProcess, UnknownWorker, AmbiguousWorker), route="POST /workers/processes/{pid}/kill",
)  # fmt: skip
def kill(caller: Caller, pid: int, *, worker: str | None = None) -> OrderView:
    """End a process now. The jobs in it go back to the queue at no cost; a new one starts. Name the worker where two
    hosts have that pid."""
    return _view(caller, doors.kill(caller.store, pid, caller.by, worker))


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="workers.drain",
    errors=(UnknownWorker, AmbiguousWorker),
)  # fmt: skip
def drain(caller: Caller, worker: str | None = None, *, every: bool = False) -> Page[OrderView]:
    """Stop a worker, or with `every` all there are, in order: it takes nothing new, what runs may finish, then it
    ends. An order for each."""
    if every == (worker is not None):
        raise InvalidInput("say which worker to drain, or that every one is meant")
    orders = doors.drain(caller.store, worker, caller.by)
    return Page(items=tuple(_view(caller, order) for order in orders))


@operation(
    role=PLATFORM_ADMIN, whose="platform", errors=(NoAnswer, UnknownOrder), command="workers recycle",
    route="GET /workers/orders/{order}",
)  # fmt: skip
def answer(caller: Caller, order: int, *, timeout: Duration = 5.0) -> OrderView:
    """An order, by its number, with its worker's answer; NoAnswer when the time is over first. The order stands all
    the same."""
    if isinstance(order, bool) or not isinstance(order, int):
        raise InvalidInput(f"order={quoted(order)} is not the number of an order")
    found = caller.store.order(order) if 0 < order < 10**_DIGITS else None
    if found is None:
        raise UnknownOrder(order)
    return _view(caller, doors.answered(caller.store, found, seconds(timeout, "timeout")))


def _view(caller: Caller, order: WorkerOrder) -> OrderView:
    """With the worker's name."""
    found = caller.store.workers(order.worker - 1, 1)
    return OrderView.of(order, next((w.name for w in found if w.number == order.worker), str(order.worker)))
