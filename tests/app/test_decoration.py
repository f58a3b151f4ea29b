"""What `@app.workflow` accepts, refuses and keeps; no database is needed for any of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import unstuck
from unstuck import App, AsyncContext
from unstuck.model.policy import Policy

if TYPE_CHECKING:
    from tests.app.nowhere import Nowhere  # type: ignore[import-not-found]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.chdir(tmp_path)
    return App()


def test_a_bare_and_a_called_decorator_register_the_same_way(app: App) -> None:
    @app.workflow
    def one(x: int) -> int:
        """Doubles."""
        return 2 * x

    @app.workflow(name="other", queue="io", timeout=5, max_retries=7, backoff_base=2, retry_on=OSError)
    async def two(ctx: AsyncContext) -> None: ...

    first, second = app._registry.handlers["one"], app._registry.handlers["other"]
    assert (first.is_async, first.takes_context, first.queue, first.doc) == (False, False, "default", "Doubles.")
    assert first.policy == Policy()
    assert (second.is_async, second.takes_context, second.queue, second.retry_on) == (True, True, "io", (OSError,))
    assert (second.policy.timeout, second.policy.retries, second.policy.backoff_base) == (5, 7, 2)


def test_a_workflow_called_directly_is_the_plain_function(app: App) -> None:
    @app.workflow
    def double(x: int) -> int:
        """Doubles."""
        return 2 * x

    @app.workflow
    async def adouble(x: int) -> int:
        return 2 * x

    assert double(4) == 8
    assert asyncio.run(adouble(4)) == 8
    assert (double.name, double.__doc__) == ("double", "Doubles.")
    assert list(inspect.signature(double).parameters) == ["x"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": "1m"}, "timeout='1m' is not a number of seconds: write 60, or \"unlimited\""),
        ({"backoff": 3}, "no option backoff; backoff_base, backoff_factor and backoff_cap say"),
        ({"cron": "* * * * *"}, "no option cron; write schedule="),
        ({"max_attempts": 4}, "max_attempts=4 is retries=3"),
        ({"priority": 4}, r"priority is an option of a job, not of a workflow: pay.using\(priority=…\)"),
        ({"retries": -1}, "retries"),
        ({"retries": 1.5}, "whole number"),
        ({"on_lost": "explode"}, "on_lost"),
        ({"isolation": "thread"}, "isolation"),
        ({"colour": "red"}, "there is no option colour"),
        ({"target": "{x}"}, "names x, which is none of its parameters"),
        ({"retry_on": "OSError"}, "retry_on"),
        ({"queue": " "}, "queue"),
    ],
)
def test_a_bad_option_is_an_error_at_import_that_names_the_workflow(
    app: App, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(unstuck.InvalidInput, match=problem) as refused:

        @app.workflow(**options)
        def pay() -> None: ...

    assert "pay" in str(refused.value) or "queue" in options
    assert app._registry.handlers == {}


def test_two_workflows_of_one_name_are_refused(app: App) -> None:
    @app.workflow
    def pay() -> None: ...

    with pytest.raises(unstuck.InvalidInput, match="two workflows named pay"):
        app.workflow(name="pay")(lambda: None)


def test_a_context_without_its_annotation_is_refused(app: App) -> None:
    with pytest.raises(unstuck.InvalidInput, match="write ctx: unstuck"):

        @app.workflow
        def pay(ctx, amount: int) -> None: ...  # type: ignore[no-untyped-def]

    @app.workflow
    def refund(ctx: str) -> None: ...


def test_what_is_no_handler_is_refused(app: App) -> None:
    def generator() -> Iterator[int]:
        yield 1

    with pytest.raises(unstuck.InvalidInput, match="yields"):
        app.workflow(generator)
    with pytest.raises(unstuck.InvalidInput, match="no name"):
        app.workflow(lambda: None)
    with pytest.raises(unstuck.InvalidInput, match="not a function"):
        app.workflow(Path)


def test_a_timeout_above_the_highest_is_refused_when_the_settings_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever enqueues while no worker has registered it, and by the worker that would."""
    monkeypatch.chdir(tmp_path)
    app = App()

    @app.workflow(timeout=7200)
    def long() -> None: ...

    with pytest.raises(unstuck.InvalidPolicy, match=r"workflow long: .*max_timeout=3600: raise that"):
        long.enqueue()
    with pytest.raises(unstuck.InvalidPolicy, match=r"workflow long: .*max_timeout=3600"):
        app._registry.records(max_timeout=app.config.times.max_timeout)


