"""The examples of docs/hooks.md work as written: our own commands, and openssl and curl against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ROOT, Command
from tests.server.conftest import running
from unstuck.assembly.server import ServerOptions
from unstuck.sealing import Sealer
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "hooks.md").read_text()
BODY = """BODY='{"repository": {"full_name": "acme/site"}, "ref": "v2"}'"""


def block(language: str, words: str) -> str:
    """The only one that holds these words."""
    [found] = [text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S) if words in text]
    return str(found)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_each_scheme_by_openssl_and_curl(store_url: str, store: SqlStore, tmp_path: Path) -> None:
    missing = [tool for tool in ("bash", "openssl", "curl") if shutil.which(tool) is None]
    assert not missing, f"this test needs {' and '.join(missing)}: apt-get install {' '.join(missing)}"
    unstuck = Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})
    (tmp_path / "ci.py").write_text(block("python", "def build"))
    registering = (
        "import ci; from unstuck.assembly.store import open_store; from unstuck.model.times import Times; "
        f"open_store({store_url!r}, Times()).register_workflows(ci.app._registry.records())"
    )
    subprocess.run([sys.executable, "-c", registering], cwd=tmp_path, check=True, timeout=60)

    def shell(script: str, **given: str) -> dict[str, Any]:
        environ = {**os.environ, **given}
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, env=environ, timeout=60)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    create = block("text", "--scheme github").strip().removeprefix("unstuck ")
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {create}"], capture_output=True, text=True, check=True)
    arguments = words.stdout.split("\0")[:-1]
    made = {
        scheme: unstuck(*[scheme if word in ("pushes", "github") else word for word in arguments], "--json").object
        for scheme in ("standard", "stripe")
    } | {"github": unstuck(*arguments, "--json").object}
    with running(ServerOptions(store_url, port=0)) as site:
        for scheme, sign in (
            ("github", "X-Hub-Signature-256: sha256=$SIGNATURE"),
            ("standard", "webhook-signature: v1,$SIGNATURE"),
            ("stripe", "Stripe-Signature: t=$AT"),
        ):
            given = {"URL": site.url, "HOOK": made[scheme]["id"], "SECRET": made[scheme]["secret"]}
            script = f"{BODY}\n{block('text', sign)}"
            first, again = shell(script, **given), shell(script, **given)
            assert first.get("job"), first
            assert first["job"] == again["job"] or scheme == "stripe", "the same id, the same job"
    jobs = store.jobs("default", JobFilter(workflow="build"), 10).jobs
    assert {job.payload for job in jobs} == {'{"args":["acme/site","v2"],"kwargs":{}}'}
    assert len(jobs) in (3, 4), "that body has no id: of Stripe, another second is another delivery"

    good, bad = (line.split("--body ")[1].strip("'") for line in block("text", "dry-run").strip().splitlines())
    assert "repo = 'acme/site'" in unstuck("hooks", "dry-run", "pushes", "--body", good).out
    assert "there is no body.repository.full_name" in unstuck("hooks", "dry-run", "pushes", "--body", bad).out
    slack = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {block('text', 'X-Slack-Signature').strip().removeprefix('unstuck ')}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert unstuck(*slack.stdout.split("\0")[:-1]).code == 0
    sealing = block("text", "sealing.keys").splitlines()[1].partition(" && ")[0]
    subprocess.run(["bash", "-euc", sealing], cwd=tmp_path, check=True)
    assert Sealer.of(str(tmp_path / "sealing.keys"))


def test_the_functions_about_ends_are_taken(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(block("python", "on_completed"))
    told = "import shop; handlers = shop.app._registry.handlers.values(); "
    told += "print({h.name: h.follows and h.follows.to_json() for h in handlers})"
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '\'receipt\': \'{"on":"completed","of":["charge"]}\'' in done.stdout
    assert '\'tell_somebody\': \'{"on":"failed","of":null}\'' in done.stdout
