"""A page that is left open: after thousands of events and restarts of its server it holds no more than before."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.server.conftest import running
from tests.support.builders import TENANT, a_job, submitted
from tests.support.eventually import eventually
from unstuck.assembly.server import ServerOptions
from unstuck.chance import SystemChance
from unstuck.model.job import WorkflowRecord
from unstuck.model.news import Publication
from unstuck.model.policy import Policy
from unstuck.store.sql_store import SqlStore

ROUNDS = 6
#: Events of a round: of jobs that are submitted, and told about the one that is looked at.
SUBMITTED, TOLD = 400, 20
#: How much more than after the first round may stand after the last one. A leak of a kilobyte per event is 2 MB.
MORE_BYTES, MORE_NODES, MORE_LISTENERS = 700_000, 150, 20
HEARD = """async (kind) => {
  const { src } = document.querySelector("script[type=module]");
  const { recent } = await import(src.replace("app.js", "lib/stream.js"));
  return recent.value.some((event) => event.kind === kind);
}"""


@dataclass(frozen=True)
class Held:
    """What the page holds after a collection of garbage."""

    heap: int
    nodes: int
    listeners: int

    @classmethod
    def of(cls, page: Page) -> Held:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        found = {each["name"]: int(each["value"]) for each in session.send("Performance.getMetrics")["metrics"]}
        session.detach()
        return cls(found["JSHeapUsedSize"], found["Nodes"], found["JSEventListeners"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("screen", ["/", "/jobs", "/jobs?q=state:QUEUED", "/jobs/{job}"])
def test_a_page_that_is_left_open_does_not_grow(url: str, store: SqlStore, browser: Browser, screen: str) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    job = submitted(store, workflow="greet")
    chance = SystemChance()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    def a_busy_while(number: int) -> None:
        store.submit([a_job(workflow="greet") for _ in range(SUBMITTED)])
        for place in range(TOLD):
            kind = f"shop.round{number}" if place == TOLD - 1 else "shop.news"
            store.publish(TENANT, Publication(kind, "{}"), "ada", chance.nonce(), job=job.id)
        eventually(lambda: page.evaluate(HEARD, f"shop.round{number}"), timeout=60)
        expect(page.locator(".bone")).to_have_count(0)

    held = []
    with browser.new_context() as context:
        page = context.new_page()
        for number in range(ROUNDS):
            with running(ServerOptions(url, port=port)) as site:
                if not number:
                    page.goto(site.url + screen.format(job=job.id))
                expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=60_000)
                a_busy_while(number)
                held.append(Held.of(page))
    first, last = held[1], held[-1]
    assert last.heap - first.heap < MORE_BYTES, held
    assert last.nodes - first.nodes < MORE_NODES, held
    assert last.listeners - first.listeners < MORE_LISTENERS, held
