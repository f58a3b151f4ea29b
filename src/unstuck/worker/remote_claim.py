"""RemoteClaimer: free slots -> jobs, for a worker that has no database: it says what it has room for, and is given.

Which routes there are and who is next, the server knows. A question waits there for as long as a poll; it is asked on
a thread of its own, so that a worker that is told to leave does not wait for it. What comes is an offer: it is
acknowledged before anything of it is held here, and no handler begins before that was answered. A payload that is too
large for an offer is asked for behind that, on a thread of its own; no other job waits for it, and what is not the
one that the server offered, and verified, goes back. A question whose answer was lost is asked once more under the
same claim id, which tells what it opened; what is given up goes back by itself, uncharged (`model/offers.py`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.model.errors import OutcomeUnknown, StoreBusy, StoreError
from unstuck.model.job import ClaimedJob
from unstuck.model.offers import claim_id, is_left_out, left_out
from unstuck.model.settlement import NotStarted
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.store.port import Grant, OffersPort, Report, Verdict, Wanted
from unstuck.telemetry import emit
from unstuck.worker.parts import ClaimerNeeds
from unstuck.worker.served import Served, signed_only
from unstuck.worker.side_tasks import SideTasks

#: Seconds for which a question waits at the server: of a worker that is idle, and of one whose room may change while
#: it waits.
POLL = 30.0
POLL_WHILE_BUSY = 2.0
#: Names in one line of the log.
_TOLD = 10


class _Question:
    """One claim under way, on its own thread."""

    def __init__(self, claim: str, ask: Callable[[], list[ClaimedJob]], ended: Callable[[], None]) -> None:
        self.claim = claim
        self.jobs: list[ClaimedJob] = []
        self.error: Exception | None = None
        self.has_ended = False
        self._ask = ask
        self._ended = ended
        threading.Thread(target=self._run, name="unstuck-take", daemon=True).start()

    def _run(self) -> None:
        try:
            self.jobs = self._ask()
        except Exception as error:
            self.error = error
        self.has_ended = True
        self._ended()


class RemoteClaimer:
    def __init__(
        self, port: OffersPort, needs: ClaimerNeeds, times: Times, clock: Clock, chance: Chance, poll: float = POLL
    ) -> None:
        self._port = port
        self._needs = needs
        self._ledger = needs.ledger
        self._times = times
        self._clock = clock
        self._chance = chance
        self._poll = poll
        self._served: Served | None = None
        self._registered: Served | None = None
        self._is_declared = False
        self._shunned: frozenset[str] = frozenset()
        self._is_open = True
        self._question: _Question | None = None
        #: Whether the last answer was empty.
        self._was_in_vain = False
        self._stirred = threading.Event()
        self._lock = threading.Lock()
        #: The claim that is being acknowledged, or was: what it brought is ours to give back.
        self._acknowledging = ""
        self._side_tasks = SideTasks(clock)

    # --- from other threads -------------------------------------------------------------------------------------
    def serve(self, served: Served) -> None:
        self._served = granted(served, self._port.grant)
        self._stir()

    def shun(self, workflows: frozenset[str]) -> None:
        self._shunned = workflows

    def close(self) -> None:
        self._is_open = False
        self._stir()

    @property
    def troubles(self) -> dict[str, Trouble]:
        return self._side_tasks.troubles

    def _stir(self) -> None:
        self._stirred.set()
        self._ledger.has_room.set()

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        """One round, no longer than a local poll: a sign of life while a question waits."""
        self._stirred.clear()
        if not self._is_open:
            self._drop()
            self._clock.wait(self._stirred, self._times.poll)
        elif self._question is not None:
            self._follow(self._question)
        elif (served := self._served) is None or not self._is_registered(served):
            self._clock.wait(self._stirred, self._times.poll)
        elif (wanted := self._wanted(served)) is None:
            self._clock.wait(self._ledger.has_room, self._times.poll)
        else:
            self._begin(wanted)
        return 0.0

    def _is_registered(self, served: Served) -> bool:
        """Before that the server would not know what its jobs are called here."""
        if self._registered is not served and self._side_tasks.do("registration", lambda: self._register(served)):
            self._registered, self._is_declared = served, False
        if self._registered is served and not self._is_declared:
            # Behind its workflows: which version decides depends on who serves. No job waits for it.
            self._is_declared = self._side_tasks.do("schedules", lambda: self._declare(served)) is not None
        return self._registered is served

    def _register(self, served: Served) -> bool:
        workflows, queues = tuple(served.workflows.values()), sorted(served.queues)
        app = None if served.declared is None else served.declared.app
        if held := self._port.register_workflows(workflows, worker=self._needs.worker, queues=queues, app=app):
            raise StoreBusy(
                f"somebody holds the rows of these workflows or of their limits: {', '.join(sorted(held))}"
            )
        return True

    def _declare(self, served: Served) -> bool:
        """What is refused nobody else tells this worker's owner."""
        said = served.declared
        if said is None:
            return True
        for problem in self._port.declare_schedules(said.app, said.origin, said.code_version, said.schedules)[:_TOLD]:
            emit("schedule_refused", level=logging.WARNING, app=said.app, problem=problem)
        return True

    def _begin(self, wanted: Wanted) -> None:
        claim = claim_id(self._needs.worker, self._chance.nonce())
        self._ledger.announce(claim)
        if not self._is_open:
            # Closed before the main thread could see our announcement: it may count on nothing being under way.
            self._ledger.give_up(claim)
            return
        try:
            self._question = _Question(claim, lambda: self._ask(claim, wanted), self._stirred.set)
        except RuntimeError:  # its thread cannot be started
            self._ledger.give_up(claim)
            raise
        self._follow(self._question)

    def _wanted(self, served: Served) -> Wanted | None:
        """None: there is no room for anything that it runs. Without a free slot it asks for what is there and waits
        here: one may be free in a moment."""
        room, ours = self._ledger.room(), [name for name in served.workflows if name not in self._shunned]
        quick = tuple(name for name in ours if self._needs.pace.is_quick(name))
        alone = tuple(name for name in ours if served.workflows[name].policy.isolation == "process")
        ahead, solo = (room.ahead if quick else 0), (room.solo if alone else 0)
        if not ours or room.slots + ahead + solo <= 0 or (not room.slots and self._was_in_vain):
            self._was_in_vain = False
            return None
        patience = self._poll if self._ledger.is_empty else POLL_WHILE_BUSY
        return Wanted(
            slots=room.slots,
            ahead=ahead,
            solo=solo,
            in_order=room.in_order,
            workflows=tuple(ours),
            queues=tuple(sorted(served.queues)),
            quick=quick,
            alone=alone,
            wait=patience if room.slots else 0.0,
            signed=tuple(sorted(signed_only(served.workflows[name] for name in ours))),
        )

    def _follow(self, question: _Question) -> None:
        if not question.has_ended:
            self._clock.wait(self._stirred, self._times.poll)
        if not question.has_ended:
            return
        self._question = None
        if question.error is not None:
            self._ledger.give_up(question.claim)
            raise question.error
        whole = [job for job in question.jobs if not is_left_out(job.payload)]
        large = [job for job in question.jobs if is_left_out(job.payload)]
        self._ledger.admit(question.claim, whole, self._clock.boot(), missing=len(large))
        self._was_in_vain = not question.jobs
        if jobs := question.jobs:
            first, name = jobs[0], self._needs.name
            emit("acquired", level=logging.DEBUG, worker=name, jobs=len(jobs), job=first.id, workflow=first.workflow)
            self._needs.landed()
        if large:
            self._begin_fetch(question.claim, large)

    def _begin_fetch(self, claim: str, large: list[ClaimedJob]) -> None:
        try:
            threading.Thread(target=self._fetch, args=(claim, large), name="unstuck-payloads", daemon=True).start()
        except RuntimeError:  # it cannot be started, and nobody else would ask for them
            self._give_back(large)
            self._ledger.admit(claim, [], self._clock.boot())
            raise

    def _drop(self) -> None:
        """What it may still bring nobody acknowledges. What is being acknowledged the supervisor gives back."""
        question = self._question
        if question is None:
            return
        with self._lock:
            is_ours = self._acknowledging == question.claim
        if is_ours:
            self._follow(question)
        else:
            self._question = None
            self._ledger.give_up(question.claim)

    # --- on the question's own thread ---------------------------------------------------------------------------
    def _ask(self, claim: str, wanted: Wanted) -> list[ClaimedJob]:
        worker = self._needs.worker
        try:
            offered = self._port.take(worker, claim, wanted)
        except OutcomeUnknown:
            emit("claim_repeated", claim=claim)
            offered = self._port.take(worker, claim, wanted, again=True)
        with self._lock:
            if not offered or not self._is_open:
                return []
            self._acknowledging = claim
        refs = [job.ref for job in offered]
        verdicts = self._acknowledged(claim, lambda: self._port.acknowledge(worker, claim, refs))
        ours = [job for job, verdict in zip(offered, verdicts, strict=True) if verdict is Verdict.DONE]
        return [job._replace(ref=job.ref._replace(claim=claim)) for job in ours]

    def _acknowledged(self, claim: str, acknowledge: Callable[[], list[Verdict]]) -> list[Verdict]:
        """Tried until it is answered: whether the offer is ours or went back is then known at once, and not by a beat
        later on. One who leaves tries for as long as the offer stands, everybody no longer than a lease."""
        began = self._clock.boot()
        while True:
            try:
                return acknowledge()
            except StoreError as error:
                limit = self._times.lease if self._is_open else self._times.offer_ack
                if self._clock.boot() >= began + limit:
                    raise
                emit("acknowledgement_repeated", claim=claim, error=str(error))
            self._clock.wait(threading.Event(), 0.1)

    # --- on the thread of its large payloads ----------------------------------------------------------------------
    def _fetch(self, claim: str, jobs: list[ClaimedJob]) -> None:
        """Each is held as soon as it is whole. What has not come when this worker leaves goes back, and what is no
        longer its own is forgotten."""
        while jobs and self._is_open:
            refs = [job.ref for job in jobs]
            payloads = self._side_tasks.do("payloads", partial(self._port.payloads, self._needs.worker, refs))
            if not payloads:
                self._clock.wait(threading.Event(), self._times.poll)
                continue
            came = [(job, text) for job, text in zip(jobs, payloads, strict=False) if text is not None]
            jobs = jobs[len(payloads) :]
            if changed := [job for job, text in came if left_out(text) != job.payload]:
                emit("payloads_changed", level=logging.WARNING, jobs=len(changed), job=changed[0].id)
                self._give_back(changed)
            ours = [job._replace(payload=text) for job, text in came if left_out(text) == job.payload]
            self._ledger.admit(claim, ours, self._clock.boot(), missing=len(jobs))
            self._needs.landed()
        if jobs:
            self._give_back(jobs)
            self._ledger.admit(claim, [], self._clock.boot())

    def _give_back(self, jobs: list[ClaimedJob]) -> None:
        """While their claim is under way, so that no beat takes them for forgotten."""
        self._ledger.settle_unseen(jobs, self._clock.boot())
        self._needs.report([Report(job.ref, NotStarted()) for job in jobs])


