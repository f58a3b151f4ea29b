"""unstuck doctor: what people and programs get, its exit codes, and what a host says of itself."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import APP, Command
from tests.operations.test_doctor import HOUR, beats
from tests.store.test_why import by_hand, serve
from tests.support.builders import a_worker, claimed
from unstuck import machine
from unstuck.cli.asking import Asker
from unstuck.cli.doctor import local
from unstuck.config import Settings
from unstuck.model.job import WorkerRecord
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture
def here(store: SqlStore) -> WorkerRecord:
    """A worker that is this very process."""
    worker = a_worker(
        store,
        "w1",
        lease=HOUR,
        boot_id=machine.boot_id(),
        pid_namespace=machine.pid_namespace(),
        pid=os.getpid(),
        pid_start=machine.start_of(os.getpid()),
    )
    serve(store, worker, "greet")
    beats(store, worker, drain=300.0, kill_grace=10.0)
    return worker


def test_findings_for_people_and_programs_and_the_exit_code(
    unstuck: Command, store: SqlStore, store_url: str, here: WorkerRecord
) -> None:
    well = unstuck("doctor", "--only", "schema", "--only", "roles")
    assert (well.code, well.word) == (0, "2 checks made: nothing to say")
    beats(store, here, version="0.0.1")
    assert unstuck("doctor", "--only", "code", "--strict").code == 0, "a note is none"
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = beat_at + 10000000, beat_at = beat_at - 15000000")
    silent = unstuck("doctor", "--only", "workers")
    assert (silent.code, unstuck("doctor", "--only", "workers", "--strict").code) == (0, 10)
    assert "warning    workers  workers\n           w1: no beat for too long\n           why  its jobs" in silent.out
    assert "           do   unstuck workers" in silent.out
    by_hand(store_url, "DELETE FROM unstuck_workers")
    sick = unstuck("doctor", "--only", "workers", "--json")
    assert sick.code == 10
    [finding] = sick.object["findings"]
    assert (finding["check"], finding["severity"], finding["remedy"]) == ("workers", "error", "unstuck worker")
    assert [each["name"] for each in sick.object["examined"]] == ["workers"]


@SQLITE
def test_all_checks_are_listed_and_an_unknown_one_is_refused(unstuck: Command) -> None:
    names = [line["name"] for line in unstuck("doctor", "--list", "--json").lines]
    assert {"clock", "sqlite_log", "service_manager", "app"} <= set(names)
    assert "sqlite_log" in unstuck("doctor", "--list").out
    wrong = unstuck("doctor", "--only", "clocks")
    assert (wrong.code, "there is no check clocks" in wrong.err) == (2, True)


def test_every_check_is_in_the_guide(unstuck: Command) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text()
    for line in unstuck("doctor", "--list", "--json").lines:
        assert f"`{line['name']}`" in guide


def test_every_finding_names_a_check_that_can_be_asked_for(
    unstuck: Command, store: SqlStore, store_url: str, here: WorkerRecord
) -> None:
    """What `health` calls silent or sweeps is found by `workers` and `leases`."""
    claimed(store, here)
    ago = 10**9
    by_hand(
        store_url, f"UPDATE unstuck_workers SET beat_at = beat_at - {ago}, lease_until = lease_until - {10 * ago}"
    )
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = beat_at")
    sick = unstuck("doctor", "--json").object
    checks = {each["check"] for each in sick["findings"]}
    assert {"workers", "leases"} <= checks
    assert checks <= {each["name"] for each in sick["examined"]}
    for check in checks:
        assert unstuck("doctor", "--only", check).code in (0, 10)


@SQLITE
def test_a_fix_that_failed_is_exit_code_10(unstuck: Command, store_url: str, here: WorkerRecord) -> None:
    reader = sqlite3.connect(sqlite_path(store_url), isolation_level=None)
    reader.execute("PRAGMA wal_autocheckpoint = 0")
    reader.execute("CREATE TABLE mine (text BLOB)")
    for _ in range(70):
        reader.execute("INSERT INTO mine VALUES (zeroblob(1048576))")
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM mine").fetchone()
    unstuck("blacklist", "add", "noisy")  # what the reader does not see keeps the log
    asked = ("doctor", "--only", "sqlite_log")
    assert unstuck(*asked).code == 0, "a long log is a warning"
    failed = unstuck(*asked, "--fix")
    assert (failed.code, "not fixed  sqlite_log" in failed.out) == (10, True)
    reader.close()


@SQLITE
def test_a_database_that_is_away_is_exit_code_6(unstuck: Command, bare: Command, tmp_path: Path) -> None:
    assert bare("doctor", "--database", f"postgresql:///x?host={tmp_path}").code == 6
    assert bare("doctor", "--database", f"sqlite:///{tmp_path}/none.db").code == 6


@SQLITE
def test_an_app_that_cannot_be_imported_here(unstuck: Command, tmp_path: Path, here: WorkerRecord) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_at_all\n")
    assert unstuck("doctor", "--only", "app", "--app", APP).code == 0
    broken = unstuck("doctor", "--only", "app", "--app", "broken:app", "--json")
    [finding] = broken.object["findings"]
    assert (broken.code, finding["check"], "no_such_module_at_all" in finding["what"]) == (10, "app", True)


@SQLITE
def test_a_worker_of_this_host_whose_process_is_gone(unstuck: Command, store: SqlStore, here: WorkerRecord) -> None:
    assert unstuck("doctor", "--only", "host_workers", "--json").object["findings"] == []
    a_worker(store, "w2", lease=HOUR, boot_id=machine.boot_id(), pid_namespace=machine.pid_namespace(), pid=2**22 - 1)
    [finding] = unstuck("doctor", "--only", "host_workers", "--json").object["findings"]
    assert finding["about"] == "worker w2"


@SQLITE
@pytest.mark.parametrize(("allowed", "is_told"), [("1min 30s", True), ("5min 10s", False), ("infinity", False)])
def test_a_service_manager_that_is_less_patient_than_the_drain(
    store: SqlStore,
    here: WorkerRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: str,
    is_told: bool,
) -> None:
    """As systemd answers for the unit that the kernel names."""
    command = tmp_path / "systemctl"
    command.write_text(f"#!/bin/sh\n[ \"$6\" = shop.service ] && echo '{allowed}'\n")
    command.chmod(0o755)
    (tmp_path / "proc" / str(os.getpid())).mkdir(parents=True)
    (tmp_path / "proc" / str(os.getpid()) / "cgroup").write_text("0::/system.slice/shop.service\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    host = local.Host(Asker(_nobody, "db", Settings(), store), None)
    workers = host.workers()
    monkeypatch.setattr(machine, "PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(local.Host, "workers", lambda self: workers)
    found = [each for each in local.service_manager(host) if "shop.service" in each.about]
    assert bool(found) == is_told
    if is_told:
        assert found[0].what == "it may take 5m 10s to stop, and systemd kills it after 1m 30s"
        assert "TimeoutStopSec=310" in (found[0].remedy or "")


def _nobody(*_: Any, **__: Any) -> Any:
    raise AssertionError("nobody is asked")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("0::/system.slice/shop.service\n", "shop.service"),
        ("1:name=systemd:/system.slice/shop.service\n0::/\n", "shop.service"),
        ("0::/user.slice/user@1000.service/app.slice/shop.service/child\n", "shop.service"),
        ("0::/\n", None),
        ("", None),
    ],
)
def test_the_unit_of_a_process(text: str, unit: str | None) -> None:
    assert local.unit_of(text) == unit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1min 30s\n", 90.0), ("5min", 300.0), ("2h 500ms", 7200.5), ("infinity", None), ("", None), ("90", None)],
)
def test_a_span_as_systemd_writes_it(text: str, seconds: float | None) -> None:
    assert local.read_span(text) == seconds
