"""A provider of spans for tests in this process, and what it has recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Tracer:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def span(self, name: str) -> trace.Span:
        return self.provider.get_tracer("tests").start_span(name)

    def recorded(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


@contextmanager
def provider_set(provider: TracerProvider | None) -> Iterator[None]:
    """A program sets its provider once; tests want none or one of their own."""
    before, trace._TRACER_PROVIDER = trace._TRACER_PROVIDER, provider
    try:
        yield
    finally:
        trace._TRACER_PROVIDER = before


def parent_of(span: trace.Span | ReadableSpan) -> str:
    """As a traceparent names it."""
    known = span.get_span_context()
    assert known is not None
    return f"00-{known.trace_id:032x}-{known.span_id:016x}-{known.trace_flags:02x}"
