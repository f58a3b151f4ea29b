"""Everything that the page can change, done by a click against a real server and worker on each database: the request
is taken, the page says so, and the engine is as it was told to be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Response, expect

from tests.server.conftest import running
from tests.support.alerts import open_ones
from tests.support.burying import Graveyard
from tests.support.eventually import eventually
from tests.support.receiver import ALLOWED, receiving
from tests.support.workers import workers
from tests.web.conftest import House
from tests.web.test_files import text_of
from tests.web.test_log_in import logged_in
from unstuck.assembly.server import ServerOptions
from unstuck.operations.routes import PREFIX, routes
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

pytestmark = pytest.mark.timeout(600)
#: Reads that the page asks for by role; changes that no button can be caught at: a bulk is over before one could stop
#: it, and what is set aside is tried again all the time. A new signature needs keys (test_signed_submits).
ELSEWHERE = {"keys.list", "sessions.list", "tenants.list", "bulks.cancel", "quarantine.retry", "dead_letters.resign"}
#: By test_dashboard, in the same house.
THERE = {"approvals.approve", "approvals.reject", "bulks.start"}
KEYS = {"keys.create", "keys.rotate", "keys.revoke", "sessions.end"}


@dataclass
class Hand:
    """Clicks, and notes which operations the server carried out because of it."""

    page: Page
    done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("response", self._heard)
        self._paths = [
            (name, route.method, re.compile(re.sub(r"\{\w+\}", "[^/]+", f"{PREFIX}{route.path}")))
            for name, route in routes().items()
        ]

    def _heard(self, answer: Response) -> None:
        asked = answer.request
        if asked.method == "GET" or not answer.ok:
            return
        path = "/" + asked.url.split("?")[0].split("/", 3)[3]
        self.done |= {name for name, method, shape in self._paths if method == asked.method and shape.fullmatch(path)}

    def press(
        self, where: Locator, button: str, yes: str | None = None, *, says: str, fill: dict[str, str] | None = None
    ) -> None:
        """`yes`: the button of the dialog that asks first; `says`: what the page told when it was done."""
        where.get_by_role("button", name=button, exact=True).first.click()
        if yes is not None:
            dialog = self.page.get_by_role("dialog")
            for label, text in (fill or {}).items():
                entry = dialog.locator(".field", has=self.page.locator("label", has_text=label))
                if label == "Role":
                    entry.locator("select").select_option(text)
                else:
                    entry.locator("input, textarea").fill(text)
            dialog.get_by_role("button", name=yes, exact=True).click()
            expect(dialog).to_have_count(0)
        expect(self.page.locator(".toast", has_text=says).last).to_be_visible()


@pytest.fixture
def hand(page: Page) -> Hand:
    return Hand(page)


def made(house: House, path: str, body: dict[str, Any], **query: str) -> Any:
    answer = house.site.post(f"/api/v1/{path}", body, params=query)
    assert answer.is_success, answer.text
    return answer.json()


def head(hand: Hand) -> Locator:
    return hand.page.locator(".screen-head")


def row(hand: Hand, text: str) -> Locator:
    return hand.page.locator("tbody tr", has_text=text).first


def on_jobs(house: House, hand: Hand) -> None:
    held = made(house, "jobs", {"workflow": "greet", "kwargs": {"name": "Held"}, "hold": True})["id"]
    hand.page.goto(f"/jobs/{held}")
    hand.press(head(hand), "Priority…", "Priority", fill={"Priority": "7"}, says="has priority 7")
    hand.press(head(hand), "Release", says="is released")
    expect(hand.page.locator("h1 .state")).to_have_text("COMPLETED")
    assert house.job(held)["priority"] == 7
    hand.press(head(hand), "Run a copy", says="a new job with the same arguments")

    late = made(house, "jobs", {"workflow": "greet", "kwargs": {"name": "Late"}, "delay": 3600})["id"]
    hand.page.goto(f"/jobs/{late}")
    hand.press(head(hand), "Run now", says="is due now")
    expect(hand.page.locator("h1 .state")).to_have_text("COMPLETED")

    film = house.enqueue("render_video", frames=600)
    house.reaches(film, "RUNNING")
    hand.page.goto(f"/jobs/{film}")
    hand.press(head(hand), "Pause", "Pause", fill={"Reason": "lunch"}, says="was asked to pause")
    expect(hand.page.locator("h1 .state")).to_have_text("PAUSED")
    hand.press(head(hand), "Resume", says="goes on")
    expect(hand.page.locator("h1 .state")).to_have_text("RUNNING")
    hand.press(head(hand), "Cancel", "Cancel the job", says="was asked to stop")
    expect(hand.page.locator("h1 .state")).to_have_text("CANCELLED")

    failed = house.enqueue("import_feed", url="gopher://again")
    house.reaches(failed, "FAILED")
    hand.page.goto(f"/jobs/{failed}")
    hand.press(head(hand), "Retry", "Retry", says="runs again")
    eventually(lambda: (house.job(failed)["run"], house.job(failed)["state"]) == (2, "FAILED"), timeout=60)
    hand.press(head(hand), "Resolve…", "Resolve it", fill={"Result": '{"ok": true}'}, says="is resolved")
    assert (house.job(failed)["state"], house.job(failed)["result"]) == ("COMPLETED", {"ok": True})


def on_workflows(house: House, hand: Hand) -> None:
    hand.page.goto("/workflows/remind")
    hand.page.locator("#run").get_by_label("customer").fill("Ida")
    hand.page.locator("#run").get_by_role("button", name="Run now").click()
    expect(hand.page.locator("h1 .state")).to_have_text("COMPLETED")
    hand.page.goto("/workflows/remind")
    hand.press(
        head(hand), "Pause…", "Pause", fill={"For": "10m", "Reason": "a sale"}, says="workflow remind is paused"
    )
    hand.press(head(hand), "Unpause", says="workflow remind goes on")
    expect(head(hand).get_by_role("button", name="Pause…")).to_be_visible()
    made(house, "workflows/remind/pause", {}, tenant="*")
    hand.press(head(hand), "Unpause", says="workflow remind goes on")  # the one for every tenant
    eventually(lambda: house.site.get("/api/v1/pauses?tenant=*").json()["items"] == [], timeout=30)
    breaker = hand.page.locator("#breaker")
    hand.press(breaker, "Blacklist…", "Blacklist it", fill={"Reason": "noisy"}, says="is on the blacklist")
    expect(breaker).to_contain_text("noisy")
    hand.press(breaker, "Lift", "Lift the entry", says="remind runs again")


def on_queues_and_targets(house: House, hand: Hand) -> None:
    made(house, "jobs", {"workflow": "greet", "kwargs": {"name": "Aside"}, "queue": "aside", "hold": True})
    hand.page.goto("/queues")
    aside = row(hand, "aside")
    hand.press(aside, "Pause…", "Pause", says="queue aside is paused")
    hand.press(aside, "Unpause", says="queue aside goes on")
    hand.press(aside, "Limit…", "Set the limit", fill={"At once": "5"}, says="queue aside: 5 at once")
    expect(aside).to_contain_text("5 at once")  # the next dialog begins with what holds
    hand.press(aside, "Limit…", "Set the limit", fill={"At once": "", "Rate": "100/m"}, says="queue aside: 100/m")
    expect(aside).to_contain_text("100/m")
    aside.get_by_role("button", name="Limit…").click()
    dialog = hand.page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="Rate")).to_have_value("100/m")
    dialog.get_by_role("textbox", name="At once").fill("many")
    dialog.get_by_role("button", name="Set the limit").click()
    expect(dialog).to_contain_text("a whole number is needed")
    dialog.get_by_role("button", name="Back").click()
    hand.press(aside, "No limit", "Lift it", says="queue aside has no limit any more")
    hand.page.goto("/targets/Grace")
    hand.press(head(hand), "Pause…", "Pause", says="target Grace is paused")
    hand.press(head(hand), "Unpause", says="target Grace goes on")
    blocked = house.blocked("Lise")
    hand.page.goto("/targets/Lise")
    hand.press(hand.page.locator("#blocked"), "Skip", "Skip it", says="its target moves on")
    assert house.job(blocked)["is_blocker"] is False


def on_tenants(house: House, hand: Hand) -> None:
    made(house, "jobs", {"workflow": "greet", "kwargs": {"name": "A"}}, tenant="acme")
    hand.page.goto("/tenants")
    acme = row(hand, "acme")
    hand.press(acme, "Pause…", "Pause", says="tenant acme is paused")
    hand.press(acme, "Unpause", says="tenant acme goes on")
    hand.press(acme, "Weight…", "Weight", fill={"Weight": "3"}, says="tenant acme has weight 3")
    hand.press(acme, "Limit…", "Set the limit", fill={"Most waiting": "50"}, says="tenant acme: 50 waiting")
    hand.press(acme, "No limit", "Lift it", says="tenant acme has no limit any more")


def on_schedules_and_settings(house: House, hand: Hand) -> None:
    made(house, "schedules", {"name": "weekly", "workflow": "greet", "kwargs": {"name": "W"}, "cron": "0 3 * * 1"})
    hand.page.goto("/schedules/weekly")
    hand.press(head(hand), "Run now", says="weekly made its job")
    hand.press(head(hand), "Pause", says="weekly is paused")
    hand.press(head(hand), "Resume", says="weekly goes on")
    hand.press(head(hand), "Delete", "Delete it", says="weekly is deleted")
    expect(hand.page).to_have_url(re.compile("/schedules$"))
    assert house.site.get("/api/v1/schedules/weekly").status_code == 404
    hand.page.goto("/settings")
    rule = row(hand, "stuck_circuit_breaker_threshold")
    hand.press(rule, "Change…", "Set it", fill={"Value": "6"}, says="is set")
    hand.press(rule, "Reset", "Reset it", says="has its default again")


def on_hooks_and_webhooks(house: House, hand: Hand) -> None:
    made(
        house, "hooks", {"name": "calls", "workflow": "greet", "scheme": "github", "arguments": {"name": "body.name"}}
    )
    hand.page.goto("/hooks/calls")
    hand.press(head(hand), "Pause", says="calls is paused")
    hand.press(head(hand), "Resume", says="calls accepts deliveries again")
    hand.press(head(hand), "Rotate", "Rotate it", says="copy it now")
    hand.page.get_by_role("button", name="I have it").click()
    hand.press(head(hand), "Delete", "Delete it", says="calls is deleted")
    house.site.client.put("/api/v1/settings/webhook_allow", json={"value": ALLOWED}).raise_for_status()
    with receiving() as receiver:
        asked = {"name": "told", "url": receiver.url, "kinds": ["approval.asked"]}
        made(house, "webhooks", asked)
        made(house, "webhooks", asked, tenant="*")
        hand.page.goto("/webhooks")  # the platform's stands there, too
        row(hand, "the platform's").get_by_role("link", name="told").click()
        hand.press(head(hand), "Pause", says="told is paused")
        assert house.site.get("/api/v1/webhooks/told").json()["state"] == "ACTIVE", "it was the platform's"
        hand.press(head(hand), "Delete", "Delete it", says="told is deleted")
        hand.page.goto("/webhooks/told")
        hand.press(head(hand), "Test", says="a test is on its way")
        eventually(lambda: receiver.taken, timeout=60)
        hand.press(head(hand), "Pause", says="told is paused")
        expect(head(hand).get_by_role("button", name="Test")).to_have_count(0)  # it would be refused
        hand.press(head(hand), "Enable", says="told is sent to again")
        hand.press(head(hand), "Replay…", "Send again", says="are sent again")
        hand.press(head(hand), "Rotate", "Rotate it", says="copy it now")
        hand.page.get_by_role("button", name="I have it").click()
        hand.press(head(hand), "Delete", "Delete it", says="told is deleted")


def on_letters(house: House, hand: Hand, store: SqlStore) -> None:
    letter, other = house.buried(), house.buried()
    hand.page.goto(f"/dead-letters/{letter}")
    hand.press(head(hand), "Redrive", says="it runs again")
    hand.page.goto(f"/dead-letters/{other}")
    hand.press(head(hand), "Discard", "Discard it", says="discarded")
    forged = Graveyard(store, house.url).bury(workflow="fades")
    hand.page.goto(f"/jobs/{forged}")
    hand.press(hand.page.locator("#why"), "Verify again", "Verify again", says="verify it once more")
    assert house.job(forged)["state"] != "DEAD"


def on_news(house: House, hand: Hand, store: SqlStore) -> None:
    store.notify("Look here", "something is odd", "/workers")
    hand.page.goto("/notifications")
    hand.press(hand.page.locator(".card.note", has_text="Look here"), "Take note", says="noted")
    house.site.client.put("/api/v1/settings/alert_blocked_after", json={"value": 1}).raise_for_status()
    eventually(lambda: open_ones(store, "target_blocked"), timeout=120)
    hand.page.goto("/alerts")
    alert = hand.page.locator(".card.note", has_text="target_blocked").first
    hand.press(alert, "Mute…", "Mute it", fill={"For": "30m"}, says="muted")
    hand.press(alert, "Unmute", says="it is told again")
    hand.press(alert, "Take note", says="noted; it stays open")


def on_events(house: House, hand: Hand) -> None:
    job = house.enqueue("waits_for_word")
    house.reaches(job, "WAITING")
    hand.page.goto(f"/jobs/{job}")
    hand.press(
        hand.page.locator("#why"), "Send word", "Send word", fill={"Payload": '"go"'}, says="event word was sent"
    )
    expect(hand.page.locator("h1 .state")).to_have_text("COMPLETED")
    expect(hand.page.get_by_label("result", exact=True)).to_have_text('"go"')


def on_workers(house: House, hand: Hand) -> None:
    hand.page.goto("/workers")
    spare = hand.page.locator(".worker", has_text="spare")
    active = spare.locator(".process", has=hand.page.get_by_role("button", name="Recycle"))
    first = active.first.locator("b").inner_text()
    hand.press(active.first, "Recycle", says=f"{first} is replaced when its jobs have ended")
    expect(active.filter(has_text=first)).to_have_count(0)
    second = active.first.locator("b").inner_text()
    hand.press(active.first, "Kill", "Kill it", says=f"{second} is ended")
    hand.press(spare.locator(".card-head"), "Drain", "Drain it", says="spare drains")
    eventually(
        lambda: not [each for each in house.site.get("/api/v1/workers").json()["items"] if each["name"] == "spare"],
        timeout=60,
    )


def test_every_change_is_done_by_a_click(house: House, hand: Hand, tmp_path: Path) -> None:
    database = open_database(house.url)
    store = SqlStore(database)
    with workers(house.url, tmp_path) as start:
        start("spare", app="tests.web.waiting:app")
        eventually(lambda: "waits_for_word" in house.site.get("/api/v1/workflows").text, timeout=60)
        on_events(house, hand)
        on_jobs(house, hand)
        on_workflows(house, hand)
        on_queues_and_targets(house, hand)
        on_tenants(house, hand)
        on_schedules_and_settings(house, hand)
        on_hooks_and_webhooks(house, hand)
        on_letters(house, hand, store)
        on_news(house, hand, store)
        on_workers(house, hand)
    database.close()
    needs = set(re.findall(r'"([a-z_]+\.[a-z_]+)": "[a-z-]+"', text_of("lib/session.js")))
    assert needs - hand.done == ELSEWHERE | THERE | KEYS


def test_keys_are_made_rotated_and_revoked_and_a_browser_is_logged_out(
    store_url: str, database: object, browser: Browser
) -> None:
    with running(ServerOptions(store_url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        context.set_default_timeout(30_000)
        hand = Hand(context.new_page())
        hand.page.goto("/keys")
        admin = {"Whose it is": "ada", "Role": "platform-admin"}
        hand.press(head(hand), "New key…", "Make it", fill=admin, says="copy it now")
        secret = hand.page.locator(".secret code").inner_text()
        hand.page.reload()
        logged_in(hand.page, secret)
        expect(row(hand, "ada")).to_contain_text("platform-admin")
        hand.press(
            head(hand), "New key…", "Make it", fill={"Whose it is": "rita", "Role": "reader"}, says="copy it now"
        )
        other = hand.page.locator(".secret code").inner_text()
        assert site.client.post("/api/v1/session", json={"key": other}).is_success
        hand.page.reload()
        sessions = hand.page.get_by_role("group", name="Sessions", exact=True)
        hand.press(sessions.locator("tr", has_text="rita"), "Log out", says="rita is logged out")
        expect(sessions.locator("tr.moved", has_text="rita")).to_have_count(1)
        expect(sessions.locator("tr.moved").get_by_role("button")).to_have_count(0)
        page_card = hand.page.get_by_role("region", name="Browsers that are logged in")
        page_card.get_by_role("button", name="1 gone: tidy").click()
        expect(sessions.locator("tr", has_text="rita")).to_have_count(0)
        hand.press(row(hand, "rita"), "Rotate", "Rotate it", says="copy it now")
        hand.page.reload()
        hand.press(row(hand, "rita"), "Revoke", "Revoke it", says="rita is revoked")
        assert hand.done >= KEYS
