"""docs/webhooks.md: its receiver takes what is signed and nothing else; its commands are read as they stand."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.builders import submitted
from tests.support.eventually import eventually
from tests.support.webhooks import a_sender, allow, copied, deliveries
from unstuck.model.webhooks import DeliveryState
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "webhooks.md").read_text()
[RECEIVER] = re.findall(r"```python\n# receiver.py\n(.*?)```", GUIDE, re.S)
SHELL: list[str] = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_receiver_of_the_guide_takes_what_is_signed_alone(
    unstuck: Command, store: SqlStore, tmp_path: Path
) -> None:
    allow(store)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "receiver.py").write_text(RECEIVER)
    url = f"http://127.0.0.1:{port}/hooks"
    secret = unstuck("webhooks", "create", "shop", url, "--kind", "submitted").word
    unstuck("webhooks", "create", "stranger", url, "--kind", "submitted")
    job = submitted(store)
    copied(store)
    environment = {**os.environ, "SECRET": secret, "PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "receiver.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        eventually(lambda: _listens(port), timeout=30)
        sender = a_sender(store)
        sender.look()
        eventually(lambda: deliveries(store, "shop")[0].state is DeliveryState.DELIVERED, timeout=20)
        eventually(lambda: deliveries(store, "stranger")[0].last_status == 401, timeout=20)
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=20)
    assert out.split() == ["submitted", job.id]


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_commands_of_the_guide_are_commands(unstuck: Command) -> None:
    lines = [line for block in SHELL for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        words = line.split()[1:]
        assert unstuck(*words[:2], "--help").code == 0
        for flag in (word for word in words if word.startswith("--")):
            assert flag in unstuck(*words[:2], "--help").out
