"""docs/schedules.md works as written, on both databases."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.command import ROOT, Command, ended
from tests.cli.test_order_guide import run, shell_of
from tests.support.eventually import eventually

GUIDE = (ROOT / "docs" / "schedules.md").read_text()
[SHELL] = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
[CODE] = re.findall(r"```python\n# shop.py\n(.*?)```", GUIDE, re.S)


@pytest.fixture
def worker(unstuck: Command) -> Iterator[Command]:
    """The guide's own app, and a worker of it."""
    (unstuck.directory / "shop.py").write_text(CODE)
    process = subprocess.Popen(
        unstuck.words("worker", "shop:app", "--processes", "1", "--drain", "5s", "--name", "w1"),
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ended(process, within=60):
        eventually(lambda: "report-us" in unstuck("schedules").out, timeout=60, every=0.5)
        yield unstuck


@pytest.mark.timeout(300)
def test_the_guide_runs_as_written(worker: Command) -> None:
    declared = {line["name"]: line for line in worker("schedules", "--json").lines}
    assert list(declared) == ["clean_up", "morning_mail", "report-eu", "report-us"]
    assert declared["morning_mail"]["zone"] == "Europe/Berlin"
    run(worker, "unstuck worker shop:app --check")

    told = run(worker, SHELL)

    assert "nightly" in told
    # Every step of the guide says what it did, and the one job that it made by hand runs.
    [made] = worker("jobs", "list", "--workflow", "clean_up", "--json").lines
    eventually(lambda: worker("jobs", "show", made["id"], "--json").lines[0]["state"] == "COMPLETED", timeout=60)
    assert "nightly" not in [line["name"] for line in worker("schedules", "--json").lines], "it was deleted"
    kinds = [line["kind"] for line in worker("events", "list", "--json").lines]
    for kind in ("schedule.fired", "schedule.paused", "schedule.resumed"):
        assert kind in kinds
