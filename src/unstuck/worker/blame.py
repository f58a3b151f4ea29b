"""What the death of an executor means for the jobs in it. Pure: which of them is charged, a suspect, or innocent."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Blame, ErrorInfo, Lost, NotStarted, Outcome, Stuck
from unstuck.store.port import Report
from unstuck.worker.actions import FROZEN, HANDED_BACK, LEASE_GOING, ORDERED, OVER_MEMORY, STALLED_LOOP, STUCK_INSIDE
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.processes import ExecutorDied
from unstuck.worker.roster import Post

#: We killed it, for a reason that is none of its jobs' fault.
_OUR_DOING = {LEASE_GOING, HANDED_BACK, ORDERED}
#: We killed it for what a job in it did, or kept others from doing.
_A_JOBS_DOING = {STUCK_INSIDE, FROZEN, STALLED_LOOP}


def reports_on_death(event: ExecutorDied, post: Post, held: Sequence[HeldAttempt]) -> list[Report]:
    """`held`: the attempts that we had fed to it and that are not settled yet."""
    bodies = _bodies(event, held)
    unstarted = [h for h in held if h not in bodies]
    culprits = _culprits(event, post)
    reports = [
        Report(
            ref=holding.ref,
            outcome=_outcome(event, post, holding, bodies, culprits),
            output=event.outputs.get(holding.ref),
            span=holding.span,
        )
        for holding in bodies
    ]
    why = f"its process died before it started: {event.status}"
    return reports + [Report(holding.ref, NotStarted(why)) for holding in unstarted]


def why_it_went(event: ExecutorDied, post: Post) -> str:
    """For people: what it ended for, and whose doing that was, if it is known, or else where to look first."""
    reason = post.killed or post.reason or event.status
    left = "" if reason == post.left_behind else _was_left(post)
    names = ", ".join(_named(ref, post) for ref in _culprits(event, post))
    return f"{reason}: {names}" if names else f"{reason}{left}{_unanswered(post)}"


def was_alone(event: ExecutorDied, post: Post, held: Sequence[HeldAttempt]) -> bool:
    """Whether a single job ran in it: then it is that job's doing."""
    return len({h.ref for h in (*_bodies(event, held), *post.bodies)}) == 1


def _bodies(event: ExecutorDied, held: Sequence[HeldAttempt]) -> list[HeldAttempt]:
    return [h for h in held if h.has_body or h.ref in event.running]


def _culprits(event: ExecutorDied, post: Post) -> list[AttemptRef]:
    """The attempts that were convicted, if it ended for that; the attempt that held the interpreter or the loop when
    we killed it; the attempt that crashed it."""
    is_for_the_stuck = post.killed == STUCK_INSIDE or (not post.killed and post.terminated_at is not None)
    stuck = [h.ref for h in post.holdings.values() if h.stage is Stage.STUCK and is_for_the_stuck]
    seen = post.culprit if post.killed else event.culprit
    return stuck + [ref for ref in (seen,) if ref is not None and ref not in stuck]


def _outcome(
    event: ExecutorDied,
    post: Post,
    holding: HeldAttempt,
    bodies: Sequence[HeldAttempt],
    culprits: Sequence[AttemptRef],
) -> Outcome:
    if (stuck := _stuck(event, post, holding, bodies, culprits)) is not None:
        return stuck
    blame = _blame(event, post, holding, bodies, culprits)
    is_charged = blame in ("own", "suspect")
    is_full = event.out_of_memory or post.killed == OVER_MEMORY
    kind = ErrorType.OUT_OF_MEMORY if is_full and is_charged else ErrorType.PROCESS_DIED
    seen = holding.stack if is_charged or holding.told_at is not None else None
    stack = (event.stack or seen) if is_charged else seen
    return Lost(ErrorInfo(kind, _message(event, post, holding, blame, bodies, culprits), stack), blame)


def _stuck(
    event: ExecutorDied,
    post: Post,
    holding: HeldAttempt,
    bodies: Sequence[HeldAttempt],
    culprits: Sequence[AttemptRef],
) -> Stuck | None:
    """Its own grace was over when its process was killed for another's sake, or because nothing moved in it any more;
    then nothing says whether it could obey. Alone with what ended jobs left behind, it is as little to blame."""
    if not _has_ignored(post, holding) or not (culprits or _are_several(post, bodies)):
        return None
    blame: Blame = "own" if holding.ref in culprits else "neighbour" if culprits else "suspect"
    told = _message(event, post, holding, blame, bodies, culprits)
    message = f"{did_not_respond(holding)} {told[0].upper()}{told[1:]}"
    stack = holding.stack or no_stack(post)
    return Stuck(
        ErrorInfo(ErrorType.EXECUTION_STUCK, message, stack), event.pid, is_gone=True, is_proven=bool(culprits)
    )


