"""Details of a runnable job: full workers, jobs that go first, and that its next attempt runs alone. No gates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import counted, how_often, lasting, workers_serving


@rule(Code.WORKERS_FULL, "all slots of the workers that serve it are busy", Actor.ENGINE, shuts=False)
def workers_full(view: WhyView) -> Iterator[Finding]:
    count, busy, total = _slots(view)
    if _is_full(view):
        yield Finding(
            f"all {total} slots of {workers_serving(count)} are busy; it starts when one is free",
            details={"busy": busy, "slots": total, "before": view.facts.before},
        )


@rule(Code.LOWER_PRIORITY, "jobs with a higher priority go first", Actor.ENGINE, shuts=False)
def lower_priority(view: WhyView) -> Iterator[Finding]:
    count = view.facts.before_by_priority
    if count:
        verb = "goes" if count == 1 else "go"
        yield Finding(
            f"{counted(count, 'job')} of its workflow with a higher priority {verb} first", details={"jobs": count}
        )


@rule(Code.OTHERS_FIRST, "jobs that have waited longer go first", Actor.ENGINE, shuts=False)
def others_first(view: WhyView) -> Iterator[Finding]:
    count = view.facts.before - view.facts.before_by_priority
    if count > 0:
        verb = "goes" if count == 1 else "go"
        yield Finding(
            f"{counted(count, 'job')} of its workflow that waited longer {verb} first", details={"jobs": count}
        )


@rule(Code.CLAIMABLE, "nothing keeps it", Actor.NOBODY, shuts=False)
def claimable(view: WhyView) -> Iterator[Finding]:
    if _is_full(view) or view.facts.before:
        return
    count, _, _ = _slots(view)
    serving = [worker for worker in view.facts.workers if worker.serves]
    if serving and all(worker.is_silent(view.times, view.now) for worker in serving):
        last = max(serving, key=lambda worker: worker.beat_at)
        every = lasting(timedelta(seconds=last.beats_every(view.times)))
        yield Finding(
            f"no gate keeps it, but {workers_serving(count)} may be frozen or cut off from the database: "
            f"the last beat came {lasting(view.now - last.beat_at)} ago, and one is due every {every}",
            remedy="unstuck workers",
        )
        return
    within = lasting(timedelta(seconds=view.times.poll))
    yield Finding(
        f"nothing keeps it; {'' if count == 1 else 'one of '}{workers_serving(count)} takes it within {within}"
    )


@rule(Code.RUNS_ALONE, "its next attempt gets a process for itself", Actor.NOBODY, shuts=False)
def runs_alone(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not job.alone:
        return
    why = "in a process that died"
    if job.suspects:
        why = f"one of several {why}, {how_often(job.suspects)} so far, and nobody knows whose fault it was"
    yield Finding(
        f"its next attempt runs alone in a process: it was {why}",
        details={"suspects": job.suspects, "suspect_runs": job.policy.suspect_runs, "losses": job.losses},
    )


def _slots(view: WhyView) -> tuple[int, int, int]:
    serving = [w for w in view.facts.workers if w.serves]
    known = [w for w in serving if w.slots is not None]
    return len(serving), sum(w.running for w in known), sum(w.slots or 0 for w in known)


def _is_full(view: WhyView) -> bool:
    _, busy, total = _slots(view)
    return 0 < total <= busy
