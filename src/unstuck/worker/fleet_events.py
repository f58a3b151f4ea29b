"""Ears: what executors say, written into the books."""

from __future__ import annotations

import logging

from unstuck.clock import wall
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Stopped, Stuck
from unstuck.store.port import Report
from unstuck.telemetry import emit
from unstuck.worker.blame import reports_on_death, was_alone, why_it_went
from unstuck.worker.claim import Claimer, Served
from unstuck.worker.describing import Recycled
from unstuck.worker.flow_calls import Errands
from unstuck.worker.ledger import HeldAttempt, Stage
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
from unstuck.worker.roster import Post
from unstuck.worker.settle import Settler
from unstuck.worker.starts import died_young, never_began
from unstuck.worker.state import Books

#: After a zygote's death suspects run one at a time for so long: whoever did it has shown itself by then, as a rule.
WARY_FOR = 120.0


class Ears:
    def __init__(
        self, books: Books, claimer: Claimer, settler: Settler, errands: Errands, queues: tuple[str, ...]
    ) -> None:
        self._books = books
        self._errands = errands
        self._claimer = claimer
        self._settler = settler
        self._queues = queues

    def hear(self, event: FleetEvent, now: float) -> None:
        """One event that cannot be digested must not take the others of its batch with it."""
        try:
            self._on(event, now)
        except Exception:
            logging.getLogger("unstuck").exception("could not digest %s", type(event).__name__)

    def _on(self, event: FleetEvent, now: float) -> None:
        match event:
            case Finished():
                self._on_finished(event, now)
            case Started():
                self._on_started(event, now)
            case Recalled():
                self._on_recalled(event, now)
            case HandlerOutput():
                self._settler.say(event.ref, event.kind, event.text)
            case FlowCall():
                self._errands.take(event)
            case ExecutorReady():
                self._on_ready(event, now)
            case ExecutorDied():
                self._on_died(event, now)
            case LeftBehind():
                self._on_left_behind(event)
            case Imported():
                self._on_imported(event)
            case ZygoteDied():
                self._books.wary_until = now + WARY_FOR
                emit("zygote_died", level=logging.ERROR, status=event.status, again_in=event.again_in)
            case ImportFailed():
                self._books.import_error = event.error
                emit("import_failed", level=logging.ERROR, error=event.error, again_in=event.again_in)

    # --- attempts -----------------------------------------------------------------------------------------------
    def _on_started(self, event: Started, now: float) -> None:
        holding = self._books.ledger.get(event.ref)
        if holding is not None and holding.stage is Stage.FED:
            holding.begin(event.at, now)

    def _on_finished(self, event: Finished, now: float) -> None:
        books, holding = self._books, self._books.ledger.get(event.ref)
        if holding is None:
            return
        if post := books.post_of(holding):
            books.finished_one(post)
        books.roster.unseat(holding, now)
        books.is_congested = False
        if holding.stage in (Stage.STUCK, Stage.REVOKED):
            self._body_ended(holding)
            return
        books.ledger.end(event.ref)
        books.pace.note(holding.job.workflow, event.duration_ms)
        outcome = _outcome(event.outcome, holding)
        self._report(Report(event.ref, outcome, event.duration_ms, event.output, has_target=holding.job.has_target))

    def _report(self, report: Report) -> None:
        """Behind what its handler had asked for before."""
        if not self._errands.hold(report):
            self._books.reports.append(report)

    def _on_recalled(self, event: Recalled, now: float) -> None:
        for ref in event.refs:
            holding = self._books.ledger.get(ref)
            if holding is None:
                continue
            self._books.roster.unseat(holding, now)
            if holding.stage is Stage.REVOKED:
                self._body_ended(holding)
            elif self._books.ledger.end(ref):
                self._books.reports.append(Report(ref, NotStarted("it had not started in time")))

    def _body_ended(self, holding: HeldAttempt) -> None:
        """Of an attempt that is ours no more: a hold that was written because its body lived may go."""
        self._books.ledger.drop(holding.ref)
        self._settler.lift(holding.ref.job)

    # --- processes ----------------------------------------------------------------------------------------------
    def _on_imported(self, event: Imported) -> None:
        self._books.imported, self._books.import_error = event, None
        emit("imported", workflows=len(event.workflows), mode=event.mode, reason=event.reason)
        self._claimer.serve(Served.of(event.workflows, self._queues))

    def _on_ready(self, event: ExecutorReady, now: float) -> None:
        if post := self._books.roster.posts.get(event.executor):
            self._books.began(post, event.pid, now)

    def _on_left_behind(self, event: LeftBehind) -> None:
        """The result is kept; the process goes, unless it is known that these stay for good."""
        post = self._books.roster.posts.get(event.executor)
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
            post.left_behind = post.left_behind or event.poison
            emit("process_poisoned", level=logging.WARNING, workflow=event.workflow, why=event.poison, pid=post.pid)
            return
        if event.broken_import:
            self._on_broken_import(post, event)
            return
        reason = self._books.residents.judge(post, event.workflow, event.threads)
        post.left_behind = post.left_behind or reason
        emit(
            "left_behind",
            level=logging.WARNING,
            workflow=event.workflow,
            threads=", ".join(event.threads[:5]),
            pid=post.pid,
            recycled=bool(post.left_behind),
        )

    def _on_broken_import(self, post: Post, event: LeftBehind) -> None:
        """However often: the next one that imports it there may be told that it cannot be loaded twice."""
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
        books = self._books
        post = books.roster.close(event.executor)
        if post is None:
            return
        why, at = why_it_went(event, post), wall().isoformat(timespec="seconds")
        books.recycled.append(Recycled(event.pid, post.generation, why, post.jobs_done, at))
        name = "executor_ended" if event.expected else "executor_died"
        emit(name, executor=event.executor, pid=event.pid, status=event.status)
        ours = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
        self._judge_start(post, event, ours, now)
        for report in reports_on_death(event, post, ours):
            if (holding := books.ledger.end(report.ref)) is not None:
                if isinstance(report.outcome, Stuck):
                    emit("stuck", level=logging.WARNING, job=holding.job.id, workflow=holding.job.workflow)
                self._report(report)
        for holding in post.holdings.values():
            if holding.stage in (Stage.STUCK, Stage.REVOKED):
                self._body_ended(holding)
            books.ledger.drop(holding.ref)

    def _judge_start(self, post: Post, event: ExecutorDied, held: list[HeldAttempt], now: float) -> None:
        """An executor that never became ready, or did not last, will not next time either."""
        if never_began(event, post):
            self._books.start_failed(event.status, now)
        elif died_young(event, post, now):
            post.is_another = self._books.trial > 0.0
            self._books.died_young(post, event.status, now, is_a_jobs_doing=was_alone(event, post, held))


def _outcome(outcome: Outcome, holding: HeldAttempt) -> Outcome:
    """One that was interrupted for its neighbours' sake, without a request of its own, runs again by itself. One that
    held the interpreter was interrupted before its process could read what it was asked: we know."""
    if not isinstance(outcome, Stopped) or outcome.asked is not None:
        return outcome
    if holding.asked is not None:
        return Stopped(holding.asked, outcome.message)
    if holding.stalled_at is None or holding.told_at is not None:
        return outcome
    message = "it blocked the event loop of its process and was interrupted; it runs again by itself"
    return Lost(ErrorInfo("Stopped", message, holding.stack), "bystander")
