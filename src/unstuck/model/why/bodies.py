"""Gate: the process of an old attempt may still run it (the body mark), on this job or on its target."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from unstuck.model.lifecycle import JobState
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import BodyMark
from unstuck.model.why.rule import Finding, WhyView, rule


@rule(Code.BODY_MAY_LIVE, "an old body of it, or of a job on its target, may still live", Actor.ENGINE)
def body_may_live(view: WhyView) -> Iterator[Finding]:
    mark = view.facts.body_mark
    if mark is None:
        return
    whose = "its last attempt" if mark.job == view.job.id else f"job {mark.job} on the same target"
    process = f" (process {mark.pid})" if mark.pid else ""
    yield _marked(
        view,
        mark,
        f"{whose} did not stop when asked; worker {mark.worker or '?'}{process} may still run it; nothing starts "
        "before that process is known to be gone",
    )


@rule(
    Code.STUCK,
    "it did not stop when asked, and its process is being emptied and ended",
    Actor.ENGINE,
    "unstuck stack JOB",
    of=[JobState.FAILED],
)
def stuck(view: WhyView) -> Iterator[Finding]:
    mark, job = view.facts.body_mark, view.job
    if mark is None or mark.job != job.id:
        return
    process = f"process {mark.pid}" if mark.pid else "its process"
    worker = mark.worker or "?"
    ending = (
        f"{process} on worker {worker} drains"
        if _is_kept(view, mark)
        else f"worker {worker} fell silent before {process} was seen to be gone; any other lifts this"
    )
    yield _marked(view, mark, f"it ignored its request to stop for {job.policy.grace:g} s; {ending}")


def _is_kept(view: WhyView, mark: BodyMark) -> bool:
    """Whether the worker that must see the body die is there to see it."""
    return mark.lease_until is not None and mark.lease_until > view.now


def _marked(view: WhyView, mark: BodyMark, sentence: str) -> Finding:
    """While its worker lives the mark has no end of its own: only after a lost one does time lift it."""
    until = None
    if mark.lease_until is not None and not _is_kept(view, mark):
        until = mark.lease_until + timedelta(seconds=view.times.margin + view.times.sweep)
    details = {"job": mark.job, "worker": mark.worker, "pid": mark.pid}
    return Finding(sentence, mark.since_at, until if until and until > view.now else None, details=details)
