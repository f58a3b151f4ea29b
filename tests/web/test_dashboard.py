"""The dashboard in a real browser, against a real server and worker on each database: every screen, and what people
do there."""

from __future__ import annotations

import itertools
import re
from importlib.resources import files
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.eventually import eventually
from tests.support.receiver import ALLOWED, receiving
from tests.web.conftest import HOSTILE, House

#: Every screen, and what it must show.
SCREENS = {
    "/": "#headline",
    "/jobs": "table",
    "/approvals": ".question",
    "/targets": "table",
    "/targets?all=yes": "table",
    "/targets/Grace": "#blocked",
    "/workers": ".worker .process",
    "/workflows": "table",
    "/workflows/deliver": "#run",
    "/queues": "table",
    "/tenants": "table",
    "/schedules": ".screen",
    "/hooks": ".screen",
    "/webhooks": ".screen",
    "/alerts": "table",
    "/dead-letters": ".empty",
    "/notifications": ".screen",
    "/blacklist": ".screen",
    "/platform/diagnostics?tab=blacklist": ".screen",
    "/platform/diagnostics?tab=quarantine": ".empty",
    "/quarantine": ".empty",
    "/bulks": ".screen",
    "/audit": ".screen",
    "/settings": ".checks",
    "/keys": ".screen",
}
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()


def told(page: Page, text: str) -> None:
    """What the page says that it did; and the command for it can be copied."""
    toast = page.locator(".toast", has_text=text)
    expect(toast).to_be_visible()


