"""docs/alerts.md names every rule and setting, and its commands work as written, on both databases."""

from __future__ import annotations

import re

from tests.cli.command import ROOT, Command
from tests.cli.test_order_guide import run
from unstuck.model.alerts import CLOSE_AFTER, CLOSE_AFTER_DEFAULT, RULES, finding
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "alerts.md").read_text()
[SHELL] = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)


def test_the_guide_runs_as_written(unstuck: Command, store: SqlStore) -> None:
    for number in range(17):
        store.see_alerts("worker_silent", [finding("worker_silent", (f"w{number}",), "w", "gone", "/workers")])

    told = run(unstuck, SHELL)

    assert "was noted by" in told
    assert "is muted until" in told
    assert "is no longer muted" in told
    assert "rule_failing" in told


def test_the_guide_names_every_rule_and_setting_with_its_default() -> None:
    for rule in RULES.values():
        assert re.search(rf"^\| `{rule.name}` \| .* \| `{rule.setting}` \| {rule.default:g} \|$", GUIDE, re.M), rule
    assert f"(`{CLOSE_AFTER}`, {CLOSE_AFTER_DEFAULT:g})" in GUIDE
