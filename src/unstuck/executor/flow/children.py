"""Children: jobs that this job starts (`spawn`), and whose results it waits for (`gather`)."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from unstuck.executor.flow.arguments import wait_limit
from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.ordinals import Ordinals
from unstuck.executor.flow.promise import Promise
from unstuck.executor.flow.results import results_of
from unstuck.executor.flow.rules import FlowRules, HandlerContext, not_awaited
from unstuck.executor.flow.waits import IN_HANDLER, FlowWaits
from unstuck.executor.messages import ChildAnswer, GatherAnswer, GatherMessage, SpawnMessage
from unstuck.executor.tracing import send_with
from unstuck.model.children import MOST_CHILDREN
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.job import NewJob
from unstuck.model.payload import check_name, plain_text
from unstuck.model.waits import ChildRef, Wait, WaitKind


class FlowChildren:
    def __init__(
        self,
        context: HandlerContext,
        rules: FlowRules,
        journal: AttemptJournal,
        waits: FlowWaits,
        ordinals: Ordinals,
    ) -> None:
        self._context = context
        self._rules = rules
        self._journal = journal
        self._waits = waits
        self._ordinals = ordinals
        # Reentrant: the collector may close a coroutine here that was gathering.
        self._lock = threading.RLock()
        self._gathered: set[str] = set()

    def spawn(self, workflow: Any, args: tuple[Any, ...], kwargs: dict[str, Any], on_end: Any, name: Any) -> Any:
        self._rules.begin("spawn")
        if on_end not in ("cancel", "leave"):
            raise InvalidInput(f"on_end={quoted(on_end)} is not one of cancel, leave")
        draft = getattr(workflow, "draft", None)
        if not callable(draft):
            raise InvalidInput(f"spawn takes a workflow of the app, not {quoted(workflow)}")
        job = draft(args, kwargs, self._context.tenant)
        name = check_name(name, "child") if name is not None else job.workflow
        ordinal = self._ordinals.take("child", name)
        undo = functools.partial(self._ordinals.untake, "child", name, ordinal)
        return self._rules.run("spawn", self._spawn(name, ordinal, job, on_end), undo)

    async def _spawn(self, name: str, ordinal: int, job: NewJob, on_end: Any) -> ChildRef:
        try:
            child = await self._take(name, ordinal, job, on_end)
        except BaseException:
            self._ordinals.untake("child", name, ordinal)
            raise
        self._ordinals.end("child", name)
        return child

    async def _take(self, name: str, ordinal: int, job: NewJob, on_end: Any) -> ChildRef:
        await self._journal.load()
        known = self._journal.children.get((name, ordinal))
        # One of an earlier run counts only if it completed; that is for the database to say.
        if known is not None and known.run == self._context.run:
            return ChildRef(known.id)
        pending = self._journal.sent_before("child", name, ordinal)
        if pending is None:
            send_with(job)
            pending = self._journal.send("child", name, ordinal, SpawnMessage(name, ordinal, job, on_end))
        _, answer = await self._journal.receive("child", name, ordinal, pending)
        assert isinstance(answer, ChildAnswer)
        return ChildRef(answer.child.id)

    def gather(self, children: Sequence[Any], timeout: Any, release_target: bool) -> Any:
        self._rules.begin_wait("gather")
        self._rules.keep_order("gather", IN_HANDLER)
        ids = tuple(_child_id(child) for child in children)
        if len(ids) > MOST_CHILDREN:
            raise InvalidInput(f"gather of {len(ids):,} children; the limit is {MOST_CHILDREN:,}")
        limit = wait_limit(timeout)
        with self._lock:
            for child, count in Counter(ids).items():
                if count > 1 or child in self._gathered:
                    raise InvalidInput(f"child {child} is gathered twice")
            self._gathered.update(ids)
        key = self._waits.take_key(None, WaitKind.CHILDREN)
        wait = Wait(WaitKind.CHILDREN, key, timeout=limit, children=ids, release_target=bool(release_target))
        return self._rules.run("gather", self._gather(wait), functools.partial(self._ungather, wait))

    async def _gather(self, wait: Wait) -> list[Any]:
        if not wait.children:
            return []
        try:
            ended = await self._ended(wait)
        except BaseException:
            self._ungather(wait)
            raise
        try:
            return results_of(ended)
        except InvalidInput:
            # Too large together; its key is answered all the same.
            self._release(wait.children)
            raise

    async def _ended(self, wait: Wait) -> str | None:
        await self._journal.load()
        record = self._waits.answered(wait)
        if record is not None:
            return record.payload
        # Asked first: a deadlock must be told while there is still a handler to tell, and if all have ended nothing
        # need park.
        answer = await self._journal.ask(GatherMessage(list(wait.children), wait.release_target))
        assert isinstance(answer, GatherAnswer)
        if answer.ended is None:
            await self._waits.park(wait)
        return answer.ended

    def _ungather(self, wait: Wait) -> None:
        self._waits.give_back(wait.key)
        self._release(wait.children)

    def _release(self, children: Sequence[str]) -> None:
        """They gave nothing: they may be asked for in another way."""
        with self._lock:
            self._gathered.difference_update(children)


def _child_id(child: Any) -> str:
    if isinstance(child, Promise):
        raise not_awaited("spawn")
    ident = child if isinstance(child, str) else getattr(child, "id", None)
    if not isinstance(ident, str) or not ident or len(ident) > 100:
        raise InvalidInput(f"gather takes what ctx.spawn gave, one by one, not {quoted(child)}")
    return str(plain_text(ident))
