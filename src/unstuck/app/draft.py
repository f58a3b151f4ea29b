"""Draft: a decorated function until all code is imported; only then its annotations and the settings are known."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from unstuck.app.workflow import Workflow
from unstuck.config import Settings
from unstuck.executor.context import AsyncContext, AttemptContext, Context
from unstuck.intake import templates
from unstuck.intake.arguments import Arguments, Unresolved, context_of, encode_result
from unstuck.intake.submit import JOB_OPTIONS, by_our_names
from unstuck.model.ends import Follows
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.job import DEFAULT_QUEUE
from unstuck.model.limits import parse_rate
from unstuck.model.payload import check_name, plain_text
from unstuck.model.policy import Policy
from unstuck.model.redaction import Redaction, check_redact
from unstuck.model.workflow import Handler
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.app.schedules import ScheduleDraft

MOST_AT_ONCE = 1_000_000
_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
LIMITS = ("concurrency", "rate", "key_concurrency", "key_rate")
OWN = ("name", "queue", "retry_on", "target", "limit_key", "redact", "require_signature", "schedule", *LIMITS)
#: What only a decorator of ours says.
FOLLOWS = "follows"


class Draft:
    """A decorated function until all code is imported: only then its annotations and the settings are known."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        own = dict(options)
        self.name = check_name(own.pop("name", None) or name_of(function), "workflow")
        self.function = function
        self._queue = check_name(own.pop("queue", DEFAULT_QUEUE), "queue")
        self._retry_on = _retry_on(self.name, own.pop("retry_on", None))
        self._places = {what: plain_text(own.pop(what, None)) for what in ("target", "limit_key")}
        self._limits = DeclaredLimits(**{what: plain_text(own.pop(what, None)) for what in LIMITS})
        self._limits.check(self.name, self._places["limit_key"])
        self._redact = _redact(self.name, own.pop("redact", None))
        self.require_signature = _flag(self.name, "require_signature", own.pop("require_signature", False))
        follows = own.get(FOLLOWS)
        self.follows = own.pop(FOLLOWS) if isinstance(follows, Follows) else None
        self.schedules = _schedules(self.name, own.pop("schedule", None))
        self._policy = by_our_names(own)
        if misplaced := sorted(self._policy.keys() & JOB_OPTIONS):
            name = misplaced[0]
            said = f"{name} is an option of a job, not of a workflow: {self.name}.using({name}=…)"
            raise InvalidInput(f"workflow {self.name}: {said}")
        Policy().with_(f"workflow {self.name}", self._policy, also=OWN)
        _check_function(self.name, function)
        self._takes_context = _takes_context(self.name, function, names)
        if self.follows is not None:
            _check_follower(self.name, function, self._takes_context)
        self._check_places()
        try:
            self.arguments: Arguments | None = Arguments(self.name, function, names)
        except Unresolved:
            self.arguments = None

    def resolved(self) -> Arguments:
        if self.arguments is None:
            self.arguments = Arguments(self.name, self.function)
        return self.arguments

    def handler(self, settings: Settings) -> Handler:
        arguments = self.resolved()
        return Handler(
            name=self.name,
            call=self.function,
            is_async=inspect.iscoroutinefunction(self.function),
            takes_context=self._takes_context,
            unpack=arguments.unpack,
            pack=encode_result,
            pack_result=arguments.pack_result,
            policy=settings.policy.with_(f"workflow {self.name}", self._policy),
            said=dict(self._policy),
            queue=self._queue,
            target=self._places["target"],
            limit_key=self._places["limit_key"],
            concurrency=self._limits.concurrency,
            rate=self._limits.rate,
            key_concurrency=self._limits.key_concurrency,
            key_rate=self._limits.key_rate,
            retry_on=self._retry_on,
            schema=arguments.schema(),
            doc=inspect.getdoc(self.function),
            redact=self._redact,
            require_signature=self.require_signature,
            follows=self.follows,
        )

    def _check_places(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())[self._takes_context :]
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for what, text in self._places.items():
            if text is not None:
                templates.check(self.name, what, text, names, is_open=is_open)
                self._check_shown(what, text)
        for p in parameters:
            if p.kind is p.VAR_KEYWORD and p.name in self._redact:
                raise InvalidInput(
                    f"workflow {self.name}: redact names {p.name}, which stands for any named argument; name those"
                )

    def _check_shown(self, what: str, text: str) -> None:
        """Everybody may read the names of targets and limit keys."""
        hidden = Redaction(frozenset(self._redact))
        for name, part in templates.parse(text, what).fields:
            if hidden.covers(name if part is None else f"{name}.{part}"):
                raise InvalidInput(
                    f"workflow {self.name}: {what}={text!r} shows {name}, which is redacted; everybody may read the "
                    f"{what.replace('_', ' ')} of a job"
                )


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """How many of a workflow may run, and start in a time, as its code says it: all of them together, and those of
    each limit key."""

    concurrency: int | None = None
    rate: str | None = None
    key_concurrency: int | None = None
    key_rate: str | None = None

    def check(self, workflow: str, limit_key: str | None) -> None:
        _check_most(workflow, "concurrency", self.concurrency)
        _check_most(workflow, "key_concurrency", self.key_concurrency)
        _check_rate(workflow, "rate", self.rate)
        _check_rate(workflow, "key_rate", self.key_rate)
        for what in ("key_concurrency", "key_rate"):
            if getattr(self, what) is not None and limit_key is None:
                raise InvalidInput(
                    f"workflow {workflow}: {what} limits the jobs of each limit key, and no limit_key says which key "
                    'a job has; add one, like limit_key="host:{host}"'
                )


