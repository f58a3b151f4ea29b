"""Commands that people paste, about names that look like options or need quotes."""

from __future__ import annotations

import pytest

from unstuck.model.spelling import about, ending_session, given


@pytest.mark.parametrize(
    ("name", "flags", "command"),
    [
        ("ada", "", "unstuck x ada"),
        ("ada", "--all-tenants", "unstuck x ada --all-tenants"),
        ("ada lovelace", "", "unstuck x 'ada lovelace'"),
        ("-x", "", "unstuck x -- -x"),
        ("--all tenants", "--tenant a", "unstuck x --tenant a -- '--all tenants'"),
    ],
)
def test_a_name_that_begins_with_a_dash_stands_last(name: str, flags: str, command: str) -> None:
    assert about("unstuck x", name, flags) == command


def test_a_value_that_begins_with_a_dash_is_tied_to_its_option() -> None:
    assert given("--after", "a b") == "--after 'a b'"
    assert given("--after", "-x") == "--after=-x"


def test_what_only_the_database_can_do_is_a_statement_for_its_own_shell() -> None:
    assert ending_session(4711) == "SELECT pg_terminate_backend(4711)"
    assert ending_session(None) == "SELECT * FROM pg_prepared_xacts"
