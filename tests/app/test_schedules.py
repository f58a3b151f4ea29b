"""Schedules in code: what is declared, and what is refused at import."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from unstuck import App
from unstuck.model.errors import InvalidInput, UnstuckError
from unstuck.model.schedules import ScheduleSpec


@pytest.fixture
def app() -> App:
    return App("sqlite:///nowhere.db", name="shop")


def specs(app: App) -> dict[str, ScheduleSpec]:
    return {each.name: ScheduleSpec.from_json(each.body) for each in app._registry.schedules}


def test_a_decorator_says_when(app: App) -> None:
    @app.workflow(schedule="0 3 * * *")
    def nightly() -> None: ...

    @app.workflow(schedule="5m")
    def often() -> None: ...

    @app.workflow(
        schedule=[
            {"cron": "@daily", "zone": "Europe/Berlin", "kwargs": {"what": "a"}},
            {"every": 60, "name": "b", "args": ["b"]},
        ]
    )
    def report(what: str) -> None: ...

    found = specs(app)
    assert list(found) == ["nightly", "often", "report", "b"]
    assert (found["nightly"].cron, found["often"].every) == ("0 3 * * *", 300.0)
    assert (found["report"].cron, found["report"].zone) == ("0 0 * * *", "Europe/Berlin")
    assert found["b"].args == ("b",)
    assert app._registry.app == "shop"


def test_a_declaration_names_its_workflow(app: App) -> None:
    @app.workflow(name="report")
    def report(what: str, day: str) -> None: ...

    app.schedules.declare("a", report, every="1h", args=["a"], tick_as="day", overlap="skip", jitter="30s")
    app.schedules.declare("a", "report", cron="@hourly", args=["a"], tick_as="day", tenant="acme")
    assert [(each.tenant, each.name) for each in app._registry.schedules] == [("default", "a"), ("acme", "a")]
    assert (specs(app)["a"].workflow, specs(app)["a"].tick_as) == ("report", "day")
    body = json.loads(app._registry.schedules[0].body)
    assert body == {
        "workflow": "report",
        "every": 3600.0,
        "args": ["a"],
        "tick_as": "day",
        "overlap": "skip",
        "jitter": 30.0,
    }


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"cron": "61 * * * *", "args": ["a"]}, "schedule x: cron='61 .*bad minute"),
        ({"every": "soon", "args": ["a"]}, "every='soon' is neither"),
        ({"every": 60}, "missing a required argument: what"),
        ({"every": 60, "args": [5]}, "expected string"),
        ({"every": 60, "args": ["a"], "overlap": "maybe"}, "allow, skip, queue, cancel"),
        ({"every": 60, "args": ["a"], "policy": {"timeout": -1}}, "timeout"),
    ],
)
def test_what_no_tick_could_run_is_an_error_at_import(app: App, said: dict[str, Any], problem: str) -> None:
    @app.workflow
    def report(what: str) -> None: ...

    def declare() -> None:
        app.schedules.declare("x", report, **said)
        _ = app._registry

    with pytest.raises(UnstuckError, match=problem):
        declare()


@pytest.mark.parametrize("given", [True, object(), {3}])
def test_a_schedule_that_is_none_is_told_where_it_is_written(app: App, given: Any) -> None:
    decorate = app.workflow(name="report", schedule=given)
    with pytest.raises(InvalidInput, match=r"workflow report: schedule=.* is neither a cron line"):
        decorate(_report)


def test_two_of_one_name_are_told(app: App) -> None:
    app.workflow(name="report")(_report)
    for _ in range(2):
        app.schedules.declare("x", "report", every=60)
    with pytest.raises(InvalidInput, match="two schedules named x"):
        _ = app._registry


def _report() -> None: ...


def test_declaring_imports_none_of_what_asks(tmp_path: Any) -> None:
    """Every executor imports the app, and with it what it declares."""
    code = (
        "import sys, unstuck; app = unstuck.App('sqlite:///x.db')\n"
        "app.workflow(name='w', schedule='5m')(lambda: None); app.schedules.declare('x', 'w', every=60)\n"
        "app._registry\n"
        "print([m for m in sys.modules if m.startswith(('unstuck.operations', 'unstuck.views'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"
