"""Waits: events, approvals and times. An answered wait gives its answer; any other parks the attempt."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from unstuck.executor.caller import UNSET
from unstuck.executor.flow.arguments import check_approvers, check_question, check_seconds, wait_limit
from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.ordinals import Ordinals
from unstuck.executor.flow.parking import Parking
from unstuck.executor.flow.results import results_of
from unstuck.executor.flow.rules import FlowRules, HandlerContext
from unstuck.model.errors import ApprovalRejected, Fail, InvalidInput, Unwind, quoted
from unstuck.model.payload import MAX_PAYLOAD, check_instant, check_name, encode
from unstuck.model.waits import MOST_WAITS, TOO_MANY_WAITS, Answer, Decision, Wait, WaitKind, WaitRecord

#: What to do where the order of calls is chance.
IN_HANDLER = "call it in the handler itself; what that gives may be awaited anywhere"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class FlowWaits:
    """`abandon` is called when the attempt parks: only a task beside the handler's may know of it."""

    def __init__(
        self,
        context: HandlerContext,
        rules: FlowRules,
        journal: AttemptJournal,
        parking: Parking,
        ordinals: Ordinals,
        abandon: Callable[[], None],
    ) -> None:
        self._context = context
        self._rules = rules
        self._journal = journal
        self._parking = parking
        self._ordinals = ordinals
        self._abandon = abandon
        # Reentrant: the collector may close a coroutine here that gives its key back.
        self._lock = threading.RLock()
        #: The keys of this attempt's waits; of a wait without a name, which use of what it is.
        self._keys: dict[str, tuple[WaitKind, str, int] | None] = {}

    def wait_for(self, event: str, timeout: Any, topic: str | None, default: Any, name: str | None) -> Any:
        self._rules.begin_wait("wait_for")
        event = check_name(event, "event")
        wait = Wait(
            WaitKind.EVENT,
            self.take_key(name, WaitKind.EVENT, event),
            event,
            timeout=wait_limit(timeout),
            topic=None if topic is None else check_name(topic, "topic"),
            on_timeout="fail" if default is UNSET else "default",
            default=None if default is UNSET else encode(default, f"the default of event {event!r}", MAX_PAYLOAD),
        )
        return self._run("wait_for", wait)

    def approval(self, question: str, who: Any, timeout: Any, on_timeout: Any, name: str | None) -> Any:
        self._rules.begin_wait("approval")
        if name is None:
            self._rules.keep_order("approval", "give it a name of its own, name=…")
        if on_timeout not in ("fail", "reject", "approve"):
            raise InvalidInput(f"on_timeout={quoted(on_timeout)} is not one of fail, reject, approve")
        wait = Wait(
            WaitKind.APPROVAL,
            self.take_key(name, WaitKind.APPROVAL),
            check_question(question),
            timeout=wait_limit(timeout),
            who=check_approvers(who),
            on_timeout=on_timeout,
        )
        return self._run("approval", wait)

    def park_for(self, seconds: float) -> Any:
        self._rules.begin_wait("park_for")
        self._rules.keep_order("park_for", IN_HANDLER)
        limit = check_seconds(seconds, "seconds")
        wait = Wait(WaitKind.TIME, self.take_key(None, WaitKind.TIME), timeout=limit)
        return self._run("park_for", wait)

    def park_until(self, when: datetime) -> Any:
        self._rules.begin_wait("park_until")
        self._rules.keep_order("park_until", IN_HANDLER)
        # In whole numbers: by way of a float the last instant of the calendar would lie beyond it.
        micros = max(0, (check_instant(when, "when") - _EPOCH) // _MICROSECOND)
        wait = Wait(WaitKind.TIME, self.take_key(None, WaitKind.TIME), until=micros)
        return self._run("park_until", wait)

    def _run(self, verb: str, wait: Wait) -> Any:
        return self._rules.run(verb, self._wait(wait), functools.partial(self.give_back, wait.key))

    async def _wait(self, wait: Wait) -> Any:
        try:
            await self._journal.load()
            record = self.answered(wait)
            if record is None:
                await self.park(wait)
        except InvalidInput:
            # What its key has is the answer to something else; that of the next one may fit.
            raise
        except BaseException:
            self.give_back(wait.key)
            raise
        match record.answer:
            case Answer.APPROVED:
                return Decision(record.by, record.comment, record.answered_at)
            case Answer.REJECTED:
                raise ApprovalRejected(wait.name, record.by, record.comment)
            case Answer.ENDED:
                return results_of(record.payload)
            case Answer.TIMEOUT:
                raise Fail(f"{wait.key} was not answered in time")
            case _:
                return None if record.payload is None else json.loads(record.payload)

    def answered(self, wait: Wait) -> WaitRecord | None:
        record = self._journal.waits.get(wait.key)
        if record is None or record.answer is None:
            return None
        if _subject(record.wait) != _subject(wait):
            raise InvalidInput(
                f"{wait.key!r} was asked for as {_shown(record.wait)} and is now {_shown(wait)}: "
                "give waits names of their own when the code changes"
            )
        return record

    async def park(self, wait: Wait) -> NoReturn:
        if len(self._journal.waits) >= MOST_WAITS:
            raise InvalidInput(TOO_MANY_WAITS)
        while not self._parking.want(wait):
            await self._rules.let_park()
        try:
            if not await self._parking.alone():
                self._rules.stop()
            # A step that was under way may have ended because it is to stop.
            self._rules.go_on()
        except BaseException:
            self._parking.withdraw()
            raise
        self._parking.park()
        self._abandon()
        raise Unwind

    def take_key(self, name: str | None, kind: WaitKind, event: str = "") -> str:
        use: tuple[WaitKind, str, int] | None = None
        if name is not None:
            key = check_name(name, "the name of a wait")
        else:
            use = (kind, event, self._ordinals.count(kind, event))
            key = (f"{kind}:{event}" if event else f"{kind}") + f"#{use[2]}"
        if self._context.run > 1:
            # So that an answer that was meant for the question of an earlier run cannot pass for one to this.
            key = f"{self._context.run}:{key}"
        with self._lock:
            if key in self._keys:
                raise InvalidInput(f"there are two waits named {key!r} in one run: give each a name of its own")
            self._keys[key] = use
        return key

    def give_back(self, key: str) -> None:
        """Of a wait that never was: a later attempt may not be refused or cut off, and must come to the same keys."""
        with self._lock:
            use = self._keys.pop(key, None)
        if use is not None:
            self._ordinals.give_back(*use)


def _subject(wait: Wait) -> tuple[Any, ...]:
    """What an answer is an answer to. The timeout, the approvers, what silence means and the words of a question may
    change between two attempts."""
    return wait.kind, wait.name if wait.kind is WaitKind.EVENT else "", wait.topic, wait.children


def _shown(wait: Wait) -> str:
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.name!r}" + (f" on topic {wait.topic!r}" if wait.topic else "")
        case WaitKind.CHILDREN:
            return "children " + ", ".join(wait.children[:5]) + (", …" if len(wait.children) > 5 else "")
        case kind:
            return str(kind)
