"""Spans, by the OpenTelemetry API of a program that uses it: the one file that knows that API.

Nothing is imported here. Where the program has not imported OpenTelemetry itself there is no provider that could
want a span, and no span that could be current: then each question below costs a look into a dict. Where it has, and
configured no provider, only the context that is current is carried on. Whatever goes wrong in a provider: the span
is missing, and the job is not concerned.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from unstuck.model.trace import TraceContext
from unstuck.version import __version__

_NAME = "unstuck"
#: The version of the conventions that names and attributes go by; those for messaging are still in development.
_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"

SpanKind: TypeAlias = Literal["PRODUCER", "CONSUMER", "INTERNAL"]
Attributes: TypeAlias = Mapping[str, str | int]

#: The provider of the program, and our tracer of it.
_tracer: tuple[Any, Any] = (None, None)


def is_used() -> bool:
    return "opentelemetry.trace" in sys.modules


def has_provider() -> bool:
    """Whether anybody wants spans that have no parent yet."""
    trace = sys.modules.get("opentelemetry.trace")
    try:
        return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    except Exception:
        return False


def current() -> TraceContext | None:
    """The context that is current here, if there is one."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        return _context_of(trace.get_current_span())
    except Exception:
        return None


class OpenSpan:
    """A span that has begun. `carried`: the context that jobs and requests of it belong to."""

    __slots__ = ("_span", "_token", "carried")

    def __init__(self, span: Any, token: Any, carried: TraceContext | None) -> None:
        self._span = span
        self._token = token
        self.carried = carried

    @property
    def is_sampled(self) -> bool:
        return bool(self._span.get_span_context().trace_flags & 1)

    def tell(self, **facts: str | int) -> None:
        """Attributes, with `_` for the dots of their names."""
        try:
            for name, value in facts.items():
                self._span.set_attribute(name.replace("_", "."), value)
        except Exception:
            return

    def fail(self, kind: str, message: str, stack: str | None) -> None:
        try:
            told = {"exception.type": kind, "exception.message": message, "exception.stacktrace": stack or ""}
            self._span.add_event("exception", {name: value for name, value in told.items() if value})
            self._span.set_attribute("error.type", kind)
            trace = sys.modules["opentelemetry.trace"]
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, f"{kind}: {message}"))
        except Exception:
            return

    def end(self, *, is_here: bool = True) -> None:
        """`is_here`: on the thread, and in the contextvars, where it began."""
        try:
            if self._token is not None and is_here:
                sys.modules["opentelemetry.context"].detach(self._token)
            self._span.end()
        except Exception:
            return


def begin(
    name: str,
    kind: SpanKind,
    attributes: Attributes,
    *,
    parent: TraceContext | None = None,
    link: TraceContext | None = None,
    is_root: bool = False,
    is_current: bool = True,
) -> OpenSpan | None:
    """Below `parent`, else below what is current here, unless it `is_root`. None: there is none. Without a provider
    it only carries its parent on."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        return _begin(trace, name, kind, attributes, parent, link, is_root, is_current)
    except Exception:
        return None


class TracedSubmit:
    """Around jobs that are being submitted: a span of its own if there is a provider. `trace`: what they carry."""

    __slots__ = ("_span", "trace")

    def __init__(self, queue: str | None, workflow: str, count: int = 1, *, is_current: bool = True) -> None:
        self._span: OpenSpan | None = None
        if has_provider():
            attributes: dict[str, str | int] = {**messaging("send", queue), "unstuck.workflow": workflow}
            if count != 1:
                attributes["messaging.batch.message_count"] = count
            self._span = begin(f"send {queue or workflow}", "PRODUCER", attributes, is_current=is_current)
        carried = current() if self._span is None else self._span.carried
        self.trace = None if carried is None else carried.text

    def name_jobs(self, jobs: Sequence[str]) -> None:
        if self._span is not None and len(jobs) == 1:
            self._span.tell(messaging_message_id=jobs[0])

    def __enter__(self) -> TracedSubmit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self._span is None:
            return
        try:
            if kind is not None:
                self._span.fail(kind.__name__, str(error), None)
        finally:
            self._span.end()


def messaging(operation: Literal["send", "process"], queue: str | None) -> dict[str, str | int]:
    """What OpenTelemetry's conventions say of every message."""
    named: dict[str, str | int] = {"messaging.destination.name": queue} if queue else {}
    return {
        "messaging.system": _NAME,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        **named,
    }


def _begin(
    trace: Any,
    name: str,
    kind: SpanKind,
    attributes: Attributes,
    parent: TraceContext | None,
    link: TraceContext | None,
    is_root: bool,
    is_current: bool,
) -> OpenSpan | None:
    provider = trace.get_tracer_provider()
    around = _around(trace, parent, is_root)
    span = _tracer_of(trace, provider).start_span(
        name,
        context=around,
        kind=getattr(trace.SpanKind, kind),
        attributes=dict(attributes),
        links=[trace.Link(_span_context(trace, link))] if link is not None else None,
    )
    token = None
    if is_current:
        context = sys.modules["opentelemetry.context"]
        token = context.attach(trace.set_span_in_context(span, around))
    return OpenSpan(span, token, _context_of(span, around))


def _tracer_of(trace: Any, provider: Any) -> Any:
    global _tracer
    known, tracer = _tracer
    if known is not provider:
        tracer = trace.get_tracer(_NAME, __version__, provider, _SCHEMA)
        _tracer = provider, tracer
    return tracer


def _around(trace: Any, parent: TraceContext | None, is_root: bool) -> Any:
    """The context that a span begins in; None: what is current."""
    if parent is None:
        return sys.modules["opentelemetry.context"].Context() if is_root else None
    around = sys.modules["opentelemetry.context"].Context()
    around = trace.set_span_in_context(trace.NonRecordingSpan(_span_context(trace, parent)), around)
    if not parent.baggage:
        return around
    from opentelemetry.baggage.propagation import W3CBaggagePropagator

    return W3CBaggagePropagator().extract({"baggage": parent.baggage}, around)


def _span_context(trace: Any, known: TraceContext) -> Any:
    state = trace.TraceState.from_header([known.state]) if known.state else None
    return trace.SpanContext(
        int(known.trace_id, 16),
        int(known.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(known.parent[-2:], 16)),
        trace_state=state,
    )


def _context_of(span: Any, around: Any = None) -> TraceContext | None:
    known = span.get_span_context()
    if not known.is_valid:
        return None
    parent = f"00-{known.trace_id:032x}-{known.span_id:016x}-{known.trace_flags & 0xFF:02x}"
    return TraceContext.of(parent, known.trace_state.to_header() if known.trace_state else None, _baggage(around))


def _baggage(around: Any) -> str | None:
    if (baggage := sys.modules.get("opentelemetry.baggage")) is None or not baggage.get_all(around):
        return None
    from opentelemetry.baggage.propagation import W3CBaggagePropagator

    carrier: dict[str, str] = {}
    W3CBaggagePropagator().inject(carrier, around)
    return carrier.get("baggage")
