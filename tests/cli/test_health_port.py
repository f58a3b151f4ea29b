"""unstuck worker --health-port: a real worker, its probes and its figures, from its first moment to its drain."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from tests.cli.command import APP, Command
from tests.cli.test_worker import running
from tests.support.eventually import eventually
from tests.support.metrics_text import samples, value
from tests.tiers import slow


def figures(url: str, are_there: Callable[[Any], bool]) -> Any:
    """What it tells, once that is so."""
    told: list[Any] = []

    def look() -> bool:
        told.append(samples(httpx2.get(f"{url}/metrics").text))
        return are_there(told[-1])

    eventually(look, timeout=30)
    return told[-1]


@slow
def test_a_worker_tells_its_health_and_its_figures(unstuck: Command, tmp_path: Path) -> None:
    """EXPERIENCE 4.4: ready while it takes jobs, 503 while it drains, alive throughout."""
    log = tmp_path / "worker.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            unstuck.words("worker", APP, "--health-port", "0", "--concurrency", "3"),
            cwd=tmp_path,
            env=unstuck.environment(),
            stdin=subprocess.DEVNULL,
            stderr=sink,
        )
    try:
        eventually(lambda: b"health_port" in log.read_bytes(), timeout=30)
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        assert found
        url = found.group()
        assert httpx2.get(f"{url}/healthz").json() == {"alive": True}
        eventually(lambda: httpx2.get(f"{url}/readyz").status_code == 200, timeout=30)
        job = unstuck.enqueue("last_until", str(tmp_path / "end"))
        told = figures(url, lambda found: value(found, "unstuck_worker_held") == 1)
        assert value(told, "unstuck_worker_ready") == 1
        assert value(told, "unstuck_worker_slots") == 3
        assert value(told, "unstuck_claims_total") == 1
        stopped = unstuck.enqueue("last_until", str(tmp_path / "never"))
        running(unstuck, stopped)
        unstuck("jobs", "cancel", stopped)
        counted = {"unstuck_cancel_seconds_count", "unstuck_attempts_ended_total"}
        told = figures(url, lambda found: counted <= set(found))
        assert value(told, "unstuck_cancel_seconds_count", request="cancel") == 1
        assert value(told, "unstuck_attempts_ended_total", workflow="last_until", outcome="cancelled") == 1
        process.terminate()
        eventually(lambda: httpx2.get(f"{url}/readyz").status_code == 503, timeout=10)
        assert httpx2.get(f"{url}/healthz").status_code == 200
        assert value(samples(httpx2.get(f"{url}/metrics").text), "unstuck_worker_ready") == 0
        (tmp_path / "end").touch()
        assert process.wait(30) == 0
        assert unstuck("jobs", "show", job, "--json").object["state"] == "COMPLETED"
    finally:
        process.kill()
        process.wait(10)
