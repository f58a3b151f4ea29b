"""What a service manager and a probe are told about a worker."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unstuck.worker.notify import Notifier
from unstuck.worker.readiness import Readiness


class Manager:
    """The listening end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        lines = []
        while True:
            try:
                lines += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return lines

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@unstuck-test-{tmp_path.name}-{id(request)}"
    listening = Manager(address)
    yield listening
    listening.close()


def notifier(manager: Manager, **environ: str) -> Notifier:
    return Notifier.of({"NOTIFY_SOCKET": manager.address, **environ}, pid=4711)


def test_ready_stopping_and_a_longer_stop_are_told(manager: Manager) -> None:
    readiness = Readiness(None, notifier(manager))
    readiness.begin()
    readiness.tick("importing\nthe app", 0.0)
    assert manager.heard() == ["STATUS=importing the app"]
    readiness.show(True)
    readiness.show(True)
    assert manager.heard() == ["READY=1"]
    readiness.stopping()
    readiness.stopping()
    readiness.tick("importing\nthe app", 10.0)
    readiness.tick("importing\nthe app", 12.0)
    readiness.tick("importing\nthe app", 15.0)
    assert manager.heard() == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=20000000", "EXTEND_TIMEOUT_USEC=20000000"]


def test_the_watchdog_hears_a_sign_of_life_well_within_its_time(manager: Manager) -> None:
    readiness = Readiness(None, notifier(manager, WATCHDOG_USEC="3000000", WATCHDOG_PID="4711"))
    for tenth in range(31):
        readiness.tick("", tenth / 10)
    assert manager.heard() == 4 * ["WATCHDOG=1"]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "abc"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "9" * 400},
        {"WATCHDOG_USEC": "9" * 5000},
        {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"},
    ],
)
def test_a_watchdog_that_is_not_ours_is_left_alone(manager: Manager, environ: dict[str, str]) -> None:
    assert notifier(manager, **environ).watchdog is None


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "/nowhere/at/all", "@nobody-listens-here", "/x" * 500])
def test_a_manager_that_cannot_be_reached_is_no_trouble(address: str | None) -> None:
    assert Notifier(address).say("READY=1") is False


def test_a_manager_that_does_not_read_is_not_waited_for(manager: Manager) -> None:
    speaker = notifier(manager)
    assert [speaker.say("STATUS=" + "x" * 2000) for _ in range(2000)][-1] is False


def deafened(manager: Manager) -> Readiness:
    """Its queue is full of what others say."""
    speaker = notifier(manager)
    while speaker.say("STATUS=" + "x" * 2000):
        pass
    readiness = Readiness(None, speaker)
    readiness.begin()
    return readiness


def test_what_a_manager_waits_for_is_said_until_it_was_heard_and_then_no_more(manager: Manager) -> None:
    readiness = deafened(manager)
    readiness.show(True)
    readiness.tick("", 1.0)
    assert "READY=1" not in manager.heard()

    for tenth in range(10, 40):
        readiness.show(True)
        readiness.tick("", tenth / 10)
    assert manager.heard() == ["READY=1"]


def test_what_is_true_no_more_is_not_said_again(manager: Manager) -> None:
    readiness = deafened(manager)
    readiness.show(True)
    readiness.show(False)
    manager.heard()
    readiness.tick("", 1.0)
    assert manager.heard() == []

    readiness = deafened(manager)
    readiness.show(True)
    readiness.stopping()
    manager.heard()
    readiness.tick("", 1.0)
    assert [line for line in manager.heard() if not line.startswith("EXTEND")] == ["STOPPING=1"]


def test_the_ready_file_exists_exactly_while_it_is_ready(tmp_path: Path) -> None:
    file = tmp_path / "ready"
    file.write_text("left behind by one that was killed")
    readiness = Readiness(str(file))
    readiness.begin()
    assert not file.exists()
    readiness.show(True)
    assert file.exists()
    readiness.show(False)
    assert not file.exists()
    readiness.show(True)
    readiness.stopping()
    assert not file.exists()


def test_a_ready_file_that_cannot_be_written_is_said_and_survived(tmp_path: Path, caplog: Any) -> None:
    readiness = Readiness(str(tmp_path / "no" / "such" / "folder" / "ready"))
    readiness.show(True)
    assert "ready_file_failed" in caplog.text
