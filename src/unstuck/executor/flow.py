"""Durable flow, as a handler uses it through its Context: steps, waits, children, budget, partial results.

Theory of operation. An attempt finds what earlier attempts have left for it in the journal, which is loaded at the
first call of this kind. A finished step gives what it gave then; an answered wait gives its answer; any other wait
lets the steps under way end (`parking`) and unwinds the handler: from then on every call here raises again, and
whatever the handler does with that, its attempt ends *parked*. What comes back from the database comes by way of the
supervisor (`asking`).

Every verb is a coroutine. Where a loop runs it is the caller's to await; elsewhere it is run to its end right here,
since without a loop nothing in it ever suspends: it blocks.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from unstuck.clock import boot
from unstuck.executor.asking import FlowCalls, Slip
from unstuck.executor.context import UNSET, Context, running_loop
from unstuck.executor.messages import (
    ChildAnswer,
    Fenced,
    GatherAnswer,
    GatherMessage,
    JournalPage,
    KeepPart,
    LoadJournal,
    Question,
    RecordStep,
    RefusedMessage,
    Reply,
    SpawnMessage,
    Spend,
    SpentAnswer,
)
from unstuck.executor.ordinals import Ordinals
from unstuck.executor.parking import Parking
from unstuck.executor.promise import Promise
from unstuck.executor.stepping import StepStopped, call_step, inside, is_coroutine
from unstuck.model import errors
from unstuck.model.children import MOST_CHILDREN
from unstuck.model.errors import (
    ApprovalRejected,
    BudgetExceeded,
    Cancelled,
    ChildrenFailed,
    Fail,
    InvalidInput,
    NotStorable,
    Retry,
    UnstuckError,
    Unwind,
    quoted,
)
from unstuck.model.job import NewJob
from unstuck.model.parts import called, check_part
from unstuck.model.payload import MAX_PAYLOAD, check_instant, check_name, check_text, encode, plain_text
from unstuck.model.policy import LONGEST, MOST_SPENT, Backoff
from unstuck.model.waits import (
    MOST_STEPS,
    MOST_WAITS,
    TOO_MANY_WAITS,
    Answer,
    Child,
    ChildEnd,
    ChildRef,
    Decision,
    Spent,
    Wait,
    WaitKind,
    WaitRecord,
)

MAX_QUESTION = 2000
MAX_WHO = 100
MAX_STEP_RETRIES = 1000
#: Between two tries of a step within one attempt.
STEP_BACKOFF = Backoff(base=0.1, factor=2.0, cap=10.0)
_IN_HANDLER = "call it in the handler itself; what that gives may be awaited anywhere"
_LOST = "another worker may own this job now"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
T = TypeVar("T")


class Flow:
    """One attempt's. `is_home`: whether this is the handler's own thread; `is_beside`: a task there that is not the
    handler's own; `abandon`: it parks, also if that is only known in a task beside its handler's."""

    def __init__(
        self,
        context: Context,
        asking: FlowCalls,
        pack: Callable[[Any], str],
        max_result: int,
        *,
        is_home: Callable[[], bool],
        is_beside: Callable[[], bool],
        abandon: Callable[[], None],
    ) -> None:
        self.asking = asking
        self._context = context
        self._pack = pack
        self._max_result = max_result
        self._is_home = is_home
        self._is_beside = is_beside
        self._abandon = abandon
        # Reentrant: the collector may close a coroutine here that was loading the journal.
        self._lock = threading.RLock()
        self._parking = Parking(asking)
        self._ordinals = Ordinals()
        #: Calls that nobody has begun to await yet, and one that nobody ever will.
        self._unawaited: Counter[str] = Counter()
        self._forgotten: str | None = None
        #: The keys of waits, and which use of which name some of them are.
        self._keys: dict[str, tuple[WaitKind, str, int] | None] = {}
        self._gathered: set[str] = set()
        self._is_loaded = False
        #: Those that wait for somebody else to load the journal, while somebody does.
        self._latecomers: list[Slip] | None = None
        self._steps: dict[tuple[str, int], str] = {}
        self._recorded = 0
        self._waits: dict[str, WaitRecord] = {}
        self._children: dict[tuple[str, int], Child] = {}
        #: Sent and not answered yet, even if who asked was cut off: what a step gave, and where the answer arrives.
        self._sent: dict[tuple[str, str, int], tuple[str, Slip]] = {}

    @property
    def parked(self) -> Wait | None:
        return self._parking.parked

    # --- steps --------------------------------------------------------------------------------------------------
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
        retries: int,
    ) -> Any:
        self._begin("step")
        name = check_name(name, "step")
        if not callable(function):
            raise InvalidInput(f"step {name!r}: {quoted(function)} is not a function")
        limit = None if timeout is None else _seconds(timeout, "timeout")
        if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MAX_STEP_RETRIES:
            raise InvalidInput(f"retries={quoted(retries)} is not a whole number between 0 and {MAX_STEP_RETRIES}")
        call = functools.partial(function, *args, **kwargs)
        ordinal = self._ordinals.take("step", name)
        undo = functools.partial(self._untake, "step", name, ordinal)
        return self._run("step", self._step(name, ordinal, call, limit, retries), undo)

    async def _step(
        self, name: str, ordinal: int, call: Callable[[], Any], timeout: float | None, retries: int
    ) -> Any:
        try:
            await self._load()
            # Each is asked for once in an attempt: what was given out need not be kept.
            text = self._steps.pop((name, ordinal), None)
            if text is None:
                text = await self._take_step(name, ordinal, call, timeout, retries)
        except BaseException:
            self._untake("step", name, ordinal)
            raise
        self._ordinals.end("step", name)
        # Always by way of JSON: what a first run gives is what every later one will.
        return json.loads(text)

    async def _take_step(
        self, name: str, ordinal: int, call: Callable[[], Any], timeout: float | None, retries: int
    ) -> str:
        while not self._parking.begin_step():
            await self._pass()
        try:
            # Cut off while it was being recorded, it is the same step still, and must not be called again.
            slip = self._sent_before("step", name, ordinal)
            if slip is None:
                self._make_room(name)
                began = boot()
                text = self._packed(name, await self._try(name, call, timeout, retries))
                record = RecordStep(name, ordinal, text, max(0, int((boot() - began) * 1000)))
                slip = self._send("step", name, ordinal, record, text)
            text, _ = await self._receive("step", name, ordinal, slip)
            with self._lock:
                self._recorded += 1
            return text
        finally:
            self._parking.end_step()

    def _make_room(self, name: str) -> None:
        """Before it is called: what cannot be recorded should not happen."""
        with self._lock:
            if self._recorded >= MOST_STEPS:
                raise InvalidInput(f"step {name!r} is one too many: a job has {MOST_STEPS:,} steps at most")

    async def _try(self, name: str, call: Callable[[], Any], timeout: float | None, retries: int) -> Any:
        is_async = is_coroutine(call)
        for failures in itertools.count(1):
            try:
                return await call_step(self.asking, name, call, timeout, is_async=is_async)
            except StepStopped:
                self._stop()
            except (Fail, Retry, BudgetExceeded, InvalidInput):
                raise
            except Exception:
                if failures > retries:
                    raise
            await self._context.sleep(STEP_BACKOFF.delay(failures, 0.0))
        raise AssertionError

    def _packed(self, name: str, value: Any) -> str:
        where = f"the result of step {name!r}"
        text = self._text_of(value, where)
        size = len(text) if text.isascii() else len(text.encode())
        if size > self._max_result:
            raise NotStorable(where, f"it is {size:,} bytes of JSON; the limit is {self._max_result:,}")
        return text

    def _text_of(self, value: Any, where: str) -> str:
        try:
            return self._pack(value)
        except NotStorable as error:
            raise NotStorable(where, error.problem) from None

    # --- waits --------------------------------------------------------------------------------------------------
    def wait_for(self, event: str, timeout: Any, topic: str | None, default: Any, name: str | None) -> Any:
        self._begin_wait("wait_for")
        event = check_name(event, "event")
        wait = Wait(
            WaitKind.EVENT,
            self._key(name, WaitKind.EVENT, event),
            event,
            timeout=_limit(timeout),
            topic=None if topic is None else check_name(topic, "topic"),
            on_timeout="fail" if default is UNSET else "default",
            default=None if default is UNSET else encode(default, f"the default of event {event!r}", MAX_PAYLOAD),
        )
        return self._run_wait("wait_for", wait)

    def approval(self, question: str, who: Any, timeout: Any, on_timeout: Any, name: str | None) -> Any:
        self._begin_wait("approval")
        if name is None:
            self._keep_order("approval", "give it a name of its own, name=…")
        if on_timeout not in ("fail", "reject", "approve"):
            raise InvalidInput(f"on_timeout={quoted(on_timeout)} is not one of fail, reject, approve")
        wait = Wait(
            WaitKind.APPROVAL,
            self._key(name, WaitKind.APPROVAL),
            _question(question),
            timeout=_limit(timeout),
            who=_who(who),
            on_timeout=on_timeout,
        )
        return self._run_wait("approval", wait)

    def park_for(self, seconds: float) -> Any:
        self._begin_wait("park_for")
        self._keep_order("park_for", _IN_HANDLER)
        limit = _seconds(seconds, "seconds")
        wait = Wait(WaitKind.TIME, self._key(None, WaitKind.TIME), timeout=limit)
        return self._run_wait("park_for", wait)

    def park_until(self, when: datetime) -> Any:
        self._begin_wait("park_until")
        self._keep_order("park_until", _IN_HANDLER)
        # In whole numbers: by way of a float the last instant of the calendar would lie beyond it.
        micros = max(0, (check_instant(when, "when") - _EPOCH) // _MICROSECOND)
        wait = Wait(WaitKind.TIME, self._key(None, WaitKind.TIME), until=micros)
        return self._run_wait("park_until", wait)

    def _run_wait(self, verb: str, wait: Wait) -> Any:
        return self._run(verb, self._wait(wait), functools.partial(self._give_back, wait.key))

    async def _wait(self, wait: Wait) -> Any:
        try:
            await self._load()
            record = self._answered(wait)
            if record is None:
                await self._park(wait)
        except InvalidInput:
            # What its key has is the answer to something else; that of the next one may fit.
            raise
        except BaseException:
            self._give_back(wait.key)
            raise
        match record.answer:
            case Answer.APPROVED:
                return Decision(record.by, record.comment, record.answered_at)
            case Answer.REJECTED:
                raise ApprovalRejected(wait.name, record.by, record.comment)
            case Answer.ENDED:
                return _results(record.payload)
            case Answer.TIMEOUT:
                raise Fail(f"{wait.key} was not answered in time")
            case _:
                return None if record.payload is None else json.loads(record.payload)

    def _answered(self, wait: Wait) -> WaitRecord | None:
        record = self._waits.get(wait.key)
        if record is None or record.answer is None:
            return None
        if _subject(record.wait) != _subject(wait):
            raise InvalidInput(
                f"{wait.key!r} was asked for as {_shown(record.wait)} and is now {_shown(wait)}: "
                "give waits names of their own when the code changes"
            )
        return record

    async def _park(self, wait: Wait) -> NoReturn:
        if len(self._waits) >= MOST_WAITS:
            raise InvalidInput(TOO_MANY_WAITS)
        while not self._parking.want(wait):
            await self._pass()
        try:
            if not await self._parking.alone():
                self._stop()
            # A step that was under way may have ended because it is to stop.
            self._go_on()
        except BaseException:
            self._parking.withdraw()
            raise
        self._parking.park()
        self._abandon()
        raise Unwind

    # --- children -----------------------------------------------------------------------------------------------
    def spawn(self, workflow: Any, args: tuple[Any, ...], kwargs: dict[str, Any], on_end: Any, name: Any) -> Any:
        self._begin("spawn")
        if on_end not in ("cancel", "leave"):
            raise InvalidInput(f"on_end={quoted(on_end)} is not one of cancel, leave")
        draft = getattr(workflow, "draft", None)
        if not callable(draft):
            raise InvalidInput(f"spawn takes a workflow of the app, not {quoted(workflow)}")
        job = draft(args, kwargs, self._context.tenant)
        name = check_name(name, "child") if name is not None else job.workflow
        ordinal = self._ordinals.take("child", name)
        undo = functools.partial(self._untake, "child", name, ordinal)
        return self._run("spawn", self._spawn(name, ordinal, job, on_end), undo)

    async def _spawn(self, name: str, ordinal: int, job: NewJob, on_end: Any) -> ChildRef:
        try:
            child = await self._take_child(name, ordinal, job, on_end)
        except BaseException:
            self._untake("child", name, ordinal)
            raise
        self._ordinals.end("child", name)
        return child

    async def _take_child(self, name: str, ordinal: int, job: NewJob, on_end: Any) -> ChildRef:
        await self._load()
        known = self._children.get((name, ordinal))
        # One of an earlier run counts only if it completed; that is for the database to say.
        if known is not None and known.run == self._context.run:
            return ChildRef(known.id)
        slip = self._sent_before("child", name, ordinal)
        if slip is None:
            slip = self._send("child", name, ordinal, SpawnMessage(name, ordinal, job, on_end))
        _, answer = await self._receive("child", name, ordinal, slip)
        assert isinstance(answer, ChildAnswer)
        return ChildRef(answer.child.id)

    def gather(self, children: Sequence[Any], timeout: Any, release_target: bool) -> Any:
        self._begin_wait("gather")
        self._keep_order("gather", _IN_HANDLER)
        ids = tuple(_child_id(child) for child in children)
        if len(ids) > MOST_CHILDREN:
            raise InvalidInput(f"gather of {len(ids):,} children; the limit is {MOST_CHILDREN:,}")
        limit = _limit(timeout)
        with self._lock:
            for child, count in Counter(ids).items():
                if count > 1 or child in self._gathered:
                    raise InvalidInput(f"child {child} is gathered twice")
            self._gathered.update(ids)
        key = self._key(None, WaitKind.CHILDREN)
        wait = Wait(WaitKind.CHILDREN, key, timeout=limit, children=ids, release_target=bool(release_target))
        return self._run("gather", self._gather(wait), functools.partial(self._ungather, wait))

    async def _gather(self, wait: Wait) -> list[Any]:
        if not wait.children:
            return []
        try:
            ended = await self._ended(wait)
        except BaseException:
            self._ungather(wait)
            raise
        try:
            return _results(ended)
        except InvalidInput:
            # Too large together; its key is answered all the same.
            self._release(wait.children)
            raise

    async def _ended(self, wait: Wait) -> str | None:
        await self._load()
        record = self._answered(wait)
        if record is not None:
            return record.payload
        # Asked first: a deadlock must be told while there is still a handler to tell, and if all have ended nothing
        # need park.
        answer = await self._ask(GatherMessage(list(wait.children), wait.release_target))
        assert isinstance(answer, GatherAnswer)
        if answer.ended is None:
            await self._park(wait)
        return answer.ended

    def _ungather(self, wait: Wait) -> None:
        self._give_back(wait.key)
        self._release(wait.children)

    def _release(self, children: Sequence[str]) -> None:
        """They gave nothing: they may be asked for in another way."""
        with self._lock:
            self._gathered.difference_update(children)

    # --- budget -------------------------------------------------------------------------------------------------
    def spend(self, amounts: dict[str, Any]) -> Any:
        self._go_on()
        if not amounts:
            raise InvalidInput("spend what? As in ctx.spend(tokens=120)")
        checked = {unit: _amount(unit, amount) for unit, amount in amounts.items()}
        return self._run("spend", self._spend(checked))

    async def _spend(self, amounts: dict[str, float]) -> Spent:
        answer = await self._ask(Spend(amounts))
        assert isinstance(answer, SpentAnswer)
        if answer.spent.exceeded is not None:
            raise BudgetExceeded(answer.spent.exceeded)
        return answer.spent

    # --- partial results ----------------------------------------------------------------------------------------
    def partial(self, name: str, value: Any) -> Any:
        """Also inside of a step: nothing of it is ever read back by a handler."""
        self._go_on()
        name = check_name(name, "partial result")
        text = self._text_of(value, called(name))
        check_part(name, text)
        return self._run("partial", self._keep(name, text))

    async def _keep(self, name: str, text: str) -> None:
        await self._ask(KeepPart(name, text))

    # --- what all of them need ----------------------------------------------------------------------------------
    def _begin(self, verb: str) -> None:
        """A step's function has no journal of its own: what it asked for would be counted in one run of the handler
        and not in the next, when the step is only remembered."""
        self._go_on()
        if (step := inside.get()) is not None:
            raise InvalidInput(f"ctx.{verb} inside of step {step!r}: not inside a step, only in the handler itself")

    def _begin_wait(self, verb: str) -> None:
        self._begin(verb)
        if not self._is_home():
            raise InvalidInput(
                f"ctx.{verb} in a thread beside the handler, which could not be unwound from there: "
                "wait in the handler's own thread"
            )

    def _keep_order(self, verb: str, instead: str) -> None:
        """These are known by their order alone, which between tasks is chance: the yes to one question would answer
        another. An event has its name."""
        if self._is_beside():
            raise InvalidInput(
                f"ctx.{verb} in a task beside the handler's own: which of them comes first is chance, and so would "
                f"be which answer belongs to which in a later attempt; {instead}"
            )

    def _go_on(self) -> None:
        self._context._check_process()
        if self.parked is not None:
            raise Unwind
        if self._forgotten is not None:
            raise _not_awaited(self._forgotten)
        self._context.check()

    def _stop(self) -> NoReturn:
        """Nobody answers any more: asked to stop, or the attempt has ended and this is a thread it left behind."""
        self._go_on()
        raise Cancelled("its attempt has ended")

    def _key(self, name: str | None, kind: WaitKind, event: str = "") -> str:
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

    def _give_back(self, key: str) -> None:
        """Of a wait that never was: a later attempt may not be refused or cut off, and must come to the same keys."""
        with self._lock:
            use = self._keys.pop(key, None)
        if use is not None:
            self._ordinals.give_back(*use)

    def _untake(self, kind: str, name: str, ordinal: int) -> None:
        self._ordinals.give_back(kind, name, ordinal)
        self._ordinals.end(kind, name)

    def _run(self, verb: str, coroutine: Coroutine[Any, Any, Any], undo: Callable[[], None] = lambda: None) -> Any:
        """`undo`: what is to be taken back if it is ended before it has begun."""
        if running_loop() is None:
            return run_here(coroutine)
        with self._lock:
            self._unawaited[verb] += 1
        return Promise(
            coroutine,
            begun=functools.partial(self._begun, verb),
            forgotten=functools.partial(setattr, self, "_forgotten", verb),
            dropped=undo,
        )

    def _begun(self, verb: str) -> None:
        with self._lock:
            self._unawaited[verb] -= 1

    def check_awaited(self) -> None:
        """At the handler's end: what it meant to wait for, it has waited for."""
        with self._lock:
            left = next((verb for verb, count in self._unawaited.items() if count > 0), None)
        if left is not None:
            raise _not_awaited(left)

    def _sent_before(self, kind: str, name: str, ordinal: int) -> Slip | None:
        """By a call of the same use that was cut off since; its answer is still to come, or came too late."""
        sent = self._sent.get((kind, name, ordinal))
        return None if sent is None else sent[1].follow()

    def _send(self, kind: str, name: str, ordinal: int, question: Question, text: str = "") -> Slip:
        # The function of a step may have forked, and this be the child.
        self._context._check_process()
        slip = self.asking.send(question)
        self._sent[kind, name, ordinal] = (text, slip)
        return slip

    async def _receive(self, kind: str, name: str, ordinal: int, slip: Slip) -> tuple[str, Reply]:
        answer = await self.asking.wait(slip)
        text, _ = self._sent.pop((kind, name, ordinal))
        return text, self._heed(answer)

    async def _ask(self, question: Question) -> Reply:
        self._context._check_process()
        return self._heed(await self.asking.ask(question))

    def _heed(self, answer: Reply | None) -> Reply:
        if answer is None:
            self._stop()
        if isinstance(answer, Fenced):
            self._context.has_lost_lease = True
            raise Cancelled(_LOST)
        if isinstance(answer, RefusedMessage):
            raise _error(answer.type, answer.message)
        self._go_on()
        return answer

    async def _load(self) -> None:
        self._go_on()
        while not self._is_loaded:
            slip: Slip | None = None
            with self._lock:
                if self._latecomers is None:
                    self._latecomers = []
                else:
                    slip = Slip()
                    self._latecomers.append(slip)
            if slip is not None:
                await self.asking.wait(slip)
                self._go_on()
                continue
            try:
                await self._load_pages()
            finally:
                with self._lock:
                    late, self._latecomers = self._latecomers, None
                for slip in late:
                    slip.put(None)
        await self._pass()

    async def _pass(self) -> None:
        """Nothing new begins while it wants to park. Who asks has to wait for the end of that, and not only the wait
        itself: raised sooner, Unwind could cancel a step under way, as out of a task group."""
        if not await self._parking.settled():
            self._stop()
        self._go_on()

    async def _load_pages(self) -> None:
        after: int | None = 0
        while after is not None:
            answer = await self._ask(LoadJournal(after))
            assert isinstance(answer, JournalPage)
            page = answer.journal
            self._steps.update({(step.name, step.ordinal): step.result for step in page.steps})
            self._waits.update({record.wait.key: record for record in page.waits})
            self._children.update({(child.name, child.ordinal): child for child in page.children})
            after = page.after
        self._recorded = len(self._steps)
        self._is_loaded = True


