"""Attempts as spans, in the process and with the provider of the app."""

from __future__ import annotations

import json
from typing import Any

from tests.executor.watch import Watch
from unstuck.model.settlement import Raised, Returned
from unstuck.worker.processes import HandlerOutput

HANDLERS = "tests.executor.traced_app:app"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
BEFORE = f"00-{TRACE}-00f067aa0ba902b7-01"


def run(watch: Watch, executor: int, workflow: str, *args: Any, **given: Any) -> Any:
    job = watch.job(workflow, *args)._replace(**given)
    watch.fleet.feed(executor, [job])
    return watch.finished(job.ref)


def result(watch: Watch, executor: int, workflow: str, *args: Any, **given: Any) -> Any:
    outcome = run(watch, executor, workflow, *args, **given).outcome
    assert isinstance(outcome, Returned), outcome
    return json.loads(outcome.result or "")


def recorded(watch: Watch, executor: int) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = result(watch, executor, "recorded")
    return [span for span in spans if span["attributes"].get("unstuck.workflow") != "recorded"]


def test_an_attempt_is_a_span_below_the_submit_linked_to_the_attempt_before(watch: Watch, shared: int) -> None:
    recorded(watch, shared)
    current = result(
        watch, shared, "what_is_current", trace=f"{PARENT}\nvendor=1\nuser=7,plan=gold", span=BEFORE, tenant="acme"
    )
    [span] = recorded(watch, shared)

    assert (span["name"], span["kind"], span["status"]) == ("process default", "CONSUMER", "UNSET")
    assert (span["trace"], span["parent"], span["links"]) == (TRACE, "b7ad6b7169203331", ["00f067aa0ba902b7"])
    assert current == {
        "trace": TRACE,
        "span": span["span"],
        "state": "vendor=1",
        "baggage": {"user": "7", "plan": "gold"},
    }
    facts = span["attributes"]
    assert facts.pop("messaging.message.id").startswith("job-")
    assert facts == {
        "messaging.system": "unstuck",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "unstuck.workflow": "what_is_current",
        "unstuck.tenant": "acme",
        "unstuck.attempt": 3,
        "unstuck.run": 2,
        "unstuck.outcome": "returned",
    }


def test_without_a_trace_of_its_submit_it_begins_one(watch: Watch, shared: int) -> None:
    recorded(watch, shared)
    first, second = (result(watch, shared, "what_is_current")["trace"] for _ in range(2))
    assert first != second
    assert [span["parent"] for span in recorded(watch, shared)] == [None, None]


def test_what_cannot_be_read_as_a_trace_is_none(watch: Watch, shared: int) -> None:
    found = result(watch, shared, "what_is_current", trace="nonsense", span="00-zz")
    assert int(found["trace"], 16) != 0


def test_what_is_not_sampled_is_not_recorded_and_carried_on_all_the_same(watch: Watch, shared: int) -> None:
    recorded(watch, shared)
    assert result(watch, shared, "what_is_current", trace=PARENT[:-2] + "00")["trace"] == TRACE
    assert recorded(watch, shared) == []


def test_fifty_at_once_do_not_mix(watch: Watch, shared: int) -> None:
    recorded(watch, shared)
    for workflow in ("traced_nested", "traced_nested_on_thread"):
        for begin in range(0, 50, 8):
            many = range(begin, min(begin + 8, 50))
            jobs = [watch.job(workflow, n)._replace(trace=f"00-{n + 1:032x}-{7:016x}-01") for n in many]
            watch.fleet.feed(shared, jobs)
            for number, job in zip(many, jobs, strict=True):
                outcome = watch.finished(job.ref).outcome
                assert isinstance(outcome, Returned), outcome
                assert json.loads(outcome.result or "") == f"{number + 1:032x}"
    spans = recorded(watch, shared)
    assert len(spans) == 50 * 3
    attempts = {span["span"]: span for span in spans if span["kind"] == "CONSUMER"}
    for span in spans:
        if span["name"].startswith("own "):
            assert attempts[span["parent"]]["trace"] == span["trace"]


def test_an_error_is_the_status_and_an_event(watch: Watch, shared: int) -> None:
    recorded(watch, shared)
    for workflow, kind, message in (
        ("traced_breaks", "ValueError", "no such order"),
        ("traced_breaks_async", "Fail", "not again"),
        ("traced_breaks_unspeakably", "Unspeakable", "<Unspeakable: its own message could not be made>"),
    ):
        finished = run(watch, shared, workflow, trace=PARENT)
        assert isinstance(finished.outcome, Raised)
        [span] = recorded(watch, shared)
        assert (span["status"], span["attributes"]["error.type"]) == ("ERROR", kind)
        assert span["attributes"]["unstuck.outcome"] == "raised"
        [event] = span["events"]
        assert (event["name"], event["exception.type"], event["exception.message"]) == ("exception", kind, message)
        if workflow == "traced_breaks":
            assert "raise ValueError" in event["exception.stacktrace"]
        # The supervisor knows it, for the attempt that comes next.
        told = [e.text for e in watch.events if isinstance(e, HandlerOutput) and e.ref == finished.ref]
        assert told == [f"00-{TRACE}-{span['span']}-01"]


def test_the_supervisor_knows_the_span_of_a_handler_that_hangs(watch: Watch) -> None:
    executor = watch.executor()
    job = watch.job("traced_hangs")._replace(trace=PARENT)
    watch.fleet.feed(executor, [job])
    told = watch.hear_one(HandlerOutput, ref=job.ref)
    assert (told.kind, told.text[:36]) == ("span", f"00-{TRACE}-")
    watch.fleet.kill(executor, "the test is over")
    watch.died(executor)


def test_records_of_loggers_say_whose_they_are(watch: Watch, shared: int) -> None:
    [said] = result(watch, shared, "traced_logs", trace=PARENT, tenant="acme")
    job, span = said.pop("unstuck_job"), said.pop("unstuck_span")
    assert job.startswith("job-")
    assert len(span) == 16
    assert said == {
        "unstuck_workflow": "traced_logs",
        "unstuck_tenant": "acme",
        "unstuck_attempt": 3,
        "unstuck_trace": TRACE,
        # What the app says itself is its own.
        "job": "mine",
        "trace_id": "mine too",
    }
    assert result(watch, shared, "traced_logs_of_nobody") is None


def test_a_provider_that_fails_costs_its_spans_and_no_job(watch: Watch) -> None:
    executor = watch.executor()
    run(watch, executor, "sabotage")
    assert result(watch, executor, "traced_nested_on_thread", 1, trace=PARENT) is not None
    assert isinstance(run(watch, executor, "traced_breaks").outcome, Raised)
