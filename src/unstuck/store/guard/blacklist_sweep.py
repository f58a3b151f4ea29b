"""The blacklist's sweep. Jobs of blacklisted workflows leave the queue, failed or held, with a reason. When an entry
is lifted, the jobs that it held go on. The one job that an entry lets through, its probe, is judged. A janitor calls
this, in batches that skip what another session holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unstuck.model.errors import ErrorType
from unstuck.model.guard import SYSTEM, BlacklistEntry, refusal
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.target import Turn
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children, pending
from unstuck.store.guard import breaker
from unstuck.store.life.changes import Changes, done_of, moment, rest_of
from unstuck.store.life.settle_tools import Settling
from unstuck.store.life.sweep import lock_of_queued, take_from_queue
from unstuck.store.order.targets import take_turn
from unstuck.store.rows import packed

BY = "blacklist"
#: A probe that is in one of these has not told anything yet.
_UNDECIDED = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING)


class BlacklistedJob(NamedTuple):
    """A job, and the entry that keeps it from running, or did until `lifted_by` removed the entry."""

    entry: int
    job: int
    lifted_by: str = ""


class Lifted(Exception):
    """An entry was removed while its jobs were being taken out of the queue: nothing of that may be kept."""


# --- out of the queue ---------------------------------------------------------------------------------------------


def at_the_gate(t: Transaction, batch: int, *, aside: bool) -> list[BlacklistedJob]:
    """`aside`: those of the quarantine instead of all others; so for `freed`."""
    return [BlacklistedJob(row["entry"], row["job"]) for row in t.all("at_the_gate", batch=batch, aside=int(aside))]


def refuse(t: Transaction, tools: Settling, jobs: Sequence[BlacklistedJob]) -> tuple[list[int], bool]:
    """Which left the queue, and whether an idle worker should look for work. Raises Lifted, to be tried again."""
    entry_of = {one.job: one.entry for one in jobs}
    # A job that has left the queue since the look is not taken from it below.
    found = t.all("blacklisted_jobs", jobs=sorted(entry_of), targets=lock_of_queued(t, sorted(entry_of)))
    rows: list[Row] = [{**row, "entry": entry_of[row["job"]]} for row in found]
    spared = _to_spare(t, rows)
    rows = [row for row in rows if row["job"] not in spared.values()]
    taken = take_from_queue(t, rows)
    refused_ones = [row for row in rows if row["job"] in taken]
    # Only now, because targets come before entries (see `lock_order`). Locked until the commit, so that the removal
    # of an entry finds every job that is held for it.
    entries = _kept(t, {row["entry"] for row in refused_ones})
    changes, held = Changes(), []
    for row in refused_ones:
        entry = entries[row["entry"]]
        if tools.name_ids.policy(t, row["policy"]).on_blacklist == "hold":
            _hold(changes, row, entry)
            held.append({"entry": entry.number, "job": row["job"]})
        else:
            _fail(changes, row, entry)
        if row["is_head"]:
            # No handler ran for this turn: the target moves on, whatever an earlier attempt has done there.
            take_turn(changes, row["target"], row["job"], Turn.PASS, row["now"])
    woke = changes.write(t)
    children.left(t, changes.ends)
    if held:
        t.run("hold_for_entry", rows=packed(held))
        t.run("mark_held", jobs=[one["job"] for one in held])
    sent = [job for entry, job in spared.items() if breaker.let_through(t, entry, job)]
    return [row["job"] for row in refused_ones] + sent, woke or bool(sent)


def _kept(t: Transaction, numbers: set[int]) -> dict[int, BlacklistEntry]:
    if not numbers:
        return {}
    rows = t.all("keep_entries", entries=sorted(numbers))
    if len(rows) < len(numbers):
        raise Lifted
    return {row["id"]: breaker.entry_of(row) for row in rows}


def _to_spare(t: Transaction, rows: Sequence[Row]) -> dict[int, int]:
    """Of each entry whose time for a probe has come, the first job that waits."""
    due = {entry.number for entry in due_for_probe(t)}
    first: dict[int, int] = {}
    for row in rows:
        if row["entry"] in due:
            first.setdefault(row["entry"], row["job"])
    return first


def _facts(entry: BlacklistEntry) -> dict[str, Any]:
    return {"by": BY, "error_type": ErrorType.WORKFLOW_BLACKLISTED, "error_message": refusal(entry)}


def _fail(changes: Changes, row: Row, entry: BlacklistEntry) -> None:
    facts = _facts(entry)
    changes.tell(row["job"], row["event_count"] + 1, row["now"], EventKind.FAILED, row["run"], row["token"], facts)
    error = {name: facts[name] for name in ("error_type", "error_message")}
    changes.ends.append(done_of(row["job"], row, JobState.FAILED, row["now"], **error))


def _hold(changes: Changes, row: Row, entry: BlacklistEntry) -> None:
    facts = _facts(entry)
    changes.tell(
        row["job"],
        row["event_count"] + 1,
        row["now"],
        EventKind.HELD,
        row["run"],
        row["token"],
        {**facts, "hold": True},
    )
    error = {name: facts[name] for name in ("error_type", "error_message")}
    changes.rests.append(rest_of(row, JobState.PENDING, available_at=row["available_at"], **error))


# --- back into it -------------------------------------------------------------------------------------------------


def freed(t: Transaction, batch: int, *, aside: bool) -> list[BlacklistedJob]:
    rows = t.all("freed_jobs", batch=batch, aside=int(aside))
    return [BlacklistedJob(row["entry"], row["job"], row["removed_by"]) for row in rows]


def release(t: Transaction, tools: Settling, jobs: Sequence[BlacklistedJob]) -> tuple[list[int], bool]:
    """Jobs that were held for an entry which is gone. What is not PENDING any more was somebody else's decision."""
    rows = [{"entry": one.entry, "job": one.job} for one in jobs]
    lifted_by = {one.job: f"{BY} lifted by {one.lifted_by}" for one in jobs}
    return _set_free(t, tools, rows, lifted_by)


