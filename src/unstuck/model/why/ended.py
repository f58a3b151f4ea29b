"""Jobs that have stopped: interrupted (PAUSED), ended, or dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from unstuck.model.budget import payer_of
from unstuck.model.dead_letters import sentence_of
from unstuck.model.errors import ErrorType
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.remedies import how_to_raise, how_to_renew, how_to_try_again
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.targets import blocking, blocks
from unstuck.model.why.words import first_line, lasting


@rule(Code.PAUSED, "it was interrupted", Actor.OWNER, "unstuck jobs resume JOB", of=[JobState.PAUSED])
def paused(view: WhyView) -> Iterator[Finding]:
    yield Finding(f"it was interrupted, and goes on when somebody resumes it{blocks(view)}", details=blocking(view))


@rule(Code.ENDED, "it has ended", Actor.NOBODY, of=FINAL - {JobState.DEAD})
def ended(view: WhyView) -> Iterator[Finding]:
    job = view.job
    error = f" with {job.error_type}: {first_line(job.error_message)}" if job.error_type else ""
    remedy, actor = None, Actor.NOBODY
    if job.state in (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED):
        remedy = how_to_renew(job) if _anew(job) else how_to_try_again(job)
        actor = Actor.OWNER
    yield Finding(
        f"{job.state}{error}{view.ago(job.finished_at)}{blocks(view)}{_anew(job)}",
        job.finished_at,
        remedy=remedy,
        actor=actor,
        details={"error_type": job.error_type, **blocking(view), **_larger(job), **_letter(view)},
    )


def _anew(job: JobRecord) -> str:
    """What is spent belongs to the run."""
    is_over = job.error_type == ErrorType.BUDGET_EXCEEDED and job.state is JobState.FAILED
    if not is_over:
        return ""
    payer = payer_of(job.error_message)
    who = f"the budget is that of job {payer}; once that has ended and is resumed" if payer else "resumed"
    return f"; {who}, it has its whole budget anew and keeps its finished steps"


def _larger(job: JobRecord) -> dict[str, Any]:
    return {"other_remedies": [how_to_raise(job)]} if _anew(job) else {}


def _letter(view: WhyView) -> dict[str, Any]:
    letter = view.facts.letter
    return {} if letter is None else {"dead_letter": letter.reason}


@rule(
    Code.DEAD,
    "a dead letter: it was never run",
    Actor.ADMIN,
    "unstuck dead-letters resign JOB",
    of=[JobState.DEAD],
)
def dead(view: WhyView) -> Iterator[Finding]:
    job, letter = view.job, view.facts.letter
    if letter is None:
        error = f": {job.error_type}: {first_line(job.error_message)}" if job.error_type else ""
        yield Finding(
            f"it was never run{error}; its dead letter is gone, by hand or by time: nothing lets it run any more",
            job.finished_at,
            remedy=view.command(f"unstuck jobs show {job.id}"),
            actor=Actor.NOBODY,
            details={"error_type": job.error_type},
        )
        return
    key = f" (key {letter.key})" if letter.key else ""
    until = letter.created_at + timedelta(seconds=view.times.dead_letter_retention)
    yield Finding(
        f"it is a dead letter and was never run: {sentence_of(letter.reason)}{key}; an admin can sign it anew, or "
        f"redrive it once the workers' keys are mended, an operator can discard it; the letter is kept for "
        f"{lasting(until - view.now)} more",
        letter.created_at,
        details={
            "reason": letter.reason,
            "key": letter.key,
            "error_type": job.error_type,
            "other_remedies": [
                view.command(f"unstuck dead-letters show {job.id}"),
                view.command(f"unstuck dead-letters redrive {job.id} --force"),
                view.command(f"unstuck dead-letters discard {job.id}"),
            ],
        },
    )
