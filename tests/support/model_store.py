"""A store small enough to be read at once: what the two databases must agree with, verb by verb.

It knows no SQL, no locks and no batches; decisions come from the same pure `settle`. Only tests use it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from unstuck.model.errors import IllegalMove, KeyConflict, NotBlocking
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import EVENT_OF, MOVES, JobState, Move, RequestKind, stronger
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Settlement, Standing, Stuck, settle
from unstuck.model.target import FIRST, Turn, turn_after
from unstuck.store.port import Verdict

KEY_LIFE = 86400.0


@dataclass
class ModelJob:
    id: str
    order: int
    policy: Policy
    priority: int
    available_at: float
    target: str | None = None
    state: JobState = JobState.QUEUED
    ready: bool = True
    #: Its place in the line of its target; None: it does not stand there.
    place: int | None = None
    started: bool = False
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
    begun_at: float | None = None
    result: str | None = None
    error_type: str | None = None
    history: list[str] = field(default_factory=lambda: ["submitted"])
    #: (token, claim) of attempts that their own worker settled: a repeat of those answers done.
    settled: set[tuple[int, str]] = field(default_factory=set)


@dataclass
class ModelTarget:
    head: ModelJob | None = None
    head_place: int = FIRST
    blocked_by: ModelJob | None = None
    paused_until: float | None = None


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
        self.targets: dict[str, ModelTarget] = {}
        self.announced: set[str] = set()
        self.touched: set[str] = set()

    # --- submit -----------------------------------------------------------------------------------------------
    def submit(
        self,
        id: str,
        policy: Policy,
        priority: int,
        delay: float,
        key: str | None,
        fingerprint: str | None,
        target: str | None = None,
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
        job = ModelJob(id, len(self.jobs), policy, priority, self.now + delay, target, ready=False)
        self.jobs[id] = job
        if target is not None:
            self.targets.setdefault(target, ModelTarget())
        if delay <= 0:
            self._enter(job)
        return id, True

    # --- targets ----------------------------------------------------------------------------------------------
    def _enter(self, job: ModelJob) -> None:
        """It is due: claimable, or in the line of its target."""
        if job.target is None:
            job.ready = True
        else:
            job.place = FIRST if self.targets[job.target].head is job else -job.priority
            self.announced.add(job.target)

    def ingest(self) -> None:
        """What was announced is looked at: an unclaimed head yields; what a verb itself touched is promoted only."""
        for name in sorted(self.announced):
            target, first = self.targets[name], self._first(name)
            head, place = target.head, target.head_place
            if head and head.ready and first and place > FIRST and (first.place or 0) < place:
                head.ready, head.place, target.head = False, place, None
        for name in sorted(self.announced | self.touched):
            self._promote(name)
        self.announced.clear()
        self.touched.clear()

    def _promote(self, name: str) -> None:
        target, first = self.targets[name], self._first(name)
        if first is None or not self._is_open(name) or target.head not in (None, first):
            return
        target.head, target.head_place = first, first.place or 0
        first.ready, first.place = True, None

    def _first(self, name: str) -> ModelJob | None:
        line = [j for j in self.jobs.values() if j.target == name and j.place is not None]
        return min(line, key=lambda j: (j.place or 0, j.order), default=None)

    def _is_open(self, name: str) -> bool:
        until = self.targets[name].paused_until
        held = any(j.target == name and j.held_by is not None for j in self.jobs.values())
        return not held and (until is None or until <= self.now)

    def _turn(self, job: ModelJob) -> None:
        """The head went where it stands now."""
        if job.target is None or (target := self.targets[job.target]).head is not job:
            return
        self.touched.add(job.target)
        turn = turn_after(job.state, started=job.started, policy=job.policy)
        if turn is Turn.BLOCK:
            target.blocked_by = job
        elif turn is not Turn.KEEP:
            target.head = target.blocked_by = None

    def pause(self, name: str, seconds: float) -> None:
        target = self.targets[name]
        target.paused_until = self.now + seconds
        if (head := target.head) and head.ready:
            head.ready, head.place = False, target.head_place
            if target.head_place > FIRST:
                target.head = None

    def unpause(self, name: str) -> bool:
        target = self.targets[name]
        was, target.paused_until = target.paused_until, None
        self.touched.add(name)
        return was is not None and was > self.now

    def skip(self, id: str) -> None:
        job = self.jobs[id]
        target = self.targets[job.target] if job.target else None
        if target is None or target.blocked_by is not job:
            raise NotBlocking(id, job.target)
        target.head = target.blocked_by = None
        self.touched.add(job.target or "")
        job.history.append("skipped")

    def is_blocker(self, job: ModelJob) -> bool:
        return job.target is not None and self.targets[job.target].blocked_by is job

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
            job.claim, job.worker, job.begun_at = claim, worker, None
            job.history.append("claimed")
        return {j.id for j in waiting[:limit]}

    def beat(self, worker: int, lease: float, held: Sequence[tuple[str, int, str]], begun: Collection[str]) -> bool:
        if not self.alive(worker):
            return False
        self.workers[worker].lease_until = self.now + lease
        for job in self.jobs.values():
            if job.worker == worker and job.id in begun and job.begun_at is None:
                job.begun_at = self.now
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
        job.started = job.started or not isinstance(outcome, NotStarted)
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
        if settlement.body_may_live:
            job.held_by = holder
        self._turn(job)
        if job.state is JobState.QUEUED:
            job.available_at = self.now + settlement.delay
            if settlement.delay <= 0:
                self._enter(job)
        job.request = None

    # --- control ----------------------------------------------------------------------------------------------
    def cancel(self, id: str) -> None:
        self._ask(self.jobs[id], Move.CANCEL, RequestKind.CANCEL, "Cancelled")

    def interrupt(self, id: str) -> None:
        self._ask(self.jobs[id], Move.INTERRUPT, RequestKind.INTERRUPT, "Interrupted")

    def _ask(self, job: ModelJob, move: Move, kind: RequestKind, error_type: str) -> None:
        if job.state is JobState.RUNNING:
            if stronger(job.request, kind) is kind and job.request is not kind:
                # The grace counts from the first: a stronger request does not prolong it.
                job.requested_at = self.now if job.request is None else job.requested_at
                job.request = kind
                job.history.append("requested")
            return
        goal = self._legal(job, move)
        job.state, job.ready, job.place, job.error_type, job.result = goal, False, None, error_type, None
        job.history.append(EVENT_OF[move])
        self._turn(job)

    def resume(self, id: str) -> None:
        job = self.jobs[id]
        self._legal(job, Move.RESUME)
        self._new_run(job)
        job.state, job.available_at = JobState.QUEUED, self.now
        if self.is_blocker(job):
            self.targets[job.target or ""].blocked_by = None
        self._enter(job)
        job.history.append("resumed")

    def resolve(self, id: str, result: str) -> None:
        job = self.jobs[id]
        self._legal(job, Move.RESOLVE)
        self._new_run(job)
        job.state, job.result = JobState.COMPLETED, result
        job.history.append("resolved")
        self._turn(job)

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
        if job.policy.timeout != "unlimited" and job.begun_at is not None:
            limits.append(job.begun_at + job.policy.timeout)
        return min(limits, default=float("inf")) + job.policy.grace + extra

    def lift_body_marks(self, margin: float) -> None:
        for job in self.jobs.values():
            if job.held_by is not None and self.workers[job.held_by].lease_until + margin <= self.now:
                job.held_by = None
                if job.target is not None:
                    self.touched.add(job.target)

    def release_due(self) -> None:
        for job in self.jobs.values():
            if job.state is not JobState.QUEUED:
                continue
            expires = job.policy.expires_after
            if expires is not None and job.available_at + expires <= self.now:
                job.state, job.ready, job.place, job.error_type = JobState.FAILED, False, None, "QueueTimeout"
                job.history.append("failed")
                self._turn(job)
            elif job.available_at <= self.now and not job.ready and job.place is None:
                self._enter(job)
        for name, target in self.targets.items():
            if target.paused_until is not None and target.paused_until <= self.now:
                target.paused_until = None
                self.touched.add(name)