def _not_awaited(verb: str) -> InvalidInput:
    return InvalidInput(f"ctx.{verb} was not awaited: in a coroutine write `await ctx.{verb}(…)`")


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """To its end, on this thread: without a loop nothing in it suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise AssertionError("a flow call suspended without a loop")


def _error(kind: str, message: str) -> UnstuckError:
    """What the database refused, as the same error here; its own attributes stayed behind."""
    found = getattr(errors, kind, None)
    known = found if isinstance(found, type) and issubclass(found, UnstuckError) else UnstuckError
    error = known.__new__(known, message)
    error.args = (message,)
    return error


def _subject(wait: Wait) -> tuple[Any, ...]:
    """What an answer is an answer to. How long one waits, for whom, and what silence means may change meanwhile, and
    so may the words of a question."""
    return wait.kind, wait.name if wait.kind is WaitKind.EVENT else "", wait.topic, wait.children


def _shown(wait: Wait) -> str:
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.name!r}" + (f" on topic {wait.topic!r}" if wait.topic else "")
        case WaitKind.CHILDREN:
            return "children " + ", ".join(wait.children[:5]) + (", …" if len(wait.children) > 5 else "")
        case kind:
            return str(kind)


def _results(payload: str | None) -> list[Any]:
    ends = json.loads(payload or "[]")
    failed = [
        ChildEnd(end["id"], end["state"], end.get("error_type"), end.get("error_message"))
        for end in ends
        if end["state"] != "COMPLETED"
    ]
    if failed:
        shown = "; ".join(_told(end) for end in failed[:5]) + ("; …" if len(failed) > 5 else "")
        raise ChildrenFailed(f"{len(failed)} of {len(ends)} children did not complete: {shown}", failed)
    if any(end.get("too_large") for end in ends):
        raise InvalidInput(f"the results of {len(ends)} children are too large together: gather fewer at a time")
    return [end.get("result") for end in ends]


def _told(end: ChildEnd) -> str:
    problem = ": ".join(part for part in (end.error_type, end.error_message) if part)
    return f"{end.id} {end.state}" + (f" ({problem[:200]})" if problem else "")


def _limit(timeout: Any) -> float | None:
    if timeout is None:
        raise InvalidInput("timeout=None: every wait has an end; omit it for the default")
    return None if timeout is UNSET else _seconds(timeout, "timeout")


def _seconds(value: Any, what: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= LONGEST:
        raise InvalidInput(f"{what}={quoted(value)} is not a number of seconds above 0 and up to {LONGEST:g}")
    return float(value)


def _question(question: Any) -> str:
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput(f"question={quoted(question)} is not a question that anybody could answer")
    if len(question) > MAX_QUESTION:
        raise InvalidInput(f"a question of {len(question):,} characters; the limit is {MAX_QUESTION:,}")
    check_text(question, "the question")
    return str.__str__(question)


def _who(who: Any) -> tuple[str, ...]:
    if who is None:
        return ()
    several = (who,) if isinstance(who, str) else tuple(who)
    if len(several) > MAX_WHO:
        raise InvalidInput(f"who= names {len(several)}; the limit is {MAX_WHO}")
    return tuple(check_name(one, "who") for one in several)


def _child_id(child: Any) -> str:
    if isinstance(child, Promise):
        raise _not_awaited("spawn")
    ident = child if isinstance(child, str) else getattr(child, "id", None)
    if not isinstance(ident, str) or not ident or len(ident) > 100:
        raise InvalidInput(f"gather takes what ctx.spawn gave, one by one, not {quoted(child)}")
    return str(plain_text(ident))


def _amount(unit: str, amount: Any) -> float:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 <= amount <= MOST_SPENT:
        raise InvalidInput(f"{unit}={quoted(amount)} is not an amount between 0 and {MOST_SPENT:g}")
    check_name(unit, "unit")
    return float(amount)
