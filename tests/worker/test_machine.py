"""Whether a process is gone: seen, or unknown; never guessed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from unstuck import machine


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_living_process_is_not_gone_and_another_one_under_its_number_is_not_it(
    child: subprocess.Popen[bytes],
) -> None:
    start = machine.start_of(child.pid)

    assert start > 0
    assert not machine.is_gone(child.pid, start)
    assert not machine.is_gone(child.pid, 0)
    assert machine.is_gone(child.pid, start - 1)


def test_a_process_that_proc_hides_from_us_is_not_gone_while_the_kernel_knows_it(
    child: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hidepid: the processes of other users have no entry, so a missing one proves nothing."""
    start = machine.start_of(child.pid)
    monkeypatch.setattr(machine, "PROC", str(tmp_path))

    assert not machine.is_gone(child.pid, start)
    child.kill()
    child.wait()
    assert machine.is_gone(child.pid, start)


def test_an_entry_that_cannot_be_read_proves_nothing(
    child: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = machine.start_of(child.pid)
    monkeypatch.setattr(machine, "PROC", str(tmp_path))
    (tmp_path / str(child.pid) / "stat").mkdir(parents=True)

    assert not machine.is_gone(child.pid, start)


def test_a_corpse_that_nobody_has_reaped_yet_is_gone(child: subprocess.Popen[bytes]) -> None:
    start = machine.start_of(child.pid)
    os.kill(child.pid, signal.SIGKILL)

    eventually(lambda: machine.is_gone(child.pid, start))
