"""The trace that a job belongs to: a W3C trace context as text, bounded. What is not well formed is dropped, never
refused: nobody's job fails for a header.

It is kept as up to three lines, of which the later ones may be missing: traceparent, tracestate, baggage.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_STATE = 512
MOST_BAGGAGE = 1024
#: The longest text that is kept.
MOST_TRACE = 55 + 1 + MOST_STATE + 1 + MOST_BAGGAGE

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PRINTABLE = re.compile(r"[\x20-\x7e]+")


class TraceContext(NamedTuple):
    """As its three headers say it; an empty one is not sent."""

    parent: str
    state: str = ""
    baggage: str = ""

    @classmethod
    def of(cls, parent: str | None, state: str | None = None, baggage: str | None = None) -> TraceContext | None:
        """None: there is no trace, or none that can be read."""
        if parent is None or (known := _parent(parent.strip())) is None:
            return None
        return cls(known, _bounded(state, MOST_STATE), _bounded(baggage, MOST_BAGGAGE))

    @classmethod
    def read(cls, text: str | None) -> TraceContext | None:
        """What `text` has kept, or an executor says."""
        return None if text is None or len(text) > MOST_TRACE else cls.of(*text.split("\n", 2))

    @property
    def text(self) -> str:
        return "\n".join(self).rstrip("\n")

    @property
    def trace_id(self) -> str:
        return self.parent[3:35]

    @property
    def span_id(self) -> str:
        return self.parent[36:52]

    @property
    def headers(self) -> dict[str, str]:
        return {name: said for name, said in zip(HEADERS, self, strict=True) if said}


HEADERS = ("traceparent", "tracestate", "baggage")


def checked(text: str | None) -> str | None:
    """A text as it may be kept; None: it says no trace."""
    known = TraceContext.read(text)
    return None if known is None else known.text


def _parent(said: str) -> str | None:
    """Of a version to come, what ours can say of it."""
    found = _PARENT.fullmatch(said)
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not (trace.strip("0") and span.strip("0")):
        return None
    return f"00-{trace}-{span}-{flags}"


def _bounded(said: str | None, most: int) -> str:
    said = (said or "").strip()
    return said if len(said) <= most and _PRINTABLE.fullmatch(said) else ""
