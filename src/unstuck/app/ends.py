"""What runs when jobs end: `@app.on_completed`, `@app.on_failed` and `@app.on_stuck`. Each is a workflow like any
other; workers tell the store which ends its jobs are made of (`store/life/ends.py`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from unstuck.app.draft import FOLLOWS
from unstuck.app.workflow import Workflow, WorkflowOptions
from unstuck.model.ends import EndKind, Follows
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_name

if TYPE_CHECKING:
    from unstuck.app.code import AppCode

Function = TypeVar("Function", bound=Callable[..., Any])


class EndDecorator:
    """`@app.on_failed`, `@app.on_failed()`, `@app.on_failed(charge, "refund", retries=5)`."""

    def __init__(self, code: AppCode, on: EndKind) -> None:
        self._code = code
        self._on = on

    @overload
    def __call__(
        self, of: Workflow[Any, Any] | str, /, *more: Workflow[Any, Any] | str, **options: Unpack[WorkflowOptions]
    ) -> Callable[[Function], Function]: ...
    @overload
    def __call__(self, function: Function, /) -> Function: ...
    @overload
    def __call__(self, /, **options: Unpack[WorkflowOptions]) -> Callable[[Function], Function]: ...
    def __call__(self, *of: Any, **options: Any) -> Any:
        names = sys._getframe(1).f_locals
        if len(of) == 1 and not options and callable(of[0]) and not isinstance(of[0], Workflow):
            return self._added(of[0], None, {}, names)
        follows = tuple(dict.fromkeys(map(self._named, of))) or None
        return lambda function: self._added(function, follows, options, names)

    def _added(
        self, function: Any, of: tuple[str, ...] | None, options: Mapping[str, Any], names: Mapping[str, Any]
    ) -> Any:
        if isinstance(function, Workflow):
            raise InvalidInput(f"{function.name} is a workflow already; on_{self._on} makes one of a plain function")
        return self._code.add(function, {**options, FOLLOWS: Follows(self._on, of)}, names)

    def _named(self, each: Any) -> str:
        if isinstance(each, Workflow):
            return each.name
        if isinstance(each, str):
            return check_name(each, "workflow")
        raise InvalidInput(f"on_{self._on}: {quoted(each)} is neither a workflow nor the name of one")
