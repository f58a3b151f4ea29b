"""docs/keys.md works as written, on both databases."""

from __future__ import annotations

import re

from tests.cli.command import ROOT, Command
from tests.cli.test_order_guide import run

GUIDE = (ROOT / "docs" / "keys.md").read_text()
[SHELL] = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)


def test_the_guide_runs_as_written(unstuck: Command) -> None:
    told = run(unstuck, SHELL)

    assert "of deploy is active" in told
    assert "of deploy is revoked" in told
    assert "took its place" in told
    assert '"queues": ["reports"]' in told
    assert told.count("keys.create") == 2
