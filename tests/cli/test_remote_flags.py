"""unstuck worker --server: what is refused before anything is sent."""

from __future__ import annotations

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
