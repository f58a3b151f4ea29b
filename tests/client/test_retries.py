"""What a Client asks again, and what it never does: against a server that loses answers, or gives none.

A40: a submit that was repeated is one job.
"""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime
from typing import Any

import pytest

import unstuck
from tests.client.code import deploy, with_code
from tests.client.rogue import Rogue, answering, hanging_up, losing_the_answer, passing_on, problem
from unstuck.client import asking, transport
from unstuck.client.asking import Asking, drive, is_safe
from unstuck.client.wire import Heard, NoAnswerHeard, Sending, ServerAnswer
from unstuck.clock import FakeClock
from unstuck.operations import bulks, events, jobs, stats
from unstuck.operations.nouns import OPERATIONS

DUE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def rogue_between(url: str, here: unstuck.App) -> Rogue:
    """Loses the first answer of the real server."""
    with_code(here)
    deploy(here)
    return Rogue(losing_the_answer(url), passing_on(url))


# --- against a real server ------------------------------------------------------------------------------------------


def test_a_submit_whose_answer_was_lost_is_one_job_and_ours(rogue_between: Rogue, here: unstuck.App) -> None:
    with rogue_between as rogue, unstuck.Client(rogue.url) as client:
        job = client.jobs.enqueue("note", args=["x"])

    assert len(rogue.heard) == 2
    assert job.created, "nobody else has the id that was chosen"
    assert [each.id for each in here.jobs.list()] == [job.id]


def test_a_submit_with_a_key_whose_answer_was_lost_is_one_job(rogue_between: Rogue, here: unstuck.App) -> None:
    with rogue_between as rogue, unstuck.Client(rogue.url) as client:
        job = client.jobs.enqueue("note", args=["x"], key="k")

    assert not job.created, "it may have been somebody else's: nobody can say"
    assert [each.id for each in here.jobs.list()] == [job.id]


def test_a_batch_whose_answer_was_lost_is_stored_once(rogue_between: Rogue, here: unstuck.App) -> None:
    with rogue_between as rogue, unstuck.App(rogue.url) as app:
        bill = with_code(app)
        stored = bill.enqueue_many([{"amount": n, "due": DUE} for n in range(7)])

    assert [job.is_new for job in stored] == [True] * 7
    assert {job.id for job in stored} == {each.id for each in here.jobs.list()}
    assert len(rogue.heard) == 2


def test_an_event_whose_answer_was_lost_counts_once(rogue_between: Rogue) -> None:
    with rogue_between as rogue, unstuck.Client(rogue.url) as client:
        sent = client.events.send("paid", {"n": 1}, topic="t")

    assert not sent.repeated
    assert sent.number == 1


def test_what_would_act_again_is_not_repeated(rogue_between: Rogue, here: unstuck.App) -> None:
    job = here.jobs.enqueue("note", args=["x"])
    with (
        rogue_between as rogue,
        unstuck.Client(rogue.url) as client,
        pytest.raises(unstuck.OutcomeUnknown, match="look what it did before you ask it again") as unknown,
    ):
        client.jobs.cancel(job.id)

    assert len(rogue.heard) == 1
    assert "jobs.cancel" in str(unknown.value)
    assert here.jobs.wait(job.id, timeout=0).state == "CANCELLED"


def test_coroutines_repeat_alike(rogue_between: Rogue, here: unstuck.App) -> None:
    async def enqueue() -> unstuck.NewJobView:
        async with unstuck.AsyncClient(rogue_between.url) as client:
            return await client.jobs.enqueue("note", args=["x"])

    with rogue_between:
        job = asyncio.run(enqueue())
    assert job.created
    assert len(here.jobs.list()) == 1


def test_a_server_that_comes_back_is_waited_for(url: str) -> None:
    away = (problem(503, "StoreBusy"), answering(502), hanging_up, problem(503, "NotReady"))
    with Rogue(*away, passing_on(url)) as rogue, unstuck.Client(rogue.url) as client:
        client.stats.get()
    assert len(rogue.heard) == 5


def test_a_rate_limit_is_waited_out_as_long_as_the_server_says(url: str) -> None:
    refused = problem(429, "TooManyRequests", [("Retry-After", "1")])
    with Rogue(refused, passing_on(url)) as rogue, unstuck.Client(rogue.url) as client:
        client.stats.get()
    assert len(rogue.heard) == 2


# --- the rules, without waiting -------------------------------------------------------------------------------------


