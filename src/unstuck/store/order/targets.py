"""Targets: one body at a time. The line, the head, and the one statement that moves the first of the line to ready.

Theory of operation. Submits, timers and releases only insert: a row into the line and one into the inbox. A verb
that changes whose turn it is (ingest, settle, control, a sweep) first locks the target's row, in one statement, and
decides in the next: under READ COMMITTED a statement that waits for a lock decides on what it saw before. `promote`
alone moves a job from the line to ready, so a target never has two; a promotion that came too early for a line's new
row is made up for by that row's own entry in the inbox. A verb that serves every job (an ingest, a sweep) waits for
no target: if one is locked, its entry stays in the inbox, one for all of its line, and the sweep comes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.target import FIRST, Turn, place_of
from unstuck.store.database import Row, Transaction
from unstuck.store.life import news
from unstuck.store.life.changes import Changes
from unstuck.store.order.line import lock, lock_free, promote
from unstuck.store.order.pause_news import BY_TIME, pause_news
from unstuck.store.port import TARGET_CEILING, Pause, TargetRecord
from unstuck.store.rows import instant, instant_or_none, packed, span

# --- the turn -----------------------------------------------------------------------------------------------------


def take_turn(
    changes: Changes, target: int, job: int, turn: Turn, now: int, *, was_blocker: bool = False, by: str | None = None
) -> None:
    """Write down what becomes of the turn of this head, whose target is locked. `was_blocker`: it kept its target
    blocked until now, as only a job can that does not run; `by`: the person who moves it."""
    match turn:
        case Turn.PASS | Turn.STEP_BACK:
            changes.passes.append({"target": target, "job": job})
            if was_blocker:
                changes.news.append(freed(job, by))
        case Turn.BLOCK:
            changes.blocks.append({"target": target, "job": job, "at": now})
            if not was_blocker:
                changes.news.append(NewsItem(NewsKind.TARGET_BLOCKED, job=job))
    changes.touched.add(target)


def freed(job: int, by: str | None) -> NewsItem:
    return NewsItem(NewsKind.TARGET_FREED, {"by": by}, job=job)


def place_after(turn: Turn, priority: int) -> int:
    return FIRST if turn is Turn.KEEP else place_of(priority)


# --- ingest -------------------------------------------------------------------------------------------------------


def ingest(t: Transaction, targets: Iterable[int | None], *, is_careful: bool = False) -> tuple[int, int]:
    """Targets whose line grew: an unclaimed head yields to a higher priority, and a target without a head gets one.
    Targets that are locked go back into the inbox; `is_careful`: those in quarantine are left to the duty that tries
    them again. How many became ready, and how many went back."""
    locked, held = lock_free(t, targets)
    if is_careful and locked:
        # Read after the targets are locked: a retry locks the same targets, so it runs after us.
        aside = {row["item"] for row in t.all("lock_quarantined", duty="target", items=locked)}
        locked = [target for target in locked if target not in aside]
    if locked:
        held += _yield(t, locked)
    if held:
        t.run("add_inbox", rows=packed([{"target": target, "job": None} for target in held]))
    return promote(t, locked), len(held)


def _yield(t: Transaction, targets: list[int]) -> list[int]:
    """A head that a claim takes at this instant keeps its turn; its target, which is to be looked at again lest that
    claim be rolled back, is the answer."""
    challenged = {row["head"]: row for row in t.all("challenged_heads", targets=targets, first=FIRST)}
    if not challenged:
        return []
    taken = _step_back(t, challenged.values(), "take_free_ready_rows")
    missed = _places(row for head, row in challenged.items() if head not in taken)
    still = t.all("still_ready", rows=packed(missed)) if missed else []
    return sorted(challenged[row["job"]]["target"] for row in still)


def _step_back(t: Transaction, heads: Iterable[Row], statement: str = "take_ready_rows") -> set[int]:
    """Those that are still unclaimed go back to the line: fresh ones to their place, others before everybody."""
    by_job = {row["head"]: row for row in heads}
    changes = Changes()
    taken = {row["job"] for row in t.all(statement, rows=packed(_places(by_job.values())))}
    for job in sorted(taken):
        row = by_job[job]
        if row["head_place"] > FIRST:
            changes.passes.append({"target": row["target"], "job": row["head"]})
        changes.line.append(
            {"target": row["target"], "place": row["head_place"], "job": row["head"], "route": row["route"]}
        )
    changes.write(t)
    return taken


def _places(heads: Iterable[Row]) -> list[dict[str, int]]:
    """Where they stand in ready."""
    return [{"route": row["route"], "rank": row["rank"], "job": row["head"]} for row in heads]


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


def ended_pauses(t: Transaction, after: int, batch: int) -> list[int]:
    """Targets above this number whose pause's time is over."""
    return [row["target"] for row in t.all("ended_target_pauses", after=after, batch=batch)]


