"""Beat: renew the lease, and reconcile what the database grants with what the worker really holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted
from unstuck.store.database import Transaction
from unstuck.store.line import lock_of_jobs, lock_of_workers
from unstuck.store.port import Beat, Report
from unstuck.store.rows import asked_of, instant, microseconds, packed, ref_of, span
from unstuck.store.settle import Settling, close, report_of

ANSWER_LOST = "the claim's answer was lost"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a worker says about itself."""

    lease: float
    held: Sequence[AttemptRef]
    pending_claims: Sequence[str]
    settling: Sequence[AttemptRef]
    started: Mapping[int, datetime]
    state: str
    info: Mapping[str, Any] | None


def beat(t: Transaction, tools: Settling, worker: int, holding: Holding) -> tuple[Beat, bool]:
    info = None if holding.info is None else packed(holding.info)
    renewed = t.one("renew_lease", worker=worker, lease=span(holding.lease), state=holding.state, info=info)
    if renewed is None:
        return Beat(alive=False), False
    if holding.started:
        rows = [{"job": job, "at": microseconds(at)} for job, at in sorted(holding.started.items())]
        t.run("start_attempts", worker=worker, rows=packed(rows))
    granted = {ref_of(row): row for row in t.all("granted", worker=worker)}
    strays, woke = give_back(t, tools, worker, _strays(granted, holding), ANSWER_LOST)
    return (
        Beat(
            alive=True,
            lease_until=instant(renewed["lease_until"]),
            asked=tuple(asked_of(row) for ref, row in granted.items() if row["request"] and ref not in strays),
            gone=tuple(ref for ref in holding.held if ref not in granted),
            strays=tuple(strays),
            state=renewed["state"],
        ),
        woke,
    )


def _strays(granted: Mapping[AttemptRef, object], holding: Holding) -> list[AttemptRef]:
    known = {*holding.held, *holding.settling}
    pending = set(holding.pending_claims)
    return [ref for ref in granted if ref not in known and ref.claim not in pending]


def give_back(
    t: Transaction, tools: Settling, worker: int, strays: Sequence[AttemptRef], reason: str
) -> tuple[list[AttemptRef], bool]:
    """Attempts whose bodies have never begun: uncharged, and claimable again."""
    if not strays:
        return [], False
    lock_of_jobs(t, [ref.job for ref in strays])
    keys = [{"job": ref.job, "token": ref.token, "claim": ref.claim} for ref in sorted(strays, key=lambda r: r.job)]
    rows = t.all("lock_attempts", worker=worker, rows=packed(keys))
    attempts = [(row, report_of(row, NotStarted(reason))) for row in rows]
    outcomes = close(t, tools, attempts, by="beat", own=False)
    return list(outcomes.states), outcomes.woke


def leave(t: Transaction, tools: Settling, worker: int) -> bool:
    """The lease ends now. Nobody can say whether the bodies of what is left had begun: on_lost decides."""
    t.run("leave", worker=worker)
    woke = False
    locked = lock_of_workers(t, [worker])
    while rows := t.all("attempts_of_worker", worker=worker, targets=locked, batch=1000):
        attempts: list[tuple[Any, Report]] = []
        for row in rows:
            error = ErrorInfo(
                ErrorType.WORKER_LOST, f"worker {row['worker_name']} on {row['host']} left while it held this"
            )
            attempts.append((row, report_of(row, Lost(error, "uncharged"))))
        woke |= close(t, tools, attempts, by="leave", own=False).woke
    return woke