def _check_most(workflow: str, what: str, most: Any) -> None:
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_AT_ONCE):
        raise InvalidInput(
            f"workflow {workflow}: {what}={quoted(most)} is not a whole number between 1 and {MOST_AT_ONCE}"
        )


def _check_rate(workflow: str, what: str, rate: Any) -> None:
    try:
        if rate is not None:
            parse_rate(rate, what)
    except InvalidInput as error:
        raise InvalidInput(f"workflow {workflow}: {error}") from None


def _redact(workflow: str, given: Any) -> tuple[str, ...]:
    try:
        return check_redact(given)
    except InvalidInput as error:
        raise InvalidInput(f"workflow {workflow}: {error}") from None


def _flag(workflow: str, what: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise InvalidInput(f"workflow {workflow}: {what}={quoted(given)} is not true or false")
    return given


def _schedules(workflow: str, given: Any) -> list[ScheduleDraft]:
    if given is None:
        return []
    from unstuck.app.schedules import of_decorator

    return of_decorator(workflow, given)


def name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise InvalidInput(f"{function!r} has no name; give it one: @app.workflow(name=…)")
    return name


def _check_function(name: str, function: Any) -> None:
    if isinstance(function, Workflow):
        raise InvalidInput(f"workflow {name} is a workflow already")
    if not callable(function) or inspect.isclass(function):
        raise InvalidInput(f"workflow {name}: {function!r} is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(f"workflow {name} yields; a handler returns its result")
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is not None and first.name == "ctx" and first.annotation is inspect.Parameter.empty:
        raise InvalidInput(
            f"workflow {name}: its first parameter ctx has no annotation; for the job's context write "
            f"ctx: unstuck.{_context_for(function).__name__}, for an argument give it a type"
        )


def _takes_context(name: str, function: Any, names: Mapping[str, Any]) -> bool:
    """Whether it has one; that of the other colour would say the wrong thing about every call."""
    kind, wanted = context_of(function, names), _context_for(function)
    if kind is None or kind is wanted:
        return kind is not None
    what = "a coroutine" if wanted is AsyncContext else "a plain function"
    how = "are awaited" if wanted is AsyncContext else "block"
    raise InvalidInput(
        f"workflow {name} is {what}, and its context is {kind.__name__}; write unstuck.{wanted.__name__}, whose "
        f"calls {how}"
    )


def _check_follower(name: str, function: Any, takes_context: bool) -> None:
    """It is given one thing, the job that ended."""
    parameters = list(inspect.signature(function).parameters.values())[takes_context:]
    first, needed = parameters[:1], [p for p in parameters if p.default is p.empty and p.kind not in _SEVERAL]
    if not first or first[0].kind is first[0].KEYWORD_ONLY or len(needed) > 1:
        raise InvalidInput(
            f"{name} follows the ends of jobs: it takes the job that ended, and nothing else that has no default, "
            f"like def {name}(ended: unstuck.EndedJob)"
        )


def _context_for(function: Any) -> type[AttemptContext]:
    return AsyncContext if inspect.iscoroutinefunction(function) else Context


def _retry_on(name: str, given: Any) -> tuple[type[BaseException], ...] | None:
    if given is None:
        return None
    kinds = given if isinstance(given, tuple | list) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InvalidInput(f"workflow {name}: retry_on={given!r} must be exception classes")
    return tuple(kinds)
