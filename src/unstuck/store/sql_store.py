"""SqlStore: the Store over any Database. Each verb is one transaction; what it does is in the module of its noun."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from unstuck.chance import Chance, SystemChance
from unstuck.clock import boot
from unstuck.model.budget import check_amounts
from unstuck.model.errors import (
    IllegalMove,
    InvalidInput,
    StoreBusy,
    StoreError,
    UnknownJob,
    UnknownWorker,
)
from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord
from unstuck.model.job import (
    AttemptRecord,
    AttemptRef,
    EventRecord,
    JobRecord,
    NewJob,
    WorkerRecord,
    WorkflowRecord,
)
from unstuck.model.lifecycle import JobState, Move, RequestKind
from unstuck.model.parts import MOST_PARTS, Part, check_part
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.settlement import Stuck
from unstuck.model.standing import Facts
from unstuck.model.times import Times
from unstuck.model.waits import Answer, Child, Journal, Signalled, Spent, StepRecord, WaitRecord
from unstuck.store import (
    audit,
    beat,
    blacklist_sweep,
    children,
    control,
    feed,
    gates,
    guard,
    inbox,
    isolation,
    leaps,
    locks,
    lookup,
    orders,
    orphans,
    output,
    parts,
    pending,
    quarantine,
    sessions,
    settle,
    spawn,
    submit,
    sweep,
    tally,
    targets,
    usage,
    waits,
    why,
)
from unstuck.store import claim as claims
from unstuck.store import steps as journals
from unstuck.store.beat import BeatFacts
from unstuck.store.control import Again, Control
from unstuck.store.database import Database, Row, T, Transaction
from unstuck.store.dimensions import Dimensions, Numbers, StaleNames
from unstuck.store.halves import AWAY, MOST_FAILURES
from unstuck.store.isolation import Act, Isolation
from unstuck.store.port import (
    ATTEMPTS_PAGE,
    EVERY,
    FIRST_ENDED,
    HISTORY_PAGE,
    Asked,
    Beat,
    Claimed,
    ClockStand,
    Ended,
    Enough,
    FeedBounds,
    FeedFilter,
    FeedPage,
    Fronts,
    Holder,
    InboxStand,
    Ingested,
    JobFilter,
    JobPage,
    Limit,
    LimitKind,
    LimitPart,
    LockHolder,
    NameKind,
    NewChild,
    NewStep,
    NewWorker,
    OrderKind,
    Overdue,
    Pause,
    PauseKind,
    Quarantined,
    QuarantineDuty,
    Recovered,
    Remark,
    Report,
    Route,
    ServerSession,
    Settled,
    Share,
    Submitted,
    Tally,
    TallyBy,
    TargetRecord,
    TenantRecord,
    Verdict,
    WaitingRoutes,
    WorkerOrder,
    never,
)
from unstuck.store.rows import (
    asked_of,
    attempts_of,
    event_of,
    instant,
    instant_or_none,
    job_of,
    microseconds,
    packed,
    ref_of,
    span,
    worker_of,
    workflow_of,
)
from unstuck.store.settle import Settling
from unstuck.telemetry import emit

LOOKS = 100
EXPIRE_ROUNDS = 50
#: Children that an ingest cancels by the way; it must not keep a claimer from its claims. A janitor has the others.
TENDED_SOON = 10
GUARD_ROUNDS = 50
SWEEP_ROUNDS = 10
TEND_ROUNDS = 3
BY_JANITOR = "janitor"


class SqlStore:
    """Safe to share between threads; as safe across a fork as its database is."""

    def __init__(
        self, database: Database, chance: Chance | None = None, *, key_retention: float = Times().key_retention
    ) -> None:
        self._database = database
        self._key_life = key_retention
        self._dimensions = Dimensions()
        self._tools = Settling(self._dimensions, chance or SystemChance())
        self._inbox = inbox.Inbox(database, self._tools)
        self._claims = claims.Claims(database, self._dimensions)
        self._isolation = Isolation(database)
        self._named: dict[int, Row] = {}
        self._versions: dict[int, str] = {}
        self._has_limits = False

    # --- the worker's side ----------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return instant(self._database.read(lambda t: _only(t.one("now"))["now"]))

    def register_worker(self, worker: NewWorker) -> WorkerRecord:
        self._database.remember(worker.name, worker.boot_id)
        return self._database.write(partial(_register_worker, worker=worker))

    def register_workflows(
        self, workflows: Sequence[WorkflowRecord], *, worker: int | None = None, queues: Sequence[str] = ()
    ) -> frozenset[str]:
        held = gates.register_workflows(self._database, workflows, worker, queues)
        if worker is not None and (version := gates.version_of(workflows)) is not None:
            self._versions[worker] = version
        return held

    def ingest(self, after: int = 0, batch: int = 1000) -> Ingested:
        """The look first: an empty inbox must not cost SQLite its write lock."""
        if not self._database.read(lambda t: t.all("inbox_waits", after=after)):
            return Ingested(0, 0, after)
        found = self._inbox.ingest(after, batch)
        if found.entries:
            self.tend_children(TENDED_SOON)  # the end of a parent leaves an entry
        return found

    def ingest_again(self, batch: int = 1000) -> int:
        return self._inbox.try_again(batch) + self._tend_again(batch)

    def routes(self, numbers: Sequence[int]) -> list[Route]:
        wanted = list(numbers)
        return [Route(**row) for row in self._database.read(lambda t: t.all("routes", numbers=wanted))]

    def fronts(self, after: int = 0, limit: int = 1000) -> Fronts:
        fronts, self._has_limits = self._database.read(lambda t: gates.look(t, after, limit))
        return fronts

    def fronts_of(self, routes: Sequence[int]) -> Fronts:
        fronts, has_limits = self._database.read(lambda t: gates.look_at(t, routes))
        self._has_limits = self._has_limits or has_limits
        return fronts

    def weights(self) -> dict[str, int]:
        return {row["name"]: row["weight"] for row in self._database.read(lambda t: t.all("weights"))}

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        known = self._known_worker(worker)
        if known is None:
            return Claimed()
        version = self._versions.get(worker, known["code_version"])
        data = packed({"by": known["name"], "claim": claim, "code_version": version})
        claimed = self._claims.claim(worker, claim, shares, data)
        if claimed.left_out:
            self._give_back(worker, claimed.left_out)
        return claimed

    def _give_back(self, worker: int, refs: Sequence[AttemptRef]) -> None:
        emit("store.claim.left_out", attempts=len(refs))
        try:
            self._waking(lambda t: beat.give_back(t, self._tools, worker, refs, claims.NOT_READ))
        except Exception as problem:
            # The claim stands, and what it brought must reach its worker. The next beat gives the rest back: it is
            # nowhere in what the worker says it holds.
            emit("store.claim.give_back_failed", attempts=len(refs), problem=str(problem)[:200])

    def beat(
        self,
        worker: int,
        lease: float,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
        state: str = "active",
        info: Mapping[str, Any] | None = None,
    ) -> Beat:
        holding = BeatFacts(lease, held, pending_claims, settling, started or {}, state, info)
        renewed = beat.renew(self._database, worker, holding)
        if not renewed.alive:
            self.probe()  # who loses its lease begins anew, and must be able to say first that it left
            return renewed
        try:
            return self._reconcile(renewed, worker, holding)
        except Exception as error:
            emit("store.beat.unreconciled", level=logging.WARNING, worker=worker, problem=isolation.problem_of(error))
            return replace(renewed, unstarted=frozenset(holding.started))

    def _reconcile(self, renewed: Beat, worker: int, holding: BeatFacts) -> Beat:
        """Each part by itself: none of them must cost another, as none may cost the lease."""
        if holding.started:
            self._write_starts(worker, holding.started)
        granted = self._database.read(lambda t: beat.look(t, worker))
        found = beat.compare(renewed, granted, holding)
        if not (astray := beat.strays(granted, holding)):
            return found
        given: list[AttemptRef] = []

        def act(refs: Sequence[AttemptRef], patience: float) -> None:
            given.extend(self._waking(lambda t: beat.give_back(t, self._tools, worker, refs), patience))

        for ref, error in isolation.in_parts(astray, act).items():
            problem = isolation.problem_of(error)
            emit("store.beat.stray_kept", level=logging.WARNING, job=ref.job, problem=problem)
        return replace(
            found, strays=tuple(given), asked=tuple(asked for asked in found.asked if asked.ref not in given)
        )

    def _write_starts(self, worker: int, started: Mapping[int, datetime]) -> None:
        """Those that fail are found missing by the look that follows."""

        def act(jobs: Sequence[int], patience: float) -> None:
            some = {job: started[job] for job in jobs}
            self._database.write(lambda t: beat.write_starts(t, worker, some), patience=patience)

        for job, error in isolation.in_parts(sorted(started), act).items():
            emit("store.beat.start_kept", level=logging.WARNING, job=job, problem=isolation.problem_of(error))

    def asked(self, worker: int) -> list[Asked]:
        return [asked_of(row) for row in self._database.read(lambda t: t.all("asked", worker=worker))]

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str | None = None) -> Verdict:
        return self._database.write(lambda t: control.ask(t, ref, kind, reason), patience=isolation.IMPATIENCE)

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        first: dict[AttemptRef, Report] = {}
        for report in reports:
            first.setdefault(report.ref, report)
        answers: dict[AttemptRef, Settled] = {}

        def act(refs: Sequence[AttemptRef], patience: float) -> None:
            for answer in self._settle(worker, [first[ref] for ref in refs], patience):
                answers[answer.ref] = answer

        failed = isolation.in_parts(list(first), act)
        if failed:
            self.probe()  # where nothing can be written no report is to blame
        for ref, error in failed.items():
            answers[ref] = self._refuse(worker, first[ref], error)
        return [answers.get(report.ref) or settle.waiting(report.ref, problem="") for report in reports]

    def _refuse(self, worker: int, report: Report, error: Exception) -> Settled:
        """What no database can take fails its job at once; about anything else the report may be right, and the
        trouble may pass: it stays with its worker."""
        problem = isolation.problem_of(error)
        emit("store.settle.refused", level=logging.DEBUG, job=report.ref.job, problem=problem)
        if not isolation.is_about_data(error):
            return settle.waiting(report.ref, problem)
        bare = settle.refused(Report(report.ref, report.outcome), f"the database refused it: {error}")
        try:
            return self._settle(worker, [bare], isolation.IMPATIENCE)[0]
        except AWAY:
            raise
        except Exception as another:
            return settle.waiting(report.ref, isolation.problem_of(another))

    def _settle(self, worker: int, reports: Sequence[Report], patience: float) -> list[Settled]:
        def work(t: Transaction) -> tuple[list[Settled], bool]:
            return settle.settle(t, self._tools, worker, by, rest)

        known = self._known_worker(worker)
        by = known["name"] if known else f"worker {worker}"
        # What returned and said nothing closes by one statement; whatever that does not close takes the long way, and
        # so does what failed before: there a slow one costs less time.
        is_first = patience > isolation.IMPATIENCE
        closed = settle.close_plainly(self._database, worker, by, reports) if is_first else {}
        rest = [report for report in reports if report.ref not in closed]
        answers = {answer.ref: answer for answer in self._waking(work, patience)} if rest else {}
        self._lift_after(worker, reports, answers, patience)
        if self._has_limits:
            self._database.hint()  # what ended may have been all that kept a limit shut
        return [answers.get(report.ref) or closed[report.ref] for report in reports]

    def _lift_after(
        self, worker: int, reports: Sequence[Report], answers: Mapping[AttemptRef, Settled], patience: float
    ) -> None:
        """The backstop judged an attempt whose report was on its way. The report still says that the body has ended:
        nobody else would ever lift that hold while this worker lives."""
        ended = [report.ref for report in reports if not isinstance(report.outcome, Stuck)]
        fenced = [ref for ref in ended if ref in answers and answers[ref].verdict is Verdict.FENCED]
        if fenced:
            self._waking(lambda t: targets.lift_after(t, worker, fenced), patience)

    def remark(self, remarks: Sequence[Remark]) -> list[Verdict]:
        said: dict[AttemptRef, list[Remark]] = {}
        for one in remarks:
            said.setdefault(one.ref, []).append(one)
        verdicts: dict[AttemptRef, Verdict] = {}

        def act(refs: Sequence[AttemptRef], patience: float) -> None:
            some = [one for ref in refs for one in said[ref]]
            answers = self._database.write(lambda t: output.remark(t, some), patience=patience)
            verdicts.update(zip((one.ref for one in some), answers, strict=True))

        failed = isolation.in_parts(list(said), act)
        if failed:
            self.probe()
        for ref, error in failed.items():
            problem = isolation.problem_of(error)
            emit("store.remark.refused", level=logging.DEBUG, job=ref.job, problem=problem)
        return [verdicts.get(one.ref, Verdict.BUSY) for one in remarks]

    def journal(self, ref: AttemptRef, after: int = 0) -> Journal | None:
        return self._database.read(lambda t: journals.journal(t, ref, after))

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        journals.check(steps)
        if not steps:
            return []
        return self._database.write(lambda t: journals.record(t, steps), patience=isolation.IMPATIENCE)

    def spend(self, ref: AttemptRef, serial: int, amounts: Mapping[str, float]) -> Spent | None:
        check_amounts(amounts)
        return self._database.write(
            lambda t: usage.spend(t, self._dimensions, ref, serial, amounts), patience=isolation.IMPATIENCE
        )

    def keep_part(self, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        name = check_part(name, value)
        return self._database.write(lambda t: parts.keep(t, ref, serial, name, value), patience=isolation.IMPATIENCE)

    def spawn(self, child: NewChild) -> Child | None:
        spawn.check(child)
        answer = self._with_numbers(
            [child.job],
            lambda t, numbers: spawn.spawn(t, child, numbers, self._key_life),
            patience=isolation.IMPATIENCE,
        )
        self._database.hint()  # of a repeat too, as after a submit
        return answer

    def gather(self, ref: AttemptRef, children: Sequence[str], release_target: bool = False) -> str | None:
        wanted = list(children)
        if not lookup.can_exist(*wanted):
            raise InvalidInput("these are not the ids of children")
        return self._database.read(lambda t: spawn.gather(t, ref, wanted, release_target))

    def orders(self, worker: int) -> list[WorkerOrder]:
        return self._database.read(lambda t: orders.waiting(t, worker))

    def answer_order(self, number: int, answer: str, *, refused: bool = False) -> None:
        self._database.write(lambda t: orders.answer(t, number, answer, refused))

    def unregister_worker(self, worker: int) -> None:
        """The lease ends first, by itself: then nobody is charged for what is left, whoever gives it back."""
        self._database.write(lambda t: t.run("leave", worker=worker))
        after = 0
        while jobs := self._attempts_of(worker, after):
            isolation.Sweep(self._database, "recover").move(
                [sweep.LostAttempt(worker, job) for job in jobs],
                lambda t, some: beat.leave_behind(t, self._tools, worker, [one.job for one in some]),
            )
            after = jobs[-1]

    def _attempts_of(self, worker: int, after: int, batch: int = 500) -> list[int]:
        rows = self._database.read(lambda t: t.all("lost_attempts", worker=worker, after=after, batch=batch))
        return [row["job"] for row in rows]

    def fence_worker(self, worker: int, reason: str) -> bool:
        facts = {"worker": worker, "reason": clean_text(reason, 1000)}
        return self._database.write(lambda t: t.run("fence_worker", **facts)) == 1

    def notify(self, title: str, message: str, link: str, severity: str = "warning") -> bool:
        return self._database.write(lambda t: audit.notify(t, title, message, link, severity))

    # --- submit ---------------------------------------------------------------------------------------------------

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        if not jobs:
            return []
        submit.check(jobs)
        answers = self._with_numbers(jobs, lambda t, numbers: submit.submit(t, jobs, numbers, self._key_life))
        self._database.hint()  # of a repeat too: the first call may have lost its answer, and then said nothing
        return answers

    def workflow(self, name: str) -> WorkflowRecord | None:
        if not lookup.can_exist(name):
            return None
        row = self._database.read(lambda t: t.one("workflow", name=name))
        return None if row is None else workflow_of(row)

    def workflows(self) -> list[WorkflowRecord]:
        return [workflow_of(row) for row in self._database.read(lambda t: t.all("workflows"))]

    # --- control --------------------------------------------------------------------------------------------------

    def cancel(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        step = partial(Control.stop, move=Move.CANCEL, reason=reason)
        return self._control(tenant, job, by, "cancel", step, reason=reason)

    def interrupt(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        step = partial(Control.stop, move=Move.INTERRUPT, reason=reason)
        return self._control(tenant, job, by, "interrupt", step, reason=reason)

    def resume(self, tenant: str, job: str, by: str, *, from_start: bool = False) -> JobRecord:
        def step(verb: Control, t: Transaction) -> JobRecord | Again:
            record = verb.resume(t, from_start)
            if from_start and not isinstance(record, Again):
                journals.start_over(t, record.number)
            return record

        record = self._control(tenant, job, by, "resume", step, from_start=from_start or None)
        self._database.hint()
        return record

    def resolve(self, tenant: str, job: str, by: str, result: str) -> JobRecord:
        return self._control(tenant, job, by, "resolve", lambda verb, t: verb.resolve(t, result))

    def hurry(self, tenant: str, job: str, by: str) -> JobRecord:
        record = self._control(tenant, job, by, "retry", lambda verb, t: verb.hurry(t))
        self._database.hint()
        return record

    def release(self, tenant: str, job: str, by: str, *, force: bool = False) -> JobRecord:
        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))

        def work(t: Transaction) -> tuple[JobRecord, bool]:
            released = pending.release(t, self._dimensions, tenant, job, by, force)
            audit.note(t, by, "jobs.release", job, tenant, {"force": force or None})
            return released

        return self._waking(work)

    def skip(self, tenant: str, job: str, by: str) -> JobRecord:
        record = self._control(tenant, job, by, "skip", lambda verb, t: verb.skip(t))
        self._database.hint()
        return record

    def target(self, tenant: str, name: str) -> TargetRecord | None:
        if not lookup.can_exist(tenant, name):
            return None
        return self._database.read(lambda t: targets.named(t, tenant, name))

    def targets(self, tenant: str, *, blocked: bool = False, after: str = "", limit: int = 100) -> list[TargetRecord]:
        if not lookup.can_exist(tenant, after):
            return []
        return self._database.read(lambda t: targets.page(t, tenant, blocked, after, limit))

    def line(self, tenant: str, target: str, limit: int = 20) -> list[JobRecord]:
        def work(t: Transaction) -> list[JobRecord]:
            rows = t.all("line_of", tenant=tenant, name=target, most=limit)
            return [job_of(row, self._dimensions.policy(t, row["policy"])) for row in rows]

        return self._database.read(work) if lookup.can_exist(tenant, target) else []

    def _control(
        self,
        tenant: str,
        job: str,
        by: str,
        name: str,
        step: Callable[[Control, Transaction], JobRecord | Again],
        **detail: Any,
    ) -> JobRecord:
        """A job that keeps moving under our eyes is looked at again, each time in a new transaction."""

        def work(t: Transaction) -> JobRecord | Again:
            record = step(verb, t)
            if not isinstance(record, Again):
                audit.note(t, by, f"jobs.{name}", job, tenant, detail)
            return record

        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        verb = Control(self._dimensions, tenant, job, by)
        for _ in range(LOOKS):
            record = self._database.write(work)
            if not isinstance(record, Again):
                return record
        raise StoreBusy(f"job {job} kept moving between states; nothing was written, try again")

    def give_order(self, worker: int, kind: OrderKind, subject: str, by: str) -> WorkerOrder:
        return self._audited(
            lambda t: orders.give(t, worker, kind, subject, by), by, f"workers.{kind}", subject or str(worker)
        )

    def order(self, number: int) -> WorkerOrder | None:
        return self._database.read(lambda t: orders.given(t, number))

    def holder(self, tenant: str, job: str) -> Holder | None:
        if not lookup.can_exist(tenant, job):
            return None
        row = self._database.read(lambda t: t.one("holder", tenant=tenant, uid=job))
        return None if row is None else Holder(row["worker"], ref_of(row))

    # --- flow: events, approvals ------------------------------------------------------------------------------------

    def signal(
        self, tenant: str, event: str, payload: str, by: str, *, job: str | None = None, topic: str | None = None
    ) -> Signalled:
        if (job is None) == (topic is None):
            raise InvalidInput("an event is sent to a job or to a topic: one of the two")
        if job is not None and not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        waits.check_event(event, payload, topic)

        def work(t: Transaction) -> tuple[Signalled, bool]:
            sent = waits.signal(t, tenant, event, payload, by, job, topic)
            subject = job if topic is None else f"topic {topic}"
            audit.note(t, by, "events.send", subject or "", tenant, {"event": event, "answers": sent.job})
            return sent, sent.job is not None

        return self._waking(work)

    def decide(
        self, tenant: str, job: str, answer: Answer, by: str, comment: str | None = None, *, key: str | None = None
    ) -> WaitRecord:
        if answer not in (Answer.APPROVED, Answer.REJECTED):
            raise InvalidInput(f"an approval is approved or rejected, not {answer}")
        if not lookup.can_exist(tenant, job, key):
            raise UnknownJob(clean_text(job, MAX_NAME))
        verb = "approvals.approve" if answer is Answer.APPROVED else "approvals.reject"

        def work(t: Transaction) -> tuple[WaitRecord, bool]:
            record = waits.decide(t, tenant, job, answer, by, comment, key)
            audit.note(t, by, verb, job, tenant, {"question": record.wait.name, "comment": comment})
            return record, True

        return self._waking(work)

    def open_waits(
        self, tenant: str | None = None, *, kind: str = "approval", after: str = "", limit: int = 100
    ) -> list[WaitRecord]:
        if not lookup.can_exist(tenant, kind, after):
            return []
        return self._database.read(lambda t: waits.page(t, tenant, kind, after, limit))

    def waits_of(self, tenant: str, job: str) -> list[WaitRecord]:
        return self._read_job(tenant, job, lambda t: waits.of_job(t, tenant, job))

    def expire_waits(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Batch after batch, up to a bound, as stays in the queue; each round goes on behind the last: what somebody
        holds keeps its timer, and nobody else waiting."""
        moved, after = 0, (0, 0)
        for _ in range(EXPIRE_ROUNDS):
            due = self._database.read(partial(waits.due, after=after, batch=batch))
            moved += self._expire_waits([(row["due_at"], row["job"]) for row in due if not row["is_orphan"]])
            if any(row["is_orphan"] for row in due):
                self._database.write(lambda t: t.run("drop_orphan_timers", kind="wait"))
            if len(due) < batch or enough():
                break
            after = due[-1]["due_at"], due[-1]["job"]
        return moved

    def _expire_waits(self, timers: Sequence[tuple[int, int]]) -> int:
        moved, errors = self._isolation.each(timers, lambda t, some: waits.expire(t, self._tools, some))
        self.quarantine("wait", {job: error for (_, job), error in errors.items()}, BY_JANITOR)
        return moved

    def next_wait(self) -> float | None:
        return self._database.read(waits.next_end)

    def forget_letters(self, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_letters", batch=batch))

    # --- order: pauses, limits, tenants ---------------------------------------------------------------------------

    def pause(self, pause: Pause) -> Pause:
        until = pause.until_at.isoformat() if pause.until_at else None
        detail = {"reason": pause.reason, "until": until}
        noted = (pause.by, f"{pause.kind}s.pause", pause.name, pause.tenant, detail)
        return self._audited(lambda t: gates.pause(t, pause), *noted)

    def unpause(self, kind: PauseKind, name: str, tenant: str, by: str = "") -> bool:
        noted = (by, f"{kind}s.unpause", name, tenant)
        return self._hinting(self._audited(lambda t: gates.unpause(t, kind, name, tenant), *noted))

    def pauses(self, tenant: str | None = None) -> list[Pause]:
        return self._database.read(lambda t: gates.pauses(t, tenant)) if lookup.can_exist(tenant) else []

    def set_limit(self, limit: Limit) -> Limit:
        parts = {
            "concurrency": limit.concurrency,
            "rate": limit.rate,
            "per": limit.per,
            "max_queued": limit.max_queued,
        }
        noted = (limit.by, f"{limit.kind}s.limit", limit.name, limit.tenant, parts)
        return self._hinting(self._audited(lambda t: gates.set_limit(t, limit), *noted))

    def change_limit(self, limit: Limit, parts: Collection[LimitPart]) -> Limit | None:
        said: dict[str, Any] = {part: getattr(limit, part) for part in sorted(parts)}
        noted = (limit.by, f"{limit.kind}s.limit", limit.name, limit.tenant, said)
        changed = self._audited(lambda t: gates.change_limit(t, limit, parts), *noted)
        self._database.hint()  # also when it is gone
        return changed

    def remove_limit(self, kind: LimitKind, name: str, tenant: str, by: str = "") -> bool:
        noted = (by, f"{kind}s.unlimit", name, tenant)
        return self._hinting(self._audited(lambda t: gates.remove_limit(t, kind, name, tenant), *noted))

    def limits(self, tenant: str | None = None) -> list[Limit]:
        return self._database.read(lambda t: gates.limits(t, tenant)) if lookup.can_exist(tenant) else []

    def set_tenant(self, name: str, weight: int, by: str) -> TenantRecord:
        noted = (by, "tenants.weight", name, name, {"weight": weight})
        return self._audited(lambda t: gates.set_tenant(t, name, weight, by), *noted)

    def tenants(self, after: str = "", limit: int = 100) -> list[TenantRecord]:
        return self._database.read(lambda t: gates.tenants(t, after, limit)) if lookup.can_exist(after) else []

    def tenant(self, name: str) -> TenantRecord | None:
        return self._database.read(lambda t: gates.tenant(t, name)) if lookup.can_exist(name) else None

    # --- guard: blacklist, settings, notifications, audit ----------------------------------------------------------

    def blacklist(self, tenant: str | None = None) -> list[BlacklistEntry]:
        return self._database.read(lambda t: guard.active(t, tenant)) if lookup.can_exist(tenant) else []

    def blacklist_add(self, tenant: str, workflow: str, reason: str, by: str) -> tuple[BlacklistEntry, bool]:
        return self._database.write(lambda t: guard.add(t, tenant, workflow, reason, by))

    def blacklist_remove(self, tenant: str | None, workflow: str, by: str) -> list[BlacklistEntry]:
        if not lookup.can_exist(tenant, workflow):
            return []
        removed = self._database.write(lambda t: guard.lift(t, tenant, workflow, by))
        if removed:
            try:
                self._release_barred(batch=500)
            except StoreError as problem:  # the entry is gone all the same: any janitor does the rest
                emit("store.blacklist.release_left", workflow=workflow, problem=str(problem)[:200])
        return self._hinting(removed)

    def blacklist_history(
        self, tenant: str | None = None, workflow: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BlacklistEntry]:
        if not lookup.can_exist(tenant, workflow):
            return []
        return self._database.read(lambda t: guard.history(t, tenant, workflow, before, limit))

    def marks_against(self, tenant: str, workflow: str) -> int:
        if not lookup.can_exist(tenant, workflow):
            return 0
        return self._database.read(lambda t: guard.marks_against(t, tenant, workflow))

    def settings(self) -> list[SettingRecord]:
        return self._database.read(guard.settings)

    def set_setting(self, name: str, value: str | None, by: str) -> SettingRecord:
        return self._database.write(lambda t: guard.change_setting(t, name, value, by))

    def notifications(
        self, tenant: str | None = None, *, acked: bool = False, before: int | None = None, limit: int = 100
    ) -> list[Notification]:
        if not lookup.can_exist(tenant):
            return []
        return self._database.read(lambda t: audit.notifications(t, tenant, acked, before, limit))

    def ack_notification(self, number: int, by: str) -> Notification:
        return self._database.write(lambda t: audit.ack(t, number, by))

    # --- quarantine -----------------------------------------------------------------------------------------------

    def quarantine(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> None:
        if errors:
            self._database.write(lambda t: quarantine.put(t, duty, errors, by))

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        self._database.write(lambda t: t.run("leave_quarantine", duty=duty, item=item))

    def quarantine_due(self, duty: QuarantineDuty, batch: int = 100) -> list[int]:
        rows = self._database.read(lambda t: t.all("quarantine_due", duty=duty, batch=batch))
        return [row["item"] for row in rows]

    def quarantined(
        self,
        tenant: str | None = None,
        *,
        job: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[Quarantined]:
        if not lookup.can_exist(tenant, job):
            return []
        return self._database.read(lambda t: quarantine.page(t, tenant, job, after, limit))

    def retry_quarantined(
        self,
        duty: QuarantineDuty | None = None,
        item: int | None = None,
        *,
        job: str = "all",
        tenant: str = EVERY,
        by: str = "",
    ) -> int:
        def work(t: Transaction) -> int:
            count = t.run("retry_quarantined", duty=duty, item=item)
            if count:
                audit.note(t, by, "quarantine.retry", job, tenant)
            return count

        return self._database.write(work)

    def audit(
        self,
        tenant: str | None = None,
        *,
        verb: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Action]:
        if not lookup.can_exist(tenant, verb, subject):
            return []
        return self._database.read(lambda t: audit.actions(t, tenant, verb, subject, before, limit))

    def tend_children(self, batch: int = 100, *, enough: Enough = never) -> int:
        """Each in a transaction of its own: it needs the locks of its own target and attempt. One that keeps moving,
        or that somebody holds, is left for the next time, and keeps nobody waiting."""
        moved, after = 0, (0, 0)
        for _ in range(TEND_ROUNDS):
            rows = self._database.read(partial(children.left_ones, after=after, batch=batch))
            for row in rows:
                moved += self._tend_or_set_aside(row)
                if enough():
                    return self._hinting(moved)
            if len(rows) < batch or moved >= batch:
                break
            after = rows[-1]["left_at"], rows[-1]["child"]
        return self._hinting(moved)

    def _tend_or_set_aside(self, row: Row) -> bool:
        try:
            return self._tend_child(row)
        except AWAY:
            raise
        except Exception as problem:
            self.quarantine("children", {row["child"]: quarantine.reason(problem)}, BY_JANITOR)
            return False

    def _tend_again(self, batch: int) -> int:
        moved = 0
        for child in self.quarantine_due("children", batch)[:MOST_FAILURES]:
            row = self._database.read(partial(_left_child, child=child))
            self.leave_quarantine("children", child)  # it comes back if it fails again
            moved += self._tend_or_set_aside(row) if row else 0
        return self._hinting(moved)

    def _tend_child(self, row: Row) -> bool:
        def work(t: Transaction) -> bool | Again:
            """Its mark goes with the cancel, or because it has ended by itself."""
            if not children.hold(t, row):
                return False
            try:
                stopped: JobRecord | Again | None = verb.stop(t, Move.CANCEL, children.reason(row))
            except (IllegalMove, UnknownJob):
                stopped = None
            if isinstance(stopped, Again):
                return stopped
            t.run("tended", child=row["child"])
            return stopped is not None

        verb = Control(self._dimensions, row["tenant"], row["uid"], f"parent {row['parent_uid'] or ''}".strip())
        for _ in range(LOOKS):
            moved = self._database.write(work, patience=isolation.IMPATIENCE)
            if not isinstance(moved, Again):
                return moved
        return False

    def tend_guard(self, batch: int = 500, *, enough: Enough = never) -> int:
        """The look first: where nothing is blacklisted, SQLite's write lock is not asked for."""
        use = _only(self._database.read(lambda t: t.one("guard_in_use")))
        moved = self._tend_probes() if use["has_entries"] else 0
        moved += self._refuse_barred(batch, enough) if use["has_entries"] else 0
        return moved + (self._release_barred(batch, enough) if use["has_held"] else 0)

    def _refuse_barred(self, batch: int, enough: Enough = never) -> int:
        return self._rounds(blacklist_sweep.at_the_gate, blacklist_sweep.refuse, batch, enough)

    def _release_barred(self, batch: int, enough: Enough = never) -> int:
        return self._rounds(blacklist_sweep.freed, blacklist_sweep.release, batch, enough)

    def _tend_probes(self) -> int:
        """A transaction each: whoever holds an entry asks for no lock that comes before it."""
        probes, due = self._database.read(lambda t: (t.all("probes"), blacklist_sweep.due_for_probe(t)))
        moved = sum(self._tend_probe(partial(blacklist_sweep.judge, probe=probe)) for probe in probes)
        return moved + sum(
            self._tend_probe(partial(blacklist_sweep.send, tools=self._tools, entry=one)) for one in due
        )

    def _tend_probe(self, work: Callable[[Transaction], tuple[int, bool]]) -> int:
        """One that cannot be judged now keeps neither the others nor the blacklist from their turn."""
        try:
            return self._waking(work, isolation.PATIENCE)
        except blacklist_sweep.Lifted:
            return 0  # rolled back; the next sweep sees how things stand then
        except AWAY:
            raise
        except Exception as error:
            emit("store.probe_kept", level=logging.WARNING, problem=isolation.problem_of(error))
            return 0

    def _rounds(
        self,
        look: Callable[..., list[blacklist_sweep.Barred]],
        act: Callable[[Transaction, Settling, Sequence[blacklist_sweep.Barred]], tuple[list[int], bool]],
        batch: int,
        enough: Enough,
    ) -> int:
        def move(t: Transaction, jobs: Sequence[blacklist_sweep.Barred]) -> tuple[list[int], bool]:
            try:
                return act(t, self._tools, jobs)
            except blacklist_sweep.Lifted:
                raise isolation.Undone from None  # the next sweep sees how things stand then

        sweeping = isolation.Sweep(self._database, "blacklist")
        moved = 0
        for _ in range(GUARD_ROUNDS):
            found = self._database.read(partial(look, batch=batch, aside=False))
            some = len(sweeping.move(found, move))
            moved += some
            if not some or enough():
                break
        if self.quarantine_due("blacklist", 1):
            again = self._database.read(partial(look, batch=isolation.RETRIED, aside=True))
            moved += len(sweeping.again(again, move))
        return moved

    # --- time -----------------------------------------------------------------------------------------------------

    def recover_lost(self, lost_grace: float, batch: int = 500, *, enough: Enough = never) -> list[Recovered]:
        if self._database.dialect == "sqlite":
            # It answers reads while somebody keeps its write lock: a sweep that only looks would miss the outage, and
            # take jobs from workers that could not renew.
            self.probe()
        found: list[Recovered] = []
        after = 0
        while len(found) < batch and (workers := self._lost_workers(lost_grace, after)):
            for worker in workers:
                found += self._recover(worker["id"], lost_grace, batch - len(found))
            after = workers[-1]["id"]
            if enough():
                return found
        found += self._recover_again(lost_grace)
        self._mark_silent(lost_grace, enough)
        self._leave_stale(enough)
        return found

    def _lost_workers(self, lost_grace: float, after: int) -> list[Row]:
        return self._database.read(lambda t: t.all("lost_workers", grace=span(lost_grace), after=after))

    def _recover(self, worker: int, lost_grace: float, batch: int) -> list[Recovered]:
        """One worker's, some at a time: whatever happens to one of them undoes the rescue of nobody else."""
        found: list[Recovered] = []
        after = 0
        while len(found) < batch and (jobs := self._attempts_of(worker, after, batch - len(found))):
            lost = [sweep.LostAttempt(worker, job) for job in jobs]
            found += isolation.Sweep(self._database, "recover").move(lost, self._recovery_of(worker, lost_grace))
            after = jobs[-1]
        return found

    def _recovery_of(
        self, worker: int, lost_grace: float
    ) -> Callable[[Transaction, Sequence[sweep.LostAttempt]], tuple[list[Recovered], bool]]:
        return lambda t, some: sweep.recover_lost(t, self._tools, lost_grace, worker, some)

    def _recover_again(self, lost_grace: float) -> list[Recovered]:
        facts = {"duty": "recover", "batch": isolation.RETRIED}
        rows = self._database.read(lambda t: t.all("aside_attempts", **facts))
        sweeping = isolation.Sweep(self._database, "recover")
        return [
            found
            for row in rows
            for found in sweeping.again(
                [sweep.LostAttempt(row["worker"], row["job"])], self._recovery_of(row["worker"], lost_grace)
            )
        ]

    def _mark_silent(self, lost_grace: float, enough: Enough) -> None:
        """After the rescue of their jobs, and many at a time: those that have none keep nobody's rescue waiting."""
        grace, after = span(lost_grace), 0

        def act(workers: Sequence[int], patience: float) -> None:
            facts = {"workers": list(workers), "grace": grace}
            self._database.write(lambda t: t.run("mark_lost", **facts), patience=patience)

        def look(t: Transaction) -> list[Row]:
            return t.all("silent_workers", grace=grace, after=after, batch=isolation.AT_ONCE)

        while rows := self._database.read(look):
            for worker, error in isolation.in_parts([row["id"] for row in rows], act).items():
                emit("store.not_marked", level=logging.WARNING, worker=worker, problem=isolation.problem_of(error))
            after = rows[-1]["id"]
            if enough():
                break

    def _leave_stale(self, enough: Enough) -> None:
        """What is set aside for something that nobody has to do any more leaves the quarantine."""
        left = 0

        def act(stale: Sequence[tuple[str, int]], patience: float) -> None:
            def work(t: Transaction) -> int:
                by_duty = {duty: [item for of, item in stale if of == duty] for duty, _ in stale}
                return sum(len(t.all("take_quarantined", duty=duty, items=items)) for duty, items in by_duty.items())

            nonlocal left
            left += self._database.write(work, patience=patience)

        while rows := self._database.read(lambda t: t.all("stale_quarantine", batch=isolation.AT_ONCE)):
            left = 0
            for (duty, item), error in isolation.in_parts([(r["duty"], r["item"]) for r in rows], act).items():
                problem = isolation.problem_of(error)
                emit("store.not_left", level=logging.WARNING, duty=duty, item=item, problem=problem)
            if left < isolation.AT_ONCE or enough():
                break

    def convict_overdue(self, kill_grace: float, lease: float, batch: int = 500) -> list[Recovered]:
        def look(t: Transaction) -> tuple[list[Row], list[Row]]:
            overdue = t.all("overdue_jobs", margin=span(kill_grace + lease), batch=batch)
            return overdue, t.all("aside_attempts", duty="overdue", batch=isolation.RETRIED)

        def act(t: Transaction, some: Sequence[sweep.Queued]) -> tuple[list[Recovered], bool]:
            return sweep.convict_overdue(t, self._tools, kill_grace, lease, some)

        found, aside = self._database.read(look)
        sweeping = isolation.Sweep(self._database, "overdue")
        moved = sweeping.move([sweep.Queued(row["job"]) for row in found], act)
        return moved + sweeping.again([sweep.Queued(row["job"]) for row in aside], act)

    def expire_worker(self, worker: int, seen_lease_until: datetime, reason: str) -> bool:
        facts = {"worker": worker, "seen": microseconds(seen_lease_until), "reason": clean_text(reason, 1000)}
        return self._database.write(lambda t: t.run("expire_worker", **facts)) == 1

    def release_due(self, batch: int = 1000, *, enough: Enough = never) -> int:
        self._keep_appointments(batch, enough)
        # Two transactions: targets are locked before timers, by everybody.
        released = self._sweep("target", partial(targets.ended_pauses, batch=batch), targets.end_pauses, batch)
        released += len(self._ring("start", sweep.release_due, batch, rounds=1))
        expired = self._ring(
            "expire",
            lambda t, some: sweep.expire_stays(t, self._tools, some),
            batch,
            rounds=EXPIRE_ROUNDS,
            enough=enough,
        )
        return released + sum(expired)

    def _keep_appointments(self, batch: int, enough: Enough) -> None:
        """The clock has leapt: what was to begin or to end at an instant of it does so by the new one."""
        if self._database.dialect == "sqlite":
            self._database.check_clock()
        writing = span(2 * self._database.store_call)
        if (unmoved := self._database.read(lambda t: t.one("clock_unmoved", writing=writing))) is None:
            return
        if stays_wrong := self._database.read(lambda t: t.one("wrong_pauses")) is not None:
            self._database.write(lambda t: t.run("move_appointed_pauses"))
        after = 0
        while jobs := self._database.read(partial(leaps.wrong_appointments, after=after, batch=batch)):
            isolation.in_parts(jobs, self._move_appointments)
            after = jobs[-1]
            if enough():
                return
        if unmoved["is_settled"] and not after and not stays_wrong:
            self._database.write(lambda t: t.run("appointments_moved", ahead=unmoved["ahead"]))

    def _move_appointments(self, jobs: Sequence[int], patience: float) -> None:
        self._database.write(lambda t: leaps.move_appointments(t, jobs), patience=patience)

    def _ring(
        self,
        kind: Literal["start", "expire"],
        act: Callable[[Transaction, Sequence[sweep.Timer]], tuple[list[T], bool]],
        batch: int,
        *,
        rounds: int,
        enough: Enough = never,
    ) -> list[T]:
        """Timers that came due, batch after batch up to a bound: neither those that somebody holds nor those of stays
        that ended well hold up the others."""

        def look(t: Transaction) -> list[sweep.Timer]:
            rows = t.all("due_timers", kind=kind, after_due=after[0], after_job=after[1], batch=batch)
            return [sweep.Timer(row["due_at"], row["job"]) for row in rows]

        def look_aside(t: Transaction) -> list[sweep.Timer]:
            rows = t.all("aside_timers", kind=kind, batch=isolation.RETRIED)
            return [sweep.Timer(row["due_at"], row["job"]) for row in rows]

        sweeping = isolation.Sweep(self._database, kind)
        moved: list[T] = []
        after = sweep.Timer(0, 0)
        found, aside = self._database.read(lambda t: (look(t), look_aside(t)))
        while found:
            moved += sweeping.move(found, act, at_once=batch)
            rounds -= bool(moved)
            if len(found) < batch or rounds <= 0 or enough():
                break
            after = found[-1]
            found = self._database.read(look)
        return moved + sweeping.again(aside, act)

    def unread_sessions(self, unread_for: float) -> list[ServerSession]:
        return sessions.unread(self._database, unread_for)

    def end_unread_session(self, session: ServerSession) -> bool:
        return sessions.end(self._database, session)

    def lift_holds(self, margin: float, batch: int = 500) -> int:
        def lift(t: Transaction, jobs: Sequence[int]) -> tuple[int, bool]:
            return targets.lift_holds(t, margin, jobs)

        liftable = partial(targets.liftable_holds, margin=margin, batch=batch)
        return self._isolation.try_again("hold", lift, BY_JANITOR, batch) + self._sweep("hold", liftable, lift, batch)

    def _sweep(self, duty: QuarantineDuty, look: Callable[..., list[int]], act: Act[int], batch: int) -> int:
        """Batch after batch, up to a bound, each behind the last: what somebody holds is left for another time, and
        keeps nobody waiting."""
        moved, after = 0, 0
        for _ in range(SWEEP_ROUNDS):
            found = self._database.read(partial(look, after=after))
            moved += self._isolation.sweep(duty, found, act, BY_JANITOR) if found else 0
            if len(found) < batch:
                break
            after = found[-1]
        return moved

    def lift_hold(self, worker: int, job: int) -> bool:
        return self._waking(lambda t: targets.lift_hold(t, worker, job)) == 1

    def ended_before(self, retention: float, after: Ended = FIRST_ENDED, limit: int = 1000) -> list[Ended]:
        return self._database.read(lambda t: sweep.ended_before(t, retention, after, limit))

    def forget_jobs(self, jobs: Sequence[int], retention: float) -> int:
        wanted = list(jobs)
        return self._database.write(lambda t: sweep.forget_jobs(t, wanted, retention))

    def forget_ended(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: sweep.forget_ended(t, retention, batch))

    def forget_keys(self, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_keys", batch=batch))

    def forget_starts(self, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_starts", batch=batch))

    def waits(self, after: int = 0, limit: int = 1000) -> WaitingRoutes:
        return self._database.read(lambda t: gates.waits(t, after, limit))

    def keep_code_limits(self) -> int:
        return gates.keep_code_limits(self._database)[0]

    def note_known(self) -> int:
        return self._database.write(orphans.note_known)

    def fail_orphans(self, route: int, orphan_after: float, batch: int = 500) -> int:
        def look(t: Transaction) -> tuple[list[Row], list[Row]]:
            found = t.all("orphans_waiting", route=route, age=span(orphan_after), batch=batch)
            return found, t.all("aside_orphans", route=route, batch=isolation.RETRIED)

        def act(t: Transaction, some: Sequence[sweep.Queued]) -> tuple[list[int], bool]:
            return orphans.fail_orphans(t, self._tools, route, orphan_after, some)

        found, aside = self._database.read(look)
        sweeping = isolation.Sweep(self._database, "orphan")
        failed = sweeping.move([sweep.Queued(row["job"]) for row in found], act)
        return len(failed) + len(sweeping.again([sweep.Queued(row["job"]) for row in aside], act))

    def forget_workers(self, retention: float, batch: int = 100) -> int:
        return self._database.write(lambda t: sweep.forget_workers(t, retention, batch))

    def forget_marks(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: guard.forget_marks(t, retention, batch))

    def forget_audit(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_audit", retention=span(retention), batch=batch))

    def forget_orders(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_orders", retention=span(retention), batch=batch))

    def forget_names(self, kind: NameKind, before: datetime, batch: int = 1000) -> int:
        return self._database.write(lambda t: sweep.forget_names(t, kind, microseconds(before), batch))

    def forget_workflows(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_workflows", retention=span(retention), batch=batch))

    def forget_breakers(self, batch: int = 1000) -> int:
        return self._database.write(lambda t: t.run("forget_breakers", batch=batch))

    def forget_feed(self, kept: float, batch: int = 5000) -> int:
        return feed.forget(self._database, kept, batch)

    # --- observe --------------------------------------------------------------------------------------------------

    def get(self, tenant: str, job: str) -> JobRecord | None:
        def work(t: Transaction) -> JobRecord | None:
            row = t.one("job", tenant=tenant, uid=job)
            return None if row is None else job_of(row, self._dimensions.policy(t, row["policy"]))

        return self._database.read(work) if lookup.can_exist(tenant, job) else None

    def find(self, tenant: str, prefix: str, limit: int = 5) -> list[str]:
        if not lookup.can_exist(tenant, prefix):
            return []
        facts = {"tenant": tenant, "prefix": prefix, "beyond": prefix + "\U0010ffff", "most": limit}
        return [row["uid"] for row in self._database.read(lambda t: t.all("find", **facts))]

    def history(self, tenant: str, job: str, after: int = 0, limit: int = HISTORY_PAGE) -> list[EventRecord]:
        if not lookup.can_exist(tenant, job):
            return []
        facts = {"tenant": tenant, "uid": job, "after": after, "most": limit}
        return [event_of(row) for row in self._database.read(lambda t: t.all("history", **facts))]

    def sequence(self, kept: float = 86400.0) -> int:
        return feed.sequence(self._database, kept)

    def feed(self, after: str, wanted: FeedFilter, limit: int = 1000) -> FeedPage:
        if not lookup.can_exist(wanted.tenant, wanted.job, wanted.workflow, *wanted.kinds):
            wanted = FeedFilter(tenant="", job="")  # nothing is called so; the cursor moves on all the same
        return self._database.read(lambda t: feed.page(t, after, wanted, limit))

    def feed_bounds(self) -> FeedBounds:
        return self._database.read(feed.bounds)

    def attempts(self, tenant: str, job: str, after: int = 0, limit: int = ATTEMPTS_PAGE) -> list[AttemptRecord]:
        def work(t: Transaction) -> tuple[list[Row], list[Row]]:
            return t.all("events_of_attempts", **facts), t.all("outputs", **facts)

        facts = {"tenant": tenant, "uid": job, "after": after, "upto": after + limit}

        if not lookup.can_exist(tenant, job):
            return []
        events, outputs = self._database.read(work)
        return attempts_of([event_of(row) for row in events], outputs)

    def progress_of(self, tenant: str, job: str) -> str | None:
        if not lookup.can_exist(tenant, job):
            return None
        row = self._database.read(lambda t: t.one("progress_of", tenant=tenant, uid=job))
        return None if row is None else str(row["value"])

    def steps_of(self, tenant: str, job: str) -> list[StepRecord]:
        return self._read_job(tenant, job, lambda t: journals.steps_of(t, tenant, job))

    def parts_of(self, tenant: str, job: str, after: int = 0, limit: int = MOST_PARTS) -> list[Part]:
        return self._read_job(tenant, job, lambda t: parts.parts_of(t, tenant, job, after, limit))

    def count_parts(self, tenant: str, job: str) -> int:
        return self._read_job(tenant, job, lambda t: parts.count(t, tenant, job))

    def usage_of(self, tenant: str, job: str) -> Spent:
        return self._read_job(tenant, job, lambda t: usage.usage_of(t, self._dimensions, tenant, job))

    def children_of(self, tenant: str, job: str) -> list[Child]:
        return self._read_job(tenant, job, lambda t: children.children_of(t, tenant, job))

    def parent_of(self, tenant: str, job: str) -> str | None:
        return self._read_job(tenant, job, lambda t: children.parent_of(t, tenant, job))

    def _read_job(self, tenant: str, job: str, look: Callable[[Transaction], T]) -> T:
        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        return self._database.read(look)

    def jobs(self, tenant: str, filter: JobFilter, limit: int = 50, after: str | None = None) -> JobPage:
        names = (tenant, filter.workflow, filter.queue, filter.error_type, filter.target, filter.tag)
        if not lookup.can_exist(*names):
            return JobPage(())
        return self._database.read(lambda t: lookup.page(t, self._dimensions, tenant, filter, limit, after))

    def counts(self, tenant: str | None = None, ceiling: int = 10_000) -> dict[JobState, int]:
        return self.tally(tenant, ceiling).states

    def tally(self, tenant: str | None = None, ceiling: int = 10_000) -> Tally:
        if not lookup.can_exist(tenant):
            return Tally(tenant or "", dict.fromkeys(JobState, 0))
        return self._database.read(lambda t: tally.tally(t, tenant, ceiling))

    def tallies(
        self, by: TallyBy, tenant: str = "", *, after: str = "", limit: int = 20, ceiling: int = 10_000
    ) -> list[Tally]:
        if not lookup.can_exist(tenant, after):
            return []
        names = self._database.read(lambda t: tally.names(t, by, tenant, after, limit))
        # A transaction each: together they may take longer than one call is given.
        one = partial(tally.tally_by, by=by, tenant=tenant, ceiling=ceiling)
        return [self._database.read(partial(one, name=name)) for name in names]

    def workers(self, after: int = 0, limit: int = 1000, *, ended_within: float | None = None) -> list[WorkerRecord]:
        return self._database.read(lambda t: lookup.workers(t, after, limit, ended_within))

    def live_workers(self, host: tuple[str, str] | None = None) -> list[WorkerRecord]:
        boot_id, pid_namespace = host or (None, None)
        facts = {"boot_id": boot_id, "pid_namespace": pid_namespace}
        return [worker_of(row) for row in self._database.read(lambda t: t.all("live_workers", **facts))]

    def standing(self, tenant: str, job: str) -> Facts | None:
        if not lookup.can_exist(tenant, job):
            return None
        return self._database.read(lambda t: why.standing(t, self._dimensions, tenant, job))

    def lock_holders(self, longer: float) -> list[LockHolder]:
        if self._database.dialect != "postgres":
            return []
        return self._database.read(lambda t: locks.holders(t, longer))

    def overdue(self, late: float, backstop: float) -> list[Overdue]:
        rows = self._database.read(lambda t: t.all("overdue", late=span(late), backstop=span(backstop)))
        return [
            Overdue(row["what"], instant(row["due_at"]), row["tenant"] or "", row["uid"], row["worker"])
            for row in rows
        ]

    def inbox_stand(self, ceiling: int = 10_000) -> InboxStand:
        row = _only(self._database.read(lambda t: t.one("inbox_stand", ceiling=ceiling)))
        return InboxStand(instant_or_none(row["since_at"]), row["entries"])

    def clock_stand(self) -> ClockStand:
        row = _only(self._database.read(lambda t: t.one("clock_stand")))
        leap = (row["leap"] or 0) / 1_000_000
        at = instant_or_none(row["leapt_at"])
        return ClockStand(row["ahead"] / 1_000_000, row["leaps"], leap, at, row["noticed"] or "")

    # --- wake-ups and schema --------------------------------------------------------------------------------------

    def wait_for_work(self, timeout: float) -> bool:
        return self._database.wait(timeout)

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def probe(self) -> None:
        self._database.write(lambda t: t.run("probe"))

    def schema_version(self) -> int:
        return self._database.schema_version()

    def close(self) -> None:
        self._database.close()

    # --- steps ----------------------------------------------------------------------------------------------------

    def _with_numbers(
        self, jobs: Sequence[NewJob], work: Callable[[Transaction, Numbers], T], patience: float | None = None
    ) -> T:
        """What these jobs refer to, and then the write. Names that grew old on the way are looked up once more."""
        for _ in range(LOOKS):
            try:
                return self._write_with_numbers(jobs, work, patience)
            except StaleNames:
                self._dimensions.forget()
        raise StoreBusy("the names of these jobs grew old on their way each time; nothing was written, try again")

    def _write_with_numbers(
        self, jobs: Sequence[NewJob], work: Callable[[Transaction, Numbers], T], patience: float | None
    ) -> T:
        numbers = self._dimensions.ensure(self._database, jobs, lambda t: submit.expect(t, jobs))
        return self._database.write(lambda t: work(t, numbers), patience=patience)

    def _audited(
        self,
        work: Callable[[Transaction], T],
        by: str,
        verb: str,
        subject: str,
        tenant: str = EVERY,
        detail: Mapping[str, Any] | None = None,
    ) -> T:
        """What an operator does and the line that says so are one transaction; what changed nothing leaves none."""

        def both(t: Transaction) -> T:
            answer = work(t)
            if answer is not False:
                audit.note(t, by, verb, subject, tenant, detail)
            return answer

        return self._database.write(both)

    def _waking(self, work: Callable[[Transaction], tuple[T, bool]], patience: float | None = None) -> T:
        """Once it is committed that a job became claimable, say so."""
        answer, woke = self._database.write(work, patience=patience)
        if woke:
            self._database.hint()
        return answer

    def _hinting(self, moved: T) -> T:
        """Once something is committed that may let a job start, say so."""
        if moved:
            self._database.hint()
        return moved

    def _known_worker(self, worker: int) -> Row | None:
        """Name and host of an incarnation never change. Its code version does with each import, and is what it
        registered last."""
        known = self._named.get(worker)
        if (
            known is None
            and (known := self._database.read(lambda t: t.one("worker_named", worker=worker))) is not None
        ):
            self._named[worker] = known
        return known


def _register_worker(t: Transaction, worker: NewWorker) -> WorkerRecord:
    t.run(
        "register_worker",
        incarnation=worker.incarnation,
        name=worker.name,
        host=worker.host,
        boot_id=worker.boot_id,
        pid_namespace=worker.pid_namespace,
        pid=worker.pid,
        pid_start=worker.pid_start,
        queues=packed(worker.queues),
        code_version=worker.code_version,
        lease=span(worker.lease),
        info=packed(worker.info),
        boot_at=span(boot()),
    )
    row = t.one("worker_by_incarnation", incarnation=worker.incarnation)
    if row is None:
        raise UnknownWorker(worker.name)
    return worker_of(row)


def _left_child(t: Transaction, child: int) -> Row | None:
    return t.one("left_child", child=child)


def _only(row: Row | None) -> Row:
    assert row is not None
    return row
