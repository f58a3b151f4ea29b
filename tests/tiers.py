"""Which test runs when: every test is in exactly one of three tiers, and this file says in which.

commit   `make test`               every room on both databases, and about one journey per group of acceptances
slow     `make test-all`, besides  whole stories with real workers, spawned executors, guides, the demo
torture  `make torture`, by hand   the races and random stories of the other two, many times longer

A sample is a short run of what the slow tier does at length: `make test-all` leaves it out.

A test is in the commit tier unless SLOW or ON_POSTGRES_SLOW names its place, it spawns its executors, or it says
otherwise itself: `@commit` or `@commit_on_sqlite` on a journey, `@slow` on what costs more than it tells each time. A
proof by repetition says with `in_tiers` how much of it each tier repeats. Every journey is also there with workers
that ask a server instead of the database: by hand, and once in the slow tier where it says `@at_a_distance`.
"""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from zlib import crc32

import pytest

TIERS = ("commit", "slow", "torture")
commit, slow, torture = (pytest.mark.tier(name) for name in TIERS)
#: On PostgreSQL in the slow tier: what it proves of the database, others prove in less time.
commit_on_sqlite = pytest.mark.tier("commit", on_postgres="slow")

#: Under tests/: what only `make test-all` runs, unless a test there says `@commit`.
SLOW = (
    "journeys/*",
    "bulkheads/*",
    "typing/*",
    # Real processes, as their readers start them.
    "cli/test_*_guide.py",
    "cli/test_demo.py",
    "cli/test_dev.py",
    "cli/test_examples.py",
    "cli/test_health.py",
    "cli/test_imports.py",
    "cli/test_job_lines.py",
    "cli/test_logs.py",
    "cli/test_mishaps.py",
    "cli/test_own_database.py",
    "cli/test_policy_doors.py",
    "cli/test_readme.py",
    "cli/test_worker.py",
    "client/test_retries.py",
    # Wherever a signal may strike, and what processes of all kinds leave behind.
    "executor/test_facts.py",
    "executor/test_fleet.py",
    "executor/test_imports.py",
    "executor/test_interrupts.py",
    "executor/test_withdrawal.py",
    "store/test_feed_storm.py",
    # A real browser.
    "web/test_actions.py",
    "web/test_alert_card.py",
    "web/test_commands.py",
    "web/test_dashboard.py",
    "web/test_demo_walk.py",
    "web/test_hostile.py",
    "web/test_left_open.py",
    "web/test_log_in.py",
    "web/test_overview.py",
    "web/test_tenants.py",
)

#: Under tests/: what reaches no SQL that differs; `make test` runs it on SQLite, `make test-all` on PostgreSQL too.
ON_POSTGRES_SLOW = ("app/*", "cli/*", "client/*", "operations/*", "server/*")

#: Under tests/: modules with a test that takes a minute. They begin first, so that no run ends waiting for one.
LONG = ("store/test_lockstep.py", "cli/test_demo.py", "store/test_target_actors.py")

#: `make torture LONGER=n`: as many times what the slow tier does.
LONGER = int(os.environ.get("UNSTUCK_TEST_LONGER", "10"))
#: And as long as it takes; the other tiers keep the limit of pyproject.toml or their own.
TORTURE_LIMIT = 24 * 3600

_HERE = Path(__file__).parent


def in_tiers(name: str, few: int, all_: int) -> pytest.MarkDecorator:
    """A parameter, how often or how long: `few` in the commit tier, `all_` in the slow one, LONGER by hand."""
    sizes = [(few, [commit, pytest.mark.sample]), (all_, [slow]), (all_ * LONGER, [torture])]
    return pytest.mark.parametrize(
        name, [pytest.param(size, marks=marks, id=f"{size}-{name}") for size, marks in sizes]
    )


def at_a_distance(database: str, **parameters: object) -> pytest.MarkDecorator:
    """On a journey: on this database, and of its parameters with these, the slow tier runs it by a server too."""
    return pytest.mark.at_a_distance(database, **parameters)


def put_into_tiers(items: list[pytest.Item]) -> None:
    """Marks each test with its tier, so that `-m commit` finds what `make test` runs."""
    for item in items:
        tier = tier_of(item)
        item.add_marker(tier)
        if tier == "torture":
            item.add_marker(pytest.mark.timeout(TORTURE_LIMIT), append=False)


def mix(items: list[pytest.Item]) -> None:
    """Modules in an order that their names do not tell: those that wait beside those that compute, so that several
    workers have something for every core all the time. By their names, all that wait come first."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        module = item.path.relative_to(_HERE).as_posix()
        return module not in LONG, crc32(module.encode())

    items.sort(key=place)


def tier_of(item: pytest.Item) -> str:
    """The rarest tier that anything puts it into; what it says itself counts more than its place."""
    on = f"on_{_parameter(item, 'store_url')}"
    said = [str(mark.kwargs.get(on, mark.args[0])) for mark in item.iter_markers("tier")]
    assert set(said) <= set(TIERS), f"{item.nodeid}: tiers are {', '.join(TIERS)}"
    if _parameter(item, "mode") == "spawn":
        said.append("slow")
    if _parameter(item, "road") == "server":
        said.append("slow" if _is_chosen(item) else "torture")
    return max(said, key=TIERS.index) if said else _tier_of_place(item)


def _is_chosen(item: pytest.Item) -> bool:
    """Of those at a distance."""
    return any(
        _parameter(item, "store_url") == mark.args[0]
        and all(_parameter(item, name) == value for name, value in mark.kwargs.items())
        for mark in item.iter_markers("at_a_distance")
    )


def _parameter(item: pytest.Item, name: str) -> object:
    call = getattr(item, "callspec", None)
    return call.params.get(name) if call is not None else None


def _tier_of_place(item: pytest.Item) -> str:
    place = item.path.relative_to(_HERE).as_posix()
    slow_places = SLOW + ON_POSTGRES_SLOW if _parameter(item, "store_url") == "postgres" else SLOW
    return "slow" if any(fnmatch(place, pattern) for pattern in slow_places) else "commit"
