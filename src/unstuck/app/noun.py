"""Noun: what the methods of `app.queues` and its kin have in common."""

from __future__ import annotations

from unstuck.app.engine import Engine


class Noun:
    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
