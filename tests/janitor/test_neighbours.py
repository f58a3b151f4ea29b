"""Workers of this host that are gone lose their lease at once; those that may live keep it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.budgets import endless
from tests.support.eventually import eventually
from tests.support.troubles import holding, raising
from unstuck import machine
from unstuck.chance import SystemChance
from unstuck.janitor.neighbours import NeighboursDuty
from unstuck.model.job import WorkerRecord
from unstuck.model.times import Times
from unstuck.store.port import NewWorker
from unstuck.store.sql_store import SqlStore


@contextmanager
def a_process(tag: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **({machine.INCARNATION_TAG: tag} if tag else {})}
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def a_worker(store: SqlStore, incarnation: str, pid: int, start: int | None = None, **facts: Any) -> WorkerRecord:
    values: dict[str, Any] = {"boot_id": machine.boot_id(), "pid_namespace": machine.pid_namespace(), **facts}
    return store.register_worker(
        NewWorker(
            incarnation=incarnation,
            name=incarnation,
            host=machine.host(),
            pid=pid,
            pid_start=machine.start_of(pid) if start is None else start,
            queues=(),
            code_version="v1",
            lease=60.0,
            **values,
        )
    )


@pytest.fixture
def look(store: SqlStore) -> NeighboursDuty:
    me = a_worker(store, "me", os.getpid())
    return NeighboursDuty(store, Times(), me, recover=lambda now, budget: len(store.recover_lost(0.0)))


def test_a_living_neighbour_keeps_its_lease(store: SqlStore, look: NeighboursDuty) -> None:
    with a_process() as process:
        a_worker(store, "other", process.pid)
        assert look.tick(0.0, endless()) == 0


def test_a_killed_neighbour_loses_its_lease_even_as_an_unreaped_corpse(store: SqlStore, look: NeighboursDuty) -> None:
    with a_process() as process:
        worker = a_worker(store, "other", process.pid)
        os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: look.tick(0.0, endless()) == 1)
    (other,) = [w for w in store.workers() if w.number == worker.number]
    assert other.lease_until <= store.now()


def test_one_that_cannot_be_written_keeps_no_other_waiting(
    store: SqlStore, store_url: str, look: NeighboursDuty
) -> None:
    bad, good = (a_worker(store, name, 2**22 + 1, start=1) for name in ("bad", "good"))
    with raising(store_url, "unstuck_workers", f"NEW.id = {bad.number}", on="UPDATE"):
        assert look.tick(0.0, endless()) == 1
        assert {w.name for w in store.workers() if w.lease_until <= store.now()} == {good.name}
    assert look.tick(0.0, endless()) == 1


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_one_whose_row_somebody_holds_keeps_no_other_waiting(
    store: SqlStore, store_url: str, look: NeighboursDuty
) -> None:
    held, good = (a_worker(store, name, 2**22 + 1, start=1) for name in ("held", "good"))
    with holding(store_url, "unstuck_workers", f"id = {held.number}"):
        assert look.tick(0.0, endless()) == 1
        assert {w.name for w in store.workers() if w.lease_until <= store.now()} == {good.name}
    assert look.tick(0.0, endless()) == 1


def test_a_reused_pid_saves_nobody(store: SqlStore, look: NeighboursDuty) -> None:
    """F35"""
    with a_process() as process:
        a_worker(store, "other", process.pid, start=machine.start_of(process.pid) - 1)
        assert look.tick(0.0, endless()) == 1


def test_an_executor_that_still_lives_delays_the_verdict_and_asks_for_another_look_soon(
    store: SqlStore, look: NeighboursDuty
) -> None:
    with a_process() as executor:
        pids = {"executors": [{"pid": executor.pid, "start": machine.start_of(executor.pid)}]}
        a_worker(store, "other", 2**22 + 1, start=1, info={"pids": pids})
        assert look.tick(0.0, endless()) == 0
        assert look.every < Times().sweep
    assert look.tick(0.0, endless()) == 1


def test_a_process_that_escaped_but_carries_the_tag_delays_the_verdict(store: SqlStore, look: NeighboursDuty) -> None:
    tag = SystemChance().nonce()  # its own: the same test on the other database may run at this very moment
    with a_process(tag) as escaped:
        a_worker(store, tag, 2**22 + 1, start=1)
        eventually(lambda: list(machine.tagged(tag)) == [escaped.pid])
        assert look.tick(0.0, endless()) == 0
    assert look.tick(0.0, endless()) == 1


def test_a_supervisor_that_lets_nobody_read_it_is_nobodys_remains(
    store: SqlStore, look: NeighboursDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds keys, so its environment is closed: those who do not know it wait for it, its registration tells"""
    with a_process() as closed:
        found = machine.start_of(closed.pid)
        monkeypatch.setattr(machine, "_may_carry", lambda pid, _: pid == closed.pid)
        a_worker(store, "other", 2**22 + 1, start=1)
        assert look.tick(0.0, endless()) == 0
        a_worker(store, "closed", closed.pid, start=found)
        assert look.tick(0.0, endless()) == 1


@pytest.mark.parametrize("elsewhere", [{"boot_id": "another boot"}, {"pid_namespace": "another namespace"}])
def test_a_worker_of_another_machine_or_container_is_never_judged_by_its_pid(
    store: SqlStore, look: NeighboursDuty, elsewhere: dict[str, str]
) -> None:
    a_worker(store, "other", 2**22 + 1, start=1, **elsewhere)
    assert look.tick(0.0, endless()) == 0
