"""A pytest plugin that tells which acceptances each collected test shows, in which tier, on which database."""

from __future__ import annotations

import json
import re

import pytest

from tests.tiers import TIERS

PREFIX = "acceptances: "
_IN_NAME = re.compile(r"(?<=_)a(\d{1,2})(?=_|$)")
_IN_TEXT = re.compile(r"\bA(\d{1,2})\b")


def named_in_text(text: str) -> set[int]:
    return {int(number) for number in _IN_TEXT.findall(text)}


def named_by(function: pytest.Function) -> set[int]:
    """By its name (`test_a17_…`, `…_a17`) or its docstring (`A17`)."""
    name = function.originalname
    return {int(number) for number in _IN_NAME.findall(name)} | named_in_text(function.obj.__doc__ or "")


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        if isinstance(item, pytest.Function) and (numbers := named_by(item)):
            tier = next(tier for tier in TIERS if item.get_closest_marker(tier))
            name = item.nodeid.partition("[")[0]
            print(PREFIX + json.dumps([sorted(numbers), tier, _databases(item), name]))


def _databases(item: pytest.Function) -> list[str]:
    call = getattr(item, "callspec", None)
    known = {value for value in call.params.values() if value in ("sqlite", "postgres")} if call else set()
    return sorted(known)
