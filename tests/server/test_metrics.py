"""/metrics, /healthz and /readyz over HTTP: who may ask, what it costs, and what is said without the library."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.server.conftest import Site, problem, running
from tests.server.test_keys import Make, make, shown
from tests.support.builders import a_worker, claimed, settle, submitted
from tests.support.metrics_text import samples, value
from tests.support.troubles import execute
from unstuck.assembly.server import ServerOptions
from unstuck.assembly.store import open_store
from unstuck.clock import FakeClock
from unstuck.model.errors import Unauthenticated
from unstuck.model.metrics import Measures
from unstuck.model.times import Times
from unstuck.operations.keyring import PlatformReaders
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
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[str | None] = []
    clock = FakeClock()

    def counted(caller: Caller, memory: MetricsMemory) -> Measures:
        readings.append(caller.own)
        clock.advance(0.1 if len(readings) < 4 else 10.0)
        return measure(caller, memory)

    monkeypatch.setattr(metrics, "measure", counted)
    found = metrics.ServerMetrics(clock)
    platform, acme = Caller(store, "p"), Caller(store, "a", bound="acme")

    async def scrape(*callers: Caller) -> list[str]:
        return [answer.body.decode() for answer in await asyncio.gather(*(found.answer(one) for one in callers))]

    async def story() -> None:
        texts = await scrape(*[platform] * 30, *[acme] * 10)
        assert readings == [None, "acme"]
        assert len(set(texts[:30])) == len(set(texts[30:])) == 1
        submitted(store)
        clock.advance(metrics.FRESH - 0.2)
        assert (await scrape(platform))[0] == texts[0]
        clock.advance(0.5)
        (anew,) = await scrape(platform)
        assert value(samples(anew), "jobs_queued_total", tenant_id="default") == 1
        clock.advance(metrics.FRESH)
        await scrape(platform)
        assert len(readings) == 4
        clock.advance(10 * metrics.FRESH)  # this one took long
        await scrape(platform)
        assert len(readings) == 4

    asyncio.run(story())
    found.close()


def test_a_reading_that_fails_is_said_and_the_next_one_works(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    refused = problem(site.get("/metrics"), 501, "NotInstalled")
    assert "pip install 'unstuck[metrics]'" in refused["detail"]
    assert site.get("/readyz").status_code == 200
    monkeypatch.undo()
    assert samples(site.get("/metrics").text)


def test_two_servers_and_one_that_restarts_tell_the_same_counters(store_url: str, store: SqlStore) -> None:
    ada = a_worker(store)
    settle(store, ada, claimed(store, ada, workflow="greet").ref)
    execute(store_url, f"UPDATE unstuck_done SET finished_at = finished_at - {180 * 1_000_000}")
    assert store.count_ends(60.0) == 1
    for _ in range(2):
        with running(ServerOptions(store_url, port=0)) as one:
            found = samples(one.get("/metrics").text)
            named = {"queue": "default", "workflow": "greet"}
            assert value(found, "unstuck_jobs_finished_total", **named, outcome="completed") == 1
            assert value(found, "unstuck_job_run_seconds_count", **named) == 1


def test_a_request_with_a_body_changes_no_answer_but_its_own(site: Site) -> None:
    site.get("/metrics")
    answer = site.client.request("GET", "/metrics", content=b"x" * 10)
    assert answer.status_code == 200
    assert site.get("/metrics").headers.get("connection") != "close"


def test_a_workers_port_is_asked_from_afar_by_readers_of_the_platform_alone(make: Make, store_url: str) -> None:
    keys = {"platform": make("reader"), "tenant": make("reader", "acme"), "worker": make("worker")}
    readers = PlatformReaders(open_store(store_url, Times()), FakeClock())
    try:
        assert readers.refusal(keys["platform"].key, "10.0.0.1") is None
        assert "part of the platform" in (readers.refusal(keys["tenant"].key, "10.0.0.1") or "")
        assert "needs the role reader" in (readers.refusal(keys["worker"].key, "10.0.0.1") or "")
        with pytest.raises(Unauthenticated):
            readers.refusal("usk_nonsense", "10.0.0.1")
    finally:
        readers.close()
