"""Children: jobs that a running job spawned, and what becomes of them when it waits or ends.

Theory of operation. A child is submitted in the transaction that writes its parent's number, under the parent's
fence: the running row is locked, so a parent cannot end between the two, and a repeated spawn finds the first. A
parent that gathers children parks. It waits by the same rows as a PENDING job waits for others (see `pending`): the
children's ends tell the inbox. A parent that ends badly only marks its children as left, in its own transaction. A
janitor cancels those one by one, because each needs locks that come before the ones an end already holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from unstuck.model import children as model
from unstuck.model.errors import ErrorType, UnknownJob, UnstuckError
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Child, Wait
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.order.line import lock_free
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import packed

#: The results that a gather hands over, in all.
MOST_GATHERED = 8 << 20
#: Far beyond what an honest wait reaches; a look must end.
MOST_NEEDED = 20_000


# --- the parent ends ----------------------------------------------------------------------------------------------


def left(t: Transaction, ends: Sequence[Mapping[str, Any]]) -> None:
    """These jobs end (rows as of done): children that are not to outlive such an end are marked, and an entry in
    the inbox asks the janitor to tend them."""
    rows = [
        {"job": end["job"], "every": int(end["state"] == JobState.CANCELLED)}
        for end in sorted(ends, key=lambda end: int(end["job"]))
        if end["state"] != JobState.COMPLETED
    ]
    if not rows:
        return
    parents = {row["parent"] for row in t.all("leave_children", rows=packed(rows))}
    if parents:
        t.run("add_inbox", rows=packed([{"target": None, "job": parent} for parent in sorted(parents)]))


def reason(row: Row) -> str:
    """Why a child that was left is cancelled, for its history."""
    state = row["parent_state"]
    return f"its parent {row['parent_uid']} ended {state}" if state else f"its parent {row['parent_uid']} ended"


def left_ones(t: Transaction, after: tuple[int, int], batch: int) -> list[Row]:
    """Children that were left, those behind (left_at, child) `after`; what is set aside is left out."""
    return t.all("left_children", after_at=after[0], after_child=after[1], batch=batch)


def hold(t: Transaction, row: Row) -> bool:
    """Take all the locks that its cancel needs, in their order; False: another transaction has one of them. The duty
    that tends children serves every job, so it waits for none."""
    if t.one_table_per_statement:
        return True
    job = row["child"]
    if lock_free(t, [row["target"]])[1]:
        return False
    if not t.all("lock_free_running", job=job) and t.all("is_running", job=job):
        return False
    return bool(t.all("lock_jobs", jobs=[job])) or row["uid"] is None


def set_apart(t: Transaction, job: int) -> None:
    """Its parent begins again from the start: no child counts as spawned, and those there are stay its children."""
    t.run("set_children_apart", job=job)


# --- the parent waits ---------------------------------------------------------------------------------------------


def watch(t: Transaction, waits: Mapping[int, Wait]) -> None:
    """These jobs park until these children have ended. They count as newcomers in the inbox: a child may be ending at
    this instant, and only a look behind locks is sure (see `pending`)."""
    if not waits:
        return
    rows = [{"parent": job, "uid": uid} for job, wait in waits.items() for uid in dict.fromkeys(wait.children)]
    t.run("watch_children", rows=packed(rows))
    t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in waits]))


@dataclass(frozen=True, slots=True)
class Gather:
    """A job that waits, or is about to, for these children, which have not ended."""

    job: int
    still_open: Sequence[int]
    release_target: bool


def check_wait(t: Transaction, gather: Gather) -> None:
    """Whether it could ever end, as things stand: TargetDeadlock, InvalidInput."""
    if problem := problems(t, [gather]).get(gather.job):
        raise problem


def problems(t: Transaction, gathers: Sequence[Gather]) -> dict[int, UnstuckError]:
    """Of the jobs whose wait could never end, as things stand, why."""
    above: dict[int, list[Row]] = defaultdict(list)
    looked_at = [gather.job for gather in gathers if gather.still_open]
    for row in t.all("ancestors_of_all", jobs=looked_at) if looked_at else ():
        above[row["below"]].append(row)
    open_ones = {gather.job: gather for gather in gathers if gather.still_open and gather.job in above}
    ancestors = {job: ancestors_of(rows) for job, rows in above.items()}
    needed = _needed_by(t, [_question(gather, ancestors[job]) for job, gather in open_ones.items()])
    found: dict[int, UnstuckError] = {}
    for job, gather in open_ones.items():
        try:
            model.check_wait(needed[job], ancestors[job], release_target=gather.release_target)
        except UnstuckError as problem:
            found[job] = problem
    return found


def _question(gather: Gather, ancestors: Sequence[model.Ancestor]) -> dict[str, Any]:
    keeps = [ancestor.keeps for ancestor in ancestors if ancestor.keeps is not None]
    numbers = [ancestor.number for ancestor in ancestors]
    return {"waiter": gather.job, "jobs": sorted(gather.still_open), "targets": keeps, "above": numbers}


def _needed_by(t: Transaction, questions: Sequence[dict[str, Any]]) -> dict[int, list[model.Needed]]:
    """One statement where each costs a round trip; where it does not, one for each."""
    needed: dict[int, list[model.Needed]] = defaultdict(list)
    for some in (
        [[question] for question in questions] if t.one_table_per_statement else [questions] if questions else []
    ):
        for row in t.all("needed_by", rows=packed(some), most=MOST_NEEDED):
            needed[row["waiter"]].append(_needed(row))
    return needed


def ancestors_of(rows: Sequence[Row]) -> list[model.Ancestor]:
    return [model.Ancestor(row["number"], row["uid"], row["keeps"], bool(row["awaits"])) for row in rows]


def _needed(row: Row) -> model.Needed:
    return model.Needed(row["number"], row["uid"], row["target"], row["target_name"])


def fitting(t: Transaction, gathers: Mapping[int, Sequence[str]]) -> dict[int, Sequence[str]]:
    """Of these jobs, each with the children it waited for, as many as one transaction can carry: one at least."""
    if len(gathers) < 2:
        return dict(gathers)
    rows = [{"parent": job, "uid": uid} for job, wanted in gathers.items() for uid in wanted]
    left = {row["job"]: int(row["bytes"]) for row in t.all("bytes_of_children", rows=packed(rows))}
    chosen: dict[int, Sequence[str]] = {}
    bytes_, children = 0, 0
    for job, wanted in gathers.items():
        bytes_ += min(left.get(job, 0), MOST_GATHERED)
        children += len(wanted)
        if chosen and (bytes_ > 2 * MOST_GATHERED or children > MOST_NEEDED):
            break
        chosen[job] = wanted
    return chosen


def ends(t: Transaction, gathers: Mapping[int, Sequence[str]]) -> dict[int, str | None]:
    """What each job's gather hands over, in the order that was asked: JSON, one entry for each child. None while one
    of them has not ended."""
    rows = [
        {"parent": job, "place": place, "uid": uid}
        for job, wanted in gathers.items()
        for place, uid in enumerate(wanted)
    ]
    found: dict[int, dict[str, Row]] = defaultdict(dict)
    for row in t.all("ends_of_children", rows=packed(rows), most=MOST_GATHERED) if rows else ():
        found[row["parent"]][row["uid"]] = row
    return {job: _told_all(wanted, found[job]) for job, wanted in gathers.items()}


def _told_all(wanted: Sequence[str], found: Mapping[str, Row]) -> str | None:
    if any(row["state"] is None for row in found.values()):
        return None
    return "[" + ",".join(_told(uid, found.get(uid)) for uid in wanted) + "]"


def _told(uid: str, row: Row | None) -> str:
    """Whatever a child left behind, an unreadable row too: a wake serves many jobs, and must not fail for one."""
    try:
        return packed(_end(uid, row))
    except Exception as problem:
        told = {"error_type": ErrorType.RESULT_NOT_STORABLE, "error_message": f"its end cannot be told: {problem!r}"}
        return packed({"id": uid, "state": JobState.DEAD, "result": None, **told})


def _end(uid: str, row: Row | None) -> dict[str, Any]:
    """One that is gone altogether has ended, and nobody can say that it completed."""
    if row is None:
        return {"id": uid, "state": JobState.DEAD, "result": None, "error_type": "forgotten", "error_message": None}
    end = {"id": uid, "state": row["state"], "result": _embedded(row["result"])}
    end |= {"error_type": row["error_type"], "error_message": row["error_message"]}
    return {**end, "too_large": True} if row["is_too_large"] else end


def _embedded(result: str | None) -> Any:
    """As it stands, without being taken apart; what is no JSON would spoil the others, and becomes a text."""
    if result is None:
        return None
    try:
        return msgspec.json.decode(result, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):  # the latter: nested deeper than anybody could read
        return result


# --- what people read ---------------------------------------------------------------------------------------------


def children_of(t: Transaction, tenant: str, uid: str) -> list[Child]:
    """In the order they were spawned, those of earlier runs too."""
    return by_number(t, job_row(t, tenant, uid)["number"])


def by_number(t: Transaction, job: int) -> list[Child]:
    return [replace(child_of(child), queue=child["queue"]) for child in t.all("children_of", job=job)]


def parent_of(t: Transaction, tenant: str, uid: str) -> str | None:
    row = t.one("parent_of", tenant=tenant, uid=uid)
    if row is None:
        raise UnknownJob(uid)
    parent: str | None = row["parent"]
    return parent


def child_of(row: Row) -> Child:
    """Ordinal 0: another one has taken its place."""
    return Child(
        id=row["uid"],
        name=row["name"],
        ordinal=max(0, row["ordinal"]),
        run=row["run"],
        state=row["state"],
        workflow=row["workflow"],
        parent=row["parent_uid"],
    )
