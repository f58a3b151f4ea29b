"""What executors say, written into the state of the worker."""

from __future__ import annotations

import logging

from unstuck.clock import wall
from unstuck.model.errors import InvalidSettings
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Stopped, Stuck
from unstuck.store.port import Report
from unstuck.telemetry import emit
from unstuck.worker.blame import reports_on_death, was_alone, why_it_went
from unstuck.worker.flow_calls import FlowCallRunner
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.parts import ClaimerPort
from unstuck.worker.processes import (
    ExecutorDied,
    ExecutorReady,
    Finished,
    FleetEvent,
    FlowCall,
    HandlerOutput,
    Imported,
    ImportFailed,
    LeftBehind,
    Recalled,
    Started,
    ZygoteDied,
)
from unstuck.worker.roster import Post, Recycled
from unstuck.worker.served import Declared, Served, signed_only
from unstuck.worker.settle import Settler
from unstuck.worker.start_failures import died_young, never_began
from unstuck.worker.state import WorkerState

#: After a zygote's death suspects run one at a time for so long: the job that did it has shown itself by then.
WARY_FOR = 120.0


class FleetEventHandler:
    def __init__(
        self,
        state: WorkerState,
        claimer: ClaimerPort,
        settler: Settler,
        flow_calls: FlowCallRunner,
        queues: tuple[str, ...],
        keys: HeldKeys | None = None,
    ) -> None:
        self._state = state
        self._flow_calls = flow_calls
        self._claimer = claimer
        self._settler = settler
        self._queues = queues
        self._keys = HeldKeys() if keys is None else keys  # falsy: it has nothing to do with signatures here

    def hear(self, event: FleetEvent, now: float) -> None:
        """One event that cannot be digested must not take the others of its batch with it."""
        try:
            if type(event) is Finished:
                self._on_finished(event, now)
            else:
                self._on(event, now)
        except Exception:
            logging.getLogger("unstuck").exception("could not digest %s", type(event).__name__)

    def _on(self, event: FleetEvent, now: float) -> None:
        match event:
            case Started():
                self._on_started(event, now)
            case Recalled():
                self._on_recalled(event, now)
            case HandlerOutput():
                self._on_output(event)
            case FlowCall():
                self._flow_calls.take(event)
            case ExecutorReady():
                self._on_ready(event, now)
            case ExecutorDied():
                self._on_died(event, now)
            case LeftBehind():
                self._on_left_behind(event)
            case Imported():
                self._on_imported(event)
            case ZygoteDied():
                self._state.wary_until = now + WARY_FOR
                emit("zygote_died", level=logging.ERROR, status=event.status, again_in=event.again_in)
            case ImportFailed():
                self._state.import_error = event.error
                emit("import_failed", level=logging.ERROR, error=event.error, again_in=event.again_in)

    # --- attempts -----------------------------------------------------------------------------------------------
    def _on_started(self, event: Started, now: float) -> None:
        holding = self._state.ledger.get(event.ref)
        if holding is not None and holding.stage is Stage.FED:
            holding.begin(event.at, now)

    def _on_output(self, event: HandlerOutput) -> None:
        if event.kind != "span":
            self._settler.say(event.ref, event.kind, event.text)
        elif (holding := self._state.ledger.get(event.ref)) is not None:
            holding.span = event.text

    def _on_finished(self, event: Finished, now: float) -> None:
        state, holding = self._state, self._state.ledger.get(event.ref)
        if holding is None:
            return
        job = holding.job
        if post := state.post_of(holding):
            state.finished_one(post)
            post.last_ended = job.workflow
        state.roster.unseat(holding, now)
        state.is_congested = False
        if holding.stage in (Stage.STUCK, Stage.REVOKED):
            self._body_ended(holding)
            return
        state.ledger.end(event.ref)
        state.pace.note(job.workflow, event.duration_ms)
        outcome = _outcome(event.outcome, holding)
        self._report(Report(event.ref, outcome, event.duration_ms, event.output, job.has_target, holding.span))

    def _report(self, report: Report) -> None:
        """Behind what its handler had asked for before."""
        if not self._flow_calls.keep_back(report):
            self._state.reports.append(report)

    def _on_recalled(self, event: Recalled, now: float) -> None:
        for ref in event.refs:
            holding = self._state.ledger.get(ref)
            if holding is None:
                continue
            self._state.roster.unseat(holding, now)
            if holding.stage is Stage.REVOKED:
                self._body_ended(holding)
            elif self._state.ledger.end(ref):
                self._state.reports.append(Report(ref, NotStarted("it had not started in time")))

    def _body_ended(self, holding: HeldAttempt) -> None:
        """Of an attempt that is ours no more: the body mark that was written because its process lived may go."""
        self._state.ledger.drop(holding.ref)
        self._settler.body_gone(holding.ref.job)

    # --- processes ----------------------------------------------------------------------------------------------
    def _on_imported(self, event: Imported) -> None:
        try:
            self._keys.require(signed_only(event.workflows))
        except InvalidSettings as error:
            self._refuse_code(str(error))
            return
        self._state.imported, self._state.import_error = event, None
        emit("imported", workflows=len(event.workflows), mode=event.mode, reason=event.reason)
        self._claimer.serve(Served.of(event.workflows, self._queues, Declared.of(event)))

    def _refuse_code(self, problem: str) -> None:
        """Code that came while we ran and asks for signatures that nobody here can verify: nothing of it runs."""
        self._state.import_error = problem
        emit("import_failed", level=logging.ERROR, error=problem)
        self._claimer.serve(Served.of((), self._queues))

    def _on_ready(self, event: ExecutorReady, now: float) -> None:
        if post := self._state.roster.posts.get(event.executor):
            self._state.began(post, event.pid, now)

    def _on_left_behind(self, event: LeftBehind) -> None:
        """The result is kept; the process goes, unless it is known that these stay for good."""
        post = self._state.roster.posts.get(event.executor)
        if post is None:
            return
        if event.processes:
            emit(
                "children_ended",
                level=logging.WARNING,
                workflow=event.workflow,
                processes=", ".join(event.processes[:5]) + (", …" if len(event.processes) > 5 else ""),
                by="KILL" if event.is_killed else "TERM",
                pid=post.pid,
            )
            return
        if event.poison:
            self._on_poisoned(post, event.poison)
            return
        if event.broken_import:
            self._on_broken_import(post, event)
            return
        reason = self._state.leaked_threads.judge(post, event.workflow, event.threads)
        post.left_behind = post.left_behind or reason
        emit(
            "left_behind",
            level=logging.WARNING,
            workflow=event.workflow,
            threads=", ".join(event.threads[:5]),
            pid=post.pid,
            recycled=bool(post.left_behind),
        )

    def _on_poisoned(self, post: Post, why: str) -> None:
        """The process itself cannot tell who did it: one of those in it, or the one that ended there just now."""
        names = sorted({h.job.workflow for h in post.bodies} | ({post.last_ended} if post.last_ended else set()))
        workflow = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        post.left_behind = post.left_behind or f"{why}; jobs in it, or just ended: {workflow}"
        emit("process_poisoned", level=logging.WARNING, workflow=workflow, why=why, pid=post.pid)

    def _on_broken_import(self, post: Post, event: LeftBehind) -> None:
        """However often: the next job that imports it there may be told that it cannot be loaded twice."""
        reason = f"{event.workflow} was interrupted while it imported {event.broken_import}"
        post.left_behind = post.left_behind or reason
        emit(
            "import_broken",
            level=logging.WARNING,
            workflow=event.workflow,
            module=event.broken_import,
            pid=post.pid,
        )

    def _on_died(self, event: ExecutorDied, now: float) -> None:
        state = self._state
        post = state.roster.close(event.executor)
        if post is None:
            return
        why, at = why_it_went(event, post), wall().isoformat(timespec="seconds")
        state.recycled.append(Recycled(event.pid, post.generation, why, post.jobs_done, at))
        name = "executor_ended" if event.expected else "executor_died"
        emit(name, executor=event.executor, pid=event.pid, status=event.status)
        ours = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
        self._judge_start(post, event, ours, now)
        for report in reports_on_death(event, post, ours):
            if (holding := state.ledger.end(report.ref)) is not None:
                if isinstance(report.outcome, Stuck):
                    emit("stuck", level=logging.WARNING, **holding.facts)
                self._report(report)
        for holding in post.holdings.values():
            if holding.stage in (Stage.STUCK, Stage.REVOKED):
                self._body_ended(holding)
            state.ledger.drop(holding.ref)

    def _judge_start(self, post: Post, event: ExecutorDied, held: list[HeldAttempt], now: float) -> None:
        """An executor that never became ready, or did not last, will not next time either."""
        if never_began(event, post):
            self._state.start_failed(event.status, now)
        elif died_young(event, post, now):
            post.is_another = self._state.trial > 0.0
            self._state.died_young(post, event.status, now, is_a_jobs_doing=was_alone(event, post, held))


def _outcome(outcome: Outcome, holding: HeldAttempt) -> Outcome:
    """An attempt that was interrupted for its neighbours' sake, without a request of its own, runs again by itself.
    If it held the interpreter, it was interrupted before its process could read the request; we know it."""
    if not isinstance(outcome, Stopped) or outcome.asked is not None:
        return outcome
    if holding.asked is not None:
        return Stopped(holding.asked, outcome.message)
    if holding.stalled_at is None or holding.told_at is not None:
        return outcome
    message = "it blocked the event loop of its process and was interrupted; it runs again by itself"
    return Lost(ErrorInfo("Stopped", message, holding.stack), "bystander")
