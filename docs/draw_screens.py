"""Draws docs/screens/*.png, the dashboard as the README shows it: a demo runs, and a browser looks at it.

    .venv/bin/python docs/draw_screens.py
    .venv/bin/python docs/draw_screens.py FOLDER      every screen, phone and desktop, dark and light, to look at

It needs chromium (`make browser`). What the pictures show differs a little each time, so no test compares them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Route, sync_playwright

from unstuck.clock import boot
from unstuck.web.files import SCREENS

FOLDER = Path(__file__).parent / "screens"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
#: Charts tell minutes that have passed: two of them are enough to see what they tell.
LONGEST = 300.0


def main(folder: Path | None) -> None:
    (folder or FOLDER).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home, (Path(home) / "demo.log").open("w") as log:
        words = [sys.executable, "-m", "unstuck", "demo", "--plain", "--fresh", "--for", f"{LONGEST + 600:g}"]
        with subprocess.Popen(words, cwd=home, stdout=log, stderr=subprocess.DEVNULL) as demo:
            try:
                draw(address(Path(log.name)), folder)
            finally:
                demo.terminate()


def address(log: Path) -> str:
    wait_for("the demo's address", lambda: "http://" in log.read_text())
    found = re.search(r"http://\S+", log.read_text())
    assert found is not None
    return found[0]


def draw(url: str, folder: Path | None) -> None:
    wait_for("two minutes that were counted", lambda: len(asked(url, "/series")["points"]) >= 2)
    wait_for("a question", lambda: asked(url, "/approvals")["items"])
    wait_for("a blocked target", lambda: asked(url, "/targets?blocked=true")["items"])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        stuck = asked(url, "/jobs?error_type=ExecutionStuck&limit=1")["items"][0]["id"]
        if folder is not None:
            draw_all(browser, url, stuck, folder)
        else:
            shoot(browser, f"{url}/", FOLDER / "overview.png", "dark", 1280, 1000)
            shoot(browser, f"{url}/jobs/{stuck}", FOLDER / "job.png", "light", 1280, 860)
            shoot(browser, f"{url}/", FOLDER / "phone.png", "dark", 390, 844)
        browser.close()


def draw_all(browser: Browser, url: str, stuck: str, folder: Path) -> None:
    """The whole length of each screen."""
    target = asked(url, "/targets?blocked=true")["items"][0]["name"]
    question = asked(url, "/approvals")["items"][0]["job"]
    things = {"job-stuck": f"jobs/{stuck}", "job-asks": f"jobs/{question}", "target": f"targets/{quote(target)}"}
    things |= {"overview": "", "workflow": "workflows/deliver", "failed": "jobs?q=state:FAILED", "none": "jobs?q=no"}
    things |= {word: word for word in sorted(SCREENS - {"platform"})}
    for size, (width, height) in {"phone": (390, 844), "desktop": (1280, 800)}.items():
        for theme in ("dark", "light"):
            for name, path in things.items():
                file = folder / f"{name}-{size}-{theme}.png"
                shoot(browser, f"{url}/{path}", file, theme, width, height, full_page=True)


def shoot(
    browser: Browser, url: str, file: Path, theme: Any, width: int, height: int, *, full_page: bool = False
) -> None:
    with browser.new_context(color_scheme=theme, viewport={"width": width, "height": height}) as context:
        page = context.new_page()
        page.route("**/api/v1/jobs/*", _without_our_path)
        page.goto(url)
        page.locator("h1").first.wait_for()
        page.locator(".bone").first.wait_for(state="detached")
        page.wait_for_timeout(1000)  # what is asked after it, and what is drawn then
        page.screenshot(path=file, full_page=full_page)
        print(f"{file}: {file.stat().st_size // 1024} KB")


def _without_our_path(route: Route) -> None:
    """Where this tree lies is nobody's business."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace(str(FOLDER.parents[1] / "src"), "/srv/shop"))


def asked(url: str, path: str) -> Any:
    with urlopen(f"{url}/api/v1{path}", timeout=30) as answer:
        return json.load(answer)


def wait_for(what: str, check: Callable[[], object]) -> None:
    until = boot() + LONGEST
    while not check():
        if boot() > until:
            raise SystemExit(f"there was no sign of {what} for {LONGEST:g} s")
        Event().wait(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
