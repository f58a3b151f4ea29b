"""Parts: partial results, kept under the fence, one value per name, numbered in the order they came.

Theory of operation. A write locks the running row, as a spending does: the fence holds until the commit, and nobody
else numbers this job's parts meanwhile. A follower reads above the last number it has seen; a part that is replaced
gets a new number, so it is seen again, with its new value.
"""

from __future__ import annotations

from unstuck.model.job import AttemptRef
from unstuck.model.parts import MOST_PARTS, Part, one_too_many
from unstuck.store.database import Row, Transaction
from unstuck.store.port import Verdict
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import instant


def keep(t: Transaction, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
    """No loss is forgiven for it, as for a step: a handler that begins anew gives its first part each time."""
    running = t.one("lock_running", job=ref.job)
    if running is None or (running["token"], running["claim"]) != (ref.token, ref.claim):
        return Verdict.FENCED
    so_far = _so_far(t, ref.job)
    if so_far["names"] >= MOST_PARTS and t.one("has_part", job=ref.job, name=name) is None:
        raise one_too_many(name)
    place = {"job": ref.job, "run": running["run"], "token": ref.token, "serial": serial}
    t.run("keep_part", **place, name=name, value=value, number=so_far["last"] + 1)
    return Verdict.DONE


def parts_of(t: Transaction, tenant: str, uid: str, after: int, limit: int) -> list[Part]:
    job = job_row(t, tenant, uid)["number"]
    return [_part(row) for row in t.all("parts_of", job=job, after=after, most=limit)]


def start_over(t: Transaction, job: int) -> None:
    """The numbering goes on: a follower that stays while the job begins anew must not miss the new parts."""
    t.run("drop_parts", job=job)
    t.run("blank_parts", job=job)


def _so_far(t: Transaction, job: int) -> Row:
    row = t.one("parts_so_far", job=job)
    assert row is not None, "an aggregate without a row"
    return row


def _part(row: Row) -> Part:
    return Part(row["name"], row["value"], row["number"], row["run"], row["token"], instant(row["at"]))
