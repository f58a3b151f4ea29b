"""Noun: what the methods of `app.queues` and its kin have in common; AsyncNoun: those of an AsyncClient."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstuck.app.engine import Engine
    from unstuck.app.remote import AsyncEngine


class Noun:
    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine


class AsyncNoun:
    __slots__ = ("_engine",)

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
