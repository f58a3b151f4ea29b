"""Submits over HTTP: keys, caps, and two tenants of which one is large."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import httpx2
import pytest

from tests.journeys.http.conftest import House, Tenancy
from tests.server.conftest import problem
from tests.support.workers import Worker
from tests.tiers import commit_on_sqlite
from unstuck.operations.routes import PREFIX, routes

#: How many jobs the large tenant has.
MANY = 100_000


def _submitted(tenancy: Tenancy, body: object, key: str | None = None) -> httpx2.Response:
    headers = {} if key is None else {"idempotency-key": key}
    return tenancy.submitter.client.post("/api/v1/jobs", json=body, headers=headers)


@commit_on_sqlite
def test_a45_ten_clients_with_one_key_get_one_job(house: House) -> None:
    acme, body = house.acme, {"workflow": "greet", "args": ["ann"], "delay": 60}
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: _submitted(acme, body, "order-7"), range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    [job] = {answer.json()["id"] for answer in answers}
    problem(_submitted(acme, {**body, "args": ["bob"]}, "order-7"), 422, "KeyConflict")
    problem(_submitted(acme, {**body, "key": "other"}, "order-7"), 422, "WrongArguments")
    acme.reader.may_not("POST", "jobs", {**body, "key": "order-7"})
    # Another tenant's key of the same name is another one.
    other = _submitted(house.beta, body, "order-7")
    assert other.status_code == 201
    house.beta.reader.sees_nothing("GET", f"jobs/{job}")
    acme.reader.sees_nothing("GET", f"jobs/{other.json()['id']}")
    acme.operator.post(f"jobs/{job}/cancel")
    house.beta.operator.post(f"jobs/{other.json()['id']}/cancel")


@commit_on_sqlite
def test_a46_a_tenant_at_its_cap_is_told_when_to_come_again_and_leaves_nothing(house: House) -> None:
    """The tenant of which no other test leaves anything: a cap above a hundred thousand would need an exact count."""
    small, cap = house.beta, {"max_queued": 3}
    small.admin.may_not("POST", "tenants/beta/limit", cap)
    waiting = _queued(small)
    house.platform.post("tenants/beta/limit", {"max_queued": waiting + 3})
    try:
        jobs = [small.submit("greet", queue="capped", delay=60) for _ in range(3)]
        refused = _submitted(small, {"workflow": "greet", "queue": "capped"}, "too-many")
        problem(refused, 429, "TooManyQueued")
        assert int(refused.headers["retry-after"]) >= 1
        many = {"jobs": [{"workflow": "greet", "queue": "capped"}] * 2}
        assert [item["status"] for item in small.submitter.post("jobs/batch", many)["items"]] == [429, 429]
        assert _queued(small) == waiting + 3
        other = house.acme.submit("greet", delay=60)
        small.operator.post(f"jobs/{jobs[0]}/cancel")
        again = _submitted(small, {"workflow": "greet", "queue": "capped", "delay": 60}, "too-many")
        assert again.status_code == 201, "the key of what was refused is free"
        jobs.append(again.json()["id"])
        house.acme.operator.post(f"jobs/{other}/cancel")
    finally:
        house.platform.post("tenants/beta/unlimit")
    for job in jobs[1:]:
        small.operator.post(f"jobs/{job}/cancel")


def _queued(tenancy: Tenancy) -> int:
    """However many other tests of this module have left; of very many, as many as could be counted in time."""
    return int(tenancy.reader.get("bulks/count", state="QUEUED")["number"])


@commit_on_sqlite
def test_a55_nothing_of_one_tenant_is_visible_to_the_other(house: House) -> None:
    """Every route that reads, asked by everybody of the other tenant; by id and in lists."""
    acme, beta = house.acme, house.beta
    seen = {"tags": ["canary"], "target": "canary", "queue": "canary", "limit_key": "canary", "key": "canary"}
    job = beta.submit("greet", "canary", delay=60, **seen)
    beta.operator.post("queues/canary/pause", {"reason": "canary"})
    beta.operator.post("limits/keys/canary", {"concurrency": 1})
    beta.admin.post("blacklist", {"workflow": "canary", "reason": "canary"})
    beta.admin.post("keys", {"name": "canary", "role": "reader"})
    assert "canary" in beta.admin.asks("GET", "jobs").text
    for person in (acme.reader, acme.submitter, acme.operator, acme.admin):
        for route in routes().values():
            if route.method != "GET":
                continue
            path = PREFIX + "/".join(_named(part, job) for part in route.path.split("/"))
            answer = person.asks("GET", path, **({"timeout": 0} if "timeout" in route.path else {}))
            assert job not in answer.text.replace(path, "") or answer.status_code == 404, route.name
            told = answer.text if not route.names else ""
            assert "canary" not in told, f"{person.name} {route.name}: {told}"
            if "job" in route.names:
                assert answer.status_code == 404, route.name
        for tenant in ("beta", "*"):
            problem(person.asks("GET", "jobs", tenant=tenant), 403, "NotPermitted")
    assert beta.job(job)["state"] == "QUEUED"
    beta.admin.asks("DELETE", "blacklist/canary")
    beta.operator.post("queues/canary/unpause")
    beta.operator.post(f"jobs/{job}/cancel")


def _named(part: str, job: str) -> str:
    known = {"{job}": job, "{number}": "1", "{order}": "1", "{pid}": "1"}
    return known.get(part, "canary" if part.startswith("{") else part)


@pytest.mark.timeout(900)
def test_a55_a_job_of_a_small_tenant_starts_within_a_second_beside_a_hundred_thousand(
    house: House, worker: Worker
) -> None:
    """All of it submitted over HTTP, a thousand at a time, while the worker runs them."""
    acme, beta = house.acme, house.beta
    batch = {"jobs": [{"workflow": "nap", "args": [0.05]}] * 1000}
    for _ in range(MANY // 1000):
        items = acme.submitter.post("jobs/batch", batch)["items"]
        assert {item["status"] for item in items} == {201}
    assert _queued(acme) > 1000, "there are many more"

    waits = []
    for _ in range(5):
        job = beta.submit("greet")
        beta.until(job, "COMPLETED")
        found = beta.job(job)
        began = datetime.fromisoformat(found["started_at"] or found["attempt_list"][0]["claimed_at"])
        waits.append((began - datetime.fromisoformat(found["created_at"])).total_seconds())
    assert sorted(waits)[2] < 1.0, waits
    assert beta.reader.get("stats")["states"]["QUEUED"] == 0
    assert len(beta.reader.get("jobs", workflow="nap")["items"]) == 0