def confirmed(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def need(page: Page, text: str) -> Locator:
    """A thing on the overview that needs somebody."""
    page.goto("/")
    whole = page.get_by_role("button", name=re.compile("^Show all"))
    found = page.locator(".need", has_text=text)
    expect(page.locator(".need").first).to_be_visible()

    def is_shown() -> bool:
        """As more things come in, the list is folded: whenever it is, unfold it."""
        if whole.is_visible():
            whole.click()
        return found.first.is_visible()

    eventually(is_shown, timeout=30.0)
    return found.first


def looked_at(page: Page, what: str) -> list[str]:
    """What is wrong with it in each of the four looks. Axe is run inside the page, which its own policy would not
    let it."""
    broken = []
    page.evaluate(AXE)
    for theme, width in itertools.product(THEMES, (390, 1280)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        look = f"{what} {theme} {width}"
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            broken.append(f"{look} is {wide} wide")
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        broken += [f"{look} {each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
        hidden = page.eval_on_selector_all(
            ".table-frame", "all => all.filter((each) => each.scrollWidth > each.clientWidth)"
        )
        broken += [f"{look}: a table is cut" for _ in hidden]
    return broken


@pytest.mark.timeout(600)
def test_every_screen_opens_by_its_address_and_breaks_no_rule_for_access(house: House, browser: Browser) -> None:
    jobs = house.jobs
    asks, letter = house.question(), house.buried()
    house.site.client.put("/api/v1/settings/webhook_allow", json={"value": ALLOWED}).raise_for_status()
    for path, body in {
        "webhooks": {"name": "nobody", "url": "http://127.0.0.1:9/hook", "kinds": ["approval.asked"]},
        "webhooks/nobody/test": {},
        "hooks": {"name": "calls", "workflow": "greet", "scheme": "github", "arguments": {"name": "body.name"}},
        "schedules": {"name": "yearly", "workflow": "greet", "kwargs": {"name": "Y"}, "cron": "0 3 1 1 *"},
        "tenants/default/limit": {"concurrency": 5000},
    }.items():
        answer = house.site.post(f"/api/v1/{path}", body)
        assert answer.is_success, answer.text
    # A question waits for a minute: on a slow machine it is over before the others have been looked at.
    screens = (
        {"/approvals": ".question"}
        | SCREENS
        | {"/jobs?q=no": ".empty", "/webhooks/nobody": "tbody tr", "/hooks/calls": ".facts"}
    )
    screens |= {"/schedules/yearly": ".ticks", "/dead-letters": "tbody tr", f"/dead-letters/{letter}": ".verdict"}
    screens |= {f"/jobs/{job}": "#why" for job in (asks, jobs["stuck"], jobs["retried"], jobs["hostile"])}
    broken: list[str] = []
    with browser.new_context(base_url=house.site.url, bypass_csp=True) as context:
        page = context.new_page()
        for path, shown in screens.items():
            page.goto(path)
            expect(page.locator(shown).first).to_be_visible(timeout=20_000)
            expect(page.locator(".bone")).to_have_count(0, timeout=20_000)
            expect(page.locator(".connection")).to_have_attribute("data-link", "live", timeout=20_000)
            broken += [f"{path}: {each}" for each in page.locator(".trouble").all_inner_texts()]
            broken += looked_at(page, path)
        page.goto(f"/jobs/{jobs['stuck']}")
        expect(page.locator("#why")).to_be_visible()
        page.keyboard.press("?")
        broken += looked_at(page, "the help")
        page.keyboard.press("Escape")
        page.locator(".screen-head").get_by_role("button", name="Resolve").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        broken += looked_at(page, "a dialog")
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_role("button", name="More").click()
        broken += looked_at(page, "the menu")
    assert not broken, "\n".join(broken)


def test_the_overview_says_what_needs_somebody_and_a_click_helps(house: House, page: Page) -> None:
    asks, blocker = house.question(), house.blocked("Radia")
    [asked] = house.job(asks)["waits"]
    question = need(page, asked["question"])
    expect(page.locator("#headline h1")).to_contain_text("need you")
    question.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("looks good")
    expect(dialog.locator(".command code")).to_contain_text(f"unstuck approvals approve {asks}")
    confirmed(page, "Approve")
    told(page, "approved")
    house.reaches(asks, "COMPLETED")
    [wait] = [wait for wait in house.job(asks)["waits"] if wait["kind"] == "approval"]
    assert (wait["answer"], wait["comment"]) == ("approved", "looks good")

    target = need(page, "Target Radia is blocked")
    target.get_by_role("button", name="Skip").click()
    confirmed(page, "Skip it")
    told(page, "its target moves on")
    expect(page.locator(".need", has_text="Target Radia")).to_have_count(0)
    assert house.job(blocker)["is_blocker"] is False


def test_a_stuck_job_shows_where_it_was(house: House, page: Page) -> None:
    """A57 on the page: the reason is the one that `why` gives."""
    stuck = house.jobs["stuck"]
    need(page, "stuck.thread_sleep got stuck").get_by_role("link", name="See its stack").click()
    expect(page).to_have_url(re.compile("/jobs/"))
    page.goto(f"/jobs/{stuck}")
    why = house.site.get(f"/api/v1/jobs/{stuck}/why").json()
    expect(page.locator("#why .reason")).to_have_attribute("data-code", why["reasons"][0]["code"])
    expect(page.locator("#why")).to_contain_text("ExecutionStuck")
    expect(page.locator("#why .command code")).to_have_text(why["reasons"][0]["remedy"])
    expect(page.locator(".stack .here").first).to_contain_text("in thread_sleep")
    expect(page.locator('.timeline .span[data-kind="stuck"]')).to_have_count(1)
    expect(page.locator(".history")).to_contain_text("stuck: did not stop when asked")


def test_a_running_job_is_followed_live_and_stopped(house: House, page: Page) -> None:
    job = house.enqueue("render_video", frames=600)
    house.reaches(job, "RUNNING")
    page.goto(f"/jobs/{job}")
    page.get_by_role("button", name="Show where it is").click()
    expect(page.locator("#live-stack .here").first).to_be_visible()
    expect(page.locator("#live-stack .stack")).to_contain_text("render_video")
    page.locator(".screen-head").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("enough")
    confirmed(page, "Cancel the job")
    told(page, "was asked to stop")
    expect(page.locator("h1 .state")).to_have_text("CANCELLED")  # without a reload
    [asked] = [event for event in house.job(job)["history"] if event["kind"] == "requested"]
    assert asked["data"]["reason"] == "enough"


def test_steps_waits_and_a_question_of_one_job(house: House, page: Page) -> None:
    job = house.question()
    page.goto(f"/jobs/{job}")
    expect(page.locator("#why .reason").first).to_have_attribute("data-code", "waiting_approval")
    expect(page.get_by_role("region", name="Steps", exact=True).locator("tbody tr")).to_have_count(2)
    page.locator(".question").get_by_role("button", name="Reject").click()
    page.get_by_role("dialog").get_by_label("Comment").fill("not on a Friday")
    confirmed(page, "Reject")
    expect(page.locator("h1 .state")).to_have_text("COMPLETED", timeout=30_000)
    expect(page.get_by_role("region", name="Steps", exact=True)).to_contain_text("roll back")
    expect(page.locator("#logs")).to_contain_text("taking")


def test_one_line_finds_jobs_and_a_verb_is_for_all_of_them(house: House, page: Page) -> None:
    for _ in range(3):
        house.reaches(house.enqueue("import_feed", url="gopher://bulk"), "FAILED")
    page.goto("/")
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search jobs")
    expect(search).to_be_focused()
    search.fill("state:FAILED workflow:import_feed newer:1h arg.url:gopher://bulk")
    search.press("Enter")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("is not a feed")
    page.get_by_role("button", name="Act on all that match").click()
    page.locator(".menu").get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Retry 3 jobs?")
    expect(dialog.locator(".command code")).to_contain_text("--state FAILED --workflow import_feed")
    confirmed(page, "Retry 3")
    told(page, "is under way")
    bulks = house.site.get("/api/v1/bulks").json()["items"]
    eventually(lambda: house.site.get(f"/api/v1/bulks/{bulks[0]['number']}").json()["state"] == "DONE", timeout=30)
    page.goto(f"/bulks/{bulks[0]['number']}")
    expect(page.locator(".bulk")).to_contain_text("3 done")


def test_a_search_that_cannot_be_read_says_why_and_an_id_leads_to_its_job(house: House, page: Page) -> None:
    page.goto("/jobs?q=state:LOST+colour:red")
    expect(page.get_by_role("alert")).to_contain_text("there is no state LOST")
    expect(page.get_by_role("alert")).to_contain_text("there is no qualifier colour:")
    search = page.get_by_role("searchbox", name="Search jobs")
    search.fill(house.jobs["greeted"])
    search.press("Enter")
    expect(page.locator("h1")).to_contain_text("greet")


def test_rows_are_walked_by_keys_and_links_survive_a_reload(house: House, page: Page) -> None:
    page.goto("/jobs?q=workflow:greet")
    expect(page.locator("tbody tr").first).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/jobs/[0-9a-f-]{36}"))
    expect(page.locator("#why")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile("q=workflow"))
    page.reload()
    expect(page.get_by_role("searchbox", name="Search jobs")).to_have_value("workflow:greet")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("search jobs")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_others_wrote_is_shown_and_never_done(house: House, page: Page) -> None:
    page.goto(f"/jobs/{house.jobs['hostile']}")
    result = page.get_by_label("result", exact=True)
    expect(result).to_contain_text("<img src=x onerror=")
    expect(result).to_contain_text("⟨U+202E⟩")
    expect(page.get_by_role("log")).to_contain_text("␛[31m")
    assert page.locator("main img, main script").count() == 0
    assert page.title() != "owned"
    name = f"{HOSTILE[:60]}/../?&#".replace("\x1b", "")
    house.reaches(house.enqueue("deliver", customer=name, item="lamp", at_home=False), "FAILED")
    page.goto("/targets")
    page.get_by_role("link", name=re.compile("^<img")).first.click()
    expect(page.locator("#blocked")).to_be_visible()
    page.reload()
    expect(page.locator("h1")).to_contain_text("<img src=x")
    page.locator("#blocked").get_by_role("button", name="Skip").click()
    confirmed(page, "Skip it")
    expect(page.locator("#blocked")).to_have_count(0)


def test_a_megabyte_is_folded(house: House, page: Page) -> None:
    job = house.enqueue("greet", name="x" * 900_000)
    house.reaches(job, "COMPLETED")
    page.goto(f"/jobs/{job}")
    shown = page.get_by_label("result", exact=True)
    expect(shown).to_contain_text("Hello")
    assert len(shown.inner_text()) < 10_000
    page.get_by_role("button", name=re.compile("Show more of 8..? KB")).first.click()
    eventually(
        lambda: (
            len(page.get_by_label("input", exact=True).inner_text()) > 100_000 or len(shown.inner_text()) > 100_000
        )
    )


def test_a_workflow_runs_by_a_form_made_from_its_schema(house: House, page: Page) -> None:
    page.goto("/workflows/deliver")
    form = page.locator("#run")
    form.get_by_role("button", name="Run now").click()
    expect(form).to_contain_text("it is needed")
    form.get_by_label("customer").fill("Barbara")
    form.get_by_label("item").fill("piano")
    form.get_by_label("at_home").select_option("true")
    expect(form.locator(".command code")).to_contain_text('"customer":"Barbara"')
    form.get_by_role("button", name="Run now").click()
    expect(page).to_have_url(re.compile("/jobs/"))
    expect(page.locator("h1 .state")).to_have_text("COMPLETED", timeout=20_000)
    expect(page.get_by_label("result", exact=True)).to_contain_text("Barbara has the piano")


def test_queues_are_paused_and_the_waiting_job_says_so(house: House, page: Page) -> None:
    page.goto("/queues")
    row = page.locator("tbody tr", has_text="default")
    row.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("vendor outage")
    confirmed(page, "Pause")
    told(page, "queue default is paused")
    job = house.enqueue("greet", name="later")
    page.goto(f"/jobs/{job}")
    expect(page.locator("#why .verdict")).to_contain_text("vendor outage")
    reason = page.locator('.reason[data-code="queue_paused"]')
    reason.get_by_role("button", name="Unpause", exact=True).click()
    expect(page.locator("h1 .state")).to_have_text("COMPLETED", timeout=20_000)


def test_workers_processes_and_stacks(house: House, page: Page) -> None:
    job = house.enqueue("render_video", frames=500)
    house.reaches(job, "RUNNING")
    page.goto("/workers")
    body = page.locator(".bodies li", has_text=job[-8:])
    body.get_by_role("button", name="Stack").click()
    expect(body.locator("#live-stack")).to_be_visible()
    body.get_by_role("button", name="Show where it is").click()
    expect(body.locator(".stack")).to_contain_text("render_video")
    process = page.locator(".process", has=page.locator(".bodies li", has_text=job[-8:]))
    process.get_by_role("button", name="Recycle").click()
    told(page, "is replaced when its jobs have ended")
    assert house.site.post(f"/api/v1/jobs/{job}/cancel").status_code == 200


def test_the_blacklist_is_found_by_the_link_of_its_notification_and_lifted(house: House, page: Page) -> None:
    added = house.site.post("/api/v1/blacklist", {"workflow": "remind", "reason": "too noisy"})
    assert added.status_code == 200, added.text
    page.goto("/platform/diagnostics?tab=blacklist")
    row = page.get_by_role("group", name="Blacklist", exact=True).locator("tbody tr", has_text="remind")
    expect(row).to_contain_text("too noisy")
    row.get_by_role("button", name="Lift").click()
    confirmed(page, "Lift the entry")
    told(page, "remind runs again")
    expect(row).to_have_count(0)


def test_settings_are_changed_and_stand_in_the_audit(house: House, page: Page) -> None:
    page.goto("/settings")
    row = page.locator("tbody tr", has_text="stuck_circuit_breaker_threshold")
    row.get_by_role("button", name="Change").click()
    page.get_by_role("dialog").get_by_label("Value").fill("nonsense")
    confirmed(page, "Set it")
    expect(page.get_by_role("dialog")).to_contain_text("this is not JSON")
    page.get_by_role("dialog").get_by_label("Value").fill("7")
    confirmed(page, "Set it")
    told(page, "is set")
    page.goto("/audit?verb=settings")
    expect(page.locator("tbody tr").first).to_contain_text("stuck_circuit_breaker_threshold")


def test_a_schedule_runs_now_and_tells_its_next_ticks(house: House, page: Page) -> None:
    made = {"name": "nightly", "workflow": "greet", "kwargs": {"name": "Noor"}, "cron": "0 3 * * *"}
    assert house.site.post("/api/v1/schedules", made).status_code in (201, 409)
    page.goto("/schedules/nightly")
    expect(page.locator(".ticks li")).to_have_count(5)
    page.get_by_role("button", name="Run now").click()
    told(page, "nightly made its job")
    expect(page.get_by_role("region", name="Ticks").locator("tbody tr").first).to_contain_text("run now")


def test_every_change_can_be_copied_as_its_command(house: House, page: Page) -> None:
    job = house.jobs["failed"]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/jobs/{job}")
    page.locator(".screen-head").get_by_role("button", name="Resume").click(modifiers=["Shift"])
    told(page, "Command copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"unstuck jobs resume {job}"
    assert house.job(job)["state"] == "FAILED", "copying does nothing"


def test_times_are_relative_and_exact_on_hover(house: House, page: Page) -> None:
    page.goto(f"/jobs/{house.jobs['greeted']}")
    when = page.locator(".job-side time").first
    expect(when).to_have_text(re.compile("ago|now"))
    created = house.job(house.jobs["greeted"])["created_at"]
    assert created.rstrip("Z")[:19] in str(when.get_attribute("title"))


def test_the_page_holds_no_more_than_it_shows(house: House, page: Page) -> None:
    """Thousands of events later the page has as many elements as before."""
    page.goto("/")
    expect(page.locator(".connection")).to_have_attribute("data-link", "live")
    for _ in range(3):
        batch = [{"workflow": "greet", "kwargs": {"name": "many"}} for _ in range(200)]
        assert house.site.post("/api/v1/jobs/batch", {"jobs": batch}).status_code == 200
    eventually(lambda: page.locator(".feed-line").count() == 50, timeout=30)
    eventually(lambda: house.site.get("/api/v1/stats").json()["states"]["COMPLETED"] > 600, timeout=60)
    assert page.evaluate("document.querySelectorAll('*').length") < 2500


def test_alerts_show_their_rules_whose_numbers_are_changed(house: House, browser: Browser) -> None:
    with browser.new_context(base_url=house.site.url, bypass_csp=True) as context:
        page = context.new_page()
        page.goto("/alerts")
        row = page.get_by_role("group", name="Rules", exact=True).locator("tbody tr", has_text="target_blocked")
        expect(row).to_contain_text("86400")
        expect(page.locator(".bone")).to_have_count(0)
        page.evaluate(AXE)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert not [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
        row.get_by_role("button", name="Change").click()
        page.get_by_role("dialog").get_by_label("Value").fill("90000")
        confirmed(page, "Set it")
        told(page, "alert_blocked_after is set")
        expect(row).to_contain_text("90000")


def test_a_webhook_is_tested_paused_and_given_a_new_secret(house: House, page: Page) -> None:
    with receiving() as receiver:
        house.site.client.put("/api/v1/settings/webhook_allow", json={"value": ALLOWED}).raise_for_status()
        made = house.site.post("/api/v1/webhooks", {"name": "shop", "url": receiver.url, "kinds": ["approval.asked"]})
        assert made.status_code == 201, made.text
        page.goto("/webhooks")
        row = page.get_by_role("group", name="Webhooks", exact=True).locator("tbody tr", has_text="shop")
        row.get_by_role("button", name="Test").click()
        told(page, "a test is on its way")
        eventually(lambda: [message.verified(made.json()["secret"]) for message in receiver.taken], timeout=30)
        row.get_by_role("link", name="shop").click()
        deliveries = page.get_by_role("group", name="Deliveries", exact=True)
        expect(deliveries.locator("tbody tr")).to_contain_text("DELIVERED")
        page.get_by_role("button", name="Pause").click()
        told(page, "shop is paused")
        expect(page.locator("h1")).to_contain_text("PAUSED")
        page.get_by_role("button", name="Rotate").click()
        confirmed(page, "Rotate it")
        secret = page.locator(".secret code").inner_text()
        assert secret.startswith("whsec_")
        assert secret != made.json()["secret"]
        page.get_by_role("button", name="I have it").click()
        expect(page.locator(".secret")).to_have_count(0)


def test_a_hook_shows_why_a_delivery_was_refused_and_is_paused(house: House, page: Page) -> None:
    body = {"name": "pushes", "workflow": "greet", "scheme": "github", "arguments": {"name": "body.name"}}
    made = house.site.post("/api/v1/hooks", body)
    assert made.status_code == 201, made.text
    assert house.site.post(made.json()["path"], {"name": "Mallory"}).status_code == 401
    page.goto("/hooks")
    row = page.get_by_role("group", name="Hooks", exact=True).locator("tbody tr", has_text="pushes")
    expect(row).to_contain_text(made.json()["path"])
    row.get_by_role("link", name="pushes").click()
    expect(page.get_by_role("group", name="Deliveries", exact=True).locator("tbody tr")).to_contain_text("401")
    page.reload()  # what senders ask by POST, a browser asks by GET
    page.get_by_role("button", name="Pause").click()
    told(page, "pushes is paused")
    expect(page.locator("h1")).to_contain_text("PAUSED")
