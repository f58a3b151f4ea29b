"""Pending: jobs that were accepted and stand in no queue: held by a person, or waiting for other jobs to end.

Theory of operation. A submit only inserts: the rows that say which jobs the newcomer waits for, and an inbox entry to
look at it. The transaction that ends a job with dependants adds an inbox entry too. An end that is under way while
the newcomer is looked at is the one case in which neither would see the other. So the first look at a newcomer takes
the locks that every end must hold (the running row, or the jobs row of a job at rest) and looks again behind them: an
end that comes later sees the dependant. An attempt that closes by a single statement may have taken its snapshot
before it got the lock; it is marked `awaited`, and then closes by several. Nothing here waits for a lock: a job whose
row is locked goes back into the inbox and is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from unstuck.model.dependencies import Dependency, Fate, fate, reproach
from unstuck.model.errors import Conflict, ErrorType, UnknownJob
from unstuck.model.job import AfterFailure, JobRecord, NewJob
from unstuck.model.lifecycle import EventKind, JobState, Move, target_of
from unstuck.model.payload import clean_text
from unstuck.model.target import place_of
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import waking
from unstuck.store.guard import breaker
from unstuck.store.life.changes import Changes, done_of, moment, rest_of
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.name_ids import NameIds
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import job_of, packed, span

#: Dependants that one transaction decides about; the others of a great fan-out are left in the inbox.
MOST_AT_ONCE = 1000
#: How far one transaction follows failures from dependant to dependant.
ROUNDS = 20

BY = "dependencies"


# --- birth --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beginning:
    """A job that a submit has just inserted, and whom it waits for."""

    row: Row
    job: NewJob
    after: tuple[str, ...]


def begin(t: Transaction, beginnings: Iterable[Beginning]) -> None:
    """What a PENDING job needs beside its row: a history that says why it stands still, an entry in the inbox."""
    held = [beginning for beginning in beginnings if beginning.job.on_hold or beginning.after]
    if not held:
        return
    numbers = _known(t, held)
    changes = Changes()
    rows = []
    for beginning in held:
        number, at = beginning.row["id"], beginning.row["created_at"]
        why = {"hold": beginning.job.on_hold or None, "after": list(beginning.after) or None}
        changes.tell(number, 2, at, EventKind.HELD, 1, 0, why)
        rows += [{"job": number, "on_job": numbers[beginning.job.tenant, other]} for other in beginning.after]
        if beginning.after:
            changes.inbox.append({"target": None, "job": number})
    if rows:
        t.run("add_dependencies", rows=packed(rows))
    changes.write(t)


def _known(t: Transaction, held: Sequence[Beginning]) -> dict[tuple[str, str], int]:
    """The numbers of all that are waited for, kept from being forgotten until this is committed."""
    wanted = {(beginning.job.tenant, other) for beginning in held for other in beginning.after}
    if not wanted:
        return {}
    rows = t.all("known_jobs", rows=packed([{"tenant": tenant, "uid": uid} for tenant, uid in sorted(wanted)]))
    known = {(row["tenant"], row["uid"]): int(row["id"]) for row in rows}
    for beginning in held:
        for other in beginning.after:
            if (beginning.job.tenant, other) not in known:
                raise UnknownJob(other)
    return known


def check_known(t: Transaction, jobs: Sequence[NewJob]) -> None:
    """UnknownJob for one that waits for a job which is neither stored nor born with it."""
    born = {(job.tenant, job.id) for job in jobs}
    wanted = {(job.tenant, other) for job in jobs for other in job.after} - born
    if not wanted:
        return
    rows = t.all("known_jobs", rows=packed([{"tenant": tenant, "uid": uid} for tenant, uid in sorted(wanted)]))
    if missing := wanted - {(row["tenant"], row["uid"]) for row in rows}:
        raise UnknownJob(min(missing)[1])


# --- release by a person ------------------------------------------------------------------------------------------


def release(
    t: Transaction, name_ids: NameIds, tenant: str, uid: str, by: str, force: bool, bulk: int | None = None
) -> tuple[JobRecord, bool]:
    """Lift its hold; unless it still waits for others, it is QUEUED. Also: whether an idle worker should look for
    work. `bulk`: the number of the bulk that this is part of, for the history."""
    t.one("lock_job", job=job_row(t, tenant, uid)["number"])
    row = job_row(t, tenant, uid)  # again: the first look may be as old as the wait for the lock was long
    target_of(uid, JobState(row["state"]), Move.RELEASE)
    breaker.check(t, tenant, row["workflow"])
    if force:
        forget(t, row["number"])
    open_ones = 0 if force else len(t.all("dependencies_of", jobs=[row["number"]]))
    if open_ones and not row["on_hold"]:
        raise Conflict(
            f"job {uid} is not held, it waits for {open_ones} other{'s' if open_ones > 1 else ''} to end; "
            "to run it without them, force its release"
        )
    changes, now = Changes(), moment(t)
    facts = {"by": clean_text(by, 200), "bulk": bulk, "force": force or None}
    if open_ones:
        changes.tell(row["number"], row["event_count"] + 1, now, EventKind.UNHELD, row["run"], row["token"], facts)
        changes.rests.append(rest_of(row, JobState.PENDING))
        changes.inbox.append({"target": None, "job": row["number"]})
    else:
        (row,) = t.all("pending_jobs", jobs=[row["number"]])
        _queue(changes, t, name_ids, row, now, facts)
    woke = changes.write(t)
    t.run("unhold", job=row["number"])
    after = job_row(t, tenant, uid)
    return job_of(after, name_ids.policy(t, after["policy"])), woke


def set_free(t: Transaction, tools: Settling, jobs: Mapping[int, str]) -> bool:
    """Those of these jobs, whose rows are locked, that are held: each by whom it is released."""
    changes = Changes()
    rows = t.all("pending_jobs", jobs=sorted(jobs)) if jobs else []
    for row in rows:
        _queue(changes, t, tools.name_ids, row, row["now"], {"by": clean_text(jobs[row["number"]], 200)})
    if not rows:
        return False
    woke = changes.write(t)
    t.run("unhold_jobs", jobs=[row["number"] for row in rows])
    return woke


def forget(t: Transaction, job: int) -> None:
    """It waits for nobody any more, whatever becomes of it."""
    t.run("forget_dependencies", job=job)


# --- news ---------------------------------------------------------------------------------------------------------


def settle_news(
    t: Transaction, tools: Settling, jobs: Sequence[int], *, is_careful: bool = False
) -> tuple[int, bool]:
    """Decide about the dependants of these jobs, and about these jobs themselves if they wait; a dependant that fails
    is decided about in the next round, for some rounds. Jobs whose own wait was answered are woken.

    Answers how many moved, and whether an idle worker should look: for work, or for what is left in the inbox.
    `is_careful`: jobs in quarantine are left to the duty that tries them again.
    """
    moved, woke, news, gathered = 0, False, set(jobs), set(jobs)
    for _ in range(ROUNDS):
        decided = _decide_round(t, tools, news, is_careful=is_careful)
        moved += decided.moved
        woke |= decided.woke
        gathered |= decided.gathered
        news = decided.failed
        if not news:
            break
    awake, has_woken = waking.wake(t, tools, gathered, is_careful=is_careful)
    return moved + awake, woke or has_woken or bool(news)


def look_at(t: Transaction, tools: Settling, jobs: Sequence[int]) -> tuple[int, bool]:
    """Decide about these and nobody else, as carefully as about newcomers; whom it concerns in turn, the inbox
    tells."""
    decided = _decide_about(t, tools, list(jobs), newcomers=list(jobs))
    awake, has_woken = waking.wake(t, tools, decided.gathered)
    return decided.moved + awake, decided.woke or has_woken


def concerned_by(t: Transaction, news: Iterable[int]) -> list[int]:
    """Who waits for one of these, and those of them that wait themselves."""
    return [row["job"] for row in t.all("dependants", jobs=sorted(news))]


@dataclass(frozen=True, slots=True)
class Decided:
    moved: int = 0
    woke: bool = False
    failed: set[int] = field(default_factory=set)
    #: None of the children they wait for is left.
    gathered: set[int] = field(default_factory=set)
    #: Some are.
    gathering: set[int] = field(default_factory=set)


def _decide_round(t: Transaction, tools: Settling, news: set[int], *, is_careful: bool) -> Decided:
    concerned = concerned_by(t, news)
    if is_careful and concerned:
        aside = {row["item"] for row in t.all("lock_quarantined", duty="dependants", items=concerned)}
        concerned = [job for job in concerned if job not in aside]
    if not concerned:
        return Decided()
    now_ones, later = concerned[:MOST_AT_ONCE], concerned[MOST_AT_ONCE:]
    decided = _decide_about(t, tools, now_ones, newcomers=sorted(news.intersection(now_ones)))
    if later:
        t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in later]))
    return replace(decided, woke=decided.woke or bool(later))


def _decide_about(t: Transaction, tools: Settling, now_ones: Sequence[int], newcomers: Sequence[int]) -> Decided:
    attempts = {row["job"] for row in t.all("lock_awaited", jobs=list(newcomers))} if newcomers else set()
    at_rest = {row["id"] for row in t.all("lock_waiting", jobs=list(now_ones), newcomers=list(newcomers))}
    others_of = _others(t, [job for job in now_ones if job in at_rest])
    unsure = {job for job in newcomers if _is_unsure(others_of[job], attempts, at_rest)}
    decided = _decide(t, tools, [job for job in now_ones if job in at_rest and job not in unsure], others_of)
    _mark(t, [wait for job in newcomers for wait in others_of[job]], attempts)
    refused = waking.refuse(t, tools, decided.gathering.intersection(newcomers))
    if busy := [job for job in now_ones if job not in at_rest or job in unsure] + refused.busy:
        t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in busy]))
    return replace(
        decided,
        moved=decided.moved + len(refused.failed),
        woke=decided.woke or refused.woke,
        failed=decided.failed | refused.failed,
    )


def _others(t: Transaction, jobs: Sequence[int]) -> dict[int, list[Row]]:
    others_of: dict[int, list[Row]] = defaultdict(list)
    for row in t.all("dependencies_of", jobs=list(jobs)) if jobs else ():
        others_of[row["job"]].append(row)
    return others_of


def _is_unsure(others: Sequence[Row], attempts: set[int], at_rest: set[int]) -> bool:
    """Something that has not ended is not ours: its end may be on the way, and may not have seen who waits for it."""
    return any(
        wait["on_job"] not in at_rest or (wait["is_running"] and wait["on_job"] not in attempts)
        for wait in others
        if _is_open(wait)
    )


def _is_open(wait: Row) -> bool:
    return wait["state"] is None and wait["uid"] is not None


def _mark(t: Transaction, others: Sequence[Row], attempts: set[int]) -> None:
    if awaited := sorted({wait["on_job"] for wait in others if _is_open(wait)} & attempts):
        t.run("mark_awaited", jobs=awaited)


def _decide(t: Transaction, tools: Settling, jobs: Sequence[int], others_of: dict[int, list[Row]]) -> Decided:
    if not jobs:
        return Decided()
    changes = Changes()
    pending = {row["number"]: row for row in t.all("pending_jobs", jobs=list(jobs))}
    gathering = waking.gathering(t, [job for job in jobs if job not in pending])
    gathered = {job for job in gathering if not any(map(_is_open, others_of[job]))}
    # Rows of a job that neither is PENDING nor gathers any more are of no use to anybody.
    free = [job for job in jobs if job not in pending and job not in gathering - gathered]
    for job, row in pending.items():
        others = [_dependency(wait) for wait in others_of[job]]
        match fate(others, _after_failure(row)):
            case Fate.FAIL:
                _fail(changes, row, reproach(others))
            case Fate.RUN if not row["on_hold"]:
                _queue(changes, t, tools.name_ids, row, row["now"], {"by": BY})
            case Fate.WAIT:
                continue
        free.append(job)
    if free:
        t.run("drop_dependencies", jobs=free)
    woke = changes.write(t)
    return Decided(len(changes.events), woke, {end["job"] for end in changes.ends}, gathered, gathering - gathered)


def _after_failure(row: Row) -> AfterFailure:
    return "run" if row["after_failure"] == "run" else "fail"


def _dependency(wait: Row) -> Dependency:
    """One that is gone altogether has ended, and nobody can say that it completed."""
    if wait["uid"] is None:
        return Dependency(f"number {wait['on_job']}", JobState.DEAD, "forgotten")
    state = None if wait["state"] is None else JobState(wait["state"])
    return Dependency(wait["uid"], state, wait["error_type"])


# --- moves --------------------------------------------------------------------------------------------------------


def _queue(changes: Changes, t: Transaction, name_ids: NameIds, row: Row, now: int, facts: dict[str, Any]) -> None:
    """Released: due at its time, or now if that has passed; its stay in the queue begins then."""
    appointed = row["appointed"]
    available_at = max(now, row["available_at"] if appointed is None else appointed + row["ahead"])
    stay = name_ids.policy(t, row["policy"]).expires_after
    expires_at = None if stay is None else available_at + span(stay)
    changes.tell(row["number"], row["event_count"] + 1, now, EventKind.RELEASED, row["run"], row["token"], facts)
    changes.rests.append(rest_of(row, JobState.QUEUED, available_at=available_at, expires_at=expires_at))
    changes.queue(
        row["number"],
        now,
        available_at,
        expires_at,
        route=row["route"],
        target=row["target_number"],
        place=place_of(row["priority"]),
        is_locked=False,
        ahead=None if appointed is None else row["ahead"],
    )


def _fail(changes: Changes, row: Row, message: str) -> None:
    """It never stood in a queue or a line, so nobody's turn changes."""
    error = {"error_type": ErrorType.DEPENDENCY_FAILED, "error_message": message}
    job, now = row["number"], row["now"]
    changes.tell(job, row["event_count"] + 1, now, EventKind.FAILED, row["run"], row["token"], {"by": BY, **error})
    changes.rests.append(rest_of(row, JobState.QUEUED))  # of an ended job only done says the state
    changes.ends.append(done_of(job, row, JobState.FAILED, now, **error))
