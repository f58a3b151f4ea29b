"""The trace of a request is the trace of the jobs that it submits; a header that is none is no error."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from opentelemetry import trace
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from tests.server.conftest import Site
from tests.support.builders import a_worker, claim_all
from tests.support.tracer import Tracer, parent_of, provider_set
from unstuck import App, AsyncClient, Client, Who
from unstuck.store.sql_store import SqlStore

JOBS = "/api/v1/jobs"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def carried(store: SqlStore) -> list[str | None]:
    return [job.trace for job in claim_all(store, a_worker(store))]


def test_it_is_read_from_the_headers(site: Site, greet: str, store: SqlStore) -> None:
    others = {"tracestate": "a=1", "baggage": "user=7"}
    for headers in (
        {"traceparent": PARENT},
        {"traceparent": PARENT, **others},
        {"traceparent": "00-zz", **others},
        {"traceparent": PARENT, "tracestate": "x" * 513},
        {},
    ):
        assert site.post(JOBS, {"workflow": greet}, headers=headers).status_code == 201
    # Of two parents nobody knows which.
    twice = [("traceparent", PARENT), ("traceparent", PARENT.replace("b7", "c7"))]
    assert site.post(JOBS, {"workflow": greet}, headers=twice).status_code == 201
    bodies = {"jobs": [{"workflow": greet}] * 2}
    assert site.post(f"{JOBS}/batch", bodies, headers={"traceparent": PARENT}).status_code == 200
    assert carried(store) == [PARENT, f"{PARENT}\na=1\nuser=7", None, PARENT, None, None, PARENT, PARENT]


def test_a_replay_carries_the_trace_of_its_request(site: Site, greet: str, store: SqlStore) -> None:
    job = site.post(JOBS, {"workflow": greet}, headers={"traceparent": PARENT}).json()["id"]
    assert site.post(f"{JOBS}/{job}/cancel", {}).status_code == 200
    asked = PARENT.replace("0af7", "1af7")
    again = site.post(f"{JOBS}/{job}/replay", {}, headers={"traceparent": asked}).json()
    assert again["trace"] == asked[3:35]
    assert site.get(f"{JOBS}/{job}").json()["trace"] == PARENT[3:35]
    assert [(one.trace, one.span) for one in claim_all(store, a_worker(store))] == [(asked, PARENT)]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_client_sends_what_is_current(site: Site, greet: str, store: SqlStore) -> None:
    tracer = Tracer()

    async def ask() -> None:
        async with AsyncClient(site.url) as client:
            await client.jobs.enqueue(greet)

    with provider_set(tracer.provider), trace.use_span(tracer.span("request")), Client(site.url) as client:
        client.jobs.enqueue(greet)
        asyncio.run(ask())
        client.jobs.list()
        with App(site.url) as far:

            @far.workflow(name="greet")
            def far_greet() -> None: ...

            far_greet.enqueue()
            far_greet.enqueue_many([(), ()])
    sends = tracer.recorded()
    assert [send.name for send in sends] == ["send greet"] * 4
    assert len({send.parent and send.parent.span_id for send in sends}) == 1
    expected = [*map(parent_of, sends), parent_of(sends[-1])]
    assert carried(store) == expected


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_mounted_into_a_program_that_traces_its_own_span_is_the_parent(
    store_url: str, greet: str, store: SqlStore
) -> None:
    tracer = Tracer()
    span = tracer.span("POST /jobs-api")

    def somebody(_: object) -> Who:
        return Who(by="ada", role="operator", tenant="default")

    async def ask() -> httpx2.Response:
        with App(store_url) as app:
            inner = Starlette(routes=[Mount("/jobs-api", app=app.asgi(auth=somebody))])

            async def outer(scope: Scope, receive: Receive, send: Send) -> None:
                with trace.use_span(span):
                    await inner(scope, receive, send)

            transport = httpx2.ASGITransport(app=outer)
            async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
                headers = {"traceparent": PARENT}
                return await client.post(f"/jobs-api{JOBS}", json={"workflow": greet}, headers=headers)

    assert asyncio.run(ask()).status_code == 201
    assert carried(store) == [parent_of(span)]
