"""Steps: a function that is called once, and whose result every later attempt finds in the journal."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from typing import Any

from unstuck.clock import boot
from unstuck.executor.flow.arguments import check_seconds, stored_text
from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.ordinals import Ordinals
from unstuck.executor.flow.parking import Parking
from unstuck.executor.flow.rules import FlowRules, HandlerContext
from unstuck.executor.flow.step_function import StepStopped, call_step, is_coroutine
from unstuck.executor.messages import RecordStep
from unstuck.executor.tracing import begin_step, end_step
from unstuck.model.errors import BudgetExceeded, Fail, InvalidInput, NotStorable, Retry, quoted
from unstuck.model.payload import check_name
from unstuck.model.policy import Backoff
from unstuck.model.waits import MOST_STEPS

MAX_STEP_RETRIES = 1000
#: Between two tries of a step within one attempt.
STEP_BACKOFF = Backoff(base=0.1, factor=2.0, cap=10.0)


class FlowSteps:
    def __init__(
        self,
        context: HandlerContext,
        rules: FlowRules,
        journal: AttemptJournal,
        parking: Parking,
        ordinals: Ordinals,
        pack: Callable[[Any], str],
        max_result: int,
    ) -> None:
        self._context = context
        self._rules = rules
        self._journal = journal
        self._parking = parking
        self._ordinals = ordinals
        self._pack = pack
        self._max_result = max_result

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
        retries: int,
    ) -> Any:
        self._rules.begin("step")
        name = check_name(name, "step")
        if not callable(function):
            raise InvalidInput(f"step {name!r}: {quoted(function)} is not a function")
        limit = None if timeout is None else check_seconds(timeout, "timeout")
        if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MAX_STEP_RETRIES:
            raise InvalidInput(f"retries={quoted(retries)} is not a whole number between 0 and {MAX_STEP_RETRIES}")
        call = functools.partial(function, *args, **kwargs)
        ordinal = self._ordinals.take("step", name)
        undo = functools.partial(self._ordinals.untake, "step", name, ordinal)
        return self._rules.run("step", self._step(name, ordinal, call, limit, retries), undo)

    async def _step(
        self, name: str, ordinal: int, call: Callable[[], Any], timeout: float | None, retries: int
    ) -> Any:
        try:
            await self._journal.load()
            # Each is asked for once in an attempt: what was given out need not be kept.
            text = self._journal.steps.pop((name, ordinal), None)
            if text is None:
                text = await self._take(name, ordinal, call, timeout, retries)
        except BaseException:
            self._ordinals.untake("step", name, ordinal)
            raise
        self._ordinals.end("step", name)
        # Always by way of JSON: what a first run gives is what every later one will.
        return json.loads(text)

    async def _take(
        self, name: str, ordinal: int, call: Callable[[], Any], timeout: float | None, retries: int
    ) -> str:
        while not self._parking.begin_step():
            await self._rules.let_park()
        try:
            # Cut off while it was being recorded, it is the same step still, and must not be called again.
            answer = self._journal.sent_before("step", name, ordinal)
            if answer is None:
                self._check_room(name)
                began = boot()
                text = self._packed(name, await self._traced(name, call, timeout, retries))
                record = RecordStep(name, ordinal, text, max(0, int((boot() - began) * 1000)))
                answer = self._journal.send("step", name, ordinal, record, text)
            text, _ = await self._journal.receive("step", name, ordinal, answer)
            self._journal.count_step()
            return text
        finally:
            self._parking.end_step()

    def _check_room(self, name: str) -> None:
        """Before the function is called: what cannot be recorded should not happen."""
        if self._journal.recorded >= MOST_STEPS:
            raise InvalidInput(f"step {name!r} is one too many: a job has {MOST_STEPS:,} steps at most")

    async def _traced(self, name: str, call: Callable[[], Any], timeout: float | None, retries: int) -> Any:
        if (span := begin_step(name)) is None:
            return await self._try(name, call, timeout, retries)
        try:
            value = await self._try(name, call, timeout, retries)
        except BaseException as error:
            end_step(span, error)
            raise
        end_step(span)
        return value

    async def _try(self, name: str, call: Callable[[], Any], timeout: float | None, retries: int) -> Any:
        is_async = is_coroutine(call)
        for failures in itertools.count(1):
            try:
                return await call_step(self._journal.calls, name, call, timeout, is_async=is_async)
            except StepStopped:
                self._rules.stop()
            except (Fail, Retry, BudgetExceeded, InvalidInput):
                raise
            except Exception:
                if failures > retries:
                    raise
            await self._context.sleep(STEP_BACKOFF.delay(failures, 0.0))
        raise AssertionError

    def _packed(self, name: str, value: Any) -> str:
        where = f"the result of step {name!r}"
        text = stored_text(self._pack, value, where)
        size = len(text) if text.isascii() else len(text.encode())
        if size > self._max_result:
            raise NotStorable(where, f"it is {size:,} bytes of JSON; the limit is {self._max_result:,}")
        return text
