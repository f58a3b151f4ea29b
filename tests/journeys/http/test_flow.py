"""What many jobs share, over HTTP: one budget of a tree, one verb over a filter while a worker runs them."""

from __future__ import annotations

import pytest

from tests.journeys.http.conftest import FINAL, House
from tests.server.conftest import problem
from tests.support.eventually import eventually
from tests.support.workers import Worker


def test_the_budget_of_a_tree_is_shared_shown_and_raised(house: House, worker: Worker) -> None:
    """Three children spend four each of ten: what is too much for the tree is too much for whoever spent it."""
    acme = house.acme
    root = acme.submit("spends", 4, 3)
    assert acme.until(root, *FINAL, within=60)["status"] == "FAILED"
    usage = acme.reader.get(f"jobs/{root}/usage")
    assert usage["used"] == {}
    [whole] = usage["trees"]
    assert (whole["job"], whole["used"], whole["budget"]) == (root, {"tokens": 12}, {"tokens": 10})
    children = acme.reader.get(f"jobs/{root}/children")["items"]
    ends = sorted((acme.job(child["id"])["error_type"] or "") for child in children)
    assert ends == ["", "", "BudgetExceeded"]
    for path in ("usage", "tree", "children"):
        house.machine.may_not("GET", f"jobs/{root}/{path}")
        house.beta.reader.sees_nothing("GET", f"jobs/{root}/{path}")
    acme.submitter.may_not("POST", f"jobs/{root}/replay", {"budget": {"tokens": 20}})
    house.beta.operator.sees_nothing("POST", f"jobs/{root}/replay", {"budget": {"tokens": 20}})
    again = acme.operator.post(f"jobs/{root}/replay", {"budget": {"tokens": 20}})["id"]
    acme.until(again, "COMPLETED", within=60)


@pytest.mark.timeout(180)
def test_a_bulk_over_what_a_worker_runs_meanwhile_does_each_job_once(house: House, worker: Worker) -> None:
    acme, beta = house.acme, house.beta
    quick, long = ({"workflow": "nap", "args": [seconds], "tags": ["wrong"]} for seconds in (0.02, 0.5))
    batch = {"jobs": [quick] * 100 + [long] * 500}
    ids = [item["job"]["id"] for item in acme.submitter.post("jobs/batch", batch)["items"]]
    theirs = beta.submit("nap", 0.02, tags=["wrong"], delay=60)
    asked = {"verb": "cancel", "tag": "wrong", "reason": "the wrong file"}
    acme.submitter.may_not("POST", "bulks", asked)
    acme.until(ids[0], "COMPLETED")
    assert acme.reader.get("bulks/count", tag="wrong", state="QUEUED")["number"] > 0

    bulk = acme.operator.post("bulks", asked)

    house.beta.reader.sees_nothing("GET", f"bulks/{bulk['number']}")
    house.beta.operator.sees_nothing("POST", f"bulks/{bulk['number']}/cancel", {})
    acme.submitter.may_not("POST", f"bulks/{bulk['number']}/cancel", {})

    def done() -> None:
        found = acme.reader.get(f"bulks/{bulk['number']}")
        assert found["state"] == "DONE", found

    eventually(done, timeout=60)
    for job in ids:
        acme.until(job, *FINAL)
    ends = [job["state"] for job in _all(house, tag="wrong")]
    found = acme.reader.get(f"bulks/{bulk['number']}")
    assert sorted(set(ends)) == ["CANCELLED", "COMPLETED"]
    assert ends.count("CANCELLED") >= 1
    assert found["matched"] == found["done"] + found["refused"] + found["moved_on"]
    assert beta.job(theirs)["state"] == "QUEUED"
    beta.operator.post(f"jobs/{theirs}/cancel")
    problem(acme.operator.asks("POST", f"bulks/{bulk['number']}/cancel", {}), 409, "BulkEnded")


def _all(house: House, **wanted: str) -> list[dict[str, str]]:
    found, after = [], None
    while True:
        page = house.acme.reader.get("jobs", limit=200, **wanted, **({"after": after} if after else {}))
        found += page["items"]
        after = page["next"]
        if after is None:
            return found
