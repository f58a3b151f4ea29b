"""RemoteClaimer: what it asks a server for, and what it does with what comes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.eventually import eventually
from tests.support.threads import no_more_threads
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.model.errors import OutcomeUnknown, StoreUnavailable
from unstuck.model.job import AttemptRef, ClaimedJob, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.offers import is_claim_of, left_out, offered
from unstuck.model.policy import Policy
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec
from unstuck.model.settlement import NotStarted
from unstuck.model.times import Times
from unstuck.store.port import Grant, Report, Verdict, Wanted
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.parts import ClaimerNeeds
from unstuck.worker.remote_claim import RemoteClaimer
from unstuck.worker.served import Declared, Served
from unstuck.worker.shares import FreeRoom

GREET = WorkflowRecord("greet", "v1", "default", Policy(), {})
TIMES = Times(poll=0.01, offer_ack=0.3)


class Shelf:
    """A server's part: it gives what lies there, to whoever asks."""

    def __init__(self, jobs: int = 0) -> None:
        self.jobs = jobs
        self.asked: list[tuple[str, Wanted, bool]] = []
        self.acknowledged: list[AttemptRef] = []
        self.verdict = Verdict.DONE
        #: Taken off one by one: what goes wrong with the next acknowledgement.
        self.unanswered: list[Exception] = []
        #: Taken off one by one: what goes wrong with the next question.
        self.troubles: list[Exception] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.grant = Grant()
        self.registered: list[tuple[list[str], list[str], str | None]] = []
        self.declared: list[list[str]] = []
        self.refused: list[str] = []
        #: Jobs whose payloads come apart, each in an answer of its own, and how they are told.
        self.large: frozenset[int] = frozenset()
        self.payload: str | None = '{"large": 1}'
        self.may_bring = threading.Event()

    def register_workflows(
        self,
        workflows: Sequence[WorkflowRecord],
        *,
        worker: int | None = None,
        queues: Sequence[str] = (),
        app: str | None = None,
    ) -> frozenset[str]:
        self.registered.append(([each.name for each in workflows], list(queues), app))
        return frozenset()

    def declare_schedules(
        self, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
    ) -> list[str]:
        self.declared.append([each.name for each in declared])
        return self.refused

    def take(self, worker: int, claim: str, wanted: Wanted, *, again: bool = False) -> list[ClaimedJob]:
        self.asked.append((claim, wanted, again))
        if self.troubles:
            raise self.troubles.pop(0)
        self.may_answer.wait(10)
        given, self.jobs = min(self.jobs, wanted.slots), max(0, self.jobs - wanted.slots)
        return [
            ClaimedJob(
                AttemptRef(number, 1, offered(claim)),
                f"j{number}",
                1,
                "t",
                "default",
                "greet",
                left_out('{"large": 1}') if number in self.large else "{}",
                Policy(),
                1,
                False,
            )
            for number in range(1, given + 1)
        ]

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        self.acknowledged += offers
        if self.unanswered:
            raise self.unanswered.pop(0)
        return [self.verdict] * len(offers)

    def payloads(self, worker: int, refs: Sequence[AttemptRef]) -> list[str | None]:
        if not self.may_bring.wait(0.1):
            raise StoreUnavailable("the link is slow")
        return [self.payload]


def claimer_of(
    shelf: Shelf, slots: int = 2, report: Callable[[list[Report]], None] = lambda _: None
) -> tuple[RemoteClaimer, Ledger]:
    ledger = Ledger()
    needs = ClaimerNeeds(7, "far", ledger, Pace(), before_first=lambda: None, landed=lambda: None, report=report)
    claimer = RemoteClaimer(shelf, needs, TIMES, MachineClock(), SystemChance(), poll=5.0)
    claimer.serve(Served.of([GREET], []))
    ledger.publish(FreeRoom(slots))
    return claimer, ledger


def test_what_is_offered_is_acknowledged_and_held_under_its_own_claim() -> None:
    shelf = Shelf(jobs=5)
    claimer, ledger = claimer_of(shelf, slots=2)

    def held() -> bool:
        claimer.tick()
        return ledger.held == 2

    eventually(held)
    (claim, wanted, again) = shelf.asked[0]
    assert (wanted.slots, wanted.workflows, wanted.queues, again) == (2, ("greet",), ("default",), False)
    assert all(is_claim_of(7, holding.ref.claim) for holding in ledger.holdings())
    assert [ref.claim for ref in shelf.acknowledged] == [offered(claim)] * 2


