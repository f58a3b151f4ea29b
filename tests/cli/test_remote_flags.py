"""unstuck worker --server: what is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.tiers import slow

APP = "tests.cli.shop:app"
KEY = "usk_k3y00001_" + "a" * 49


@slow
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--key", KEY], "name it with --server"),
        (["--server", "http://10.0.0.1", "--key", KEY], "use https://"),
        (["--server", "ftp://jobs.example", "--key", KEY], "no server's address"),
        (["--server", "http://10.0.0.1", "--key", KEY, "--health-port", "0"], "use https://"),
        (["--server", "https://127.0.0.1:1", "--key", KEY, "--ca", "/nowhere/ca.pem"], "/nowhere/ca.pem"),
    ],
)
def test_what_cannot_be_meant_is_refused(unstuck: Command, flags: list[str], said: str) -> None:
    answer = unstuck("worker", APP, *flags)
    assert answer.code != 0
    assert said in answer.err
    assert KEY not in answer.out + answer.err


@slow
def test_its_key_may_be_in_a_file_and_its_times_are_those_of_a_distance(unstuck: Command, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    far = ("worker", APP, "--server", "http://10.0.0.1")
    found = unstuck(*far, UNSTUCK_KEY_FILE=str(tmp_path / "key"))
    assert (found.code != 0, "use https://" in found.err) == (True, True)
    missing = unstuck(*far, UNSTUCK_KEY_FILE=str(tmp_path / "nothing"))
    assert (missing.code != 0, "UNSTUCK_KEY_FILE" in missing.err) == (True, True)
    assert KEY not in found.err + missing.err
    assert "1m 9s  job of a lost machine" in unstuck(*far, "--check").err  # a lease of 60 s
