"""Remark: what running handlers say, kept under the fence of their attempts."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.payload import clean_text
from unstuck.store.changes import MAX_OUTPUT
from unstuck.store.database import Transaction
from unstuck.store.port import Remark, Verdict


def remark(t: Transaction, remarks: Sequence[Remark]) -> list[Verdict]:
    """In the order of the jobs, as every settle locks them: two batches never wait for each other in a circle."""
    places = sorted(range(len(remarks)), key=lambda place: remarks[place].ref.job)
    kept = {place: _keep(t, remarks[place]) for place in places}
    return [kept[place] for place in range(len(remarks))]


def _keep(t: Transaction, remark: Remark) -> Verdict:
    fence = {"job": remark.ref.job, "token": remark.ref.token, "claim": remark.ref.claim}
    rows = 1
    if remark.output is not None:
        rows = t.run("append_output", **fence, text=clean_text(remark.output, MAX_OUTPUT), cap=MAX_OUTPUT)
    if rows and remark.progress is not None:
        rows = t.run("set_progress", **fence, value=remark.progress)
    return Verdict.DONE if rows else Verdict.FENCED
