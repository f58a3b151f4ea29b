"""Whatever the page does can be copied as a command, and the command line takes every one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.server.conftest import Site, running
from tests.support.alerts import open_ones, turn
from tests.support.builders import a_worker, blocked, boom, claimed, settle, submitted
from tests.support.burying import Graveyard
from tests.support.commands import understand
from tests.support.eventually import eventually
from tests.support.parking import Stage
from tests.support.receiver import ALLOWED
from tests.web.test_files import text_of
from tests.web.test_log_in import logged_in
from unstuck.assembly.server import ServerOptions
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import RequestKind
from unstuck.model.policy import Policy
from unstuck.model.settlement import Stopped
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore

#: A name that a shell would take apart, and an option's.
ODD = "it's $HOME; `id`"
DASHED = "-rf"
#: Not by a button, or of nothing that stays here. test_dashboard looks at a worker's processes; bulks have a menu.
ELSEWHERE = {"keys.list", "sessions.list", "tenants.list", "bulks.start", "bulks.cancel", "quarantine.retry"} | {
    "workers.recycle",
    "workers.kill",
}
#: What a button would copy stands in its title; other commands stand there to be read.
COLLECT = """() => [
  ...[...document.querySelectorAll("[data-operation]")]
    .map((each) => [each.dataset.operation, each.title.split("copies: ").at(-1)]),
  ...[...document.querySelectorAll(".command code")].map((each) => ["", each.textContent]),
]"""
SCREENS = [
    *("", "jobs", "approvals", "targets?all=yes", "workers", "workflows", "workflows/greet", "workflows/other"),
    *("queues", "tenants", "schedules", "hooks", "webhooks", "dead-letters", "alerts", "notifications", "blacklist"),
    *("bulks", "settings", "keys", "audit"),
    *(f"{noun}/{quote(name)}" for noun in ("targets", "schedules", "hooks", "webhooks") for name in (ODD, DASHED)),
]


@dataclass
class Collected:
    """`commands`: where each was seen."""

    commands: dict[str, str] = field(default_factory=dict)
    operations: set[str] = field(default_factory=set)

    def look(self, page: Page) -> None:
        for operation, typed in page.evaluate(COLLECT):
            self.operations.add(operation)
            if typed:  # the form that runs a workflow shows its command beside the button
                self.commands[typed] = f"{operation} on {page.url}"


def a_troubled_house(site: Site, store: SqlStore, url: str) -> list[str]:
    """Something for every button; the jobs of which each has a screen."""
    store.register_workflows([WorkflowRecord(name, "v1", "default", Policy(), {}) for name in ("greet", "other")])
    worker, stage, graves = a_worker(store, lease=1e6), Stage(store), Graveyard(store, url)
    jobs = [blocked(store, worker, target=ODD).id, submitted(store, workflow="later", target=DASHED).id]
    submitted(store, tenant="acme")
    submitted(store, queue=DASHED)
    failing = claimed(store, worker, retries=0)
    settle(store, worker, failing.ref, boom())
    paused = claimed(store, worker)
    assert site.post(f"/api/v1/jobs/{paused.id}/interrupt").status_code == 200
    settle(store, worker, paused.ref, Stopped(RequestKind.INTERRUPT))
    jobs += [failing.id, paused.id, claimed(store, worker).id, stage.asks(), stage.awaits(DASHED)]
    for more in ({"delay": 3600}, {"hold": True}):
        made = site.post("/api/v1/jobs", {"workflow": "greet", **more})
        assert made.status_code == 201, made.text
        jobs.append(made.json()["id"])
    graves.bury()
    graves.exhaust()
    for name, value in {"webhook_allow": ALLOWED, "alert_blocked_after": 1}.items():
        site.client.put(f"/api/v1/settings/{name}", json={"value": value}).raise_for_status()
    for path, asked in {
        "blacklist": {"workflow": ODD, "reason": "noisy"},
        f"queues/{DASHED}/pause": {},
        "queues/default/limit": {"concurrency": 5},
        "tenants/acme/pause": {},
        f"targets/{DASHED}/pause": {},
        "tenants/default/limit": {"concurrency": 50},
        "workflows/greet/pause": {},
    }.items():
        made = site.post(f"/api/v1/{path}", asked)
        assert made.is_success, f"{path}: {made.text}"
    for name in (ODD, DASHED):
        for noun, asked in {
            "schedules": {"workflow": "greet", "cron": "0 3 * * *"},
            "hooks": {"workflow": "greet"},
            "webhooks": {"url": "http://127.0.0.1:9/in"},
        }.items():
            assert site.post(f"/api/v1/{noun}", {"name": name, **asked}).status_code == 201
            if name == DASHED:
                assert site.post(f"/api/v1/{noun}/{name}/pause").status_code == 200
    eventually(lambda: turn(store) >= 0 and len(open_ones(store)) > 1, timeout=60)
    (first, *_) = open_ones(store)
    assert site.post(f"/api/v1/alerts/{first.number}/mute", {"lasts": "1h"}).status_code == 200
    return jobs


@pytest.mark.timeout(600)
def test_every_command_on_the_page_is_one_that_the_command_line_takes(
    url: str, store: SqlStore, browser: Browser
) -> None:
    found = Collected()
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        jobs = a_troubled_house(site, store, url)
        caller = Caller(store, "ada", "*")
        key = keys.create(caller, "anna", role="platform-admin")
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.goto("/")
        logged_in(page, key.key)
        expect(page.locator(".rail")).to_be_visible()
        for path in [*SCREENS, *(f"jobs/{job}" for job in jobs)]:
            page.goto(f"/{path}")
            expect(page.locator("h1").first).to_be_visible()
            expect(page.locator(".bone")).to_have_count(0)
            found.look(page)
        page.goto("/jobs?q=state:FAILED+older:1s")
        page.get_by_role("button", name="Act on all that match").click()
        page.locator(".menu").get_by_role("button", name="Retry").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found.look(page)
    refused = {}
    for typed, where in found.commands.items():
        try:
            understand(typed)
        except Exception as error:
            refused[typed] = f"{where}: {error}"
    assert not refused
    needs = set(re.findall(r'"([a-z_]+\.[a-z_]+)": "[a-z-]+"', text_of("lib/session.js")))
    assert needs - ELSEWHERE - found.operations == set(), "no button of these was seen"


@pytest.mark.timeout(600)
def test_a_reader_meets_no_button_of_all_these(url: str, store: SqlStore, browser: Browser) -> None:
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        jobs = a_troubled_house(site, store, url)
        key = keys.create(Caller(store, "ada", "*"), "rita", role="reader")
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.goto("/")
        logged_in(page, key.key)
        expect(page.locator(".rail")).to_be_visible()
        for path in [*SCREENS, "jobs?q=state:FAILED", *(f"jobs/{job}" for job in jobs)]:
            page.goto(f"/{path}")
            expect(page.locator("h1").first).to_be_visible()
            expect(page.locator(".bone")).to_have_count(0)
            assert page.locator("[data-operation]").count() == 0, path
            assert page.get_by_role("button", name="Act on all that match").count() == 0
            assert page.locator(".trouble").all_inner_texts() == [], path
