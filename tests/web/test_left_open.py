"""A page that is left open: after thousands of events and restarts of its server it holds no more than before."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.server.conftest import Site, running
from tests.support.builders import TENANT, a_job, submitted
from tests.support.eventually import eventually
from tests.tiers import torture
from unstuck.assembly.server import ServerOptions
from unstuck.chance import SystemChance
from unstuck.model.job import WorkflowRecord
from unstuck.model.news import Publication
from unstuck.model.policy import Policy
from unstuck.store.sql_store import SqlStore

ROUNDS = 6
#: Events of a round: of jobs that are submitted, and told about the one that is looked at.
SUBMITTED, TOLD = 400, 20
#: An hour of a page, and how many events come in meanwhile.
MINUTES, EVENTS = 60, 50_000
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


class Shop:
    """Where things happen while somebody has a page open."""

    def __init__(self, store: SqlStore) -> None:
        store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
        self._store, self._chance = store, SystemChance()
        self.job = submitted(store, workflow="greet").id

    def is_busy(self, page: Page, number: int, submits: int = SUBMITTED) -> None:
        """Until the page has heard of all of it."""
        self._store.submit([a_job(workflow="greet") for _ in range(submits)])
        for place in range(TOLD):
            kind = f"shop.round{number}" if place == TOLD - 1 else "shop.news"
            self._store.publish(TENANT, Publication(kind, "{}"), "ada", self._chance.nonce(), job=self.job)
        eventually(lambda: page.evaluate(HEARD, f"shop.round{number}"), timeout=60)
        expect(page.locator(".bone")).to_have_count(0)


def holds_no_more(held: list[Held], first: Held) -> None:
    last = held[-1]
    assert last.heap - first.heap < MORE_BYTES, held
    assert last.nodes - first.nodes < MORE_NODES, held
    assert last.listeners - first.listeners < MORE_LISTENERS, held


@pytest.mark.timeout(600)
@pytest.mark.parametrize("screen", ["/", "/jobs", "/jobs?q=state:QUEUED", "/jobs/{job}"])
def test_a_page_that_is_left_open_does_not_grow(url: str, store: SqlStore, browser: Browser, screen: str) -> None:
    shop = Shop(store)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    held = []
    with browser.new_context() as context:
        page = context.new_page()
        for number in range(ROUNDS):
            with running(ServerOptions(url, port=port)) as site:
                if not number:
                    page.goto(site.url + screen.format(job=shop.job))
                expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=60_000)
                shop.is_busy(page, number)
                held.append(Held.of(page))
    holds_no_more(held, held[1])


@torture
@pytest.mark.parametrize("screen", ["/", "/jobs?q=state:QUEUED", "/jobs/{job}"])
def test_an_hour_on_a_page_leaves_nothing_behind(url: str, store: SqlStore, browser: Browser, screen: str) -> None:
    """The clock of the page runs an hour, minute by minute: each of its timers rings as often as in an hour, and a
    stream that is silent for so long is opened anew. Meanwhile 50 000 events come in."""
    shop, held = Shop(store), []
    with running(ServerOptions(url, port=0)) as site, browser.new_context() as context:
        page = context.new_page()
        opened: list[str] = []
        page.on("request", lambda asked: opened.append(asked.url) if "/api/v1/events?" in asked.url else None)
        page.clock.install()
        page.goto(site.url + screen.format(job=shop.job))
        expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=60_000)
        for minute in range(MINUTES):
            shop.is_busy(page, minute, EVENTS // MINUTES - TOLD)
            held.append(Held.of(page))
            page.clock.run_for(60_000)
        assert page.evaluate("Date.now()") / 1000 > held_at(site) + 60 * (MINUTES - 1)
    assert len(opened) >= MINUTES // 2, "the stream was not opened anew"
    print(f"{screen}: {held[4]} … {held[-1]}, the stream was opened {len(opened)} times")
    holds_no_more(held, held[4])


def held_at(site: Site) -> float:
    """By the server, whose clock did not run ahead."""
    return parsedate_to_datetime(site.get("/api/v1/session").headers["date"]).timestamp()
