"""Prometheus's own tool reads our alert rules, their tests, and what a server and a worker export. Needs promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import running
from tests.support.builders import a_job, a_worker, boom, claimed, settle, submitted
from tests.support.troubles import execute
from tests.tiers import slow
from unstuck.assembly.server import ServerOptions
from unstuck.observe.exposition import text_of
from unstuck.observe.recorder import Recorder
from unstuck.store.sql_store import SqlStore

pytestmark = slow

RULES = Path(__file__).parents[2] / "deploy" / "prometheus"
#: `make promtool` puts it beside the interpreter.
PROMTOOL = shutil.which("promtool", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
#: They are named so by the documents that this project grew from, and this is all that the linter may say.
NAMED_SO = {
    f'{name} non-counter metrics should not have "_total" suffix'
    for name in ("jobs_queued_total", "jobs_running_total")
}


def promtool(*words: str, text: str | None = None) -> tuple[int, str]:
    assert PROMTOOL, "this test needs promtool: `make promtool` fetches Debian's, or apt-get install prometheus"
    ran = subprocess.run([PROMTOOL, *words], input=text, text=True, capture_output=True, timeout=60, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def lint(text: str) -> set[str]:
    code, said = promtool("check", "metrics", text=text)
    assert code in (0, 3), said  # 3: the linter has something to say
    return {line for line in said.splitlines() if line.strip()}


@pytest.mark.parametrize(
    "words", [("check", "rules", "unstuck.rules.yml"), ("test", "rules", "unstuck.rules.test.yml")]
)
def test_it_accepts_the_rules_and_their_tests_hold(words: tuple[str, str, str]) -> None:
    code, said = promtool(*words[:2], str(RULES / words[2]))
    assert code == 0, said
    assert "SUCCESS" in said


def test_a_rule_that_it_cannot_read_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text((RULES / "unstuck.rules.yml").read_text().replace("expr: ", "expr: rate(", 1))
    code, said = promtool("check", "rules", str(broken))
    assert (code, "could not parse expression" in said) == (1, True), said


def test_it_accepts_what_a_server_exports(store: SqlStore, store_url: str) -> None:
    ada = a_worker(store)
    settle(store, ada, claimed(store, ada, workflow="greet").ref)
    settle(store, ada, claimed(store, ada, workflow='a"\\b', queue="é", retries=0).ref, boom())
    claimed(store, ada)
    submitted(store)
    store.submit([a_job(delay=60.0)])
    execute(store_url, f"UPDATE unstuck_done SET finished_at = finished_at - {180 * 1_000_000}")
    assert store.count_ends(60.0) == 2
    with running(ServerOptions(store_url, port=0)) as site:
        text = site.get("/metrics").text
    assert "unstuck_job_wait_seconds_bucket" in text
    assert lint(text) == NAMED_SO


def test_it_accepts_what_a_worker_exports() -> None:
    recorder = Recorder(of_worker=True)
    facts = {"workflow": "greet", "state": "CANCELLED", "error_type": "E", "duration_ms": 3}
    recorder.see([1], lambda _: {**facts, "request": "cancel", "obeyed_in": 0.5})
    for name in ("recovered", "overdue", "duty_failed", "store_trouble", "stuck", "fenced", "executor_died"):
        recorder.hear(name, {"state": "QUEUED", "duty": "d", "loop": "l", "workflow": "greet", "silent_for": 1.0})
    assert lint(text_of(recorder.measures())) == set()
