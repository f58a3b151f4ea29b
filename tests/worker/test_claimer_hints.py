"""A claimer that sleeps for half a minute unless it is woken: no job of several routes is slept through."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.support.builders import a_job, a_worker
from tests.tiers import in_tiers
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Store
from unstuck.store.sql_store import SqlStore
from unstuck.worker.claim import Claimer
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.served import Served
from unstuck.worker.shares import FreeRoom

WORKFLOWS = ("a", "b", "c")


@in_tiers("rounds", 100, 1000)
def test_no_job_of_many_routes_is_slept_through(store: Store, store_url: str, rounds: int) -> None:
    """Two callers submit to routes that change, a third to what nobody serves here, each as soon as its last job is
    taken: at any moment of the claimer's way from a claim to its sleep, or a little later."""
    sleeping = SqlStore(open_database(store_url))
    ledger, is_over = Ledger(), threading.Event()
    taken: dict[str, threading.Event] = {}
    claimer = Claimer(
        sleeping,
        a_worker(store, lease=600.0).number,
        ledger,
        Pace(),
        replace(Times(), poll=30.0),
        MachineClock(),
        SystemChance(),
        name="ada",
        before_first=lambda: None,
        landed=lambda: None,
    )
    claimer.serve(Served.of([WorkflowRecord(name, "v1", "default", Policy(), {}) for name in WORKFLOWS], []))

    def work() -> None:
        while not is_over.is_set():
            ledger.publish(FreeRoom(8))
            claimer.tick()
            for holding in ledger.take_fresh():
                taken[holding.job.id].set()

    def submit(caller: int) -> None:
        chance = SystemChance()
        for number in range(rounds):
            job = a_job(workflow=WORKFLOWS[number * (caller + 1) % len(WORKFLOWS)])
            taken[job.id] = threading.Event()
            store.submit([job])
            assert taken[job.id].wait(15.0), f"nobody heard of job {number} of caller {caller}"
            threading.Event().wait(0.003 * chance.fraction() * (number % 3))

    def distract() -> None:
        while not is_over.wait(0.002):
            store.submit([a_job(workflow="of others")])

    with ThreadPoolExecutor(4) as threads:
        working, distracting = threads.submit(work), threads.submit(distract)
        try:
            for caller in [threads.submit(submit, 0), threads.submit(submit, 1)]:
                caller.result()
        finally:
            is_over.set()
            store.submit([a_job(workflow="of others")])
    working.result()
    distracting.result()
    sleeping.close()