def end_pauses(t: Transaction, targets: Sequence[int]) -> tuple[int, bool]:
    """Of those of these targets that nobody holds, where their time is over."""
    locked, _ = lock_free(t, targets)
    if locked:
        over = t.all("drop_ended_target_pauses", targets=locked)
        news.tell(t, [pause_news(NewsKind.PAUSE_ENDED, row, by=BY_TIME) for row in over])
    moved = promote(t, locked)
    return moved, moved > 0


# --- body marks ---------------------------------------------------------------------------------------------------


def liftable_body_marks(t: Transaction, margin: float, after: int, batch: int) -> list[int]:
    """Jobs above this number whose body mark is of a worker that is gone."""
    return [row["job"] for row in t.all("liftable_body_marks", margin=span(margin), after=after, batch=batch)]


def lift_body_marks(t: Transaction, margin: float, jobs: Sequence[int]) -> tuple[int, bool]:
    """Of these jobs, but for those whose target somebody holds."""
    return _drop(t, t.all("body_marks_to_lift", jobs=list(jobs), margin=span(margin)))


def lift_body_mark(t: Transaction, worker: int, job: int) -> tuple[int, bool]:
    return _lift(t, t.all("body_mark_of", worker=worker, job=job))


def lift_after(t: Transaction, worker: int, refs: Iterable[AttemptRef]) -> tuple[int, bool]:
    """Of attempts that this worker reported the end of, when the backstop had judged them already."""
    found = [row for ref in refs for row in t.all("body_mark_after", worker=worker, job=ref.job, token=ref.token)]
    return _lift(t, found)


def _lift(t: Transaction, marks: Sequence[Row]) -> tuple[int, bool]:
    """Their worker says that they are over. He says it once: what is in use now is left to the next sweep."""
    lifted, woke = _drop(t, marks)
    if lifted < len(marks):
        lifted += t.run("disown_body_marks", rows=packed(_keys(marks)))
    return lifted, woke


def _drop(t: Transaction, marks: Sequence[Row]) -> tuple[int, bool]:
    """A mark of another worker that was written since stays: the key is job and worker."""
    locked, _ = lock_free(t, [row["target"] for row in marks])
    free = [row for row in marks if row["target"] is None or row["target"] in set(locked)]
    lifted = t.run("drop_body_marks", rows=packed(_keys(free))) if free else 0
    promote(t, locked)
    return lifted, lifted > 0


def _keys(marks: Sequence[Row]) -> list[dict[str, int]]:
    return [{"job": row["job"], "worker": row["worker"]} for row in marks]


# --- what people read ---------------------------------------------------------------------------------------------


def named(t: Transaction, tenant: str, name: str) -> TargetRecord | None:
    row = t.one("target_row", tenant=tenant, name=name, ceiling=TARGET_CEILING)
    return None if row is None else _record(row)


def page(t: Transaction, tenant: str, blocked: bool, after: str, limit: int) -> list[TargetRecord]:
    statement = "blocked_targets" if blocked else "targets"
    return [_record(row) for row in t.all(statement, tenant=tenant, after=after, most=limit, ceiling=TARGET_CEILING)]


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