def _set_free(
    t: Transaction, tools: Settling, rows: Sequence[Row | dict[str, int]], by: dict[int, str]
) -> tuple[list[int], bool]:
    at_rest = {row["id"] for row in t.all("lock_jobs", jobs=sorted(by))}
    woke = pending.set_free(t, tools, {job: name for job, name in by.items() if job in at_rest})
    # Rows of jobs that are gone altogether go too; a job whose row is locked stays for the next time.
    over = [row for row in rows if row["job"] in at_rest or not _is_known(t, row["job"])]
    if over:
        t.run("drop_held", rows=packed([{"entry": row["entry"], "job": row["job"]} for row in over]))
    return [row["job"] for row in over], woke


def _is_known(t: Transaction, job: int) -> bool:
    return bool(t.all("workflows_of_jobs", jobs=[job]))


# --- probes -------------------------------------------------------------------------------------------------------


def judge(t: Transaction, probe: Row) -> tuple[int, bool]:
    """One that completed lifts its entry; one that ended otherwise makes room for the next."""
    if probe["state"] == JobState.COMPLETED:
        why = f"job {probe['uid']} was let through and completed"
        lifted = breaker.lift(t, probe["tenant"], probe["workflow"], SYSTEM, why, entry=probe["entry"])
        return len(lifted), bool(lifted)
    if probe["state"] is None or JobState(probe["state"]) not in _UNDECIDED:
        return t.run("end_probe", entry=probe["entry"], job=probe["job"]), False
    return 0, False


def due_for_probe(t: Transaction) -> list[BlacklistEntry]:
    """Entries that could let one of the jobs that are held for them through."""
    rules = breaker.rules_in_force(t)
    if rules.probe_after is None:
        return []
    now = moment(t)
    return [entry for entry in breaker.active(t, None) if breaker.is_probe_due(entry, rules, now)]


def send(t: Transaction, tools: Settling, entry: BlacklistEntry) -> tuple[int, bool]:
    """The oldest job that is held goes. Raises Lifted if another went meanwhile."""
    first = t.one("first_held", entry=entry.number)
    if first is None:
        return 0, False
    row = {"entry": entry.number, "job": first["job"]}
    sent, woke = _set_free(t, tools, [row], {first["job"]: f"{BY}: let through to see whether it completes"})
    if sent and not breaker.let_through(t, entry.number, first["job"]):
        raise Lifted
    return len(sent), woke
