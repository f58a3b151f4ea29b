"""Asking: one operation over HTTP: what is sent, what is sent again, and what the answer means.

It is written as a generator that sends nothing itself. It yields a Sending, and is told what came; it yields a
PauseStep, and is called again when that is over. `drive` does that for functions, `adrive` for coroutines.

What is sent again. A request that never reached a server, unless its certificate is not to be trusted. One that may
have reached it, only if a repeat is safe: a read, an operation that leaves the same state (`repeat="same"`), or one
whose `key` or `id` tells a repeat. A caller that gives neither gets an id that is chosen here. Of everything else the
caller is told that the outcome is unknown, and what to do. All repeats together take `timeout` seconds at most.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec

from unstuck.chance import Chance, SystemChance
from unstuck.client.problems import LATER, UNKNOWN, ToldProblem, error_of
from unstuck.client.wire import Heard, NoAnswerHeard, Sending, ServerAnswer
from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import InvalidInput, OutcomeUnknown, StoreUnavailable, UnstuckError
from unstuck.operations import jobs
from unstuck.operations.kinds import seconds
from unstuck.operations.routes import PREFIX, HttpRoute, request, route_of
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.operations.table import Operation
    from unstuck.views.jobs import NewJobView

T = TypeVar("T")

#: Seconds for which a server may say nothing, beyond what an operation itself waits for.
READ = 30.0
MARGIN = 10.0
#: Seconds that all repeats of a call may take together.
TIMEOUT = 30.0
#: The first pause, and the longest that is chosen here; each is up to twice as long as the one before.
SOON = 0.1
LATE = 5.0

#: What an answer says that a repeat found: our own first try may have been it.
_FOUND = {"jobs.enqueue": ("created", False), "events.send": ("repeated", True), "events.publish": ("repeated", True)}


class PauseStep(NamedTuple):
    seconds: float


Step = Sending | PauseStep
Steps = Generator[Step, Heard | None, T]
#: What one job of a batch is answered with: an exception that is not raised yet, or the job.
Accepted: TypeAlias = "NewJobView | UnstuckError"


@dataclass(frozen=True, slots=True)
class Asking:
    """How one server is asked."""

    address: str
    timeout: float = TIMEOUT
    chance: Chance = field(default_factory=SystemChance)
    clock: Clock = field(default_factory=MachineClock)

    def steps(self, operation: Operation[Any, T], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Steps[T]:
        """`kwargs` may hold `tenant` and `by`. The answer is the operation's view; a problem is its exception."""
        route, chosen = route_of(operation), None
        if operation.entry.repeat == "key" and not _has_own(kwargs):
            chosen = self.chance.job_id()
            kwargs = {**kwargs, "id": chosen}
        asked = request(route, args, kwargs)
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        body = None if asked.body is None else _encoded(asked.body)
        sending = Sending(asked.method, asked.path + query, body, self._patience(route, kwargs))
        safe = chosen is not None or is_safe(operation, kwargs)
        answer, is_repeat = yield from self._answered(operation.name, sending, safe, route.method == "GET")
        view: T = _view(route.answer, answer, self.address)
        return _our_own(operation.name, view, chosen) if is_repeat else view

    def batch(self, submits: Sequence[Mapping[str, Any]], tenant: str | None) -> Steps[list[Accepted]]:
        """Many jobs, each with its own answer, in its place. What has no `key` and no `id` gets an id."""
        route = route_of(jobs.enqueue)
        ids = [None if _has_own(submit) else self.chance.job_id() for submit in submits]
        named = [{**submit, "id": ident} if ident else submit for submit, ident in zip(submits, ids, strict=True)]
        bodies = [request(route, (), submit).body for submit in named]
        query = f"?{urlencode({'tenant': tenant})}" if tenant is not None else ""
        sending = Sending("POST", f"{PREFIX}/jobs/batch{query}", _encoded({"jobs": bodies}), READ + MARGIN)
        answer, is_repeat = yield from self._answered("jobs.enqueue", sending, True, False)
        items = _json(answer, self.address).get("items")
        if not isinstance(items, list) or len(items) != len(submits) or not all(isinstance(i, dict) for i in items):
            raise UnstuckError(f"{self.address} answered a batch with something else than one item for each job")
        return [self._item(route, item, ident if is_repeat else None) for item, ident in zip(items, ids, strict=True)]

    def _item(self, route: HttpRoute, item: dict[str, Any], chosen: str | None) -> Accepted:
        problem = item.get("problem")
        if isinstance(problem, dict):
            return error_of(problem)
        view: NewJobView = _converted(route.answer, item.get("job"), self.address)
        return _our_own("jobs.enqueue", view, chosen)

    def _patience(self, route: HttpRoute, kwargs: Mapping[str, Any]) -> float:
        parameters = signature(route.operation.function).parameters
        if "wait" in parameters:
            return READ + seconds(kwargs.get("wait") or 0.0, "wait")
        if (parameter := parameters.get("timeout")) is None:
            return READ
        default = 0.0 if parameter.default in (Parameter.empty, None) else parameter.default
        given = kwargs.get("timeout")
        return MARGIN + seconds(default if given is None else given, "timeout")

    def _answered(
        self, name: str, sending: Sending, safe: bool, is_read: bool
    ) -> Generator[Step, Heard | None, tuple[ServerAnswer, bool]]:
        """The answer that all went well, and whether it was asked for more than once after it may have been done."""
        until, maybe_done, pause = self.clock.boot() + self.timeout, False, SOON
        while True:
            outcome = yield sending
            assert outcome is not None
            after: float | None = None
            if isinstance(outcome, NoAnswerHeard):
                maybe_done |= outcome.was_sent and not is_read
                error: UnstuckError = StoreUnavailable(f"no answer from {self.address} ({outcome.reason})")
                if outcome.is_final:
                    raise StoreUnavailable(f"{self.address} was not asked: {outcome.reason}")
                may_repeat = safe or not outcome.was_sent
            elif 200 <= outcome.status < 300:
                return outcome, maybe_done
            else:
                problem = ToldProblem.of(outcome, self.address)
                error, after = problem.error, problem.retry_after
                is_foreign = not problem.code and problem.status in (429, 502, 503, 504)
                if not is_read and (problem.code in UNKNOWN or (is_foreign and problem.status != 429)):
                    maybe_done = True
                elif not is_foreign and problem.code not in LATER:
                    raise error
                may_repeat = safe and problem.code != "ServerError"
            wait = pause * (1 + self.chance.fraction()) if after is None else after + self.chance.fraction() / 2
            if not may_repeat or self.clock.boot() + wait >= until:
                raise _unknown(name, error, safe) if maybe_done else error
            yield PauseStep(wait)
            pause = min(2 * pause, LATE)