def schedule_of(workflow: str, tenant: str = "t") -> DeclaredSchedule:
    return DeclaredSchedule(tenant, f"{workflow}-{tenant}", ScheduleSpec(workflow, cron="0 3 * * *").to_json())


def test_only_what_its_key_grants_is_registered_declared_and_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    shelf.grant = Grant("t", Within(frozenset({"default", "gpu"}), frozenset({"greet", "train", "far"})))
    claimer, _ = claimer_of(shelf)
    train, far, other = (replace(GREET, name=name, queue=queue) for name, queue in PLACES)
    schedules = tuple(schedule_of(*place) for place in (("greet",), ("other",), ("greet", "another"), ("far",)))
    claimer.serve(Served.of([GREET, train, far, other], [], Declared("shop", "shop:app", "v1", schedules)))

    def asked() -> bool:
        claimer.tick()
        return bool(shelf.asked and shelf.declared)

    eventually(asked)
    assert shelf.registered == [(["greet", "train"], ["default", "gpu"], "shop")]
    assert shelf.declared == [["greet-t"]]
    assert shelf.asked[0][1].workflows == ("greet", "train")
    assert shelf.asked[0][1].queues == ("default", "gpu")
    assert "not_granted" in caplog.text
    assert "far, other" in caplog.text


PLACES = (("train", "gpu"), ("far", "elsewhere"), ("other", "default"))