def _has_ignored(post: Post, holding: HeldAttempt) -> bool:
    """By its own clock, which stands still while another is seen to keep it from obeying."""
    if holding.told_at is None or holding.asked in (None, RequestKind.DRAIN) or post.killed not in _A_JOBS_DOING:
        return False
    return post.killed_at >= holding.told_at + holding.job.policy.grace


def did_not_respond(holding: HeldAttempt) -> str:
    grace = holding.job.policy.grace
    return f"Execution did not respond to cancellation within {grace:g} seconds. Worker process recycled."


def no_stack(post: Post | None) -> str:
    if post is None:
        return "no stack: its process is gone"
    if post.is_stopped:
        return f"no stack: process {post.pid} is stopped (state T)"
    return f"no stack: process {post.pid} did not show one"


def _blame(
    event: ExecutorDied,
    post: Post,
    holding: HeldAttempt,
    bodies: Sequence[HeldAttempt],
    culprits: Sequence[AttemptRef],
) -> Blame:
    if holding.ref in culprits:
        return "own"
    if culprits:
        return "neighbour"
    if event.expected or post.killed in _OUR_DOING:
        return "uncharged"
    if event.with_others or (post.is_another and _are_several(post, bodies)):
        # A job that ran by itself before is charged: only one of those may run after a zygote's death.
        # Where the start may be to blame, the next job that runs by itself does so in a process that has outlived it.
        return "suspect" if holding.job.alone else "bystander"
    if post.killed == STALLED_LOOP and holding.ref not in post.on_main:
        return "uncharged"
    if _has_ended_beside(event, holding, bodies):
        # A thread that it left may have done it all the same: by itself it is charged.
        return "suspect" if holding.job.alone else "bystander"
    if post.killed in (FROZEN, STALLED_LOOP) or _are_several(post, bodies) or _may_be_of_one_that_ended(post):
        return "suspect"
    return "own"


def _has_ended_beside(event: ExecutorDied, holding: HeldAttempt, bodies: Sequence[HeldAttempt]) -> bool:
    """Its handler had ended when others still ran; only its end could not be said any more."""
    return holding.ref in event.ended and any(h.ref not in event.ended for h in bodies)


def _are_several(post: Post, bodies: Sequence[HeldAttempt]) -> bool:
    """Those that were settled before and still ran count as well: any of them may have done it."""
    return len({h.ref for h in (*bodies, *post.bodies)}) > 1


def _may_be_of_one_that_ended(post: Post) -> bool:
    """It died by itself, and was to be replaced for what was left in it: by the last one in it, or one before."""
    return bool(not post.killed and post.left_behind and post.last_ended)


def _message(
    event: ExecutorDied,
    post: Post,
    holding: HeldAttempt,
    blame: Blame,
    bodies: Sequence[HeldAttempt],
    culprits: Sequence[AttemptRef],
) -> str:
    left = "" if culprits else _was_left(post)
    died = f"its process {event.pid} died: {event.status}"
    killed = (f"its process {event.pid} was killed: {post.killed}" if post.killed else died) + left
    match blame:
        case "neighbour":
            names = ", ".join(_named(ref, post) for ref in culprits)
            return f"{killed}; the culprit was another job in it: {names}"
        case "bystander" | "suspect" if event.with_others:
            return f"{died}; every job of its worker fell with it and nothing says which one did it"
        case "bystander" if _has_ended_beside(event, holding, bodies):
            return (
                f"{killed}; its handler had ended just before, and its end was not heard{_unanswered(post, holding)}"
            )
        case "bystander":
            return f"{killed}; it was new, as one before it that died, and nothing says whether a job in it did it"
        case "suspect" if _are_several(post, bodies):
            number = len({h.ref for h in (*bodies, *post.bodies)})
            return f"{killed}; {number} jobs were in it and nothing says which one did it{_unanswered(post, holding)}"
        case "uncharged":
            return f"{died}; {post.killed or 'it was being replaced'}{left}"
        case _:
            return killed


def _was_left(post: Post) -> str:
    """What was wrong with it already."""
    return f"; {post.left_behind}" if post.left_behind else ""


def _unanswered(post: Post, holding: HeldAttempt | None = None) -> str:
    """The other attempts that were asked to stop and did not: where to look first."""
    others = [h.ref for h in post.holdings.values() if h is not holding and _has_ignored(post, h)]
    names = ", ".join(_named(ref, post) for ref in others)
    return f"; {names} had been asked to stop and did not answer" if names else ""


def _named(ref: AttemptRef, post: Post) -> str:
    culprit = post.holdings.get(ref)
    return f"number {ref.job}" if culprit is None else f"{culprit.job.workflow} {culprit.job.id}"
