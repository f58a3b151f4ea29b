"""Who looks at the dashboard, and what they may; and a server that goes away and comes back. In a real browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.server.conftest import Site, running
from tests.support.builders import submitted
from unstuck.assembly.server import ServerOptions
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def site(url: str, store: SqlStore) -> Iterator[Site]:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    with running(ServerOptions(url, port=0)) as found:
        yield found


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    with browser.new_context(base_url=site.url) as context:
        context.set_default_timeout(20_000)
        yield context.new_page()


def logged_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_a_key_is_asked_for_and_the_link_that_was_followed_is_where_one_is_then(page: Page, store: SqlStore) -> None:
    job = submitted(store, workflow="greet")
    key = keys.create(Caller(store, "ada", "default"), "anna", role="operator").key
    page.goto(f"/jobs/{job.id}?tenant=default")
    logged_in(page, "usk_wrong")
    expect(page.get_by_role("alert")).to_contain_text("It is not known who asks")
    logged_in(page, key)
    expect(page.locator("h1")).to_contain_text("greet")
    expect(page.locator(".rail .who").last).to_contain_text("anna")
    assert job.id in page.url
    assert key not in str(page.context.storage_state()), "the page keeps no key"
    page.locator(".screen-head").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(page.locator("h1 .state")).to_have_text("CANCELLED")  # a change by cookie, with its token


def test_a_session_that_ends_leads_to_the_log_in_and_back(page: Page, store: SqlStore) -> None:
    caller = Caller(store, "ada", "default")
    first = keys.create(caller, "anna", role="reader")
    second = keys.create(caller, "berta", role="reader")
    submitted(store, workflow="greet")
    page.goto("/jobs?q=workflow:greet")
    logged_in(page, first.key)
    expect(page.locator("tbody tr")).to_have_count(1)
    keys.revoke(caller, first.id)
    expect(page.get_by_label("API key")).to_be_visible(timeout=30_000)  # its stream was ended
    logged_in(page, second.key)
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("searchbox", name="Search jobs")).to_have_value("workflow:greet")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_reader_sees_everything_and_no_button_that_changes_something(page: Page, store: SqlStore) -> None:
    job = submitted(store, workflow="greet")
    key = keys.create(Caller(store, "ada", "default"), "rita", role="reader").key
    page.goto(f"/jobs/{job.id}")
    logged_in(page, key)
    expect(page.locator("#why")).to_be_visible()
    for path in ("", "jobs?q=workflow:greet", "targets", "workers", "workflows/greet", "queues", "settings"):
        page.goto(f"/{path}")
        expect(page.locator(".bone")).to_have_count(0)
        expect(page.locator("h1").first).to_be_visible()
        assert page.locator("[data-operation]").count() == 0, path
        assert page.get_by_role("button", name="Act on all that match").count() == 0
    assert page.get_by_role("link", name="Keys").count() == 0


def test_after_a_server_was_away_nothing_is_missed(url: str, store: SqlStore, browser: Browser) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with browser.new_context() as context:
        page = context.new_page()
        with running(ServerOptions(url, port=port)) as site:
            page.goto(f"{site.url}/jobs?q=workflow:greet")
            expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=20_000)
            expect(page.locator(".empty")).to_be_visible()
        expect(page.locator(".connection")).to_have_attribute("data-link", re.compile("away"), timeout=30_000)
        expect(page.locator(".connection")).to_contain_text("The server is away")
        submitted(store, workflow="greet")  # while nobody listens
        with running(ServerOptions(url, port=port)):
            expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=60_000)
            expect(page.locator("tbody tr")).to_have_count(1, timeout=20_000)


def test_what_happened_while_a_server_was_away_stands_in_the_feed_once(
    url: str, store: SqlStore, browser: Browser
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with browser.new_context() as context:
        page = context.new_page()
        with running(ServerOptions(url, port=port)) as site:
            page.goto(site.url)
            expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=30_000)
            submitted(store, workflow="seen-before")
            expect(page.locator(".feed-line", has_text="seen-before")).to_have_count(1)
        expect(page.locator(".connection")).to_have_attribute("data-link", "away", timeout=30_000)
        for number in range(20):
            submitted(store, workflow=f"missed-{number:02}")
        with running(ServerOptions(url, port=port)):
            expect(page.locator(".feed-line", has_text="missed-19")).to_have_count(1, timeout=60_000)
            told = page.locator(".feed-line a").all_inner_texts()
            assert told[:21] == [*(f"missed-{number:02}" for number in reversed(range(20))), "seen-before"]
