"""Draft: a decorated function until all code is imported; only then its annotations and the settings are known."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unstuck.app.workflow import Workflow
from unstuck.config import Settings
from unstuck.intake import templates
from unstuck.intake.arguments import Arguments, Unresolved, encode_result, takes_context
from unstuck.intake.submit import JOB_OPTIONS, by_our_names
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.job import DEFAULT_QUEUE
from unstuck.model.limits import parse_rate
from unstuck.model.payload import check_name, plain_text
from unstuck.model.policy import Policy
from unstuck.model.workflow import Handler

MOST_AT_ONCE = 1_000_000
_OWN = ("name", "queue", "retry_on", "target", "limit_key", "concurrency", "rate")


class Draft:
    """A decorated function until all code is imported: only then its annotations and the settings are known."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        own = dict(options)
        self.name = check_name(own.pop("name", None) or name_of(function), "workflow")
        self.function = function
        self._queue = check_name(own.pop("queue", DEFAULT_QUEUE), "queue")
        self._retry_on = _retry_on(self.name, own.pop("retry_on", None))
        self._places = {what: plain_text(own.pop(what, None)) for what in ("target", "limit_key")}
        self._limits = DeclaredLimits.of(self.name, own.pop("concurrency", None), plain_text(own.pop("rate", None)))
        self._policy = by_our_names(own)
        if misplaced := sorted(self._policy.keys() & JOB_OPTIONS):
            name = misplaced[0]
            said = f"{name} is an option of a job, not of a workflow: {self.name}.using({name}=…)"
            raise InvalidInput(f"workflow {self.name}: {said}")
        Policy().with_(f"workflow {self.name}", self._policy, also=_OWN)
        _check_function(self.name, function)
        self._takes_context = takes_context(function, names)
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
            policy=settings.policy.with_(f"workflow {self.name}", self._policy),
            said=dict(self._policy),
            queue=self._queue,
            target=self._places["target"],
            limit_key=self._places["limit_key"],
            concurrency=self._limits.concurrency,
            rate=self._limits.rate,
            retry_on=self._retry_on,
            schema=arguments.schema(),
            doc=inspect.getdoc(self.function),
        )

    def _check_places(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())[self._takes_context :]
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for what, text in self._places.items():
            if text is not None:
                templates.check(self.name, what, text, names, is_open=is_open)


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """How many of a workflow may run, and start in a time, as its code says it."""

    concurrency: int | None = None
    rate: str | None = None

    @classmethod
    def of(cls, workflow: str, concurrency: Any, rate: Any) -> DeclaredLimits:
        if concurrency is not None and (
            isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= MOST_AT_ONCE
        ):
            raise InvalidInput(
                f"workflow {workflow}: concurrency={quoted(concurrency)} is not a whole number between 1 and "
                f"{MOST_AT_ONCE}"
            )
        if rate is not None:
            try:
                parse_rate(rate)
            except InvalidInput as error:
                raise InvalidInput(f"workflow {workflow}: {error}") from None
        return cls(concurrency, rate)


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
            "ctx: unstuck.Context, for an argument give it a type"
        )


def _retry_on(name: str, given: Any) -> tuple[type[BaseException], ...] | None:
    if given is None:
        return None
    kinds = given if isinstance(given, tuple | list) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InvalidInput(f"workflow {name}: retry_on={given!r} must be exception classes")
    return tuple(kinds)
