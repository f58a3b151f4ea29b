"""An alert that a rule opens while somebody looks: its card, what can be done there, and the way to its cause."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.server.conftest import running
from tests.support.alerts import open_ones, turn
from tests.support.builders import a_worker, blocked
from tests.support.eventually import eventually
from unstuck.assembly.server import ServerOptions
from unstuck.store.sql_store import SqlStore


@pytest.mark.timeout(600)
def test_an_open_alert_is_a_card_that_leads_to_its_cause(url: str, store: SqlStore, browser: Browser) -> None:
    blocked(store, a_worker(store, lease=1e6), target="Grace")
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        site.client.put("/api/v1/settings/alert_blocked_after", json={"value": 1}).raise_for_status()
        page = context.new_page()
        page.goto("/alerts")
        expect(page.locator(".empty")).to_contain_text("No alert is open")
        expect(page.locator(".connection")).to_have_attribute("data-link", "live")
        eventually(lambda: turn(store) >= 0 and open_ones(store, "target_blocked"), timeout=90)
        card = page.locator(".card.note", has_text="A target is blocked for long")
        expect(card).to_contain_text("Grace")  # without a reload
        card.get_by_role("button", name="Take note").click()
        expect(card).to_contain_text("noted by")
        card.get_by_role("button", name="Mute").click()
        page.get_by_role("dialog").get_by_role("button", name="Mute it").click()
        expect(card.get_by_role("button", name="Unmute")).to_be_visible()
        card.get_by_role("link", name="Look").click()
        expect(page.locator("#blocked")).to_be_visible()
