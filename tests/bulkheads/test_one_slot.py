"""One slot: the jobs of a tenant run in order of age and priority, whatever their workflows (F5)."""

from __future__ import annotations

from tests.bulkheads.conftest import House
from tests.support.eventually import eventually

#: One of them limited, but not so that its limit could shut it: what a gate shuts is passed by, and rightly so.
WORKFLOWS = ("work", "talks", "roomy")


def test_one_slot_runs_the_jobs_of_three_workflows_by_age(house: House) -> None:
    house.send("work", "warm", times=10)
    house.send("talks", "warm", times=10)
    worker = house.start(concurrency=1)
    eventually(lambda: house.marks().count("warm") == 20, timeout=30)
    worker.terminate()
    worker.wait()
    for n in range(60):
        house.send(WORKFLOWS[n * n % 7 % 3], f"n{n}", priority=int(n in (40, 50)))

    house.start(concurrency=1)

    eventually(lambda: len(house.marks()) >= 80, timeout=30)
    assert house.marks()[20:] == ["n40", "n50", *(f"n{n}" for n in range(60) if n not in (40, 50))]