def test_schedules_that_are_refused_are_told(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    shelf.refused = ["schedule nightly of app shop was not taken from its code: it is someone else's"]
    claimer, _ = claimer_of(shelf)
    claimer.serve(Served.of([GREET], [], Declared("shop", "shop:app", "v1", (schedule_of("greet"),))))

    def told() -> bool:
        claimer.tick()
        return "schedule_refused" in caplog.text and "someone else" in caplog.text

    eventually(told)


def test_a_large_payload_comes_apart_and_no_other_job_waits_for_it() -> None:
    shelf = Shelf(jobs=3)
    shelf.large = frozenset({1, 2})
    claimer, ledger = claimer_of(shelf, slots=4)

    def held(count: int) -> list[str]:
        claimer.tick()
        assert ledger.held == count
        return sorted(holding.job.payload for holding in ledger.holdings())

    assert eventually(lambda: held(1)) == ["{}"]
    assert len(shelf.acknowledged) == 3
    assert ledger.room().slots == 1
    with ledger.still() as told:
        assert shelf.asked[0][0] in told.pending_claims
    eventually(lambda: claimer.tick() or len(shelf.asked) > 1)  # it asks for more meanwhile, and soon again
    eventually(lambda: "payloads" in claimer.troubles)
    assert (shelf.asked[1][1].slots, shelf.asked[1][1].wait) == (1, 2.0)
    shelf.may_bring.set()
    assert eventually(lambda: held(3)) == ['{"large": 1}', '{"large": 1}', "{}"]
    with ledger.still() as told:
        assert shelf.asked[0][0] not in told.pending_claims


def test_of_a_large_payload_that_is_no_longer_its_own_nothing_stays() -> None:
    shelf = Shelf(jobs=1)
    shelf.large, shelf.payload = frozenset({1}), None
    claimer, ledger = claimer_of(shelf)
    eventually(lambda: claimer.tick() or shelf.acknowledged)
    assert not ledger.is_empty
    shelf.may_bring.set()
    claimer.close()
    eventually(lambda: claimer.tick() or ledger.is_empty)


def test_a_payload_that_is_not_the_one_that_was_offered_goes_back(caplog: pytest.LogCaptureFixture) -> None:
    """The server verified what it offered, and no other."""
    shelf = Shelf(jobs=2)
    shelf.large, shelf.payload = frozenset({1}), '{"large": 2}'
    shelf.may_bring.set()
    reports: list[Report] = []
    claimer, ledger = claimer_of(shelf, report=reports.extend)
    eventually(lambda: claimer.tick() or reports)
    assert [(report.ref.job, type(report.outcome)) for report in reports] == [(1, NotStarted)]
    assert [holding.job.payload for holding in ledger.holdings()] == ["{}"]
    with ledger.still() as told:
        assert told.settling == (reports[0].ref,)
    eventually(lambda: shelf.asked[0][0] not in pending(ledger))
    assert "payloads_changed" in caplog.text


def pending(ledger: Ledger) -> tuple[str, ...]:
    with ledger.still() as told:
        return told.pending_claims


def test_what_has_not_come_when_a_worker_leaves_goes_back() -> None:
    shelf = Shelf(jobs=2)
    shelf.large = frozenset({1, 2})
    reports: list[Report] = []
    claimer, ledger = claimer_of(shelf, slots=4, report=reports.extend)
    eventually(lambda: claimer.tick() or (shelf.acknowledged and len(shelf.asked) > 1))
    claimer.close()
    eventually(lambda: claimer.tick() or len(reports) == 2)
    assert [type(report.outcome) for report in reports] == [NotStarted] * 2
    assert all(is_claim_of(7, report.ref.claim) for report in reports)
    eventually(lambda: claimer.tick() or ledger.unsettled == 2)
    ledger.settled([report.ref for report in reports])
    eventually(lambda: claimer.tick() or ledger.is_empty)


def test_what_was_returned_before_it_was_acknowledged_is_not_held() -> None:
    shelf = Shelf(jobs=1)
    shelf.verdict = Verdict.FENCED
    claimer, ledger = claimer_of(shelf)

    def asked() -> bool:
        claimer.tick()
        return bool(shelf.acknowledged) and len(shelf.asked) > 1

    eventually(asked)
    assert ledger.held == 0


def test_an_acknowledgement_is_repeated_until_it_is_answered() -> None:
    """Also when the offer may have gone back by then: the answer says whether it did."""
    shelf = Shelf(jobs=1)
    shelf.unanswered = [OutcomeUnknown("cut")] * 8
    claimer, ledger = claimer_of(shelf)
    began = time.monotonic()

    def held() -> bool:
        claimer.tick()
        return ledger.held == 1

    eventually(held)
    assert time.monotonic() - began > 2 * TIMES.offer_ack
    assert len(shelf.asked) == 1


def test_a_worker_that_leaves_repeats_an_acknowledgement_no_longer_than_the_offer_stands() -> None:
    shelf = Shelf(jobs=1)
    shelf.unanswered = [OutcomeUnknown("cut")] * 1000
    claimer, ledger = claimer_of(shelf)
    eventually(lambda: claimer.tick() or shelf.acknowledged)
    claimer.close()

    def is_over() -> bool:
        with contextlib.suppress(OutcomeUnknown):
            claimer.tick()
        return ledger.is_empty

    eventually(is_over, timeout=5)


def test_a_question_that_cannot_be_asked_for_want_of_a_thread_leaves_nothing_under_way() -> None:
    shelf = Shelf(jobs=1)
    claimer, ledger = claimer_of(shelf)
    with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
        claimer.tick()
    assert ledger.is_empty
    eventually(lambda: claimer.tick() or ledger.held == 1)


def test_large_payloads_that_nobody_can_ask_for_go_back() -> None:
    shelf = Shelf(jobs=2)
    shelf.large = frozenset({1})
    shelf.may_answer.clear()
    reports: list[Report] = []
    claimer, ledger = claimer_of(shelf, report=reports.extend)
    eventually(lambda: claimer.tick() or shelf.asked)
    shelf.may_answer.set()
    eventually(lambda: shelf.acknowledged)
    with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
        eventually(lambda: claimer.tick())
    assert [(report.ref.job, type(report.outcome)) for report in reports] == [(1, NotStarted)]
    assert (ledger.held, pending(ledger)) == (1, ())


def test_a_question_whose_answer_was_lost_is_asked_again_under_its_claim_id() -> None:
    shelf = Shelf(jobs=1)
    shelf.troubles = [OutcomeUnknown("cut")]
    claimer, ledger = claimer_of(shelf)

    def held() -> bool:
        claimer.tick()
        return ledger.held == 1

    eventually(held)
    (first, _, is_first_again), (second, _, is_second_again) = shelf.asked[:2]
    assert first == second
    assert (is_first_again, is_second_again) == (False, True)


def test_a_server_that_is_away_is_said_and_nothing_stays_under_way() -> None:
    shelf = Shelf()
    shelf.troubles = [StoreUnavailable("away")]
    claimer, ledger = claimer_of(shelf)

    def tick_on() -> None:
        for _ in range(1000):
            claimer.tick()

    with pytest.raises(StoreUnavailable):
        tick_on()
    assert ledger.is_empty


def test_a_worker_that_leaves_waits_for_no_question_and_acknowledges_nothing() -> None:
    shelf = Shelf(jobs=1)
    shelf.may_answer.clear()
    claimer, ledger = claimer_of(shelf)
    eventually(lambda: claimer.tick() or shelf.asked)
    assert not ledger.is_empty
    claimer.close()
    claimer.tick()
    assert ledger.is_empty
    shelf.may_answer.set()
    eventually(lambda: shelf.jobs == 0)
    claimer.tick()
    assert shelf.acknowledged == []
    assert ledger.is_empty
