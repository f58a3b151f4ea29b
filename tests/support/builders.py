"""Builders: jobs, workers and claims for tests, in one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.support.eventually import eventually
from unstuck.chance import SystemChance
from unstuck.model.errors import StoreBusy
from unstuck.model.job import AttemptRef, ClaimedJob, JobRecord, NewJob, WorkerRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, Outcome, Raised, Returned
from unstuck.store.port import Claimed, NewWorker, Report, Route, Settled, Share, Store, Verdict

T = TypeVar("T")
TENANT = "default"
chance = SystemChance()


def a_job(**options: Any) -> NewJob:
    """Options of NewJob and of Policy, mixed; what is not said is ordinary."""
    fields = {name: options.pop(name) for name in tuple(options) if name in NewJob.__dataclass_fields__}
    base = {"id": chance.job_id(), "tenant": TENANT, "queue": "default", "workflow": "greet", "payload": "{}"}
    return NewJob(**{**base, "policy": Policy(**options), **fields})


def submitted(store: Store, **options: Any) -> NewJob:
    job = a_job(**options)
    (answer,) = store.submit([job])
    assert answer.created
    return job


def a_worker(store: Store, name: str = "ada", lease: float = 30.0, **options: Any) -> WorkerRecord:
    base: dict[str, Any] = {
        "incarnation": chance.nonce(),
        "host": "host-1",
        "boot_id": "boot-1",
        "pid_namespace": "4026531836",
        "pid": 100,
        "pid_start": 5000,
        "queues": ("default",),
        "code_version": "v1",
    }
    return store.register_worker(NewWorker(name=name, lease=lease, **{**base, **options}))


def everything(store: Store, limit: int = 10_000) -> list[Share]:
    return [Share(front.route, limit, is_limited=front.is_limited) for front in store.open_routes()]


def all_routes(store: Store) -> list[Route]:
    """Few have numbers to begin with; to send five thousand costs more than most tests do."""
    few = store.routes(range(1, 64))
    return few if not few or few[-1].number < 32 else store.routes(range(1, 5000))


def claim_all(store: Store, worker: WorkerRecord, limit: int = 10_000) -> Claimed:
    return store.claim(worker.number, chance.nonce(), everything(store, limit))


def claimed(store: Store, worker: WorkerRecord, **options: Any) -> ClaimedJob:
    """A fresh job that this worker holds; whatever else is ready stays there."""
    job = submitted(store, **{"workflow": f"w-{chance.nonce()}", **options})
    (route,) = [route for route in all_routes(store) if route.workflow == job.workflow]
    (attempt,) = store.claim(worker.number, chance.nonce(), [Share(route.number, 1)])
    assert attempt.id == job.id
    return attempt


def blocked(store: Store, worker: WorkerRecord, **options: Any) -> ClaimedJob:
    """A job that failed for good, and blocks its target since."""
    job = submitted(store, retries=0, **options)
    store.ingest()
    (attempt,) = claim_all(store, worker)
    assert attempt.id == job.id
    settle(store, worker, attempt.ref, boom())
    return attempt


def begin(
    store: Store,
    worker: WorkerRecord,
    *attempts: ClaimedJob,
    besides: Sequence[ClaimedJob] = (),
    lease: float = 1e6,
) -> None:
    """Their handlers begin now, and a beat says so; `besides` is held as well."""
    now = store.now()
    held = [attempt.ref for attempt in (*attempts, *besides)]
    assert store.beat(worker.number, lease, held, started={attempt.ref.job: now for attempt in attempts}).alive


def settle(store: Store, worker: WorkerRecord, ref: AttemptRef, outcome: Outcome | None = None) -> Settled:
    (answer,) = settle_all(store, worker.number, [Report(ref, outcome or Returned('"ok"'), duration_ms=5)])
    return answer


def give_up(store: Store, worker: WorkerRecord, attempt: ClaimedJob) -> None:
    """It is fenced from now on, as that of a worker which was thought dead: whatever it still says comes too late."""
    settle(store, worker, attempt.ref, Lost(ErrorInfo("WorkerLost", "gone"), "worker"))


def settle_all(store: Store, worker: int, reports: Sequence[Report]) -> list[Settled]:
    """As a settler does: what somebody holds at this moment is reported again."""
    answers = {answer.ref: answer for answer in store.settle(worker, reports)}

    def is_answered() -> bool:
        busy = [report for report in reports if answers[report.ref].verdict is Verdict.BUSY]
        answers.update({answer.ref: answer for answer in store.settle(worker, busy)})
        return all(answer.verdict is not Verdict.BUSY for answer in answers.values())

    if any(answer.verdict is Verdict.BUSY for answer in answers.values()):
        eventually(is_answered, timeout=30)
    return [answers[report.ref] for report in reports]


def insist(call: Callable[[], T]) -> T:
    """As flow calls do: what somebody holds at this moment is asked again."""
    answers: list[T] = []

    def is_answered() -> bool:
        try:
            answers.append(call())
        except StoreBusy:
            return False
        return True

    eventually(is_answered, timeout=30)
    return answers[0]


def record(store: Store, job: str, tenant: str = TENANT) -> JobRecord:
    found = store.get(tenant, job)
    assert found is not None, f"job {job} is gone"
    return found


def boom(message: str = "boom", type: str = "ValueError") -> Raised:
    return Raised(ErrorInfo(type, message))


def kinds(store: Store, job: str) -> Sequence[str]:
    return [event.kind for event in store.history(TENANT, job)]
