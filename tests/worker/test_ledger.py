"""Every attempt is visible at every instant: of a claim under way, held, or being settled."""

from __future__ import annotations

import threading

from tests.support.holdings import a_claimed_job
from unstuck.worker.ledger import Ledger, Stage
from unstuck.worker.shares import FreeRoom


def test_an_attempt_is_never_between_two_chairs() -> None:
    ledger, job = Ledger(), a_claimed_job()
    ledger.announce("c")
    with ledger.still() as seen:
        assert seen.pending_claims == ("c",)
    ledger.admit("c", [job], 1.0)
    with ledger.still() as seen:
        assert (seen.pending_claims, seen.held) == ((), (job.ref,))
    ledger.end(job.ref)
    with ledger.still() as seen:
        assert (seen.held, seen.settling) == ((), (job.ref,))
    ledger.settled([job.ref])
    assert ledger.is_empty


def test_no_claim_begins_while_a_beat_looks_and_asks() -> None:
    ledger, begun = Ledger(), threading.Event()

    def claim() -> None:
        ledger.announce("late")
        begun.set()

    with ledger.still() as seen:
        thread = threading.Thread(target=claim)
        thread.start()
        assert not begun.wait(0.05)
        assert seen.pending_claims == ()
    thread.join(5)
    assert begun.is_set()


def test_a_verdict_is_being_settled_while_its_body_keeps_its_place() -> None:
    ledger, job = Ledger(), a_claimed_job()
    ledger.admit("c", [job], 1.0)
    holding = ledger.get(job.ref)
    assert holding is not None
    ledger.convict(holding)
    with ledger.still() as seen:
        assert (seen.held, seen.settling) == ((), (job.ref,))
    assert ledger.get(job.ref) is holding
    assert holding.stage is Stage.STUCK


def test_a_report_can_be_made_only_once() -> None:
    ledger, job = Ledger(), a_claimed_job()
    ledger.admit("c", [job], 1.0)
    assert ledger.end(job.ref) is not None
    assert ledger.end(job.ref) is None


def test_what_is_still_to_come_of_a_claim_keeps_its_room_and_is_under_way() -> None:
    ledger = Ledger()
    ledger.announce("c")
    ledger.publish(FreeRoom(5))
    ledger.admit("c", [a_claimed_job()], 1.0, missing=3)
    assert ledger.room() == FreeRoom(1)
    ledger.take_fresh()
    ledger.publish(FreeRoom(4))
    assert ledger.room() == FreeRoom(1)
    with ledger.still() as told:
        assert (len(told.held), told.pending_claims) == (1, ("c",))
    ledger.admit("c", [a_claimed_job()], 1.0, missing=2)
    assert ledger.room() == FreeRoom(1)
    ledger.admit("c", [], 1.0)
    ledger.take_fresh()
    ledger.publish(FreeRoom(3))
    assert ledger.room() == FreeRoom(3)
    with ledger.still() as told:
        assert (len(told.held), told.pending_claims) == (2, ())


def test_what_a_claim_brings_is_taken_off_the_room_until_it_is_counted() -> None:
    ledger = Ledger()
    ledger.publish(FreeRoom(5, ahead=2))
    ledger.admit("c", [a_claimed_job() for _ in range(6)], 1.0)
    assert ledger.room() == FreeRoom(0, ahead=1)
    ledger.take_fresh()
    assert ledger.room() == FreeRoom(0, ahead=1)
    ledger.publish(FreeRoom(3))
    assert ledger.room() == FreeRoom(3)