def test_a_higher_limit_of_the_app_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(max_timeout="3h")

    @app.workflow(timeout=7200)
    def long() -> None: ...

    assert app._registry.handler("long").policy.timeout == 7200


def test_defaults_of_workflows_come_from_preset_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(preset="human_gate", retries=9)

    @app.workflow(grace=1)
    def work() -> None: ...

    policy = app._registry.handler("work").policy
    assert (policy.on_lost, policy.on_drain_timeout, policy.retries, policy.grace) == ("fail", "pause", 9, 1)


def test_an_annotation_of_a_class_that_comes_later_is_resolved_when_it_is_needed(app: App) -> None:
    names: dict[str, Any] = {"app": app}
    exec(
        "@app.workflow\n"
        "def later(x: 'Later') -> None: ...\n"
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class Later:\n"
        "    n: int\n",
        names,
    )

    handler = app._registry.handler("later")

    assert handler.unpack('{"args":[{"n":1}]}') == ([names["Later"](1)], {})


def test_classes_of_the_surrounding_function_are_understood(app: App) -> None:
    @dataclass
    class Inner:
        n: int

    @app.workflow
    def work(x: Inner) -> None: ...

    assert app._registry.handler("work").unpack('{"args":[{"n":1}]}') == ([Inner(1)], {})


def test_an_annotation_that_never_exists_at_run_time_is_told_with_the_remedy(app: App) -> None:
    @app.workflow
    def work(x: Nowhere) -> None: ...

    with pytest.raises(unstuck.InvalidInput, match=r"workflow work: .*Nowhere.*TYPE_CHECKING"):
        _ = app._registry


@pytest.mark.parametrize("first", ["x", "x: object", "x: Any", "*x", "*x: object", "ctx: object"])
def test_a_first_parameter_that_is_not_annotated_context_belongs_to_the_caller(app: App, first: str) -> None:
    names: dict[str, Any] = {"Any": Any}
    exec(f"def work({first}, n: int = 0): ...", names)
    app.workflow(names["work"])

    handler = app._registry.handler("work")

    assert not handler.takes_context
    assert handler.unpack('{"args":[7]}') == ([7], {})


def test_middleware_and_hooks_are_kept_in_order(app: App) -> None:
    said: list[str] = []

    @app.middleware
    def timed(ctx: Any) -> Iterator[None]:
        said.append(f"before {ctx}")
        yield
        said.append("after")

    @app.on_executor_start
    def connect() -> None:
        said.append("connect")

    @app.on_executor_stop
    def leave() -> None: ...

    with app._registry.middleware[0]("ctx"):
        said.append("in between")

    assert said == ["before ctx", "in between", "after"]
    assert (app._registry.on_start, app._registry.on_stop) == ([connect], [leave])


def test_middleware_that_could_not_be_called_is_refused_at_import_not_at_every_job(app: App) -> None:
    with pytest.raises(unstuck.InvalidInput, match="middleware wrong must take the Context alone"):

        @app.middleware
        def wrong(ctx: object, call: object) -> None: ...


def test_asynchronous_middleware_is_refused(app: App) -> None:
    async def timed(ctx: Any) -> Any:
        yield

    with pytest.raises(unstuck.InvalidInput, match="plain generator"):
        app.middleware(timed)


def test_the_code_version_is_told_to_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSTUCK_VERSION", "from-environment")

    assert App(version="1.2")._registry.code_version == "1.2"
    assert App()._registry.code_version == "from-environment"


def test_settings_that_no_source_could_mend_are_refused_at_once() -> None:
    with pytest.raises(unstuck.InvalidSettings, match="did you mean lease"):
        App(leese=3)
    with pytest.raises(unstuck.InvalidSettings, match="preset"):
        App(preset="retry_frist")


