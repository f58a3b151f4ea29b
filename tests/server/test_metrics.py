"""/metrics, /healthz and /readyz over HTTP: who may ask, what it costs, and what is said without the library."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.conftest import Site, problem, running
from tests.server.test_keys import Make, make, shown
from tests.support.builders import submitted
from tests.support.metrics_text import samples, value
from unstuck.assembly import ServerOptions
from unstuck.model.metrics import Measures
from unstuck.operations.metrics import MetricsMemory, measure
from unstuck.operations.table import Caller
from unstuck.server import metrics
from unstuck.store.sql_store import SqlStore

__all__ = ["make"]

AFAR = {"host": "jobs.example.com"}


def test_prometheus_gets_text_that_it_reads(site: Site, store: SqlStore) -> None:
    submitted(store, workflow="greet")
    answer = site.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(answer.text)
    assert value(found, "unstuck_jobs", state="queued", queue="default", workflow="greet") == 1
    assert value(found, "jobs_queued_total", tenant_id="default") == 1
    assert next(iter(found["unstuck_build_info"].values())) == 1
    assert value(found, "unstuck_recovery_seconds_count") == 0
    assert site.client.head("/metrics").status_code == 200
    problem(site.post("/metrics"), 404, "NotFound")


def test_without_keys_this_machine_may_ask(shared_site: Site) -> None:
    site = shared_site
    assert site.get("/metrics").status_code == 200  # this machine, while there are no keys
    problem(site.get("/metrics", headers=AFAR), 403, "Forbidden")
    problem(site.get("/readyz", headers=AFAR), 403, "Forbidden")
    assert site.get("/healthz", headers=AFAR).json() == {"alive": True}


def test_who_may_ask_with_keys(make: Make, site: Site, store: SqlStore) -> None:
    """Checks 2 and 26: liveness for all, the rest behind a key or on this machine; a tenant sees itself alone. A55"""
    canary = submitted(store, tenant="beta-canary", queue="q-canary", workflow="w-canary")
    submitted(store, tenant="acme", workflow="mine")
    platform, acme, worker = make("reader"), make("reader", "acme"), make("worker")
    problem(site.get("/metrics"), 401, "Unauthenticated")
    problem(site.get("/readyz", headers=AFAR), 401, "Unauthenticated")
    problem(site.get("/readyz", headers={"x-forwarded-for": "1.2.3.4"}), 401, "Unauthenticated")
    assert site.get("/readyz", headers={**AFAR, **shown(acme)}).json() == {"ready": True}
    assert site.get("/readyz").json() == {"ready": True}
    assert site.get("/healthz", headers=AFAR).status_code == 200
    problem(site.get("/metrics", headers=shown(worker)), 403, "NotPermitted")
    problem(site.get("/metrics", headers=shown(make("reader", "acme", queues=["io"]))), 403, "NotPermitted")
    problem(site.get("/metrics", headers=shown("usk_nonsense")), 401, "Unauthenticated")
    told = site.get("/metrics", headers=shown(acme))
    assert "canary" not in told.text
    assert canary.id not in told.text
    assert "unstuck_build_info" not in told.text
    assert value(samples(told.text), "jobs_queued_total", tenant_id="acme") == 1
    whole = samples(site.get("/metrics", headers=shown(platform)).text)
    assert value(whole, "jobs_queued_total", tenant_id="beta-canary") == 1


def test_many_scrapers_cost_as_one_and_a_reading_is_told_again_for_seconds(
    site: Site, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[str | None] = []

    def counted(caller: Caller, memory: MetricsMemory) -> Measures:
        readings.append(caller.own)
        return measure(caller, memory)

    monkeypatch.setattr(metrics, "measure", counted)
    monkeypatch.setattr(metrics, "FRESH", 60.0)
    with ThreadPoolExecutor(10) as pool:
        texts = set(pool.map(lambda _: site.get("/metrics").text, range(30)))
    assert len(readings) == len(texts) == 1
    submitted(store)
    assert site.get("/metrics").text in texts
    monkeypatch.setattr(metrics, "FRESH", 0.0)
    assert value(samples(site.get("/metrics").text), "jobs_queued_total", tenant_id="default") == 1
    assert len(readings) == 2


def test_a_reading_that_fails_is_said_and_the_next_one_works(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH", 0.0)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    refused = problem(site.get("/metrics"), 501, "NotInstalled")
    assert "pip install 'unstuck[metrics]'" in refused["detail"]
    assert site.get("/readyz").status_code == 200
    monkeypatch.undo()
    assert samples(site.get("/metrics").text)


def test_two_servers_and_one_that_restarts_tell_the_same_counters(store_url: str, store: SqlStore) -> None:
    submitted(store)
    for _ in range(2):
        with running(ServerOptions(store_url, port=0)) as one:
            found = samples(one.get("/metrics").text)
            assert value(found, "unstuck_clock_leaps_total") == 0
            assert value(found, "jobs_queued_total", tenant_id="default") == 1


def test_a_request_with_a_body_changes_no_answer_but_its_own(site: Site) -> None:
    site.get("/metrics")
    answer = site.client.request("GET", "/metrics", content=b"x" * 10)
    assert answer.status_code == 200
    assert "connection" not in {name.lower() for name in site.get("/metrics").headers} or (
        site.get("/metrics").headers.get("connection") != "close"
    )
