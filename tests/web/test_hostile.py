"""Whatever others wrote, into whichever field, is shown as text on every screen: nothing is done, nothing is lost."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.server.conftest import running
from tests.support.alerts import open_ones, turn
from tests.support.builders import a_worker, blocked, boom, claimed, settle, submitted
from tests.support.burying import Graveyard
from tests.support.eventually import eventually
from tests.support.parking import Stage
from tests.support.receiver import ALLOWED
from tests.web.conftest import HOSTILE, Noise
from unstuck.assembly.server import ServerOptions
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.port import AttemptOutput, Report
from unstuck.store.sql_store import SqlStore

#: What a name may be: all of it can be printed.
NAME = "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script> ' & %2F/../?q=a#b \\ {} `id`"
NAMED = ("workflows", "targets", "schedules", "hooks", "webhooks")
#: Characters that turn text around, or are not there to be seen.
UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]")
MEGABYTE = "log " * 250_000


def a_hostile_house(store: SqlStore, url: str) -> dict[str, str]:
    schema = {"type": "object", "properties": {NAME: {"type": "string", "description": HOSTILE}}}
    store.register_workflows([WorkflowRecord(NAME, NAME, NAME, Policy(), schema)])
    worker, stage = a_worker(store, name=NAME, lease=1e6, queues=(NAME,)), Stage(store)
    made = {"workflow": NAME, "queue": NAME, "payload": '{"args": [], "kwargs": {}}'}
    blocker = blocked(store, worker, target=NAME, tags=(NAME,), **made)
    failing = claimed(store, worker, workflow="fails", retries=0)
    stack = f'Traceback (most recent call last):\n  File "{HOSTILE}", line 1, in {HOSTILE}\n    {HOSTILE}\n'
    error = Raised(ErrorInfo(HOSTILE[:100], HOSTILE, stack), retry=False)
    store.settle(worker.number, [Report(failing.ref, error, duration_ms=1, output=f"{HOSTILE}\n{MEGABYTE}")])
    running_one = claimed(store, worker, workflow="runs")
    store.keep_output([AttemptOutput(running_one.ref, f"{HOSTILE}\n", f'{{"message": "{chr(0x202E)}x"}}')])
    asks = stage.asks(HOSTILE.replace("\x1b", "\u2066"))
    done = claimed(store, worker, workflow="ends")
    settle(
        store,
        worker,
        done.ref,
        Returned('{"\\u202e<script>": "\\u0000\\u2028</script><img src=x onerror=alert(1)>"}'),
    )
    Graveyard(store, url).exhaust(HOSTILE)
    submitted(store, **made)
    letter = Graveyard(store, url).bury(signature=HOSTILE, tags=(NAME,))
    return {
        "letter": letter,
        "blocker": blocker.id,
        "failing": failing.id,
        "running": running_one.id,
        "asks": asks,
        "done": done.id,
    }


@pytest.mark.timeout(600)
def test_what_others_wrote_is_text_on_every_screen(url: str, store: SqlStore, browser: Browser) -> None:
    jobs = a_hostile_house(store, url)
    noise, broken, told = Noise(), [], []
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        for name, value in {"webhook_allow": ALLOWED, "alert_blocked_after": 1}.items():
            site.client.put(f"/api/v1/settings/{name}", json={"value": value}).raise_for_status()
        for path, asked in {
            "blacklist": {"workflow": NAME, "reason": HOSTILE},
            f"queues/{quote(NAME, safe='')}/pause": {"reason": HOSTILE},
            "schedules": {"name": NAME, "workflow": NAME, "cron": "0 3 * * *", "kwargs": {NAME: HOSTILE}},
            "hooks": {"name": NAME, "workflow": NAME},
            "webhooks": {
                "name": NAME,
                "url": "http://127.0.0.1:9/%3Cimg%20src=x%3E",
                "topic": NAME,
                "kinds": ["x.y"],
            },
            f"webhooks/{quote(NAME, safe='')}/test": {},
        }.items():
            answer = site.post(f"/api/v1/{path}", asked)
            assert answer.is_success, f"{path}: {answer.text}"
        store.notify(HOSTILE[:80], HOSTILE, "javascript:alert(1)")
        eventually(lambda: turn(store) >= 0 and open_ones(store, "target_blocked"), timeout=60)
        # A server that knows a key asks for one.
        admin = keys.create(Caller(store, "ada"), NAME[:80], role="platform-admin").key
        context.set_extra_http_headers({"Authorization": f"Bearer {admin}"})
        noise.hear(context, site.url)
        page = context.new_page()
        named = [f"{noun}/{quote(NAME, safe='')}" for noun in NAMED]
        lists = ["", "jobs", "approvals", "targets", "workers", "workflows", "queues", "schedules", "hooks", "audit"]
        lists += ["dead-letters", "notifications", "blacklist", "alerts", "webhooks", "keys", "tenants", "settings"]
        lists += [f"dead-letters/{jobs['letter']}", "quarantine", "bulks"]
        all_paths = [*lists, *named, *(f"jobs/{job}" for job in jobs.values())]
        for path in all_paths:
            page.goto(f"/{path}")
            expect(page.locator("h1").first).to_be_visible()
            expect(page.locator(".bone")).to_have_count(0)
            shown = page.evaluate("document.documentElement.innerText")
            told += [path] if "<img src=x" in page.locator("main").inner_text() else []
            broken += [f"/{path}: {found!r}" for found in UNSEEN.findall(shown)]
            broken += [f"/{path} has no screen" for _ in page.get_by_text("There is no such screen").all()]
            broken += [f"/{path}: {text}" for text in page.locator(".trouble").all_inner_texts()]
            made = page.locator("main img, main script, main iframe").count()
            broken += [f"/{path} made markup of it"] if made or page.title() == "owned" else []
            links = page.eval_on_selector_all("a[href]", "all => all.map((each) => each.protocol)")
            broken += [f"/{path} leads to {found}" for found in set(links) - {"http:"}]
        page.goto("/workflows")
        page.locator("tbody tr", has_text="<img").locator("td.narrow a").first.click()  # its jobs, by the search line
        expect(page.locator("tbody tr")).to_have_count(2)
        page.goto(f"/jobs/{jobs['failing']}")
        expect(page.get_by_role("log")).to_contain_text("␛[31m")
        assert len(page.get_by_role("log").inner_text()) < 1_200_000
    assert not broken
    assert not {"quarantine", "bulks", "tenants"} ^ {path for path in all_paths if path not in told}
    assert noise.complaints == []
    assert noise.foreign == []


def test_the_page_says_that_of_a_long_output_the_end_comes_later(url: str, store: SqlStore, browser: Browser) -> None:
    job = claimed(store, a_worker(store, lease=1e6))
    store.keep_output([AttemptOutput(job.ref, "a line of some length\n" * 1000, None)])
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto(f"/jobs/{job.id}")
        expect(page.locator("#logs")).to_contain_text("follows when it has ended")


def test_a_long_log_does_not_keep_the_page_from_answering(url: str, store: SqlStore, browser: Browser) -> None:
    worker = a_worker(store, lease=1e6)
    job = claimed(store, worker, retries=0)
    output = "\n".join(f"line {number} {'x' * 60}" for number in range(20_000))
    store.settle(worker.number, [Report(job.ref, boom(), duration_ms=1, output=output)])
    with running(ServerOptions(url, port=0)) as site, browser.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto(f"/jobs/{job.id}")
        expect(page.get_by_role("log")).to_contain_text("line")
        assert page.evaluate("document.querySelectorAll('#logs *').length") < 5000
        page.locator(".screen-head").get_by_role("button", name="Resume").click()
        expect(page.locator("h1 .state")).to_have_text(JobState.QUEUED)
