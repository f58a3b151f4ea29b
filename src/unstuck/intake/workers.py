"""Workers: what a person may ask of a worker itself. It is told by an order, and its answer is waited for here.

A worker is named as people see it: its name, NAME@HOST where several hosts have one of that name, or its number.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import (
    AmbiguousWorker,
    InvalidInput,
    NoAnswer,
    NoStack,
    UnknownJob,
    UnknownProcess,
    UnknownWorker,
    quoted,
)
from unstuck.model.job import AttemptRecord, JobRecord, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import check_wording
from unstuck.model.spelling import about
from unstuck.records import dataclass
from unstuck.store.port import Holder, OrderKind, Store, WorkerOrder

#: How often an answer is looked for: soon at first, since a worker reads its orders every second or so.
_SOON = 0.02
_LATE = 0.25
_GROWTH = 1.5
_LONGEST = 3600.0
#: A job whose attempts are over as soon as their worker is asked is looked at so often.
_LOOKS = 20
_BY = "app"


@dataclass(frozen=True, slots=True)
class Stack:
    """Where a job stands in its code, or stood. `is_live`: its worker showed it just now."""

    text: str
    is_live: bool
    worker: str
    attempt: int
    at: datetime


# --- recycle, kill, drain -----------------------------------------------------------------------------------------


def recycle(store: Store, pid: int, by: str | None = None, worker: str | None = None) -> WorkerOrder:
    """Ask the worker of this executor process to let it finish its jobs and replace it."""
    return _order_process(store, "recycle", pid, by, worker)


def kill(store: Store, pid: int, by: str | None = None, worker: str | None = None) -> WorkerOrder:
    """Ask the worker of this executor process to end it now and replace it; the jobs in it go back, uncharged."""
    return _order_process(store, "kill", pid, by, worker)


def _order_process(store: Store, kind: OrderKind, pid: int, by: str | None, worker: str | None) -> WorkerOrder:
    wanted, who = _pid(pid), _who(by)
    live = _live(store)
    asked = live if worker is None else [_named(live, worker)]
    owners = [one for one in asked if wanted in _pids(one)]
    match owners:
        case [owner]:
            return store.give_order(owner.number, kind, str(wanted), who)
        case []:
            raise _no_process(wanted, asked)
        case _:
            raise AmbiguousWorker(f"process {wanted}", _described(owners), _choose(owners, "worker"))


def drain(store: Store, name: str | None = None, by: str | None = None) -> list[WorkerOrder]:
    """Ask this worker, or every one that lives, to finish what it has, take nothing new, and leave."""
    who, live = _who(by), _live(store)
    asked = live if name is None else [_named(live, name)]
    return [order for one in asked if (order := _order_drain(store, one, who, name)) is not None]


def _order_drain(store: Store, worker: WorkerRecord, by: str, name: str | None) -> WorkerOrder | None:
    try:
        return store.give_order(worker.number, "drain", "", by)
    except UnknownWorker:
        if name is not None:
            raise
        return None  # of all there are, one left between the look and the order: it needs none


def answered(store: Store, order: WorkerOrder, timeout: float = 5.0, clock: Clock | None = None) -> WorkerOrder:
    """The order with its worker's answer; NoAnswer when the time is over first. The order stands all the same."""
    return _Wait(timeout, clock).until_answered(store, order)


def _no_process(pid: int, asked: Sequence[WorkerRecord]) -> UnknownProcess:
    supervisor = next((one for one in asked if one.pid == pid), None)
    if supervisor is not None:
        drain = about("unstuck workers drain", supervisor.name)
        return UnknownProcess(pid, hint=f"it is worker {supervisor.name} itself: `{drain}` ends that")
    return UnknownProcess(pid, [known for one in asked for known in _pids(one)])


# --- stack --------------------------------------------------------------------------------------------------------


def live_stack(store: Store, tenant: str, job: str, by: str | None = None, timeout: float = 5.0) -> str:
    """The text of `stack`."""
    return stack(store, tenant, job, by, timeout).text


def stack(
    store: Store, tenant: str, job: str, by: str | None = None, timeout: float = 5.0, clock: Clock | None = None
) -> Stack:
    """Of a RUNNING job as its worker shows it now, of any other as its last attempt left it. NoStack if there is
    none, NoAnswer if the worker is silent for so long."""
    wait, who = _Wait(timeout, clock), _who(by)
    for _ in range(_LOOKS):
        record = _record(store, tenant, job)
        if record.state is not JobState.RUNNING:
            return _stored(store, record)
        holder = store.holder(tenant, job)
        if holder is None:
            continue  # it ended between two looks
        shown = _shown(store, record, holder, who, wait)
        if shown is not None:
            return shown
    raise NoStack(job, JobState.RUNNING, "it moved on each time its worker was asked; ask again")


