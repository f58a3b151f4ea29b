"""The breaker and the blacklist over HTTP, with workflows that do not hear, on a real worker."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.http.conftest import House, Tenancy
from tests.server.conftest import problem
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import commit_on_sqlite

#: Of those that are mended: how long they take on a busy machine is not the matter.
PATIENT = {"timeout": 30}
THRESHOLD, WINDOW = "stuck_circuit_breaker_threshold", "stuck_circuit_breaker_window_minutes"


def stick(tenancy: Tenancy, workflow: str, times: int, path: Path) -> list[str]:
    """So many at once; they have ended stuck."""
    with ThreadPoolExecutor(times) as threads:
        jobs = list(threads.map(lambda _: tenancy.submit(workflow, str(path)), range(times)))
    for job in jobs:
        found = tenancy.until(job, "FAILED", within=90)
        assert found["error_type"] == "ExecutionStuck", found
    return jobs


def entries(tenancy: Tenancy, workflow: str) -> list[Any]:
    return [each for each in tenancy.reader.get("blacklist")["items"] if each["workflow"] == workflow]


def news(tenancy: Tenancy, workflow: str) -> list[Any]:
    return [each for each in tenancy.reader.get("notifications")["items"] if each["workflow"] == workflow]


@pytest.fixture
def defaults(house: House) -> Iterator[None]:
    """Whatever the test sets."""
    yield
    for name in (THRESHOLD, WINDOW):
        house.platform.post(f"settings/{name}/reset")


@pytest.mark.timeout(240)
def test_a33_a35_a36_five_stucks_shut_a_workflow_out_and_an_admin_lets_it_in(
    house: House, worker: Worker, mended: Path
) -> None:
    acme, beta = house.acme, house.beta
    culprits = stick(acme, "deploy", 4, mended)
    assert entries(acme, "deploy") == news(acme, "deploy") == []
    culprits += stick(acme, "deploy", 1, mended)

    [entry] = eventually(lambda: entries(acme, "deploy"), timeout=10)
    assert (entry["reason"], entry["stuck_count"], entry["auto"]) == ("auto:stuck:5", 5, True)
    [notice] = news(acme, "deploy")
    assert (notice["workflow"], notice["count"]) == ("deploy", 5)
    assert notice["link"]
    assert entries(beta, "deploy") == news(beta, "deploy") == []

    # A35: by submit, batch, replay, resume and as a child; other tenants are unharmed.
    body = {"workflow": "deploy", "args": [str(mended)]}
    before = len(acme.reader.get("jobs", workflow="deploy", limit=100)["items"])
    for path, asked in [
        ("jobs", body),
        (f"jobs/{culprits[0]}/resume", {}),
        (f"jobs/{culprits[0]}/replay", {}),
        (f"jobs/{culprits[0]}/retry", {}),
    ]:
        refused = problem(acme.operator.asks("POST", path, asked), 409, "WorkflowBlacklisted")
        assert refused["detail"].startswith("Workflow is blacklisted"), path
    [item] = acme.submitter.post("jobs/batch", {"jobs": [body]})["items"]
    assert (item["status"], item["problem"]["code"]) == (409, "WorkflowBlacklisted")
    parent = acme.submit("begets", "deploy", str(mended))
    assert "Workflow is blacklisted" in acme.until(parent, "FAILED")["error_message"]
    assert len(acme.reader.get("jobs", workflow="deploy", limit=100)["items"]) == before
    mended.touch()
    beta.until(beta.submit("deploy", str(mended), policy=PATIENT), "COMPLETED")

    # A36: an admin of the tenant lifts it, nobody below and nobody else.
    acme.operator.may_not("DELETE", "blacklist/deploy")
    beta.admin.sees_nothing("DELETE", "blacklist/deploy")
    [gone] = acme.admin.asks("DELETE", "blacklist/deploy").json()["removed"]
    assert (gone["removed_by"], gone["workflow"]) == (acme.admin.name, "deploy")
    acme.until(acme.submit("deploy", str(mended), policy=PATIENT), "COMPLETED")
    [kept] = acme.reader.get("blacklist/history", workflow="deploy")["items"]
    assert kept["removed_at"] is not None
    [audited] = acme.reader.get("audit", verb="blacklist.remove", subject="deploy")["items"]
    assert audited["by"] == acme.admin.name
    assert beta.reader.get("audit", verb="blacklist.remove", subject="deploy")["items"] == []
    # The count began anew: one more is no entry; and it can be shut out again.
    mended.unlink()
    stick(acme, "deploy", 1, mended)
    assert entries(acme, "deploy") == []
    assert acme.admin.post("blacklist", {"workflow": "deploy", "reason": "again"})["created"] is True
    assert len(acme.reader.get("blacklist/history", workflow="deploy")["items"]) == 2


@commit_on_sqlite
def test_a35_a36_an_admins_own_entry_and_the_platforms_paths(house: House) -> None:
    acme, beta, path = house.acme, house.beta, "/api/platform/blacklist"
    acme.operator.may_not("POST", path, {"workflow_id": "greet"})
    assert acme.admin.post(path, {"workflow_id": "greet", "reason": "it hangs"}) == {"success": True}
    try:
        problem(acme.submitter.asks("POST", "jobs", {"workflow": "greet"}), 409, "WorkflowBlacklisted")
        [entry] = [each for each in acme.reader.get(path) if each["workflow_id"] == "greet"]
        assert (entry["workflow_id"], entry["blacklisted_by"]) == ("greet", acme.admin.name)
        assert "greet" not in [each["workflow_id"] for each in beta.reader.get(path)]
        beta.operator.post(f"jobs/{beta.submit('greet', delay=60)}/cancel")
        beta.admin.sees_nothing("DELETE", f"{path}/greet")
        acme.operator.may_not("DELETE", f"{path}/greet")
    finally:
        assert acme.admin.asks("DELETE", f"{path}/greet").json() == {"success": True}
    acme.operator.post(f"jobs/{acme.submit('greet', delay=60)}/cancel")


@pytest.mark.timeout(240)
def test_a34_a37_the_window_and_the_threshold_hold_as_soon_as_they_are_set(
    house: House, worker: Worker, mended: Path, defaults: None
) -> None:
    """A34, A37: what left the window does not count; other tenants are unharmed."""
    acme, beta = house.acme, house.beta
    for person in (acme.admin, acme.operator, acme.reader):
        person.may_not("PUT", f"settings/{THRESHOLD}", {"value": 2})
    told = house.platform.asks("PUT", f"settings/{THRESHOLD}", {"value": 2}).json()
    assert (told["value"], told["set_by"]) == (2, "root")
    house.platform.asks("PUT", f"settings/{WINDOW}", {"value": 0.05})  # three seconds
    assert acme.reader.get(f"settings/{THRESHOLD}")["value"] == 2

    first = stick(acme, "sync", 1, mended)[0]
    ended = acme.job(first)["finished_at"]
    eventually(lambda: _passed(acme, ended) > 3.5, timeout=20)
    stick(acme, "sync", 1, mended)
    assert entries(acme, "sync") == [], "the first one was too long ago"

    house.platform.asks("PUT", f"settings/{WINDOW}", {"value": 60})
    stick(acme, "sync", 1, mended)
    [entry] = eventually(lambda: entries(acme, "sync"), timeout=10)
    assert entry["reason"].startswith("auto:stuck:")
    mended.touch()
    beta.until(beta.submit("sync", str(mended), policy=PATIENT), "COMPLETED")


def _passed(tenancy: Tenancy, since: str) -> float:
    """Seconds of the database's time."""
    from datetime import datetime

    beside = tenancy.submit("greet", delay=60)
    now = tenancy.job(beside)["created_at"]
    tenancy.operator.post(f"jobs/{beside}/cancel")
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()


@pytest.mark.timeout(240)
def test_a34_five_at_once_make_one_entry_and_one_notification(house: House, worker: Worker, mended: Path) -> None:
    acme, beta = house.acme, house.beta
    stick(acme, "render", 5, mended)
    assert len(eventually(lambda: entries(acme, "render"), timeout=10)) == 1
    [notice] = news(acme, "render")
    acme.submitter.may_not("POST", f"notifications/{notice['number']}/ack", {})
    beta.operator.sees_nothing("POST", f"notifications/{notice['number']}/ack", {})
    assert acme.operator.post(f"notifications/{notice['number']}/ack")["acked_by"] == acme.operator.name
    assert len(acme.reader.get("blacklist/history", workflow="render")["items"]) == 1
