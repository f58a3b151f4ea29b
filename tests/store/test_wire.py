"""How the worker's port is written for HTTP: what goes out comes back the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from unstuck.model.errors import InvalidInput
from unstuck.model.job import AttemptRef, ClaimedJob, NewJob
from unstuck.model.lifecycle import RequestKind
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Parked, Raised, Returned, Stopped, Stuck
from unstuck.model.waits import Answer, Journal, StepRecord, Wait, WaitKind, WaitRecord
from unstuck.store.port import Beat, NewChild, Report, WorkerPort, wire

REF = AttemptRef(7, 2, "w1-" + "a" * 32)
AT = datetime(2026, 5, 1, tzinfo=UTC)

#: Verbs of the port that are asked in a way of their own, or not at all.
_OTHERWISE = {"register_worker", "settle", "asked", "orders", "beat", "quarantine", "leave_quarantine", "close"}


def test_every_verb_of_the_port_is_spoken_for() -> None:
    verbs = {name for name in vars(WorkerPort) if not name.startswith("_")}
    assert verbs == set(wire.VERBS) | _OTHERWISE
    assert set(wire.verbs()) == set(wire.VERBS)


@pytest.mark.parametrize(
    "outcome",
    [
        Returned('{"a": 1}'),
        Raised(ErrorInfo("ValueError", "no", "stack"), retry=False, after=3.0),
        Stopped(RequestKind.CANCEL, "asked"),
        NotStarted("full"),
        Lost(ErrorInfo("WorkerLost", "gone"), "own"),
        Stuck(ErrorInfo("Stuck", "deaf"), pid=4, is_proven=False),
        Parked(Wait(WaitKind.EVENT, "k", "paid", timeout=5.0, who=("ada",))),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_a_report_comes_back_as_it_was(outcome: Outcome) -> None:
    report = Report(REF, outcome, 12, "said", has_target=True, span="s")
    body = wire.SettleBody(1, "i", (wire.ReportWire.of(report),))
    (said,) = wire.decoded(wire.SettleBody, wire.encoded(body), "it").reports
    assert said.report() == report


def test_a_claimed_job_comes_back_as_it_was() -> None:
    policy = Policy(timeout="unlimited", budget=(("tokens", 5.0),))
    job = ClaimedJob(REF, "id", 1, "t", "q", "w", "{}", policy, 1, alone=False, trace="t")
    answer = wire.decoded(wire.TakeAnswer, wire.encoded(wire.TakeAnswer((job,))), "it")
    assert answer.jobs == (job,)


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("journal", None),
        (
            "journal",
            Journal(
                steps=(StepRecord("s", 1, "1", 1, 1, AT, 3),),
                waits=(WaitRecord("j", 1, Wait(WaitKind.TIME, "k"), AT, AT, Answer.DUE),),
                used={"tokens": 1.0},
            ),
        ),
        ("reconcile", Beat(alive=True, lease_until=AT, gone=(REF,), unstarted=frozenset({3}))),
        ("now", AT),
        ("probe", None),
        ("gather", "[]"),
    ],
)
def test_an_answer_comes_back_as_it_was(verb: str, answer: Any) -> None:
    assert wire.decoded(wire.verbs()[verb].answer, wire.encoded(answer), "it") == answer


def test_a_child_comes_back_as_it_was() -> None:
    child = NewChild(REF, "c", 1, NewJob("id", "t", "q", "w", "{}", Policy(), start_at=AT, tags=("x",)))
    kind = wire.verbs()["spawn"].body
    assert wire.decoded(kind, wire.encoded(kind(worker=1, incarnation="i", child=child)), "it").child == child


def test_what_no_utf8_can_say_is_told_all_the_same() -> None:
    body = wire.SettleBody(1, "i", (wire.ReportWire.of(Report(REF, Returned("1"), output="a\udc80b")),))
    (said,) = wire.decoded(wire.SettleBody, wire.encoded(body), "it").reports
    assert said.output == "a?b"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"worker": 1}', b'{"worker": "1", "incarnation": "i", "reports": []}',
             b'{"worker": 1, "incarnation": "i", "reports": [], "more": 1}', b"\xff"],
)  # fmt: skip
def test_what_is_none_of_ours_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        wire.decoded(wire.SettleBody, body, "it")


def test_an_outcome_that_is_none_is_refused() -> None:
    for kind, facts in (("Bought", {}), ("Raised", {}), ("Returned", {"result": 5})):
        with pytest.raises(InvalidInput):
            wire.ReportWire(REF, kind, facts).report()
