"""The page where it is not at home: about another tenant, below another program's prefix, over plain http."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.conftest import running
from tests.server.test_browser import serving
from tests.store.test_guard import get_stuck
from tests.support.builders import a_worker, claimed, settle, submitted
from tests.web.test_dashboard import confirmed, told
from tests.web.test_log_in import logged_in
from unstuck import App
from unstuck.assembly.server import ServerOptions
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.redaction import REDACTED
from unstuck.model.settlement import Returned
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.sql_store import SqlStore

pytestmark = pytest.mark.timeout(300)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def test_what_is_done_about_a_workflow_is_about_the_tenant_that_was_chosen(
    url: str, store: SqlStore, browser: Browser
) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), SCHEMA)])
    submitted(store, tenant="acme", workflow="other")
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto("/workflows/greet")
        page.get_by_role("combobox", name="Tenant").select_option("acme")
        page.locator("#run").get_by_label("name").fill("Ada")
        expect(page.locator("#run .command code")).to_contain_text("--tenant acme")
        page.locator("#run").get_by_role("button", name="Run now").click()
        expect(page).to_have_url(re.compile("/jobs/"))
        [job] = site.get("/api/v1/jobs?tenant=acme&workflow=greet").json()["items"]
        assert job["id"] in page.url
        expect(page.get_by_label("input", exact=True)).to_contain_text("Ada")
        page.goto("/workflows/greet?tenant=acme")
        page.locator(".screen-head").get_by_role("button", name="Pause…").click()
        expect(page.get_by_role("dialog").locator(".command code")).to_contain_text("--tenant acme")
        confirmed(page, "Pause")
        told(page, "workflow greet is paused")
        [pause] = site.get("/api/v1/pauses?tenant=*").json()["items"]
        assert pause["tenant"] == "acme"
        page.locator("#breaker").get_by_role("button", name="Blacklist…").click()
        expect(page.get_by_role("dialog")).to_contain_text("No job of it of tenant acme")
        confirmed(page, "Blacklist it")
        told(page, "greet is on the blacklist")
        [entry] = site.get("/api/v1/blacklist").json()["items"]
        assert entry["tenant"] == "acme"


def test_a_breaker_shows_what_counts_now_and_forgets_what_was_lifted(
    url: str, store: SqlStore, browser: Browser
) -> None:
    store.register_workflows([WorkflowRecord("spins", "v1", "default", Policy(), {})])
    jobs = get_stuck(store, a_worker(store, lease=1e6), 2, workflow="spins", retries=0)
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto("/workflows/spins")
        breaker = page.locator("#breaker")
        expect(breaker).to_contain_text("5 runs that got stuck within 1h shut it out")
        expect(breaker).to_contain_text("2 of 5 count now")
        expect(breaker.locator(".dots li")).to_have_count(2)
        expect(breaker.locator(".dots li").first).to_contain_text("got stuck")
        breaker.locator(".dots a").first.click()
        expect(page).to_have_url(f"{site.url}/jobs/{jobs[1]}")
        assert site.post("/api/v1/blacklist", {"workflow": "spins"}).is_success
        assert site.client.delete("/api/v1/blacklist/spins").is_success
        page.goto("/workflows/spins")
        expect(breaker).to_contain_text("0 of 5 count now")
        expect(breaker.locator(".dots li")).to_have_count(0)


def test_below_the_prefix_of_another_program_it_works_whole(url: str, store: SqlStore, browser: Browser) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), SCHEMA)])
    job = submitted(store, workflow="greet")
    key = keys.create(Caller(store, "ada", "default"), "anna", role="operator").key
    app = App(url)
    api = app.asgi()
    with app, serving(Starlette(routes=[Mount("/our jobs", app=api)])) as port, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/our%20jobs/")
        logged_in(page, key)
        expect(page.locator("#headline h1")).to_be_visible()
        expect(page.locator(".connection")).to_have_attribute("data-link", "live")
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.locator("tbody a").first.click()
        expect(page).to_have_url(f"http://127.0.0.1:{port}/our%20jobs/jobs/{job.id}")
        page.reload()
        page.locator(".screen-head").get_by_role("button", name="Cancel").click()
        confirmed(page, "Cancel the job")
        expect(page.locator("h1 .state")).to_have_text("CANCELLED")  # by the stream
        api.leave()


def test_what_a_workflow_redacts_does_not_reach_the_page_of_those_who_may_not_see_it(
    url: str, store: SqlStore, browser: Browser
) -> None:
    rows = [WorkflowRecord("pay", "v1", "default", Policy(), SCHEMA, redact=("card",))]
    store.register_workflows(rows)
    worker = a_worker(store, lease=1e6)
    job = claimed(store, worker, workflow="pay", payload=json.dumps({"args": [], "kwargs": {"card": "4111-canary"}}))
    settle(store, worker, job.ref, Returned('{"card": "4111-canary", "paid": true}'))
    key = keys.create(Caller(store, "ada", "default"), "otto", role="operator").key
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        heard: list[str] = []
        page.on("response", lambda answer: heard.append(answer.url))
        page.goto(f"/jobs/{job.id}")
        logged_in(page, key)
        expect(page.get_by_label("result", exact=True)).to_contain_text(REDACTED)
        expect(page.get_by_label("input", exact=True)).to_contain_text(REDACTED)
        expect(page.get_by_label("result", exact=True)).to_contain_text('"paid": true')
        assert "4111-canary" not in page.content()
        assert heard


def test_a_command_is_copied_out_of_a_dialog_where_pages_have_no_clipboard(
    url: str, store: SqlStore, browser: Browser
) -> None:
    """As over plain http from another machine."""
    job = submitted(store)
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.goto(f"/jobs/{job.id}")
        page.locator(".screen-head").get_by_role("button", name="Cancel").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Copy the command").click()
        expect(dialog.locator(".toast")).to_contain_text("Command copied")
        reason = dialog.get_by_role("textbox", name="Reason")
        reason.focus()
        page.keyboard.press("Control+V")
        expect(reason).to_have_value(f"unstuck jobs cancel {job.id}")


def test_a_refusal_is_told_in_the_dialog_that_asked(url: str, store: SqlStore, browser: Browser) -> None:
    job = submitted(store)
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto(f"/jobs/{job.id}")
        page.locator(".screen-head").get_by_role("button", name="Priority…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Priority").fill("99999999999")
        dialog.get_by_role("button", name="Priority", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("priority")
        dialog.get_by_label("Priority").fill("3")
        dialog.get_by_role("button", name="Priority", exact=True).click()
        told(page, "has priority 3")


def test_the_columns_of_jobs_and_the_range_of_charts_stand_in_the_address(
    url: str, store: SqlStore, browser: Browser
) -> None:
    submitted(store, tags=("vip",), priority=9)
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto("/jobs")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Columns").click()
        page.locator(".menu").get_by_role("button", name="Tags").click()
        page.locator(".menu").get_by_role("button", name="Priority").click()
        page.reload()
        expect(page.locator("thead")).to_contain_text("Priority")
        expect(page.locator("tbody tr")).to_contain_text("vip")
        page.get_by_role("link", name="Queued", exact=True).click()
        expect(page.locator("tbody tr")).to_contain_text("vip")
        page.goto("/")
        page.get_by_role("button", name="24h").click()
        expect(page).to_have_url(f"{site.url}/?range=24h")
        page.reload()
        expect(page.get_by_role("button", name="24h")).to_have_attribute("aria-pressed", "true")
