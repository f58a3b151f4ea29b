"""Noun: how a method of `app.queues` and its kin asks an operation."""

from __future__ import annotations

from typing import Any, ParamSpec, TypeVar

from unstuck.app.engine import Engine
from unstuck.app.job import CancellableClock
from unstuck.observe.stream import AsyncStream, Source, Stream
from unstuck.observe.wait import await_end, wait_for_end
from unstuck.operations.kinds import Duration, patience
from unstuck.operations.table import Operation
from unstuck.views.jobs import JobView

P = ParamSpec("P")
V = TypeVar("V")


class Noun:
    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _ask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        return operation(self._engine.caller(tenant, by), *args, **kwargs)

    async def _aask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        def ask() -> V:
            return self._ask(operation, tenant, by, *args, **kwargs)

        return await self._engine.in_thread(ask)

    def _wait(
        self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration
    ) -> JobView:
        """By looks of its own: a handler that waits still hears when its own job is asked to stop."""

        def look(name: str) -> JobView:
            return self._ask(operation, tenant, None, name, timeout=0)

        most, ident = patience(timeout), look(job).id
        return wait_for_end(lambda: look(ident), most, CancellableClock()) or look(ident)

    async def _await(
        self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration
    ) -> JobView:
        """The same without holding a thread meanwhile: there are few."""

        async def look(name: str) -> JobView:
            return await self._aask(operation, tenant, None, name, timeout=0)

        most, ident = patience(timeout), (await look(job)).id
        return await await_end(lambda: look(ident), most) or await look(ident)

    def _follow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[V]:
        source = operation(self._engine.caller(tenant), *args, **kwargs)
        return Stream(source, clock=CancellableClock())

    def _afollow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[V]:
        def open_() -> Source[V]:
            return operation(self._engine.caller(tenant), *args, **kwargs)

        in_thread = self._engine.in_thread
        return AsyncStream(lambda: in_thread(open_), lambda source: in_thread(source.look))
