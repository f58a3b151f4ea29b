"""Words of a command line become arguments."""

from __future__ import annotations

from typing import Any

import pytest

from unstuck.cli.enqueue import parse
from unstuck.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("words", "positional", "named"),
    [
        (["1", "2.5", "true", "null"], [1, 2.5, True, None], {}),
        (["world"], ["world"], {}),
        (['"007"', "[1, 2]"], ["007", [1, 2]], {}),
        (["7", "name=Ada", "n=3", 'd={"a": 1}'], [7], {"name": "Ada", "n": 3, "d": {"a": 1}}),
        (['"a=b"', "https://x.example/?q=1"], ["a=b", "https://x.example/?q=1"], {}),
        (["empty="], [], {"empty": ""}),
    ],
)
def test_json_is_json_and_anything_else_is_text(
    words: list[str], positional: list[Any], named: dict[str, Any]
) -> None:
    assert parse(words, None) == (positional, named)


@pytest.mark.parametrize("words", [["{broken"], ["[1,"], ['"open'], ["a=1", "2"], ["a=1", "a=2"], ["NaN"]])
def test_what_looks_like_broken_json_or_a_slip_is_refused(words: list[str]) -> None:
    with pytest.raises(InvalidInput):
        parse(words, None)


def test_kwargs_is_one_object() -> None:
    assert parse(["1"], '{"b": 2}') == ([1], {"b": 2})
    with pytest.raises(InvalidInput, match="--kwargs"):
        parse([], "[1]")