class Wire:
    """Answers in turn, the last one for ever; time passes only in pauses."""

    def __init__(self, *heard: Heard) -> None:
        self._heard = heard
        self.clock = FakeClock()
        self.sent: list[Sending] = []

    def send(self, sending: Sending) -> Heard:
        self.sent.append(sending)
        return self._heard[min(len(self.sent), len(self._heard)) - 1]

    def ask(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        asking = Asking("https://x.example", 30.0, clock=self.clock)
        return drive(asking.steps(operation, args, kwargs), self.send, self.clock)


def told(status: int, code: str, **headers: str) -> ServerAnswer:
    body = f'{{"code": "{code}", "detail": "so it is", "request_id": "r"}}'.encode()
    return ServerAnswer(status, {"content-type": "application/problem+json", **headers}, body)


SINCE = datetime(2026, 11, 1, tzinfo=UTC)
NOT_SENT = NoAnswerHeard("ConnectError", was_sent=False)
LOST = NoAnswerHeard("ReadTimeout", was_sent=True)
BAD_GATEWAY = ServerAnswer(502, {"content-type": "text/html"}, b"<html>")


def _needed(operation: Any) -> dict[str, Any]:
    """Something for each argument that this operation cannot do without, by its type."""
    values = {"int": 1, "float": 1.0, "str": "x", "datetime": SINCE}
    _, *parameters = inspect.signature(operation.function).parameters.values()
    needed = [each for each in parameters if each.default is each.empty]
    return {each.name: values.get(str(each.annotation), 1) for each in needed}


@pytest.mark.parametrize("operation", [each for each in OPERATIONS.values() if each.entry.effect == "change"])
def test_what_never_arrived_is_sent_again_whatever_it_is_and_within_bounds(operation: Any) -> None:
    wire = Wire(NOT_SENT)

    with pytest.raises(unstuck.StoreUnavailable, match=r"https://x\.example"):
        wire.ask(operation, **_needed(operation))

    assert 8 <= len(wire.sent) <= 30
    assert wire.clock.boot() - 1000 <= 30
    assert len(set(wire.sent)) == 1, "a repeat is the same request, with the same id"


@pytest.mark.parametrize("heard", [LOST, BAD_GATEWAY, told(503, "OutcomeUnknown"), told(500, "ServerError")])
def test_what_may_have_been_done_is_repeated_only_where_that_is_safe(heard: Heard) -> None:
    for operation in OPERATIONS.values():
        if operation.entry.effect == "change":
            assert is_safe(operation, {}) == (operation.entry.repeat == "same")
    for operation, args in ((bulks.start, ("cancel",)), (jobs.cancel, ("j",)), (jobs.retry, ("j",))):
        wire = Wire(heard)
        with pytest.raises(unstuck.OutcomeUnknown, match="look what it did"):
            wire.ask(operation, *args)
        assert len(wire.sent) == 1
    for operation, kwargs in ((jobs.enqueue, {}), (events.send, {"id": "1"}), (jobs.run_now, {})):
        wire = Wire(heard)
        with pytest.raises(unstuck.OutcomeUnknown, match="ask it again"):
            wire.ask(operation, "x", **kwargs)
        assert (len(wire.sent) == 1) == (heard == told(500, "ServerError"))


def test_once_it_may_have_been_done_no_later_failure_says_that_nothing_was() -> None:
    wire = Wire(LOST, NOT_SENT)
    with pytest.raises(unstuck.OutcomeUnknown):
        wire.ask(jobs.enqueue, "w")
    wire = Wire(LOST, NOT_SENT)
    with pytest.raises(unstuck.StoreUnavailable):
        wire.ask(stats.get)


@pytest.mark.parametrize("code", ["StoreBusy", "StoreUnavailable", "Overloaded", "NotReady"])
def test_nothing_done_is_told_at_once_where_a_repeat_would_act_again(code: str) -> None:
    wire = Wire(told(503, code))
    with pytest.raises((unstuck.StoreBusy, unstuck.StoreUnavailable)):
        wire.ask(jobs.retry, "j")
    assert len(wire.sent) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (504, "NoAnswer"), (429, "TooManyQueued"), (409, "IllegalMove"), (429, "TooManyAttempts"),
        (503, "SchemaMismatch"),
    ],
)  # fmt: skip
def test_a_refusal_is_not_repeated(status: int, code: str) -> None:
    wire = Wire(told(status, code, **{"retry-after": "1"}))
    with pytest.raises(getattr(unstuck.errors, code)):
        wire.ask(jobs.enqueue, "w", key="k")
    assert len(wire.sent) == 1


def test_a_pause_is_as_long_as_the_server_says_and_no_longer_than_the_caller_allows() -> None:
    unreadable = ("99999999999", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT")
    for after, times in {"7": (4, 5), "31": (1, 1), **dict.fromkeys(unreadable, (8, 30))}.items():
        wire = Wire(told(429, "TooManyRequests", **{"retry-after": after}))
        with pytest.raises(unstuck.StoreBusy):
            wire.ask(stats.get)
        assert times[0] <= len(wire.sent) <= times[1], after


def test_a_server_may_be_silent_for_as_long_as_an_operation_waits() -> None:
    for kwargs, seconds in (({}, 10.0), ({"timeout": "1m"}, 60.0), ({"timeout": 0}, 0.0)):
        wire = Wire(told(404, "UnknownJob"))
        with pytest.raises(unstuck.UnknownJob):
            wire.ask(jobs.stack, "j", **kwargs)
        assert wire.sent[0].patience == seconds + asking.MARGIN
    wire = Wire(told(404, "UnknownJob"))
    with pytest.raises(unstuck.UnknownJob):
        wire.ask(jobs.cancel, "j")
    assert wire.sent[0].patience == asking.READ


def test_what_cannot_be_sent_is_refused_here() -> None:
    for value in (float("nan"), {1, 2}, object()):
        wire = Wire(NOT_SENT)
        with pytest.raises(unstuck.InvalidInput, match="JSON"):
            wire.ask(jobs.enqueue, "w", args=[value])
        assert not wire.sent


def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 1000)
    with (
        Rogue(answering(200, b"x" * 5000)) as rogue,
        unstuck.Client(rogue.url, timeout=0.3) as client,
        pytest.raises(unstuck.StoreUnavailable, match="larger than"),
    ):
        client.stats.get()
