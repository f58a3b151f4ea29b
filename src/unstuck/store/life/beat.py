"""Beat: renew the lease, and reconcile what the database grants with what the worker really holds.

Theory of operation. The renewal is one statement on the worker's own row, and depends on nothing else: no row of a
job that another transaction holds costs a worker its lease. What follows skips such rows, they come with the next
beat; and a reconciliation that fails altogether is said, and costs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from unstuck.clock import boot
from unstuck.model.errors import ErrorType, StoreBusy
from unstuck.model.job import AttemptRef
from unstuck.model.offers import is_unheard
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted
from unstuck.records import dataclass
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.life.apply_settlement import close, report_of
from unstuck.store.life.offers import UNHEARD
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.line import lock_of_jobs
from unstuck.store.port import Beat
from unstuck.store.rows import asked_of, instant, microseconds, packed, ref_of, span

ANSWER_LOST = "the claim's answer was lost"
#: So often a renewal is tried while the clock leaps.
_RENEWALS = 5


@dataclass(frozen=True, slots=True)
class BeatFacts:
    """What a worker says that it holds."""

    held: Sequence[AttemptRef]
    pending_claims: Sequence[str]
    settling: Sequence[AttemptRef]
    started: Mapping[int, datetime]


def renew(database: Database, worker: int, lease: float, state: str, info: Mapping[str, Any] | None) -> Beat:
    said = None if info is None else packed(info)
    facts: dict[str, Any] = {"worker": worker, "lease": span(lease), "state": state, "info": said}
    for _ in range(_RENEWALS):
        if (row := _renew(database, facts)) is not None:
            until, at = instant(row["lease_until"]), instant(row["now"])
            return Beat(alive=True, lease_until=until, state=row["state"], renewed_at=at)
        if not _stands(database, worker):
            return Beat(alive=False)
    raise StoreBusy("the database's clock leaps to and fro; the lease was not renewed")


def _renew(database: Database, facts: Mapping[str, Any]) -> Row | None:
    earliest, latest = database.expected_now()
    renewed = database.once("renew_lease", boot_at=span(boot()), earliest=earliest, latest=latest, **facts)
    return renewed[0] if renewed else None


def _stands(database: Database, worker: int) -> bool:
    """Whether it was not for the lease that it could not be renewed: by a clock that was looked at, and mended."""
    row = database.read(lambda t: t.one("lease_stands", worker=worker))
    return row is not None and bool(row["stands"])


def look(t: Transaction, worker: int) -> dict[AttemptRef, Row]:
    """What the database grants."""
    return {ref_of(row): row for row in t.all("granted", worker=worker)}


def compare(beat: Beat, granted: Mapping[AttemptRef, Row], holding: BeatFacts) -> Beat:
    """What the worker has to hear of it. Starts are known once they are written, be it by a beat whose answer was
    lost; those of attempts that are gone interest nobody."""
    unstarted = {ref.job for ref, row in granted.items() if row["started_at"] is None}
    return replace(
        beat,
        asked=tuple(asked_of(row) for row in granted.values() if row["request"]),
        gone=tuple(ref for ref in holding.held if ref not in granted),
        unstarted=frozenset(job for job in holding.started if job in unstarted),
    )


def write_starts(t: Transaction, worker: int, started: Mapping[int, datetime]) -> int:
    rows = [{"job": job, "at": microseconds(at)} for job, at in sorted(started.items())]
    return t.run("start_attempts", worker=worker, rows=packed(rows))


def unheld(granted: Mapping[AttemptRef, Row], holding: BeatFacts, renewed_at: datetime | None) -> list[AttemptRef]:
    """What was claimed since the renewal its worker could not know when it said what it holds: a reconciliation that
    was long on its way must take no running body for forgotten."""
    known = {*holding.held, *holding.settling}
    pending = set(holding.pending_claims)
    last = None if renewed_at is None else microseconds(renewed_at)
    return [
        ref
        for ref, row in granted.items()
        if ref not in known and ref.claim not in pending and (last is None or row["claimed_at"] <= last)
    ]


def give_back(
    t: Transaction, tools: Settling, worker: int, refs: Sequence[AttemptRef], reason: str = ANSWER_LOST
) -> tuple[list[AttemptRef], bool]:
    """Attempts whose bodies have never begun: uncharged, and claimable again."""
    targets = lock_of_jobs(t, [ref.job for ref in refs])
    keys = [{"job": ref.job, "token": ref.token, "claim": ref.claim} for ref in sorted(refs, key=lambda r: r.job)]
    rows = t.all("lock_attempts", worker=worker, rows=packed(keys), targets=targets)
    attempts = [(row, report_of(row, NotStarted(reason))) for row in rows]
    outcomes = close(t, tools, attempts, by="beat", own=False)
    return list(outcomes.states), outcomes.woke


def leave_behind(t: Transaction, tools: Settling, worker: int, jobs: Sequence[int]) -> tuple[list[int], bool]:
    """Jobs of a worker that has left. Nobody can say whether their bodies had begun: on_lost decides. What somebody
    holds stays for recovery."""
    targets = lock_of_jobs(t, jobs)
    rows = t.all("attempts_of_worker", worker=worker, jobs=list(jobs), targets=targets)
    outcomes = close(t, tools, [(row, report_of(row, _left(row))) for row in rows], by="leave", own=False)
    return [ref.job for ref in outcomes.states], outcomes.woke


def _left(row: Row) -> Lost | NotStarted:
    if is_unheard(row["claim"]):
        return NotStarted(UNHEARD)
    message = f"worker {row['worker_name']} on {row['host']} left while it held this"
    return Lost(ErrorInfo(ErrorType.WORKER_LOST, message), "uncharged")
