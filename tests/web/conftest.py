"""A house to look into: a server, a worker with the demo's shop, things that need somebody; and a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.server.conftest import Site, running
from tests.support.burying import Graveyard
from tests.support.eventually import eventually
from tests.support.lending import Lender
from tests.support.workers import workers
from unstuck.assembly.server import ServerOptions
from unstuck.chance import SystemChance
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

CHROMIUM = shutil.which("chromium")
#: A busy machine is no failure of the page.
expect.set_options(timeout=30_000)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
#: Text that somebody might put into a job to harm whoever looks at it.
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script> \u202egnp.exe \x1b[31m"


@dataclass
class House:
    """`jobs`: those that were prepared, by what is the matter with them."""

    site: Site
    database: str
    url: str
    jobs: dict[str, str] = field(default_factory=dict)

    def enqueue(self, workflow: str, **kwargs: Any) -> str:
        answer = self.site.post("/api/v1/jobs", {"workflow": workflow, "kwargs": kwargs})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def job(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.site.get(f"/api/v1/jobs/{job}").json()
        return found

    def reaches(self, job: str, *states: str, within: float = 60.0) -> None:
        eventually(lambda: self.job(job)["shown_state"] in states, timeout=within)

    def question(self) -> str:
        """A release that waits for somebody's yes."""
        job = self.enqueue("release", version=f"2.{SystemChance().nonce()[:6]}")
        self.reaches(job, "WAITING")
        return job

    def blocked(self, customer: str) -> str:
        """The job that keeps a customer's others from their turn."""
        job = self.enqueue("deliver", customer=customer, item="lamp", at_home=False)
        self.enqueue("deliver", customer=customer, item="kettle")
        self.reaches(job, "FAILED")
        return job

    def buried(self) -> str:
        """A dead letter, of a workflow that no worker of the house knows."""
        database = open_database(self.url)
        letter = Graveyard(SqlStore(database), self.url).exhaust("no try is left", workflow="wilts")
        database.close()
        return letter


@pytest.fixture
def url(tmp_path: Path, sqlite_template: Path) -> str:
    """A fresh database, for what does not depend on its kind."""
    shutil.copyfile(sqlite_template, tmp_path / "unstuck.db")
    return f"sqlite:///{tmp_path / 'unstuck.db'}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    database = open_database(url)
    yield SqlStore(database)
    database.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    lent: Callable[[], None] = lambda: None  # noqa: E731
    if request.param == "postgres":
        databases: Lender = request.getfixturevalue("databases")
        url = databases.lend()
        lent = lambda: databases.take_back(url)  # noqa: E731
    else:
        url = f"sqlite:///{folder / 'unstuck.db'}"
        shutil.copyfile(sqlite_template, folder / "unstuck.db")
    with running(ServerOptions(url, port=0)) as site, workers(url, folder) as start:
        start("shop-worker", app="unstuck.examples.demo:app")
        made = House(site, str(request.param), url)
        eventually(lambda: site.get("/api/v1/workflows").json()["items"], timeout=60)
        made.jobs["stuck"] = made.enqueue("stuck.thread_sleep")
        made.jobs["greeted"] = made.enqueue("greet", name="Ada")
        made.jobs["hostile"] = made.enqueue("greet", name=HOSTILE)
        made.jobs["failed"] = made.enqueue("import_feed", url="gopher://x")
        made.jobs["retried"] = made.enqueue("charge_card", order=7, bad_days=1)
        made.jobs["blocker"] = made.blocked("Grace")
        made.jobs["asks"] = made.question()
        made.reaches(made.jobs["stuck"], "FAILED")
        made.reaches(made.jobs["hostile"], "COMPLETED")
        yield made
    lent()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "this test needs a browser: `make browser` installs Debian's, or apt-get install chromium"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Noise:
    """What the browser complained about, and what it asked of others than the server."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def _asked(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def hear(self, context: BrowserContext, url: str) -> None:
        context.on("console", self._said)
        context.on("weberror", lambda told: self.complaints.append(str(told.error)))
        context.on("dialog", self._asked)
        context.on("request", lambda asked: self._requested(asked, url))

    def _said(self, told: ConsoleMessage) -> None:
        if told.type in ("error", "warning"):
            self.complaints.append(f"{told.text} {told.location['url']}")

    def _requested(self, asked: Request, url: str) -> None:
        if not asked.url.startswith(url):
            self.foreign.append(asked.url)


@pytest.fixture
def page(house: House, browser: Browser) -> Iterator[Page]:
    """A page without a complaint, which asks nobody but the server."""
    noise = Noise()
    with browser.new_context(base_url=house.site.url, viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(30_000)
        noise.hear(context, house.site.url)
        yield context.new_page()
    assert noise.complaints == []
    assert noise.foreign == []
