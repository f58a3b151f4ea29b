"""The app of the tracing journeys: it configures OpenTelemetry as its users do; spans go to a file, one per line."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1", name="traced")


class LinesExporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with Path(os.environ["TRACES"]).open("a") as file:
            file.writelines(json.dumps(told(span)) + "\n" for span in spans)
        return SpanExportResult.SUCCESS


def told(span: ReadableSpan) -> dict[str, object]:
    assert span.context is not None
    return {
        "name": span.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "parent": span.parent and f"{span.parent.span_id:016x}",
        "links": [f"{link.context.span_id:016x}" for link in span.links],
        "status": span.status.status_code.name,
        **(span.attributes or {}),
    }


@app.on_executor_start
def trace_jobs() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(LinesExporter()))
    trace.set_tracer_provider(provider)


def act(word: str) -> str:
    with trace.get_tracer("shop").start_as_current_span(f"own {word}"):
        return word


async def act_async(word: str) -> str:
    return act(word)


@app.workflow
def order(ctx: unstuck.Context, number: int) -> list[object]:
    reserved = ctx.step("reserve", act, "reserve")
    shipped = ctx.gather(ctx.spawn(ship, number))
    return [reserved, *shipped, ctx.step("bill", act, "bill", timeout=10)]


@app.workflow
async def order_async(ctx: unstuck.AsyncContext, number: int) -> list[object]:
    reserved = await ctx.step("reserve", act_async, "reserve")
    shipped = await ctx.gather(await ctx.spawn(ship, number))
    return [reserved, *shipped, await ctx.step("bill", act, "bill")]


@app.workflow(queue="parcels")
def ship(number: int) -> int:
    return number


@app.workflow(retries=1, backoff_base=0.05, max_lost=5, suspect_runs=5)
def troubled(ctx: unstuck.Context, trouble: str) -> int:
    if ctx.fence[1] == 1 and trouble == "raises":
        raise ValueError("the first time")
    if ctx.fence[1] == 1:
        threading.Event().wait(0.5)  # its supervisor hears of its span meanwhile
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.fence[1]
