"""Spawn and gather: what a running job asks about its children. What becomes of them later is in `children`."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.children import (
    MOST_CHILDREN,
    check_after,
    check_place,
    check_turn,
    is_spent,
)
from unstuck.model.errors import Conflict, InvalidInput, told
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.payload import check_name
from unstuck.model.waits import Child
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.flow.usage import payer_below
from unstuck.store.life import submit
from unstuck.store.order.name_ids import NameIds, Numbers
from unstuck.store.port import NewChild, Verdict


def check(child: NewChild) -> None:
    """Before anything is written."""
    check_name(child.name, "a child's name")
    if not 1 <= child.ordinal <= 1 << 31:
        raise InvalidInput(f"{child.ordinal} is not the ordinal of a child")
    if child.on_end not in ("cancel", "leave"):
        raise InvalidInput(f"on_end={told(repr(child.on_end))} is not one of cancel, leave")
    submit.check([child.job])


def spawn(t: Transaction, name_ids: NameIds, child: NewChild, numbers: Numbers, key_life: float) -> Child | None:
    """The parent's running row is locked first: it cannot end meanwhile, nor spawn the same child twice."""
    ref = child.ref
    running = t.one("lock_running", job=ref.job)
    if running is None or (running["token"], running["claim"]) != (ref.token, ref.claim):
        return None
    known = t.one("child_named", parent=ref.job, name=child.name, ordinal=child.ordinal)
    if known is not None and not _is_spent(known, running["run"]):
        return children.child_of(known)
    rows = t.all("ancestors", job=ref.job)
    _check_birth(t, child, rows, numbers)
    (answer,) = submit.submit(t, [child.job], numbers, key_life)
    if not answer.created:
        return _known_already(t, child, answer.id)
    t.run("set_child_apart", parent=ref.job, name=child.name, ordinal=child.ordinal)
    t.run(
        "add_child",
        uid=answer.id,
        parent=ref.job,
        run=running["run"],
        name=child.name,
        ordinal=child.ordinal,
        depth=rows[0]["depth"] + 1,
        on_end=child.on_end,
        payer=payer_below(t, name_ids, rows[0]),
    )
    born = t.one("child_named", parent=ref.job, name=child.name, ordinal=child.ordinal)
    assert born is not None
    return children.child_of(born)


def _is_spent(known: Row, run: int) -> bool:
    is_doomed = known["left_at"] is not None or known["request"] == RequestKind.CANCEL
    return is_spent(known["state"], known["run"], run, is_doomed=is_doomed)


def _check_birth(t: Transaction, child: NewChild, rows: Sequence[Row], numbers: Numbers) -> None:
    tenant = rows[0]["tenant"]
    if child.job.tenant != tenant:
        raise InvalidInput(f"a child is of its parent's tenant, {tenant}, not of {told(child.job.tenant)}")
    ancestors = children.ancestors_of(rows)
    check_after(child.job.after, ancestors)
    counted = t.one("count_children", parent=child.ref.job, most=MOST_CHILDREN)
    check_place(rows[0]["depth"] + 1, counted["children"] if counted else 0)
    check_turn(numbers.target(child.job), child.job.target, ancestors)


def _known_already(t: Transaction, child: NewChild, uid: str) -> Child:
    """Its key (or its id) belongs to an earlier job: of this parent it is the same child, of others it is none."""
    row = t.one("child_by_id", parent=child.ref.job, uid=uid)
    if row is None:
        raise Conflict(f"job {uid} exists already, and this job did not spawn it; give the child a key of its own")
    return children.child_of(row)


def gather(t: Transaction, ref: AttemptRef, wanted: Sequence[str], release_target: bool) -> str | None:
    """Only looks. A handler that gets None parks, and the settle of that park has the fence of its own."""
    if t.one("attempt_run", job=ref.job, token=ref.token, claim=ref.claim) is None:
        return Verdict.FENCED
    if len(wanted) > MOST_CHILDREN:
        raise InvalidInput(f"{len(wanted)} children at once; a job has {MOST_CHILDREN:,} at most")
    if twice := [uid for place, uid in enumerate(wanted) if uid in wanted[:place]]:
        raise InvalidInput(f"child {told(twice[0])} is named twice in one gather")
    found = {row["uid"]: row for row in t.all("find_children", job=ref.job, children=list(wanted))}
    if strange := [uid for uid in wanted if uid not in found]:
        raise InvalidInput(f"job {told(strange[0])} is not a child of this job")
    still_open = [row["child"] for row in found.values() if row["state"] is None]
    if not still_open:
        return children.ends(t, {ref.job: wanted})[ref.job]
    children.check_wait(t, children.Gather(ref.job, still_open, release_target))
    return None
