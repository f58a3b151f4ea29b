"""Children: jobs that a running job spawned, and what becomes of them when it waits or ends.

Theory of operation. A child is submitted in the transaction that writes who its parent is, under the parent's fence:
the running row is locked, so a parent cannot end between the two, and a repeated spawn finds the first. Who gathers
children parks, and waits by the same rows as a PENDING job waits for others (see `pending`): their ends tell the
inbox. Who ends badly only marks its children as left, in its own transaction; a janitor cancels those one by one,
because each needs locks of its own that come before the ones an end already holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unstuck.model import children as model
from unstuck.model.errors import ErrorType, UnknownJob
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Child, Wait
from unstuck.store.database import Row, Transaction
from unstuck.store.lookup import job_row
from unstuck.store.rows import packed

#: The results that a gather hands over, in all.
MOST_GATHERED = 8 << 20
#: Far beyond what an honest wait reaches; a look must end.
MOST_NEEDED = 20_000


# --- the parent ends ----------------------------------------------------------------------------------------------


def left(t: Transaction, ends: Sequence[Mapping[str, Any]]) -> None:
    """These jobs end (rows as of done): children that are not to outlive such an end are marked, and the inbox tells
    whoever looks next that there is something to tend."""
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


def set_apart(t: Transaction, job: int) -> None:
    """Its parent begins again from the start: no child counts as spawned, and those there are stay its children."""
    t.run("set_children_apart", job=job)


# --- the parent waits ---------------------------------------------------------------------------------------------


def watch(t: Transaction, row: Row, wait: Wait) -> None:
    """This job parks until these children have ended. It counts as a newcomer in the inbox: one of them may be ending
    at this instant, and only a look behind locks is sure (see `pending`)."""
    t.run("watch_children", job=row["job"], children=list(dict.fromkeys(wait.children)))
    t.run("add_inbox", rows=packed([{"target": None, "job": row["job"]}]))


def check_wait(t: Transaction, job: int, still_open: Sequence[int], *, release_target: bool) -> None:
    """Whether a wait of this job for these children could ever end, as things stand: TargetDeadlock, InvalidInput."""
    rows = t.all("ancestors", job=job)
    if not rows or not still_open:
        return
    ancestors = ancestors_of(rows)
    needed = t.all(
        "needed_by",
        jobs=sorted(still_open),
        targets=[ancestor.keeps for ancestor in ancestors if ancestor.keeps is not None],
        above=[ancestor.number for ancestor in ancestors],
        most=MOST_NEEDED,
    )
    model.check_wait([_needed(row) for row in needed], ancestors, release_target=release_target)


def ancestors_of(rows: Sequence[Row]) -> list[model.Ancestor]:
    return [model.Ancestor(row["number"], row["uid"], row["keeps"], bool(row["awaits"])) for row in rows]


def _needed(row: Row) -> model.Needed:
    return model.Needed(row["number"], row["uid"], row["target"], row["target_name"])


def payload(t: Transaction, wait_row: Row) -> str | None:
    """What a gather hands over, in the order that was asked: JSON, one entry for each child."""
    wanted: list[str] = json.loads(wait_row["spec"]).get("children", [])
    return ends(t, wait_row["job"], wanted)


def ends(t: Transaction, parent: int, wanted: Sequence[str]) -> str | None:
    """None while one of them has not ended."""
    rows = t.all("ends_of_children", job=parent, children=list(wanted), most=MOST_GATHERED)
    if any(row["state"] is None for row in rows):
        return None
    found = {row["uid"]: row for row in rows}
    return "[" + ",".join(_told(uid, found.get(uid)) for uid in wanted) + "]"


def _told(uid: str, row: Row | None) -> str:
    """Whatever a child left behind: who wakes its parent works for everybody, and must get on."""
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
    job = job_row(t, tenant, uid)["number"]
    return [child_of(child) for child in t.all("children_of", job=job)]


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
