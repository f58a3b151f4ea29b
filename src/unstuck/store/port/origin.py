"""From where something is asked: by which API key, from which address. The audit keeps it beside who asks.

It travels beside the arguments and not among them, so that no verb can forget it: who asks over HTTP is known where
the operation is called, and the line of the audit is written some calls below.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Origin(NamedTuple):
    """None: of whoever has the database itself nothing is known."""

    key: str | None = None
    address: str | None = None


_ORIGIN: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - a tuple that nobody can change


@contextmanager
def asking_from(key: str | None, address: str | None) -> Iterator[None]:
    before = _ORIGIN.set(Origin(key or None, address or None))
    try:
        yield
    finally:
        _ORIGIN.reset(before)


def asked_from() -> Origin:
    return _ORIGIN.get()