def is_safe(operation: Operation[Any, Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether asking twice is as good as asking once."""
    repeat = operation.entry.repeat
    return _has_own(kwargs) if repeat == "key" else repeat in ("read", "same")


def _has_own(kwargs: Mapping[str, Any]) -> bool:
    """Whether the caller named it, so that a repeat is known as one."""
    return kwargs.get("key") is not None or kwargs.get("id") is not None


def drive(steps: Steps[T], send: Callable[[Sending], Heard], clock: Clock) -> T:
    never = threading.Event()
    told: Heard | None = None
    try:
        while True:
            step = steps.send(told)
            if isinstance(step, PauseStep):
                clock.wait(never, step.seconds)
                told = None
            else:
                told = send(step)
    except StopIteration as end:
        found: T = end.value
        return found


async def adrive(steps: Steps[T], send: Callable[[Sending], Awaitable[Heard]]) -> T:
    import asyncio

    told: Heard | None = None
    try:
        while True:
            step = steps.send(told)
            if isinstance(step, PauseStep):
                await asyncio.sleep(step.seconds)
                told = None
            else:
                told = await send(step)
    except StopIteration as end:
        found: T = end.value
        return found


def _unknown(name: str, error: UnstuckError, safe: bool) -> OutcomeUnknown:
    again = "ask it again, with the same key or id if it has one"
    what = again if safe else "look what it did before you ask it again"
    return OutcomeUnknown(f"{name} may have been carried out, and nobody knows: {error}; {what}")


def _our_own(name: str, view: T, chosen: Any) -> T:
    """Under an id that nobody else has, what was found had been made by our own first try."""
    field_name, found = _FOUND.get(name, ("", None))
    if chosen is None or getattr(view, field_name, None) is not found or getattr(view, "id", chosen) != chosen:
        return view
    return msgspec.structs.replace(view, **{field_name: not found})  # type: ignore[type-var]


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidInput(f"that cannot be sent as JSON: {problem}") from None


def _json(answer: ServerAnswer, address: str) -> Any:
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UnstuckError(f"{address} answered with something that is no view: is this an unstuck server?")
    return said


def _view(kind: Any, answer: ServerAnswer, address: str) -> Any:
    return _converted(kind, _json(answer, address), address)


def _converted(kind: Any, said: Any, address: str) -> Any:
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as problem:
        raise UnstuckError(
            f"{address} answered with something that this version cannot read: {problem}; are both of one version?"
        ) from None
