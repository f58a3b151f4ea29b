"""`make promtool`: what a server of a small database exports, checked by Prometheus's own tool."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from unstuck.assembly import open_store
from unstuck.model.metrics import Measures
from unstuck.model.times import Times
from unstuck.observe.exposition import text_of
from unstuck.observe.recorder import Recorder
from unstuck.operations.metrics import MetricsMemory, measure
from unstuck.operations.table import Caller

#: They are named so by the documents that this project grew from, and this is all that the linter may say.
NAMED_SO = {
    f'{name} non-counter metrics should not have "_total" suffix'
    for name in ("jobs_queued_total", "jobs_running_total")
}


def exported() -> str:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/unstuck.db", Times(), migrate=True)
        found: Measures = measure(Caller(store, "promtool"), MetricsMemory())
        for name in ("jobs_queued_total", "jobs_running_total"):
            found.put(name, 1, "default")
        found.put("unstuck_jobs", 1, "queued", 'a"\\b', "é")
        found.update(_worker())
        store.close()
    return text_of(found)


def _worker() -> Measures:
    recorder = Recorder(of_worker=True)
    facts = {"workflow": "greet", "state": "CANCELLED", "error_type": "E", "duration_ms": 3}
    recorder.see([1], lambda _: {**facts, "request": "cancel", "obeyed_in": 0.5})
    for name in ("recovered", "overdue", "duty_failed", "store_trouble", "stuck", "fenced", "executor_died"):
        recorder.hear(name, {"state": "QUEUED", "duty": "d", "loop": "l", "workflow": "greet", "silent_for": 1.0})
    return recorder.measures()


if __name__ == "__main__":
    ran = subprocess.run(
        ["promtool", "check", "metrics"], input=exported(), text=True, capture_output=True, check=False
    )
    said = {line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()}
    if said - NAMED_SO:
        sys.exit("\n".join(sorted(said - NAMED_SO)))
    print("promtool accepts the text; of its linter only what the seeds' own names ask for:", len(said), "lines")