def _shown(store: Store, record: JobRecord, holder: Holder, by: str, wait: _Wait) -> Stack | None:
    """None: the attempt was over before its worker came to it; where the job is now decides."""
    worker = record.worker or str(holder.worker)
    try:
        order = store.give_order(holder.worker, "stack", f"{holder.ref.job}:{holder.ref.token}", by)
    except UnknownWorker:
        if store.holder(record.tenant, record.id) != holder:
            return None
        raise NoStack(
            record.id, record.state, f"worker {worker} is silent and its lease is over; others will recover the job"
        ) from None
    told = wait.until_answered(store, order, worker)
    if not told.is_refused:
        return Stack(told.answer or "", True, worker, holder.ref.token, told.done_at or told.given_at)
    if store.holder(record.tenant, record.id) != holder:
        return None
    raise NoStack(record.id, record.state, f"worker {worker} refused: {told.answer}")


def _stored(store: Store, record: JobRecord) -> Stack:
    """Of the last attempt that left one; whether a later one did not is said by `attempt`."""
    left: AttemptRecord | None = None
    after = 0
    while page := store.attempts(record.tenant, record.id, after):
        left = next((attempt for attempt in reversed(page) if attempt.stack), left)
        after = page[-1].token
    if left is None or left.stack is None:
        raise NoStack(record.id, record.state, "only a running job has a live one, and no attempt of it left one")
    return Stack(left.stack, False, left.worker, left.token, left.ended_at or left.claimed_at)


def _record(store: Store, tenant: str, job: str) -> JobRecord:
    record = store.get(tenant, job)
    if record is None:
        raise UnknownJob(job)
    return record


# --- the wait -----------------------------------------------------------------------------------------------------


class _Wait:
    """One patience for all the orders of a question."""

    def __init__(self, timeout: float, clock: Clock | None) -> None:
        self._timeout = _seconds(timeout)
        self._clock = clock or MachineClock()
        self._until = self._clock.boot() + self._timeout

    def until_answered(self, store: Store, order: WorkerOrder, worker: str | None = None) -> WorkerOrder:
        pause, never = _SOON, threading.Event()
        while True:
            found = store.order(order.number)
            if found is None:
                raise NoAnswer(order.kind, worker or str(order.worker), self._timeout, "the order is forgotten")
            if found.done_at is not None:
                return found
            left = self._until - self._clock.boot()
            if left <= 0:
                raise NoAnswer(order.kind, worker or str(order.worker), self._timeout)
            self._clock.wait(never, min(pause, left))
            pause = min(pause * _GROWTH, _LATE)


# --- names --------------------------------------------------------------------------------------------------------


def _live(store: Store) -> list[WorkerRecord]:
    """Those whose lease holds: nobody else would read an order."""
    return store.live_workers()


def _named(live: Sequence[WorkerRecord], worker: str) -> WorkerRecord:
    name = check_wording(worker, "worker") or ""
    for is_meant in (_by_name, _by_place, _by_number):
        match [one for one in live if is_meant(one, name)]:
            case [only]:
                return only
            case []:
                continue
            case several:
                raise AmbiguousWorker(f"worker {name}", _described(several), _choose(several, "worker"))
    raise UnknownWorker(name, [one.name for one in live])


def _by_name(worker: WorkerRecord, name: str) -> bool:
    return worker.name == name


def _by_place(worker: WorkerRecord, name: str) -> bool:
    return f"{worker.name}@{worker.host}" == name


def _by_number(worker: WorkerRecord, name: str) -> bool:
    return str(worker.number) == name


def _described(workers: Iterable[WorkerRecord]) -> list[str]:
    return [f"{one.name} on {one.host} (number {one.number})" for one in workers]


def _choose(workers: Sequence[WorkerRecord], what: str) -> str:
    """The shortest way of naming one that tells them apart."""
    first = workers[0]
    for is_meant, way in ((_by_name, first.name), (_by_place, f"{first.name}@{first.host}")):
        if sum(is_meant(one, way) for one in workers) == 1:
            return f"say which {what}, for example {way}"
    return f"say which {what} by its number, for example {first.number}"


def _pids(worker: WorkerRecord) -> list[int]:
    """Of the executors that it told of in its last beat."""
    told: Any = worker.info.get("executors")
    executors = told if isinstance(told, list) else []
    return [one["pid"] for one in executors if isinstance(one, dict) and isinstance(one.get("pid"), int)]


def _pid(pid: Any) -> int:
    if isinstance(pid, bool) or not isinstance(pid, int) or pid <= 0:
        raise InvalidInput(f"pid={quoted(pid)} is not the number of a process")
    return pid


def _seconds(timeout: Any) -> float:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not is_number or not math.isfinite(timeout) or not 0 <= timeout <= _LONGEST:
        raise InvalidInput(f"timeout={quoted(timeout)} is not a number of seconds between 0 and {_LONGEST:g}")
    return float(timeout)


def _who(by: Any) -> str:
    return check_wording(by, "by") or _BY
