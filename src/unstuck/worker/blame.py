"""What the death of an executor means for the jobs in it. Pure: who is charged, who is a suspect, who is innocent."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import Blame, ErrorInfo, Lost, NotStarted, Outcome
from unstuck.store.port import Report
from unstuck.worker.ledger import Holding, Stage
from unstuck.worker.plan import FROZEN, HANDED_BACK, LEASE_GOING
from unstuck.worker.processes import ExecutorDied
from unstuck.worker.roster import Post

#: We killed it, for a reason that is none of its jobs' fault.
_OUR_DOING = {LEASE_GOING, HANDED_BACK}


def reports_on_death(event: ExecutorDied, post: Post, held: Sequence[Holding]) -> list[Report]:
    """`held`: what it had by our books and has not been settled yet."""
    bodies = [h for h in held if h.has_body or h.ref in event.running]
    unstarted = [h for h in held if h not in bodies]
    culprits = _culprits(event, post, bodies)
    reports = [
        Report(
            ref=holding.ref,
            outcome=_outcome(event, post, holding, bodies, culprits),
            output=event.outputs.get(holding.ref),
        )
        for holding in bodies
    ]
    why = f"its process died before it started: {event.status}"
    return reports + [Report(holding.ref, NotStarted(why)) for holding in unstarted]


def _culprits(event: ExecutorDied, post: Post, bodies: Sequence[Holding]) -> list[AttemptRef]:
    stuck = [h.ref for h in post.holdings.values() if h.stage is Stage.STUCK]
    if stuck:
        return stuck
    return [event.culprit] if event.culprit is not None else []


def _outcome(
    event: ExecutorDied,
    post: Post,
    holding: Holding,
    bodies: Sequence[Holding],
    culprits: Sequence[AttemptRef],
) -> Outcome:
    blame = _blame(event, post, holding, bodies, culprits)
    kind = ErrorType.OUT_OF_MEMORY if event.out_of_memory and blame in ("own", "suspect") else ErrorType.PROCESS_DIED
    stack = event.stack if blame in ("own", "suspect") else None
    return Lost(ErrorInfo(kind, _message(event, post, blame, bodies, culprits), stack), blame)


def _blame(
    event: ExecutorDied,
    post: Post,
    holding: Holding,
    bodies: Sequence[Holding],
    culprits: Sequence[AttemptRef],
) -> Blame:
    if holding.ref in culprits:
        return "own"
    if culprits:
        return "neighbour"
    if event.expected or post.killed in _OUR_DOING:
        return "uncharged"
    if event.with_others:
        # Whoever ran by itself before is charged: the supervisor lets only one of those run after a zygote's death.
        return "suspect" if holding.job.alone else "bystander"
    if post.killed == FROZEN or len(bodies) > 1:
        return "suspect"
    return "own"


def _message(
    event: ExecutorDied, post: Post, blame: Blame, bodies: Sequence[Holding], culprits: Sequence[AttemptRef]
) -> str:
    died = f"its process {event.pid} died: {event.status}"
    match blame:
        case "neighbour":
            names = ", ".join(str(ref.job) for ref in culprits)
            return f"{died}; the culprit was another job in it (number {names})"
        case "bystander" | "suspect" if event.with_others:
            return f"{died}; every job of its worker fell with it and nothing says which one did it"
        case "suspect" if len(bodies) > 1:
            return f"{died}; several jobs were in it and nothing says which one did it"
        case "uncharged":
            return f"{died}; {post.killed or 'it was being replaced'}"
        case _:
            return died
