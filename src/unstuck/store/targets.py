"""Targets: one body at a time. The line, the head, and the one statement that moves the first of the line to ready.

Theory of operation. Submits, timers and releases only insert: a row into the line and one into the inbox. Whoever
changes whose turn it is (ingest, settle, control, a sweep) first locks the target's row, in one statement, and
decides in the next: under READ COMMITTED a statement that waits for a lock decides on what it saw before. `promote`
alone moves a job from the line to ready, so a target never has two; a promotion that came too early for a line's new
row is made up for by that row's own entry in the inbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState
from unstuck.model.target import FIRST, Turn, place_of
from unstuck.store.changes import Changes
from unstuck.store.database import Row, Transaction
from unstuck.store.line import lock, promote
from unstuck.store.port import Pause, TargetRecord
from unstuck.store.rows import instant, instant_or_none, packed, span

CEILING = 10_000


# --- the turn -----------------------------------------------------------------------------------------------------


def take_turn(changes: Changes, target: int, job: int, turn: Turn, now: int) -> None:
    """Write down what becomes of the turn of this head, whose target is locked."""
    match turn:
        case Turn.PASS | Turn.STEP_BACK:
            changes.passes.append({"target": target, "job": job})
        case Turn.BLOCK:
            changes.blocks.append({"target": target, "job": job, "at": now})
    changes.touched.add(target)


def place_after(turn: Turn, priority: int) -> int:
    return FIRST if turn is Turn.KEEP else place_of(priority)


# --- ingest -------------------------------------------------------------------------------------------------------


def ingest(t: Transaction, targets: Iterable[int | None]) -> int:
    """Targets whose line grew: an unclaimed head yields to a higher priority, and who has no head gets one."""
    locked = lock(t, targets)
    if not locked:
        return 0
    _yield(t, locked)
    return promote(t, locked)


def _yield(t: Transaction, targets: list[int]) -> None:
    """A head that a claim takes at this instant is not in ready any more, and keeps its turn."""
    challenged = {row["head"]: row for row in t.all("challenged_heads", targets=targets, first=FIRST)}
    if challenged:
        _step_back(t, challenged.values())


def _step_back(t: Transaction, heads: Iterable[Row]) -> None:
    """Those that are still unclaimed go back to the line: fresh ones to their place, others before everybody."""
    by_job = {row["head"]: row for row in heads}
    places = [{"route": row["route"], "rank": row["rank"], "job": job} for job, row in by_job.items()]
    changes = Changes()
    for taken in t.all("take_ready_rows", rows=packed(places)):
        row = by_job[taken["job"]]
        if row["head_place"] > FIRST:
            changes.passes.append({"target": row["target"], "job": row["head"]})
        changes.line.append(
            {"target": row["target"], "place": row["head_place"], "job": row["head"], "route": row["route"]}
        )
    changes.write(t)


# --- pauses -------------------------------------------------------------------------------------------------------


def pause(t: Transaction, tenant: str, name: str) -> int | None:
    """Called before the pause is written: the head that nobody has claimed yet leaves ready."""
    target = lock_named(t, tenant, name)
    if target is not None:
        _step_back(t, t.all("ready_heads", targets=[target]))
    return target


def unpause(t: Transaction, tenant: str, name: str) -> int:
    """Called after the pause is gone."""
    target = lock_named(t, tenant, name)
    return 0 if target is None else promote(t, [target])


def lock_named(t: Transaction, tenant: str, name: str) -> int | None:
    found = t.one("target_named", tenant=tenant, name=name)
    return None if found is None else lock(t, [found["id"]])[0]


def end_pauses(t: Transaction, batch: int) -> int:
    """Pauses of targets whose time is over."""
    over = t.all("ended_target_pauses", batch=batch)
    if not over:
        return 0
    locked = lock(t, [row["target"] for row in over])
    t.run("drop_ended_target_pauses", targets=locked)
    return promote(t, locked)


# --- holds --------------------------------------------------------------------------------------------------------


def lift_holds(t: Transaction, margin: float, batch: int) -> tuple[int, bool]:
    return _lift(t, t.all("liftable_holds", margin=span(margin), batch=batch))


def lift_hold(t: Transaction, worker: int, job: int) -> tuple[int, bool]:
    return _lift(t, t.all("hold_of", worker=worker, job=job))


def lift_after(t: Transaction, worker: int, refs: Iterable[AttemptRef]) -> tuple[int, bool]:
    """Of attempts that this worker reported the end of, when the backstop had judged them already."""
    found = [row for ref in refs for row in t.all("hold_after", worker=worker, job=ref.job, token=ref.token)]
    return _lift(t, found)


def _lift(t: Transaction, holds: Sequence[Row]) -> tuple[int, bool]:
    """A hold of another worker that was written since stays: the key is job and worker."""
    if not holds:
        return 0, False
    locked = lock(t, [row["target"] for row in holds])
    lifted = t.run("drop_holds", rows=packed([{"job": row["job"], "worker": row["worker"]} for row in holds]))
    promote(t, locked)
    return lifted, lifted > 0


# --- what people read ---------------------------------------------------------------------------------------------


def named(t: Transaction, tenant: str, name: str) -> TargetRecord | None:
    row = t.one("target_row", tenant=tenant, name=name, ceiling=CEILING)
    return None if row is None else _record(row)


def page(t: Transaction, tenant: str, blocked: bool, after: str, limit: int) -> list[TargetRecord]:
    statement = "blocked_targets" if blocked else "targets"
    return [_record(row) for row in t.all(statement, tenant=tenant, after=after, most=limit, ceiling=CEILING)]


def _record(row: Row) -> TargetRecord:
    paused = None
    if row["paused_at"] is not None:
        paused = Pause(
            kind="target",
            name=row["name"],
            tenant=row["tenant"],
            by=row["paused_by"],
            since_at=instant(row["paused_at"]),
            until_at=instant_or_none(row["paused_until"]),
            reason=row["pause_reason"],
        )
    return TargetRecord(
        number=row["id"],
        tenant=row["tenant"],
        name=row["name"],
        head=row["head_uid"],
        head_state=JobState(row["head_state"]) if row["head_state"] else None,
        blocked_by=row["blocked_uid"],
        blocked_at=instant_or_none(row["blocked_at"]),
        waiting=row["waiting"],
        pause=paused,
        held=bool(row["held"]),
    )
