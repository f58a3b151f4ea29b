"""What runs when jobs end, as code declares it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import unstuck
from unstuck import App, EndedJob, InvalidInput
from unstuck.model.ends import Follows

ENDED = EndedJob(
    id="1", workflow="pay", tenant="t", queue="q", state="FAILED", run=1, ended_at=datetime(2026, 1, 1, tzinfo=UTC)
)


def an_app() -> App:
    return App("sqlite:///nowhere.db")


def test_a_function_follows_all_ends_or_those_of_some_workflows() -> None:
    app = an_app()

    @app.workflow
    def pay(n: int) -> int:
        return n

    @app.on_completed
    def cheer(ended: EndedJob) -> str:
        return ended.workflow

    @app.on_failed(pay, "refund", "refund", retries=7, queue="small", name="mourner")
    async def mourn(ctx: unstuck.AsyncContext, ended: EndedJob, loudly: bool = False) -> None: ...

    @app.on_stuck()
    def alarm(ended: dict[str, Any]) -> None: ...

    handlers = app._registry.handlers
    assert handlers["pay"].follows is None
    assert handlers["cheer"].follows == Follows("completed")
    assert handlers["mourner"].follows == Follows("failed", ("pay", "refund"))
    assert (handlers["mourner"].policy.retries, handlers["mourner"].queue) == (7, "small")
    assert handlers["alarm"].follows == Follows("stuck")
    assert cheer(ENDED) == "pay", "called, it is the plain function"
    [args, kwargs] = handlers["cheer"].unpack(
        '{"args":[{"id":"1","workflow":"pay","tenant":"t","queue":"q","state":"FAILED","run":1,'
        '"ended_at":"2026-01-01T00:00:00Z","error_type":null,"error":null,"result":null,"result_left_out":null}],"kwargs":{}}'
    )
    assert (args, kwargs) == ([ENDED], {})
    assert Follows.from_json(Follows("failed", ("pay",)).to_json()) == Follows("failed", ("pay",))


@pytest.mark.parametrize("wrong", [lambda: None, lambda a, b: None, lambda *, ended: None])
def test_a_function_that_takes_anything_else_is_refused(wrong: Any) -> None:
    wrong.__name__ = "wrong"
    with pytest.raises(InvalidInput, match=r"it takes the job that ended"):
        an_app().on_failed(wrong)


def test_what_is_no_workflow_is_refused() -> None:
    app = an_app()

    @app.workflow
    def pay() -> None: ...

    with pytest.raises(InvalidInput, match="is a workflow already"):
        app.on_completed()(pay)
    with pytest.raises(InvalidInput, match="neither a workflow nor the name of one"):
        app.on_completed(3, 4)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="follows"):
        app.workflow(name="w", follows="everything")(lambda: None)  # type: ignore[call-overload]
