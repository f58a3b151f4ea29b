"""Output: what running handlers print and how far they say they are, kept under the fence of their attempts.

Theory of operation. A batch is three statements, whatever its length, because each is a round trip: lock the attempts
that are still open, all of them before anything is written, then write the outputs, then the progress. About one that
somebody else holds nothing is written: BUSY, say it again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from unstuck.model.errors import NotStorable
from unstuck.model.job import AttemptRef
from unstuck.model.payload import check_text, clean_text
from unstuck.store.database import Transaction
from unstuck.store.guard import isolation
from unstuck.store.life import fence
from unstuck.store.life.changes import MAX_OUTPUT
from unstuck.store.port import AttemptOutput, Verdict
from unstuck.store.rows import packed
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit


def keep(transactions: Transactions, outputs: Sequence[AttemptOutput]) -> list[Verdict]:
    """All at once, and attempt by attempt where that fails."""
    said: dict[AttemptRef, list[AttemptOutput]] = {}
    for one in outputs:
        said.setdefault(one.ref, []).append(one)
    verdicts: dict[AttemptRef, Verdict] = {}

    def act(refs: Sequence[AttemptRef], patience: float) -> None:
        some = [one for ref in refs for one in said[ref]]
        answers = transactions.database.write(lambda t: write(t, some), patience=patience)
        verdicts.update(zip((one.ref for one in some), answers, strict=True))

    failed = isolation.in_parts(list(said), act)
    if failed:
        transactions.probe()
    for ref, error in failed.items():
        emit("store.output.refused", level=logging.DEBUG, job=ref.job, problem=isolation.problem_of(error))
    return [verdicts.get(one.ref, Verdict.BUSY) for one in outputs]


def write(t: Transaction, outputs: Sequence[AttemptOutput]) -> list[Verdict]:
    """Answers in the order of the outputs; several of one attempt are one."""
    verdicts = fence.verdicts(t, [said.ref for said in outputs])
    accepted = [said for said in outputs if verdicts[said.ref] is Verdict.DONE]
    if texts := _outputs(accepted):
        t.run("append_outputs", rows=packed(texts), cap=MAX_OUTPUT)
    if progress := _progress(accepted):
        t.run("set_progress", rows=packed(progress))
    return [verdicts[said.ref] for said in outputs]


def _outputs(outputs: Sequence[AttemptOutput]) -> list[dict[str, Any]]:
    """One row per attempt: a statement may not write the same row twice."""
    texts: dict[AttemptRef, tuple[int | None, str]] = {}
    for said in outputs:
        if said.output is not None:
            at, text = texts.get(said.ref, (said.at, ""))
            texts[said.ref] = at, text + said.output
    return [
        {"job": ref.job, "token": ref.token, "output": clean_text(text, MAX_OUTPUT), "at": at}
        for ref, (at, text) in sorted(texts.items(), key=_by_job)
    ]


def _progress(outputs: Sequence[AttemptOutput]) -> list[dict[str, Any]]:
    last = {said.ref: said.progress for said in outputs if said.progress is not None}
    return [
        {"job": ref.job, "token": ref.token, "progress": value}
        for ref, value in sorted(last.items(), key=_by_job)
        if _is_storable(ref, value)
    ]


def _is_storable(ref: AttemptRef, value: str) -> bool:
    """An output that no database can keep is left out: the others are written."""
    try:
        check_text(value, "the progress")
    except NotStorable as problem:
        emit("store.progress_refused", level=logging.WARNING, job=ref.job, problem=problem)
        return False
    return True


def _by_job(item: tuple[AttemptRef, object]) -> int:
    return item[0].job