def test_an_unknown_option_is_answered_with_all_there_are_and_the_one_that_was_meant(app: App) -> None:
    @app.workflow
    def pay() -> None: ...

    with pytest.raises(unstuck.InvalidInput, match=r"no option prio; did you mean priority\?; known: ") as refused:
        pay.using(prio=1)  # type: ignore[call-arg]
    assert all(f" {name}," in str(refused.value) for name in ("at", "delay", "key", "priority", "queue", "tenant"))
    assert "timeout_seconds" not in str(refused.value)

    with pytest.raises(unstuck.InvalidInput, match=r"no option nam; did you mean name\?; known: ") as refused:
        app.workflow(nam="x")(pay)  # type: ignore[call-overload]
    assert all(f" {name}," in str(refused.value) for name in ("name", "queue", "retry_on", "retries"))
    assert " key," not in str(refused.value)


def test_a_context_of_the_other_colour_is_refused_when_the_workflow_is_defined(app: App) -> None:
    """Its types would say that a call blocks where it must be awaited, or the other way round."""
    with pytest.raises(unstuck.InvalidInput, match=r"f is a coroutine, .* is Context; write unstuck.AsyncContext"):

        @app.workflow(name="f")
        async def coroutine(ctx: unstuck.Context) -> None: ...

    with pytest.raises(unstuck.InvalidInput, match=r"g is a plain function, .* write unstuck.Context"):

        @app.workflow(name="g")
        def function(ctx: unstuck.AsyncContext) -> None: ...

    with pytest.raises(unstuck.InvalidInput, match=r"write ctx: unstuck.AsyncContext"):

        @app.workflow(name="h")
        async def unannotated(ctx) -> None: ...  # type: ignore[no-untyped-def]

    assert app._registry.handlers == {}


def test_the_declared_type_is_that_of_the_result_and_not_of_steps_and_parts(app: App) -> None:
    @app.workflow
    def total(ctx: unstuck.Context) -> int:
        return 1

    handler = app._registry.handler("total")
    assert handler.pack({"words": 1000}) == '{"words":1000}', "a step, or a part of the result"
    assert handler.pack_result is not None
    assert handler.pack_result(7) == "7"
    with pytest.raises(unstuck.InvalidResult):
        handler.pack_result({"words": 1000})


def test_what_is_redacted_is_registered_with_the_workflow(app: App) -> None:
    @app.workflow(redact=["customer.iban", "card", "card"])
    def pay(card: str, customer: dict[str, str]) -> None: ...

    [record] = app._registry.records()
    assert record.redact == ("card", "customer.iban")


@pytest.mark.parametrize(
    ("redact", "said"),
    [
        ("card", r"redact='card' is a text; write a list of names: redact=\['card'\]"),
        (7, "not a list of names"),
        ({"card": True}, "not a list of names"),
        (["card", ""], "not empty"),
        (["card", 7], "must be text"),
        ([None], "must be text"),
        ([" card"], "no spaces"),
        (["customer."], "neither a name nor a path"),
        (["a..b"], "neither a name nor a path"),
        (["*"], "cannot be the name of one"),
        ([f"k{n}" for n in range(101)], "the limit is 100"),
        (["more"], "stands for any named argument"),
    ],
    ids=str,
)
def test_a_redact_that_is_no_list_of_names_is_refused(app: App, redact: Any, said: str) -> None:
    with pytest.raises(unstuck.InvalidInput, match=f"workflow pay: .*{said}"):

        @app.workflow(redact=redact)
        def pay(card: str, **more: str) -> None: ...


@pytest.mark.parametrize("place", ["target", "limit_key"])
@pytest.mark.parametrize("template", ["{card}", "c-{customer.iban}"])
def test_what_is_redacted_names_no_target_and_no_limit_key(app: App, place: str, template: str) -> None:
    """Everybody may read them."""
    with pytest.raises(unstuck.InvalidInput, match=f"{place}=.*which is redacted"):

        @app.workflow(redact=["card", "customer.iban"], **{place: template})  # type: ignore[call-overload,untyped-decorator]
        def pay(card: str, customer: dict[str, str]) -> None: ...

    kept = {place: "{customer.name}"}

    @app.workflow(name="other", redact=["card", "customer.iban"], **kept)  # type: ignore[call-overload,untyped-decorator]
    def other(card: str, customer: dict[str, str]) -> None: ...
