"""A newcomer who has only the address of the demo finds what is wrong, on one screen, and a click helps with each."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.eventually import eventually
from tests.web.conftest import Noise


def need(page: Page, text: str, button: str) -> None:
    """Press a button of a thing on the overview. The demo's own people act too: where one was quicker, the next."""
    whole = page.get_by_role("button", name=re.compile("^Show all"))
    found = page.locator(".need", has_text=text).get_by_role("button", name=button, exact=True)

    def is_pressed() -> bool:
        if whole.is_visible():
            whole.click()
        if not found.first.is_visible():
            return False
        found.first.click()
        return True

    eventually(is_pressed, timeout=60)


@pytest.mark.timeout(600)
def test_the_demo_shows_a_newcomer_what_is_wrong_and_a_click_helps(tmp_path: Path, browser: Browser) -> None:
    words = [sys.executable, "-m", "unstuck", "demo", "--plain", "--fresh", "--for", "220"]
    log, noise = tmp_path / "demo.log", Noise()
    with (
        log.open("w") as file,
        subprocess.Popen(words, cwd=tmp_path, stdout=file, stderr=subprocess.DEVNULL) as demo,
        browser.new_context(viewport={"width": 1280, "height": 800}) as context,
    ):
        try:
            eventually(lambda: "http://" in log.read_text(), timeout=60)
            (url,) = re.findall(r"http://\S+", log.read_text())[:1]
            noise.hear(context, url)
            page = context.new_page()
            page.goto(url)
            expect(page.locator("#headline h1")).to_contain_text("need", timeout=60_000)

            need(page, "asks:", "Approve")
            page.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).click()
            expect(page.locator(".toast").first).to_be_visible()
            page.keyboard.press("Escape")

            need(page, "is blocked", "Skip")
            page.get_by_role("dialog").get_by_role("button", name="Skip it").click()
            expect(page.locator(".toast").last).to_be_visible()
            page.keyboard.press("Escape")

            stuck = page.locator(".need", has_text="got stuck").get_by_role("link", name="See its stack")
            eventually(lambda: stuck.first.is_visible(), timeout=60)
            stuck.first.click()
            expect(page.locator(".stack .here").first).to_be_visible()
            page.locator("#why").get_by_role("button", name="Resume", exact=True).click()
            expect(page.locator(".toast").last).to_be_visible()
            complaints = list(noise.complaints)  # a server that leaves says so to whoever still asks
        finally:
            demo.terminate()
    assert [each for each in complaints if "409" not in each] == []  # somebody of the demo may be quicker
