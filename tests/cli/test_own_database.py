"""An app that names its database in the code is served there: nobody has to say it twice."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.cli.command import Command
from tests.support.eventually import eventually

SHOP = """
import unstuck
app = unstuck.App("sqlite:///own.db", lease=60)

@app.workflow
def greet(name: str) -> str:
    return f"Hello, {name}!"

@app.workflow
def pass_on(name: str) -> str:
    return greet.enqueue(name).id
"""


def test_a_worker_serves_the_database_that_its_app_names(bare: Command) -> None:
    (bare.directory / "shop.py").write_text(SHOP)
    worker = subprocess.Popen(
        bare.words("worker", "shop:app", "--processes", "1"),
        cwd=bare.directory,
        env=bare.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        answer = bare("enqueue", "pass_on", "Ada", "--app", "shop:app", "--wait", "--timeout", "30s")
        inner = answer.word.strip('"')
        assert answer.code == 0, answer.err
        assert bare("jobs", "wait", inner, UNSTUCK_APP="shop:app").code == 0
        assert not (bare.directory / "unstuck.db").exists()
        [shown] = bare("workers", "--json", "--database", "sqlite:///own.db").lines
        assert shown["state"] == "active"
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    eventually(lambda: bare("jobs", "show", inner, "--json", UNSTUCK_APP="shop:app").object["state"] == "COMPLETED")


def test_the_apps_own_settings_count_for_its_worker_and_flags_outrank_them(bare: Command) -> None:
    (bare.directory / "shop.py").write_text(SHOP)

    assert "1m 9s  job of a lost machine" in bare("worker", "shop:app", "--check").err
    assert "2m 9s  job of a lost machine" in bare("worker", "shop:app", "--check", "--set", "lease=120").err


@pytest.mark.parametrize("database", [None, "sqlite:///other.db"])
@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("nope:app", "app nope:app cannot be imported: ModuleNotFoundError: No module named 'nope'"),
        ("shop:nope", "shop has no nope; name the App as module:attribute"),
        ("shop:greet", "shop:greet is not an App; its type is Workflow"),
        ("shop:unstuck", "shop:unstuck is not an App; its type is module"),
    ],
)
def test_a_check_fails_if_the_app_cannot_be_had(bare: Command, app: str, told: str, database: str | None) -> None:
    (bare.directory / "shop.py").write_text(SHOP)

    answer = bare("worker", app, "--check", UNSTUCK_DATABASE=database)

    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert "promises" not in answer.err


@pytest.mark.parametrize("database", [None, "sqlite:///other.db"])
def test_a_worker_of_something_else_than_an_app_ends_at_once(bare: Command, database: str | None) -> None:
    """No later try would find an App there: it is the wrong name, not a module that is not ready yet."""
    (bare.directory / "shop.py").write_text(f"import sys\nprint('hello', file=sys.stderr)\n{SHOP}")

    answer = bare("worker", "shop:greet", "--drain", "1s", UNSTUCK_DATABASE=database)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.strip().endswith("shop:greet is not an App; its type is Workflow")
    assert not (bare.directory / "other.db").exists()


def test_an_app_that_cannot_be_imported_ends_a_worker_that_knows_no_database(bare: Command) -> None:
    (bare.directory / "shop.py").write_text("import nowhere_to_be_found\n")

    answer = bare("worker", "shop:app")

    assert answer.code == 2
    assert "app shop:app cannot be imported" in answer.err
    assert "No module named 'nowhere_to_be_found'" in answer.err
