"""A store small enough to be read at once: what the two databases must agree with, verb by verb.

It knows no SQL, no locks and no batches; decisions come from the same pure `settle`. Only tests use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unstuck.model.errors import IllegalMove, KeyConflict
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import EVENT_OF, MOVES, JobState, Move, RequestKind, stronger
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Settlement, Standing, Stuck, settle
from unstuck.store.port import Verdict

KEY_LIFE = 86400.0


@dataclass
class ModelJob:
    id: str
    order: int
    policy: Policy
    priority: int
    available_at: float
    submitted_at: float
    state: JobState = JobState.QUEUED
    ready: bool = True
    run: int = 1
    token: int = 0
    failures: int = 0
    losses: int = 0
    suspects: int = 0
    alone: bool = False
    held_by: int | None = None
    request: RequestKind | None = None
    requested_at: float = 0.0
    claim: str | None = None
    worker: int | None = None
    claimed_at: float = 0.0
    result: str | None = None
    error_type: str | None = None
    history: list[str] = field(default_factory=lambda: ["submitted"])
    #: (token, claim) of attempts that their own worker settled: a repeat of those answers done.
    settled: set[tuple[int, str]] = field(default_factory=set)


@dataclass
class ModelWorker:
    lease_until: float
    state: str = "active"


class ModelStore:
    def __init__(self) -> None:
        self.now = 0.0
        self.jobs: dict[str, ModelJob] = {}
        self.workers: dict[int, ModelWorker] = {}
        self.keys: dict[str, tuple[str, str, float]] = {}

    # --- submit -----------------------------------------------------------------------------------------------
    def submit(
        self, id: str, policy: Policy, priority: int, delay: float, key: str | None, fingerprint: str | None
    ) -> tuple[str, bool]:
        if id in self.jobs:
            return id, False
        if key is not None and (known := self.keys.get(key)):
            known_id, known_print, expires = known
            if expires > self.now or not self.jobs[known_id].state.is_final:
                if known_print != fingerprint:
                    raise KeyConflict(key, known_id)
                return known_id, False
        if key is not None:
            self.keys[key] = (id, fingerprint or "", self.now + KEY_LIFE)
        self.jobs[id] = ModelJob(id, len(self.jobs), policy, priority, self.now + delay, self.now, ready=delay <= 0)
        return id, True

    # --- claim, beat, settle ----------------------------------------------------------------------------------
    def register(self, worker: int, lease: float) -> None:
        self.workers[worker] = ModelWorker(self.now + lease)

    def alive(self, worker: int) -> bool:
        return self.workers[worker].lease_until > self.now and self.workers[worker].state != "lost"

    def claim(self, worker: int, claim: str, limit: int) -> set[str]:
        if again := {j.id for j in self.jobs.values() if j.claim == claim}:
            return again
        if not self.alive(worker):
            return set()
        waiting = [j for j in self.jobs.values() if j.state is JobState.QUEUED and j.ready and j.held_by is None]
        waiting.sort(key=lambda j: (-j.priority, j.order))
        for job in waiting[:limit]:
            job.state, job.ready, job.token = JobState.RUNNING, False, job.token + 1
            job.claim, job.worker, job.claimed_at = claim, worker, self.now
            job.history.append("claimed")
        return {j.id for j in waiting[:limit]}

    def beat(self, worker: int, lease: float, held: Sequence[tuple[str, int, str]]) -> bool:
        if not self.alive(worker):
            return False
        self.workers[worker].lease_until = self.now + lease
        for job in self.jobs.values():
            if job.worker == worker and (job.id, job.token, job.claim) not in held:
                self._end(job, NotStarted())
        return True

    def settle(self, worker: int, id: str, ref: AttemptRef, outcome: Outcome) -> Verdict:
        job = self.jobs[id]
        if (job.token, job.claim, job.worker) == (ref.token, ref.claim, worker):
            job.settled.add((ref.token, ref.claim))
            self._end(job, outcome)
            return Verdict.DONE
        return Verdict.DONE if (ref.token, ref.claim) in job.settled else Verdict.FENCED

    def _end(self, job: ModelJob, outcome: Outcome) -> None:
        standing = Standing(job.policy, job.failures, job.losses, job.suspects, job.request)
        self._apply(job, settle(standing, outcome, 0.0))

    def _apply(self, job: ModelJob, settlement: Settlement) -> None:
        holder, job.claim, job.worker = job.worker, None, None
        job.state = settlement.state
        job.failures += settlement.failure
        job.losses += settlement.loss
        job.suspects += settlement.suspect
        job.alone = job.alone or settlement.alone
        job.history.append(EVENT_OF[settlement.move])
        job.error_type = settlement.error.type if settlement.error else None
        job.result = settlement.result
        if settlement.hold:
            job.held_by = holder
        if job.state is JobState.QUEUED:
            job.ready = settlement.delay <= 0
            job.available_at = self.now + settlement.delay
        job.request = None

    # --- control ----------------------------------------------------------------------------------------------
    def cancel(self, id: str) -> None:
        self._ask(self.jobs[id], Move.CANCEL, RequestKind.CANCEL, "Cancelled")

    def interrupt(self, id: str) -> None:
        self._ask(self.jobs[id], Move.INTERRUPT, RequestKind.INTERRUPT, "Interrupted")

    def _ask(self, job: ModelJob, move: Move, kind: RequestKind, error_type: str) -> None:
        if job.state is JobState.RUNNING:
            if stronger(job.request, kind) is kind and job.request is not kind:
                job.request, job.requested_at = kind, self.now
                job.history.append("requested")
            return
        goal = self._legal(job, move)
        job.state, job.ready, job.error_type, job.result = goal, False, error_type, None
        job.history.append(EVENT_OF[move])

    def resume(self, id: str) -> None:
        job = self.jobs[id]
        self._legal(job, Move.RESUME)
        self._new_run(job)
        job.state, job.ready, job.available_at = JobState.QUEUED, True, self.now
        job.history.append("resumed")

    def resolve(self, id: str, result: str) -> None:
        job = self.jobs[id]
        self._legal(job, Move.RESOLVE)
        self._new_run(job)
        job.state, job.result = JobState.COMPLETED, result
        job.history.append("resolved")

    def _new_run(self, job: ModelJob) -> None:
        job.run += 1
        job.failures = job.losses = job.suspects = 0
        job.alone = False
        job.error_type = job.result = job.request = None

    def _legal(self, job: ModelJob, move: Move) -> JobState:
        if move not in MOVES[job.state]:
            raise IllegalMove(job.id, job.state, move, MOVES[job.state])
        return MOVES[job.state][move]

    # --- time -------------------------------------------------------------------------------------------------
    def recover_lost(self) -> set[str]:
        lost = [j for j in self.jobs.values() if j.worker is not None and not self.alive(j.worker)]
        for job in lost:
            self._end(job, Lost(ErrorInfo("WorkerLost", ""), "worker"))
        return {j.id for j in lost}

    def convict_overdue(self, kill_grace: float, lease: float) -> set[str]:
        guilty = [
            j
            for j in self.jobs.values()
            if j.worker is not None and self.alive(j.worker) and self._overdue_at(j, kill_grace + lease) <= self.now
        ]
        for job in guilty:
            self._end(job, Stuck(ErrorInfo("ExecutionStuck", "")))
        return {j.id for j in guilty}

    def _overdue_at(self, job: ModelJob, extra: float) -> float:
        limits = [job.requested_at] if job.request else []
        if job.policy.timeout != "unlimited":
            limits.append(job.claimed_at + job.policy.timeout)
        return min(limits, default=float("inf")) + job.policy.grace + extra

    def lift_holds(self, margin: float) -> None:
        for job in self.jobs.values():
            if job.held_by is not None and self.workers[job.held_by].lease_until + margin <= self.now:
                job.held_by = None

    def release_due(self) -> None:
        for job in self.jobs.values():
            if job.state is not JobState.QUEUED:
                continue
            expires = job.policy.expires_after
            if expires is not None and job.submitted_at + expires <= self.now:
                job.state, job.ready, job.error_type = JobState.FAILED, False, "QueueTimeout"
                job.history.append("failed")
            elif job.available_at <= self.now:
                job.ready = True
