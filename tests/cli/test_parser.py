"""The layer between signatures and words."""

from __future__ import annotations

from typing import Annotated

import pytest

from unstuck.cli.options import byte_count, seconds
from unstuck.cli.parser import Argument, Command, Usage, option

seen: dict[str, object] = {}
single = Command()
group = Command("Two verbs.")


@single.command()
def take(
    first: Annotated[str, Argument("FIRST", "needed")],
    rest: Annotated[list[str] | None, Argument("REST", "more")] = None,
    often: Annotated[list[str] | None, option("--often", help="may be repeated")] = None,
    number: Annotated[int, option("--number", "-n", help="a number", least=1, most=9)] = 5,
    delay: Annotated[float | None, option("--delay", read=seconds, help="100% a duration")] = None,
    size: Annotated[int | None, option("--size", read=byte_count, help="a size")] = None,
    loud: Annotated[bool | None, option("--loud", off="--quiet", help="or not")] = None,
    secret: Annotated[bool, option("--secret")] = False,
) -> int:
    """Takes everything. And remembers it."""
    seen.clear()
    seen.update(locals())
    return 4


@group.command()
def one() -> None:
    """The first. There is more to it."""


@group.command("two")
def another() -> int:
    """The second."""
    return 2


def test_words_become_values_wherever_the_options_stand() -> None:
    words = ["a", "--often", "x", "b", "-n", "7", "c", "--often=y", "--delay", "1h30m", "--size", "2K", "--quiet"]
    assert single.run("t", words) == 4
    assert seen == {
        "first": "a", "rest": ["b", "c"], "often": ["x", "y"], "number": 7, "delay": 5400.0, "size": 2048,
        "loud": False, "secret": False,
    }  # fmt: skip


def test_what_is_left_out_has_its_default() -> None:
    single.run("t", ["-5"])
    assert (seen["first"], seen["number"], seen["loud"]) == ("-5", 5, None)
    assert not seen["rest"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "FIRST"),
        (["a", "--number", "x"], "'x' is not a whole number"),
        (["a", "--number", "0"], "0 is not between 1 and 9"),
        (["a", "--delay", "soon"], "soon: not a duration"),
        (["a", "--size", "big"], "big: not a size"),
        (["a", "--numb", "3"], "--numb"),
    ],
)
def test_what_does_not_fit_says_so(words: list[str], problem: str) -> None:
    with pytest.raises(Usage, match=problem) as caught:
        single.run("t", words)
    assert caught.value.usage == "Usage: t [OPTIONS] FIRST [REST…]\n"


def test_help_shows_everything_but_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert single.run("t", ["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Takes everything. And remembers it." in shown
    assert "--number, -n N" in shown
    assert "100% a duration" in shown
    assert "--secret" not in shown


def test_a_group_runs_its_verbs_and_knows_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert (group.run("t", ["one"]), group.run("t", ["two"])) == (0, 2)
    assert group.run("t", ["--help"]) == 0
    assert "  one         The first\n" in capsys.readouterr().out
    with pytest.raises(Usage, match="did you mean `t two`"):
        group.run("t", ["tow"])
    with pytest.raises(Usage, match="Verbs:"):
        group.run("t", [])
