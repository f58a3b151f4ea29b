"""An enqueue inside a span carries it, by every door; outside of one it begins a trace if somebody wants spans."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

import unstuck
from tests.app.hand import Hand
from tests.support.builders import a_worker, boom, claim_all, settle
from tests.support.tracer import Tracer, parent_of, provider_set
from unstuck.model.errors import KeyConflict
from unstuck.model.trace import MOST_STATE
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore
from unstuck.tracing import messaging

Greet = unstuck.Workflow[[str], str]


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    tracer = Tracer()
    with provider_set(tracer.provider):
        yield tracer


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck.App]:
    with unstuck.App(store_url, name="shop") as app:
        yield app


@pytest.fixture
def greet(app: unstuck.App) -> Greet:
    @app.workflow
    def greet(name: str) -> str:
        return f"Hello {name}"

    app._engine.store.register_workflows(app._registry.records())
    return greet


def carried(store: SqlStore) -> list[str | None]:
    return [job.trace for job in claim_all(store, a_worker(store))]


def test_an_enqueue_is_a_span_below_the_current_one(greet: Greet, store: SqlStore, tracer: Tracer) -> None:
    with trace.use_span(tracer.span("request")) as around:
        job = greet.enqueue("Ada")

    [send] = tracer.recorded()
    assert (send.name, send.kind) == ("send default", SpanKind.PRODUCER)
    assert send.parent == around.get_span_context()
    assert dict(send.attributes or {}) == {
        "messaging.system": "unstuck",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "default",
        "messaging.message.id": job.id,
        "unstuck.workflow": "greet",
    }
    assert carried(store) == [parent_of(send)]
    assert not trace.get_current_span().get_span_context().is_valid, "nothing of it is left behind"


def test_names_are_those_of_the_conventions(greet: Greet, tracer: Tracer) -> None:
    """Of a version that exists, as OpenTelemetry's own package has it."""
    greet.enqueue_many([("Ada",), ("Bob",)])
    [send] = tracer.recorded()
    assert send.instrumentation_scope is not None
    assert send.instrumentation_scope.schema_url in {version.value for version in Schemas}
    ours = {name for name in send.attributes or {} if name.startswith("messaging.")}
    assert ours <= {value for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")}
    kinds = {kind.value for kind in messaging_attributes.MessagingOperationTypeValues}
    assert {messaging(each, "q")["messaging.operation.type"] for each in ("send", "process")} <= kinds


def test_many_are_one_span(greet: Greet, store: SqlStore, tracer: Tracer) -> None:
    greet.enqueue_many(["Ada", "Bob", "Cyd"])
    [send] = tracer.recorded()
    assert (send.attributes or {})["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in (send.attributes or {})
    assert carried(store) == [parent_of(send)] * 3


def test_coroutines_and_operations_by_name_carry_it_too(
    app: unstuck.App, greet: Greet, store: SqlStore, tracer: Tracer
) -> None:
    async def ask() -> None:
        with trace.use_span(tracer.span("request")):
            await greet.aenqueue("Ada")
            await app.jobs.aenqueue("greet", args=["Bob"])
            app.jobs.enqueue("greet", args=["Cyd"])

    asyncio.run(ask())
    sends = tracer.recorded()
    assert [send.name for send in sends] == ["send default"] * 3
    assert len({send.parent and send.parent.span_id for send in sends}) == 1
    assert carried(store) == [parent_of(send) for send in sends]


def test_a_submit_that_is_refused_is_an_error_of_its_span(greet: Greet, tracer: Tracer) -> None:
    greet.using(key="k").enqueue("Ada")
    with pytest.raises(KeyConflict):
        greet.using(key="k").enqueue("Bob")
    assert [span.status.status_code for span in tracer.recorded()] == [StatusCode.UNSET, StatusCode.ERROR]
    assert (tracer.recorded()[1].attributes or {})["error.type"] == "KeyConflict"


def test_a_replay_belongs_to_who_asks_and_links_to_what_it_repeats(
    greet: Greet, store: SqlStore, tracer: Tracer
) -> None:
    job, span = greet.enqueue("Ada"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    worker = a_worker(store)
    [attempt] = claim_all(store, worker)
    store.settle(worker.number, [Report(attempt.ref, replace(boom(), retry=False), 5, span=span)])
    with trace.use_span(tracer.span("request")) as around:
        again = job.replay()

    send = tracer.recorded()[-1]
    assert (send.name, send.parent) == ("send default", around.get_span_context())
    assert (send.attributes or {})["messaging.message.id"] == again.id
    [attempt] = claim_all(store, worker)
    assert (attempt.id, attempt.trace, attempt.span) == (again.id, parent_of(send), span)
    assert again.view().trace == f"{around.get_span_context().trace_id:032x}"


@pytest.mark.parametrize("has_run", [False, True])
def test_a_replay_of_what_completed_or_never_ran_links_to_its_enqueue(
    greet: Greet, store: SqlStore, tracer: Tracer, has_run: bool
) -> None:
    job, worker = greet.enqueue("Ada"), a_worker(store)
    if has_run:
        [attempt] = claim_all(store, worker)
        settle(store, worker, attempt.ref)
    else:
        job.cancel()
    job.replay()
    first, second = tracer.recorded()
    assert [(each.trace, each.span) for each in claim_all(store, worker)] == [(parent_of(second), parent_of(first))]


def test_without_a_provider_what_is_current_is_carried_on(greet: Greet, store: SqlStore) -> None:
    state = TraceState([("vendor", "1")])
    far = NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1), trace_state=state))
    token = context.attach(baggage.set_baggage("user", "7"))
    try:
        with provider_set(None), trace.use_span(far):
            greet.enqueue("Ada")
        greet.enqueue("Bob")
    finally:
        context.detach(token)
    assert carried(store) == [f"00-{7:032x}-{8:016x}-01\nvendor=1\nuser=7", None]


def test_what_is_too_long_stays_behind(greet: Greet, store: SqlStore) -> None:
    state = TraceState([(f"vendor{n}", "x" * 200) for n in range(MOST_STATE // 200 + 1)])
    far = NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1), trace_state=state))
    with provider_set(None), trace.use_span(far):
        greet.enqueue("Ada")
    assert carried(store) == [f"00-{7:032x}-{8:016x}-01"]


def test_a_provider_that_fails_costs_no_job(greet: Greet, store: SqlStore) -> None:
    class Broken(Tracer):
        def get_tracer(self, *_: object, **__: object) -> None:
            raise RuntimeError("no tracer today")

    with provider_set(Broken()):  # type: ignore[arg-type]
        assert greet.enqueue("Ada").is_new
    assert carried(store) == [None]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_opentelemetry_is_not_needed_and_not_imported(store_url: str, store: SqlStore) -> None:
    """Where it is not installed, nothing is missed."""
    code = """
        import sys
        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "opentelemetry":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Blocker())
        import unstuck
        app = unstuck.App(sys.argv[1])
        @app.workflow
        def greet(name: str) -> str: return name
        greet.enqueue("Ada")
        greet.enqueue_many(["Bob", "Cyd"])
        app.close()
        assert not any(name.startswith("opentelemetry") for name in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), store_url], check=True, timeout=60)
    assert [job.trace for job in Hand(store).claim()] == [None, None, None]
