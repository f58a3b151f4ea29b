"""Handlers of an app that traces, as users write them; what its executor has recorded is asked by `recorded`."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from types import SimpleNamespace
from typing import Any

from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.executor import apps
from tests.executor.apps import registry, workflow
from unstuck.executor.context import Context
from unstuck.model.errors import Fail

app = SimpleNamespace(_registry=registry)
assert apps.app._registry is registry
exporter = InMemorySpanExporter()
heard: list[logging.LogRecord] = []


class Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        heard.append(record)


def configure() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    logging.getLogger().addHandler(Keep())
    logging.getLogger().setLevel(logging.INFO)


registry.on_start.append(configure)


def told(span: ReadableSpan) -> dict[str, Any]:
    return {
        "name": span.name,
        "kind": span.kind.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "parent": span.parent and f"{span.parent.span_id:016x}",
        "links": [f"{link.context.span_id:016x}" for link in span.links],
        "status": span.status.status_code.name,
        "attributes": dict(span.attributes or {}),
        "events": [{"name": event.name, **(event.attributes or {})} for event in span.events],
    }


@workflow()
def recorded() -> list[dict[str, Any]]:
    """Since it was last asked."""
    spans = exporter.get_finished_spans()
    exporter.clear()
    return [told(span) for span in spans]


@workflow()
def what_is_current() -> dict[str, Any]:
    span = trace.get_current_span().get_span_context()
    return {
        "trace": f"{span.trace_id:032x}",
        "span": f"{span.span_id:016x}",
        "state": span.trace_state.to_header(),
        "baggage": dict(baggage.get_all()),
    }


@workflow()
async def traced_nested(number: int) -> str:
    """Its own trace id, after others have run in between."""
    tracer = trace.get_tracer("app")
    with tracer.start_as_current_span(f"own {number}"):
        await asyncio.sleep(0.001 * (number % 7))
        return await asyncio.create_task(_trace_id())


@workflow()
def traced_nested_on_thread(number: int) -> str:
    threading.Event().wait(0.001 * (number % 7))
    return f"{trace.get_current_span().get_span_context().trace_id:032x}"


async def _trace_id() -> str:
    await asyncio.sleep(0.001)
    return f"{trace.get_current_span().get_span_context().trace_id:032x}"


@workflow()
def traced_breaks() -> None:
    raise ValueError("no such order")


@workflow()
async def traced_breaks_async() -> None:
    raise Fail("not again")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


@workflow()
def traced_breaks_unspeakably() -> None:
    raise Unspeakable


@workflow()
def traced_logs() -> list[dict[str, Any]]:
    heard.clear()
    logging.getLogger("shop").info("sold", extra={"job": "mine", "trace_id": "mine too"})
    names = ("unstuck_job", "unstuck_workflow", "unstuck_tenant", "unstuck_attempt", "unstuck_trace", "unstuck_span")
    return [{name: getattr(record, name) for name in (*names, "job", "trace_id")} for record in heard]


@workflow()
def traced_logs_of_nobody() -> Any:
    """From a thread that has no contextvars of ours."""
    made: list[logging.LogRecord] = []
    thread = threading.Thread(target=lambda: made.append(logging.makeLogRecord({})))
    thread.start()
    thread.join()
    return made[0].__dict__["unstuck_job"]


@workflow()
def traced_hangs(ctx: Context) -> None:
    os.write(2, b"")
    threading.Event().wait(60)


class Saboteur(SimpleSpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: Any) -> None:
        raise SystemExit(3)


@workflow()
def sabotage() -> None:
    """From now on the provider fails at every turn."""
    trace.get_tracer_provider().add_span_processor(Saboteur(exporter))  # type: ignore[attr-defined]
