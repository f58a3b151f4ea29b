"""Which acceptances each collected test shows, in which tier, on which database, and whether over HTTP alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.tiers import TIERS

#: Where the run keeps what all tests of the tree show, whichever of them it has chosen to run.
SHOWN = pytest.StashKey["dict[int, Shown]"]()
#: Where everything is asked and seen by requests.
HTTP = "tests/journeys/http/"
#: Where every worker is at a distance.
FAR = ("tests/journeys/test_remote", "tests/server/test_remote")
_IN_NAME = re.compile(r"(?<=_)a(\d{1,2})(?=_|$)")
_IN_TEXT = re.compile(r"\bA(\d{1,2})\b")


@dataclass
class Shown:
    """Where one acceptance is shown: by which test in which tiers, on which databases."""

    by: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    databases: set[str] = field(default_factory=set)
    #: On which of them by requests alone, with roles, in two tenants.
    over_http: set[str] = field(default_factory=set)
    #: By workers without a database: on which of them in which tiers.
    at_a_distance: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def shown_by(items: Sequence[pytest.Item]) -> dict[int, Shown]:
    found: dict[int, Shown] = defaultdict(Shown)
    for item in items:
        if isinstance(item, pytest.Function) and (numbers := named_by(item)):
            tier = next(tier for tier in TIERS if item.get_closest_marker(tier))
            for number in numbers:
                found[number].by[item.nodeid.partition("[")[0]].add(tier)
                found[number].databases |= _databases(item)
                if item.nodeid.startswith(HTTP):
                    found[number].over_http |= _databases(item)
                if _is_at_a_distance(item):
                    for database in _databases(item):
                        found[number].at_a_distance[database].add(tier)
    return found


def named_in_text(text: str) -> set[int]:
    return {int(number) for number in _IN_TEXT.findall(text)}


def named_by(function: pytest.Function) -> set[int]:
    """By its name (`test_a17_…`, `…_a17`) or its docstring (`A17`)."""
    name = function.originalname
    return {int(number) for number in _IN_NAME.findall(name)} | named_in_text(function.obj.__doc__ or "")


def _is_at_a_distance(item: pytest.Function) -> bool:
    call = getattr(item, "callspec", None)
    is_by_server = call is not None and call.params.get("road") == "server"
    return is_by_server or item.nodeid.startswith(FAR)


def _databases(item: pytest.Function) -> set[str]:
    call = getattr(item, "callspec", None)
    return {value for value in call.params.values() if value in ("sqlite", "postgres")} if call else set()