def granted(served: Served, grant: Grant) -> Served:
    """What of it the key lets this worker run; of the rest only the log hears."""
    ours = {name: workflow for name, workflow in served.workflows.items() if grant.covers(workflow)}
    queues = served.queues if grant.within.queues is None else served.queues & grant.within.queues
    said = served.declared
    if said is not None:
        places = {workflow.name: workflow.queue for workflow in ours.values()}
        kept = tuple(each for each in said.schedules if grant.covers_schedule(each, places))
        _tell_left_out("schedules", [each.name for each in said.schedules if each not in kept])
        said = replace(said, schedules=kept)
    _tell_left_out("workflows", [name for name in served.workflows if name not in ours])
    return Served(ours, queues, said)


def _tell_left_out(what: str, names: list[str]) -> None:
    if names:
        some = ", ".join(sorted(names)[:_TOLD])
        facts = {"names": f"{some}, …" if len(names) > _TOLD else some, "count": len(names)}
        emit(
            "not_granted", level=logging.WARNING, what=what, **facts, problem="this worker's key does not grant them"
        )


class NoDuties:
    """The janitor of a worker without a database: those who have one do it."""

    def __init__(self, every: float) -> None:
        self._every = every

    def tick(self, alive: Callable[[], None]) -> float:
        return self._every

    def first_sweep(self, alive: Callable[[], None]) -> None:
        """Nothing to sweep."""

    def troubles(self) -> dict[str, Trouble]:
        return {}

    def call(self, duty: str, seconds: float) -> bool:
        return False
