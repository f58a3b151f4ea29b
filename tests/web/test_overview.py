"""What the overview lists, what it asks for it, and where that leads."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.server.conftest import running
from tests.store.test_why import by_hand
from tests.support.alerts import open_ones, turn
from tests.support.builders import a_worker, blocked, boom, claimed, settle, submitted
from tests.support.eventually import eventually
from tests.support.parking import Stage
from unstuck.assembly.server import ServerOptions
from unstuck.store.database import Database
from unstuck.store.sql_store import SqlStore

pytestmark = pytest.mark.timeout(600)
#: A name that means something wherever it is not quoted.
NAME = "acme/site?tab=blacklist#50%"


def shown(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator("#headline h1")).to_be_visible()
    expect(page.locator(".connection")).to_have_attribute("data-link", "live")
    expect(page.locator(".bone")).to_have_count(0)


def test_the_overview_asks_everything_once(url: str, store: SqlStore, browser: Browser) -> None:
    blocked(store, a_worker(store, lease=1e6), target="Grace")
    asked: Counter[str] = Counter()

    def count(request: Request) -> None:
        path = urlsplit(request.url).path
        if path.startswith("/api/v1/"):
            asked[path] += 1

    with running(ServerOptions(url, port=0)) as site, browser.new_context() as context:
        page = context.new_page()
        page.on("request", count)
        shown(page, site.url)
    assert set(asked.values()) == {1}, asked


def test_the_first_of_each_kind_stands_before_the_second_of_any(url: str, store: SqlStore, browser: Browser) -> None:
    worker = a_worker(store, lease=1e6)
    traceback = 'Traceback (most recent call last):\n  File "shop.py", line 1\nModuleNotFoundError: no module shelf'
    store.beat(worker.number, 1e6, [], info={"import_error": traceback})
    for number in range(7):
        blocked(store, worker, target=f"Grace {number}")
    settle(store, worker, claimed(store, worker, workflow="spins", retries=0).ref, boom("it hung", "ExecutionStuck"))
    Stage(store).asks("Deploy?")
    with running(ServerOptions(url, port=0)) as site, browser.new_context() as context:
        page = context.new_page()
        shown(page, site.url)
        needs = page.locator(".need")
        for text in ("A worker cannot import its app", "spins got stuck", "Target Grace", "asks: Deploy?"):
            expect(needs.filter(has_text=text).first).to_be_visible()
        expect(page.get_by_role("button", name="Show all")).to_be_visible()
        needs.filter(has_text="cannot import").get_by_role("link", name="Look").click()
        expect(page.locator(".worker .error-text").first).to_have_text(
            "Its app cannot be imported: ModuleNotFoundError: no module shelf"
        )


def test_a_stuck_job_whose_workflow_is_shut_out_offers_no_button_that_would_be_refused(
    url: str, store: SqlStore, browser: Browser
) -> None:
    worker = a_worker(store, lease=1e6)
    settle(store, worker, claimed(store, worker, workflow="spins", retries=0).ref, boom("it hung", "ExecutionStuck"))
    with running(ServerOptions(url, port=0)) as site, browser.new_context() as context:
        page = context.new_page()
        shown(page, site.url)
        stuck = page.locator(".need", has_text="spins got stuck")
        expect(stuck.get_by_role("button", name="Resume")).to_be_visible()
        assert site.post("/api/v1/blacklist", {"workflow": "spins", "reason": "it hangs"}).is_success
        expect(page.locator(".need", has_text="on the blacklist")).to_contain_text("by http: it hangs")
        expect(stuck.get_by_role("button")).to_have_count(0)
        expect(stuck.get_by_role("link", name="See its stack")).to_be_visible()
        page.locator(".need", has_text="on the blacklist").get_by_role("button", name="Lift").click()
        page.get_by_role("dialog").get_by_role("button", name="Lift the entry").click()
        expect(stuck.get_by_role("button", name="Resume")).to_be_visible()


def test_an_alert_leads_to_its_target_whatever_it_is_called_and_whosever_it_is(
    url: str, store: SqlStore, browser: Browser
) -> None:
    blocker = blocked(store, a_worker(store, lease=1e6), tenant="acme", target=NAME)
    with running(ServerOptions(url, port=0)) as site, browser.new_context() as context:
        site.client.put("/api/v1/settings/alert_blocked_after", json={"value": 1}).raise_for_status()
        eventually(lambda: turn(store) >= 0 and open_ones(store, "target_blocked"), timeout=90)
        page = context.new_page()
        page.goto(f"{site.url}/notifications")
        page.locator(".card.note", has_text="blocked for long").get_by_role("link", name="Look").click()
        expect(page.locator("#blocked")).to_be_visible()
        expect(page).to_have_url(f"{site.url}/targets/{quote(NAME, safe='')}?tenant=acme")
        page.locator("#blocked a.mono").click()
        expect(page.locator(".commands code").first).to_have_text(f"unstuck jobs show {blocker.id} --tenant acme")
        page.get_by_role("link", name="Overview").click()
        need = page.locator(".need", has_text="is blocked")
        expect(need).to_have_count(1)  # and its notification is not told beside it
        expect(page.locator(".need", has_text="blocked for long")).to_have_count(0)
        page.reload()  # whose things are shown stands in the address
        expect(need).to_have_count(1)
        page.get_by_role("combobox", name="Tenant").select_option("default")
        expect(need).to_have_count(0)
        page.go_back()
        expect(page.get_by_role("combobox", name="Tenant")).to_have_value("acme")


def test_a56_a_silent_worker_is_offline_and_a_job_that_waits_is_told_with_its_reason(
    store_url: str, database: Database, browser: Browser
) -> None:
    store = SqlStore(database)
    a_worker(store, "w-1")
    job = submitted(store, workflow="greet")
    ago = 6 * 60 * 1_000_000
    by_hand(store_url, f"UPDATE unstuck_workers SET beat_at = beat_at - {ago}, lease_until = lease_until - {ago}")
    by_hand(
        store_url, f"UPDATE unstuck_jobs SET created_at = created_at - {ago}, available_at = available_at - {ago}"
    )
    with running(ServerOptions(store_url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        eventually(lambda: turn(store) >= 0 and open_ones(store, "job_queued"), timeout=90)
        page = context.new_page()
        page.goto("/workers?all=yes")
        expect(page.locator(".worker", has_text="w-1").locator(".pill").first).to_have_text("offline")
        shown(page, site.url)
        whole = page.get_by_role("button", name="Show all")
        if whole.is_visible():
            whole.click()
        expect(page.locator(".need", has_text="No worker is alive")).to_have_count(1)
        need = page.locator(".need", has_text=job.id)
        expect(need).to_contain_text("no live worker")
        need.get_by_role("link", name="Look").click()
        expect(page).to_have_url(re.compile(job.id))
        expect(page.locator("#why .reason").first).to_have_attribute("data-code", "no_worker")
