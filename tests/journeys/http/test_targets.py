"""Targets and processes over HTTP: a blocker resumed or resolved, a pause, a process that is replaced."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.journeys.http.conftest import House, seen
from tests.server.conftest import problem
from tests.support.eventually import eventually
from tests.support.workers import Worker


@pytest.mark.parametrize("seeds_path", [False, True], ids=["resume", "targets-resume"])
def test_a40_a_resumed_blocker_runs_before_the_younger_ones(house: House, worker: Worker, seeds_path: bool) -> None:
    """By our path, and by the seeds': a name with a slash is one name."""
    acme, target = house.acme, f"acme/site-{seeds_path}"
    quoted = target.replace("/", "%2F")
    broken = acme.submit("breaks", target=target)
    acme.until(broken, "FAILED")
    younger = [acme.submit("greet", target=target, priority=9), acme.submit("greet", target=target)]
    found = acme.reader.get(f"targets/{quoted}")
    assert (found["state"], found["blocked_by"], found["waiting"]) == ("BLOCKED", broken, 2)
    assert target in [each["name"] for each in acme.reader.get("targets", blocked=True)["items"]]
    house.beta.reader.sees_nothing("GET", f"targets/{quoted}")
    path = f"/targets/{quoted}/jobs/{broken}/resume/" if seeds_path else f"/api/v1/jobs/{broken}/resume"
    acme.submitter.may_not("POST", path, {})
    house.beta.operator.sees_nothing("POST", path, {})
    if seeds_path:
        acme.operator.sees_nothing("POST", f"/targets/elsewhere/jobs/{broken}/resume/", {})

    acme.operator.post(path)

    for job in (broken, *younger):
        acme.until(job, "COMPLETED")
    again = acme.job(broken)
    assert (again["error_type"], again["result"], again["failures"]) == (None, 2, 0)
    assert again["claimed_at"] is None or again["claimed_at"] <= acme.job(younger[0])["finished_at"]
    order = [_first_claim(house, job, -1) for job in (broken, *younger)]
    assert order == sorted(order)


def _first_claim(house: House, job: str, which: int = 0) -> datetime:
    events = house.acme.reader.get(f"jobs/{job}/history")["items"]
    return datetime.fromisoformat([event["at"] for event in events if event["kind"] == "claimed"][which])


def test_a40_a_resolved_blocker_is_completed_and_its_target_moves(house: House, worker: Worker) -> None:
    acme = house.acme
    broken = acme.submit("breaks", target="resolved")
    acme.until(broken, "FAILED")
    behind = acme.submit("greet", target="resolved")
    acme.submitter.may_not("POST", f"jobs/{broken}/resolve", {"result": 7})
    house.beta.operator.sees_nothing("POST", f"jobs/{broken}/resolve", {"result": 7})

    resolved = acme.operator.post(f"jobs/{broken}/resolve", {"result": {"done": "by hand"}})

    assert (resolved["state"], resolved["result"]) == ("COMPLETED", {"done": "by hand"})
    acme.until(behind, "COMPLETED")
    problem(acme.operator.asks("POST", f"jobs/{broken}/resolve", {"result": 8}), 409, "IllegalMove")


@pytest.mark.parametrize("seconds", [None, 3], ids=["until-unpaused", "for-3-s"])
def test_a41_a_paused_target_finishes_what_runs_and_starts_nothing(
    house: House, worker: Worker, seconds: float | None
) -> None:
    acme, target = house.acme, f"paused-{seconds}"
    running = acme.submit("nap", 2, target=target)
    waiting = acme.submit("greet", target=target)
    acme.until(running, "RUNNING")
    acme.submitter.may_not("POST", f"targets/{target}/pause", {})
    house.beta.operator.sees_nothing("POST", f"targets/{target}/pause", {})

    paused = acme.operator.post(f"targets/{target}/pause", {"reason": "vendor outage", "seconds": seconds})

    assert (paused["by"], paused["reason"]) == (acme.operator.name, "vendor outage")
    assert house.beta.reader.get("pauses")["items"] == []
    beside = house.beta.submit("greet", target=target)  # one of its own, of the same name
    house.beta.until(beside, "COMPLETED")
    acme.until(running, "COMPLETED")
    if seconds is None:
        found = acme.reader.get(f"targets/{target}")
        assert (found["state"], found["pause"]["reason"]) == ("PAUSED", "vendor outage")
        assert acme.job(waiting)["state"] == "QUEUED"
        acme.submitter.may_not("POST", f"targets/{target}/unpause", {})
        acme.operator.post(f"targets/{target}/unpause")
    acme.until(waiting, "COMPLETED")
    if seconds is not None:
        assert _first_claim(house, waiting) >= datetime.fromisoformat(paused["until_at"])


def test_a31_a_busy_process_is_replaced_and_its_results_are_stored_first(house: House, worker: Worker) -> None:
    acme = house.acme
    job = acme.submit("where", 5)  # several beats, of which one tells of it
    acme.until(job, "RUNNING")

    def busy() -> int:
        (found,) = [
            process["pid"]
            for each in seen(house)
            for process in each["processes"]
            if job in [body["job"] for body in process["jobs"]]
        ]
        return int(found)

    pid = eventually(busy, timeout=10) if _tells(house, job) else 0
    path = f"workers/processes/{pid}/recycle"
    for person in (acme.admin, acme.operator, house.beta.admin):
        person.may_not("POST", path, {})
    order = house.platform.post(path)
    assert house.platform.get(f"workers/orders/{order['number']}", timeout=10)["refused"] is False

    acme.until(job, "COMPLETED")
    assert acme.job(job)["result"] == pid
    assert acme.kinds(job) == ["submitted", "claimed", "completed"]

    def is_gone() -> None:
        pids = {process["pid"] for each in seen(house) for process in each["processes"]}
        assert pid not in pids
        assert len(pids) >= 2

    eventually(is_gone, timeout=20)
    later = acme.submit("where", 0)
    acme.until(later, "COMPLETED")
    assert acme.job(later)["result"] != pid
    unknown = house.platform.asks("POST", "workers/processes/999999999/recycle", {})
    problem(unknown, 404, "UnknownProcess")
    for found in acme.reader.get("workers")["items"]:
        assert (found["processes"], found["info"]) == ([], {}), "which may name jobs of others"


def _tells(house: House, job: str) -> bool:
    """Its worker tells of it with its next beat."""

    def does() -> bool:
        told = [body["job"] for each in seen(house) for process in each["processes"] for body in process["jobs"]]
        return job in told

    return bool(eventually(does, timeout=10))
