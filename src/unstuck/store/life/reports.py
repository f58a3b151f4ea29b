"""Reports: a worker's settlements, batch by batch, and each of them alone where a batch fails."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Stuck
from unstuck.store.database import Transaction
from unstuck.store.guard import isolation
from unstuck.store.guard.bisection import AWAY
from unstuck.store.life import settle
from unstuck.store.order import targets
from unstuck.store.port import Report, Settled, Verdict
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit


class Reports:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        first = {report.ref: report for report in reversed(reports)}
        answers: dict[AttemptRef, Settled] = {}

        def act(refs: Sequence[AttemptRef], patience: float) -> None:
            for answer in self._settle(worker, [first[ref] for ref in refs], patience):
                answers[answer.ref] = answer

        failed = isolation.in_parts(list(reversed(first)), act)
        if failed:
            self._transactions.probe()  # where nothing can be written no report is to blame
        for ref, error in failed.items():
            answers[ref] = self._refuse(worker, first[ref], error)
        return [answers.get(report.ref) or settle.waiting(report.ref, problem="") for report in reports]

    def _refuse(self, worker: int, report: Report, error: Exception) -> Settled:
        """A result that no database can store fails its job at once. After any other error the report stays with its
        worker, which sends it again: the trouble may pass."""
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
            return settle.settle(t, self._transactions.tools, worker, by, rest)

        known = self._transactions.known_worker(worker)
        by = known["name"] if known else f"worker {worker}"
        # What returned and said nothing closes by one statement; whatever that does not close takes the long way, and
        # so does what failed before: there a slow one costs less time.
        is_first = patience > isolation.IMPATIENCE
        closed = settle.close_plainly(self._transactions.database, worker, by, reports) if is_first else set()
        rest = [report for report in reports if report.ref not in closed]
        answers = {answer.ref: answer for answer in self._transactions.waking(work, patience)} if rest else {}
        self._lift_after(worker, rest, answers, patience)
        if self._transactions.has_limits:
            self._transactions.database.hint()  # what ended may have been all that kept a limit shut
        done = [Settled(ref, Verdict.DONE, JobState.COMPLETED) for ref in closed]
        return [*done, *answers.values()]

    def _lift_after(
        self, worker: int, reports: Sequence[Report], answers: Mapping[AttemptRef, Settled], patience: float
    ) -> None:
        """The backstop judged an attempt whose report was on its way. The report still says that the body has ended:
        nobody else would ever lift that body mark while this worker lives."""
        ended = [report.ref for report in reports if not isinstance(report.outcome, Stuck)]
        fenced = [ref for ref in ended if ref in answers and answers[ref].verdict is Verdict.FENCED]
        if fenced:
            self._transactions.waking(lambda t: targets.lift_after(t, worker, fenced), patience)
