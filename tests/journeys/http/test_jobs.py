"""One job over HTTP: what is seen of it, and who may stop it, let it go on, ask why it waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.journeys.http.conftest import FINAL, House, Tenancy
from tests.server.conftest import problem
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import at_a_distance, commit_on_sqlite

HOLDS = ("worker", "heartbeat_at", "lease_until")


@at_a_distance("sqlite")
def test_a2_a_running_job_shows_who_holds_it_and_no_other_does(house: House, worker: Worker) -> None:
    acme = house.acme
    job = acme.submit("nap", 60)
    acme.until(job, "RUNNING")

    running = acme.job(job)
    assert (running["worker"], running["attempts"]) == ("ada", 1)
    assert running["lease_until"] > max(running["heartbeat_at"], running["claimed_at"])
    told = acme.reader.get(f"jobs/{job}/status")
    assert (told["worker_id"], told["lease_owner"]) == ("ada", "ada")
    assert told["lease_expires_at"] > told["heartbeat_at"]

    acme.operator.post(f"jobs/{job}/cancel")
    acme.until(job, "CANCELLED")
    waiting = acme.submit("greet", delay=60)
    done = acme.submit("greet")
    acme.until(done, "COMPLETED")
    for other in (job, waiting, done):
        found, status = acme.job(other), acme.reader.get(f"jobs/{other}/status")
        assert [found[name] for name in HOLDS] == [None] * 3, found["state"]
        assert [status[name] for name in ("worker_id", "lease_owner", "lease_expires_at")] == [None] * 3
    for path in (f"jobs/{job}", f"jobs/{job}/status", f"jobs/{job}/attempts"):
        house.machine.may_not("GET", path)
        house.beta.admin.sees_nothing("GET", path)


@commit_on_sqlite
def test_a16_a18_what_does_not_run_is_cancelled_at_once_and_what_has_ended_is_a_conflict(house: House) -> None:
    """Of PENDING, QUEUED and PAUSED; the answer to the request is the end already."""
    acme, operator = house.acme, house.acme.operator
    queued = acme.submit("greet", delay=60)
    jobs = [queued, acme.submit("greet", after=[queued], after_failure="run"), acme.submit("greet", hold=True)]
    jobs.append(acme.submit("greet", delay=60))
    operator.post(f"jobs/{jobs[-1]}/interrupt")
    assert [acme.job(job)["state"] for job in jobs] == ["QUEUED", "PENDING", "PENDING", "PAUSED"]
    for job in reversed(jobs):
        acme.submitter.may_not("POST", f"jobs/{job}/cancel", {})
        house.beta.operator.sees_nothing("POST", f"jobs/{job}/cancel", {})

        ended = operator.post(f"jobs/{job}/cancel", {"reason": "not wanted"})

        assert ended["state"] == "CANCELLED"
        assert "claimed" not in acme.kinds(job)
        before = acme.kinds(job)
        refused = problem(operator.asks("POST", f"jobs/{job}/cancel", {}), 409, "IllegalMove")
        assert "CANCELLED" in refused["detail"]
        assert acme.kinds(job) == before
        house.beta.operator.sees_nothing("POST", f"jobs/{job}/cancel", {})


@at_a_distance("sqlite")
def test_a16_a_parked_job_is_cancelled_at_once_and_never_claimed_again(house: House, worker: Worker) -> None:
    acme = house.acme
    job = acme.submit("asks")
    acme.until(job, "WAITING")
    acme.submitter.may_not("POST", f"jobs/{job}/cancel", {})
    house.beta.operator.sees_nothing("POST", f"jobs/{job}/cancel", {})

    assert acme.operator.post(f"jobs/{job}/cancel")["state"] == "CANCELLED"

    problem(acme.operator.asks("POST", f"approvals/{job}/approve", {}), 409, "NotWaiting")
    assert acme.kinds(job).count("claimed") == 1


@at_a_distance("sqlite")
@pytest.mark.parametrize("workflow", ["greet", "breaks"])
def test_a18_a_cancel_of_what_ended_by_itself_names_the_end(house: House, worker: Worker, workflow: str) -> None:
    acme = house.acme
    job = acme.submit(workflow)
    end = acme.until(job, *FINAL)["status"]
    whole = acme.job(job)

    refused = problem(acme.operator.asks("POST", f"jobs/{job}/cancel", {}), 409, "IllegalMove")

    assert end in refused["detail"]
    assert acme.job(job) == whole, "nothing changed"
    acme.submitter.may_not("POST", f"jobs/{job}/cancel", {})
    house.beta.operator.sees_nothing("POST", f"jobs/{job}/cancel", {})


def test_a19_an_interrupt_pauses_and_the_job_can_be_resumed(house: House, worker: Worker) -> None:
    acme, operator = house.acme, house.acme.operator
    job = acme.submit("nap", 3, target="interrupted")
    behind = acme.submit("greet", target="interrupted")
    acme.until(job, "RUNNING")
    acme.submitter.may_not("POST", f"jobs/{job}/interrupt", {})
    house.beta.operator.sees_nothing("POST", f"jobs/{job}/interrupt", {})

    operator.post(f"jobs/{job}/interrupt", {"reason": "the vendor is down"})

    paused = acme.until(job, "PAUSED")
    assert paused["error_message"] == "Job was interrupted by user"
    assert paused["cancel_requested"] is False
    assert acme.job(behind)["state"] == "QUEUED", "what was begun keeps its target"
    acme.submitter.may_not("POST", f"jobs/{job}/resume", {})
    house.beta.operator.sees_nothing("POST", f"jobs/{job}/resume", {})
    operator.post(f"jobs/{job}/resume")
    for each in (job, behind):
        acme.until(each, "COMPLETED")
    assert acme.job(job)["result"] == "rested"


@commit_on_sqlite
def test_a19_an_interrupt_of_what_has_not_begun_blocks_nothing(house: House) -> None:
    acme = house.acme
    job = acme.submit("greet", target="unbegun", delay=60)
    behind = acme.submit("greet", target="unbegun", delay=60)

    paused = acme.operator.post(f"jobs/{job}/interrupt")

    assert (paused["state"], paused["is_blocker"], paused["request"]) == ("PAUSED", False, None)
    target = acme.reader.get("targets/unbegun")
    assert target["blocked_by"] is None
    house.beta.reader.sees_nothing("GET", "targets/unbegun")
    for each in (job, behind):
        acme.operator.post(f"jobs/{each}/cancel")


# --- why ----------------------------------------------------------------------------------------------------------


def why(acme: Tenancy, job: str) -> tuple[bool, set[str]]:
    found = acme.reader.get(f"jobs/{job}/why")
    return found["is_runnable"], {reason["code"] for reason in found["reasons"]}


@contextmanager
def shut(acme: Tenancy, platform: Any, gate: str) -> Iterator[dict[str, Any]]:
    """A gate, shut by a request and opened by one; what a job must say to stand before it."""
    match gate:
        case "queue_paused":
            acme.operator.post("queues/gated/pause")
            yield {"queue": "gated"}
            acme.operator.post("queues/gated/unpause")
        case "workflow_paused":
            acme.operator.post("workflows/nap/pause")
            yield {}
            acme.operator.post("workflows/nap/unpause")
        case "tenant_paused":
            platform.post("tenants/acme/pause")
            yield {}
            platform.post("tenants/acme/unpause")
        case "target_paused":
            acme.until(acme.submit("nap", 0, target="gated"), "COMPLETED")
            acme.operator.post("targets/gated/pause")
            yield {"target": "gated"}
            acme.operator.post("targets/gated/unpause")
        case "concurrency_limit":
            acme.operator.post("limits/keys/gated", {"concurrency": 1})
            holder = acme.submit("nap", 60, limit_key="gated")
            acme.until(holder, "RUNNING")
            yield {"limit_key": "gated"}
            acme.operator.post(f"jobs/{holder}/cancel")
        case "target_busy":
            holder = acme.submit("nap", 60, target="busy")
            acme.until(holder, "RUNNING")
            yield {"target": "busy"}
            acme.operator.post(f"jobs/{holder}/cancel")


@pytest.mark.parametrize(
    "gate",
    ["queue_paused", "workflow_paused", "tenant_paused", "target_paused", "concurrency_limit", "target_busy"],
)
def test_a57_why_names_the_gate_that_is_shut_and_the_job_runs_once_it_is_open(
    house: House, worker: Worker, gate: str
) -> None:
    acme = house.acme
    with shut(acme, house.platform, gate) as standing:
        job = acme.submit("nap", 0, **standing)
        runnable, codes = why(acme, job)
        assert not runnable
        assert gate in codes
        assert acme.job(job)["state"] == "QUEUED"
        house.machine.may_not("GET", f"jobs/{job}/why")
        house.beta.reader.sees_nothing("GET", f"jobs/{job}/why")
        beside = house.beta.submit("nap", 0)
        house.beta.until(beside, "COMPLETED")  # the worker takes what may be taken, and has had time for ours
        assert acme.job(job)["state"] == "QUEUED"
    acme.until(job, "COMPLETED")


def test_a57_why_says_runnable_of_what_only_a_free_slot_is_missing(
    house: House, start_worker: Callable[..., Worker]
) -> None:
    acme = house.acme
    narrow = start_worker("narrow", concurrency=1, processes=1, queues=["narrow"])
    holder = acme.submit("nap", 60, queue="narrow")
    acme.until(holder, "RUNNING")
    job = acme.submit("nap", 0, queue="narrow")

    assert eventually(lambda: why(acme, job)[0], timeout=10)

    house.beta.reader.sees_nothing("GET", f"jobs/{job}/why")
    acme.operator.post(f"jobs/{holder}/cancel")
    acme.until(job, "COMPLETED")
    narrow.terminate()
    narrow.wait()
    unserved = acme.submit("nap", 0, queue="narrow")

    def is_shut() -> None:
        runnable, codes = why(acme, unserved)
        assert not runnable
        assert "no_worker" in codes

    eventually(is_shut, timeout=20)
    acme.operator.post(f"jobs/{unserved}/cancel")
