"""unstuck jobs partials, and what jobs show says of them; on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.command import Command
from tests.support.parking import Stage
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


def test_parts_are_listed_in_the_order_they_were_last_given(unstuck: Command, stage: Stage) -> None:
    attempt = stage.begun()
    none = unstuck("jobs", "partials", attempt.id)
    assert (none.code, none.out) == (0, "")
    assert "no part of its result so far" in none.err
    assert "partials" not in unstuck("jobs", "show", attempt.id).out
    for serial, (name, value) in enumerate([("a", "1"), ("b", '"\\u001b[2J"'), ("a", '{"pages":3}')], start=1):
        stage.part(attempt, name, value, serial)

    lines = unstuck("jobs", "partials", attempt.id, "--json").lines

    assert [(p["name"], p["value"], p["number"], p["run"], p["attempt"]) for p in lines] == [
        ("b", "\x1b[2J", 2, 1, 1),
        ("a", {"pages": 3}, 3, 1, 1),
    ]
    assert lines[0].keys() == {"name", "value", "number", "run", "attempt", "at"}
    shown = unstuck("jobs", "partials", attempt.id[:-2]).out
    head, first, second = shown.splitlines()
    assert head.split() == ["NAME", "ATTEMPT", "AT", "VALUE"]
    assert (first.split()[:2], second.split()[:2]) == (["b", "#1"], ["a", "#1"])
    assert second.endswith('{"pages":3}')
    assert "\x1b" not in shown
    assert f"partials   2 so far: unstuck jobs partials {attempt.id}" in unstuck("jobs", "show", attempt.id).out
    assert unstuck("jobs", "show", attempt.id, "--json").object["partials"] == 2
    for follow in ([], ["--follow"]):
        assert unstuck("jobs", "partials", "nonsense", *follow).code == 3


def test_a_long_value_is_shortened_for_people_only(unstuck: Command, stage: Stage) -> None:
    attempt = stage.begun()
    stage.part(attempt, "long", json.dumps("x" * 60_000), 1)
    assert len(unstuck("jobs", "partials", attempt.id).out) < 1000
    assert unstuck("jobs", "partials", attempt.id, "--json").object["value"] == "x" * 60_000


def test_of_a_job_that_has_ended_following_shows_what_there_is(unstuck: Command, stage: Stage) -> None:
    attempt = stage.begun()
    stage.part(attempt, "a", "1", 1)
    stage.end(attempt)
    followed = unstuck("jobs", "partials", attempt.id, "--follow")
    assert followed.code == 0
    assert followed.out.split()[1:] == ["#1", "a", "1"]
    silent = unstuck("jobs", "partials", stage.end(stage.begun()), "--follow")
    assert (silent.code, silent.out) == (0, "")
    assert "no part of its result so far" in silent.err


@pytest.fixture
def followed(unstuck: Command, stage: Stage) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    attempt = stage.begun()
    stage.part(attempt, "a", "1", 1)
    process = subprocess.Popen(
        [sys.executable, "-m", "unstuck", "jobs", "partials", attempt.id, "--follow", "--json"],
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["name"] == "a"
        stage.part(attempt, "a", "2", 2)
        assert json.loads(process.stdout.readline())["value"] == 2
        stage.part(attempt, "last", "3", 3)
        stage.end(attempt)
        yield attempt.id, process
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_a_follower_sees_each_as_it_comes_and_the_last_before_the_end(
    followed: tuple[str, subprocess.Popen[str]],
) -> None:
    _, process = followed
    out, _ = process.communicate(timeout=30)
    assert [(part["name"], part["number"]) for part in map(json.loads, out.splitlines())] == [("last", 3)]
    assert process.returncode == 0
