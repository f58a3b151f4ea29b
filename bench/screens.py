"""Every screen of the dashboard over a database with much in it, in a real browser. `python -m bench screens`.

100 000 jobs that failed, a tenth of them on 10 000 targets that they block, a job in line behind each, and 2000 open
questions: one of each kind by the store's own verbs, the others copied by SQL. A screen is *drawn* when what it is
about is there and nothing is loading any more, from the navigation on, by the browser's clock. Each is opened several
times, and the median counts: it is to be under a second. In turn with it the same screen is opened over a database
with next to nothing: on a busy machine that tells what the many cost, and so does the CPU of server and database.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from playwright.sync_api import Browser, Page, sync_playwright

from bench.http import Site, site_of
from bench.worlds import CHUNK, TENANT, a_job, a_worker, by_hand, chance, open_store
from unstuck.model.job import NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Outcome, Parked, Raised
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.port import JobFilter, Report, Share, Verdict
from unstuck.store.sql_store import SqlStore

LIMIT_MS = 1000.0
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WORKFLOWS = [f"workflow-{number}" for number in range(40)]
QUESTIONS = 2000
BATCH = 500
#: Every tenth got stuck: the overview and a tab look for those.
STUCK_EACH = 10
PAYLOAD = '{"args": [], "kwargs": {"city": "Paris"}}'
#: What a screen is about, by its address; `{…}` is filled with what the database has.
SCREENS = {
    "/": "#headline",
    "/jobs": "tbody tr",
    "/jobs?q=state:FAILED": "tbody tr",
    "/jobs?q=state:BLOCKED": "tbody tr",
    "/jobs?q=error:ExecutionStuck": "tbody tr",
    "/jobs?q=state:FAILED workflow:workflow-7 older:1s": "tbody tr",
    "/jobs?q=state:FAILED newer:1h": "tbody tr",
    "/jobs?q=state:COMPLETED": ".empty",
    "/jobs?q=workflow:nobody": ".empty",
    "/jobs?q=tag:nobody": ".empty",
    "/jobs?q=target:{target}": "tbody tr",
    "/jobs?q=arg.city:Oslo": ".empty",
    "/jobs/{failed}": "#why",
    "/jobs/{asks}": "#why",
    "/jobs/{waits}": "#why",
    "/approvals": ".question",
    "/targets": "tbody tr",
    "/targets?all=yes": "tbody tr",
    "/targets/{target}": "#blocked",
    "/workers": ".worker",
    "/workflows": "tbody tr",
    "/workflows/workflow-7": "#run",
    "/queues": "tbody tr",
    "/tenants": "tbody tr",
    "/schedules": ".empty",
    "/hooks": ".empty",
    "/webhooks": ".empty",
    "/alerts": "tbody tr",
    "/dead-letters": "tbody tr, .empty",
    "/notifications": ".screen",
    "/blacklist": ".screen",
    "/quarantine": ".empty",
    "/bulks": ".screen",
    "/audit": ".screen",
    "/settings": ".checks",
    "/keys": ".screen",
}
#: Since when the page is there: by its own clock, looked at in each frame.
DRAWN = """(selector) => new Promise((done, refuse) => {
  const look = () => {
    const found = document.querySelector(selector);
    if (found && found.offsetParent !== null && !document.querySelector(".bone")) done(performance.now());
    else if (performance.now() > 6e4) refuse(new Error(`no ${selector}: ${document.body.innerText.slice(0, 999)}`));
    else requestAnimationFrame(look);
  };
  look();
})"""
ASKED = """performance.getEntriesByType("resource")
  .filter((each) => each.name.includes("/api/v1/") && !each.name.includes("/events"))
  .map((each) => [each.name.slice(each.name.indexOf("/api/v1") + 7), each.duration])"""


@dataclass(frozen=True)
class Line:
    store: str
    screen: str
    drawn: float
    calls: int
    asked: float
    cpu: float
    beside: float

    @property
    def is_kept(self) -> bool:
        return self.drawn < LIMIT_MS


def run(stores: Sequence[str], jobs: int, targets: int, rounds: int) -> bool:
    """Whether every screen is drawn within a second."""
    lines: list[Line] = []
    for kind in stores:
        began = time.monotonic()
        with (
            site_of(kind, partial(fill, jobs=len(WORKFLOWS) + 1, targets=1, questions=1)) as little,
            site_of(kind, partial(fill, jobs=jobs, targets=targets, questions=QUESTIONS)) as much,
            sync_playwright() as playwright,
        ):
            print(f"{kind}: {jobs} jobs and {targets} targets made in {time.monotonic() - began:.0f} s", flush=True)
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for line in measure(much, little, browser, rounds):
                lines.append(line)
                print(
                    f"  {line.screen:<50} drawn {line.drawn:5.0f} ms, {line.drawn / line.beside:4.1f} × that of next "
                    f"to nothing, {line.calls:2} calls, the longest {line.asked:4.0f} ms, CPU {line.cpu:4.0f} ms"
                    f"{'' if line.is_kept else '  A SECOND OR MORE'}",
                    flush=True,
                )
            browser.close()
    print(f"load {os.getloadavg()[0]:.1f}")
    return all(line.is_kept for line in lines)


def measure(much: Site, little: Site, browser: Browser, rounds: int) -> Iterator[Line]:
    with viewed(much, browser) as page, viewed(little, browser) as beside:
        names, few = known(much.database), known(little.database)
        for path, selector in SCREENS.items():
            found, small, cpu = [], [], 0.0
            for _ in range(rounds):
                before = sum(much.cpu())
                found.append(opened(page, path.format(**names), selector))
                cpu += sum(much.cpu()) - before
                small.append(opened(beside, path.format(**few), selector)[0])
            longest = statistics.median(max((took for _, took in calls), default=0.0) for _, calls in found)
            drawn = statistics.median(took for took, _ in found)
            each = cpu * 1000 / rounds
            yield Line(much.kind, path, drawn, len(found[-1][1]), longest, each, statistics.median(small))


@contextmanager
def viewed(site: Site, browser: Browser) -> Iterator[Page]:
    """A page that has been there: the files are in the browser's cache."""
    with browser.new_context(base_url=site.url, viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        opened(page, "/", SCREENS["/"])
        yield page


def opened(page: Page, path: str, selector: str) -> tuple[float, list[tuple[str, float]]]:
    """Milliseconds until it was drawn, and of each API call."""
    page.goto(quote(path, safe="/?=&:."), wait_until="commit")
    drawn = page.evaluate(DRAWN, selector)
    return float(drawn), [(name, float(took)) for name, took in page.evaluate(ASKED)]


# --- what is in it ------------------------------------------------------------------------------------------------

_NAMES = (
    *("tenant", "queue", "workflow", "route", "priority", "rank", "payload", "policy", "created_at", "available_at"),
    *("state", "run", "token", "event_count", "started"),
)
_COLUMNS, _OF_TEMPLATE = ", ".join(_NAMES), ", ".join(f"t.{name}" for name in _NAMES)
#: The first jobs, one of each workflow, have failed; the next two are one that blocks its target and one behind it.
COPIES = (
    f"""INSERT INTO unstuck_jobs (uid, {_COLUMNS})
    WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {{each}})
    SELECT t.uid || '-' || copy.i, {_OF_TEMPLATE} FROM unstuck_jobs t CROSS JOIN copy WHERE t.id <= {{failed}}""",
    """INSERT INTO unstuck_targets (tenant, name, named_at)
    WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {targets} - 1)
    SELECT 'default', 'target-' || copy.i, unstuck_now() FROM copy""",
    f"""INSERT INTO unstuck_jobs (uid, target, {_COLUMNS})
    SELECT 'blocks-' || g.id, g.id, {_OF_TEMPLATE} FROM unstuck_targets g CROSS JOIN unstuck_jobs t
     WHERE t.id = {{blocks}} AND g.blocked_by IS NULL""",
    f"""INSERT INTO unstuck_jobs (uid, target, {_COLUMNS})
    SELECT 'waits-' || g.id, g.id, {_OF_TEMPLATE} FROM unstuck_targets g CROSS JOIN unstuck_jobs t
     WHERE t.id = {{waits}} AND g.blocked_by IS NULL""",
    """INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at,
                              duration_ms, result, error_type, error_message)
    SELECT j.id, d.route, d.run, d.state, d.token, d.event_count, d.worker, d.claimed_at, d.finished_at,
           d.duration_ms, d.result, d.error_type, d.error_message
      FROM unstuck_jobs j JOIN unstuck_jobs t ON t.route = j.route AND t.id <= {blocks}
      JOIN unstuck_done d ON d.job = t.id
     WHERE j.id > {waits} AND j.route <> (SELECT route FROM unstuck_jobs WHERE id = {waits})""",
    """INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT j.id, e.number, e.at, e.kind, e.run, e.token, e.data
      FROM unstuck_jobs j JOIN unstuck_jobs t ON t.route = j.route AND t.id <= {waits}
      JOIN unstuck_events e ON e.job = t.id
     WHERE j.id > {waits}""",
    """INSERT INTO unstuck_line (target, place, job, route)
    SELECT j.target, l.place, j.id, j.route FROM unstuck_jobs j CROSS JOIN unstuck_line l
     WHERE j.id > {waits} AND l.job = {waits} AND j.route = l.route""",
    """UPDATE unstuck_targets
       SET blocked_by = (SELECT id FROM unstuck_jobs WHERE uid = 'blocks-' || unstuck_targets.id),
           blocked_at = (SELECT MAX(blocked_at) FROM unstuck_targets) + id
     WHERE blocked_by IS NULL""",
)


def fill(url: str, jobs: int, targets: int, questions: int) -> None:
    """Each kind of job travels once by the store's own verbs; SQL copies what it left."""
    with closing(open_store(url)) as store:
        store.migrate()
        names = [*WORKFLOWS, "blocks", "waits", "asks"]
        store.register_workflows([WorkflowRecord(name, "v1", "default", Policy(), {}) for name in names])
        worker = a_worker(store)
        end(store, worker, [replace(a_job(name), payload=PAYLOAD) for name in WORKFLOWS], failed)
        end(store, worker, [a_job("blocks", target="target-0")], failed)
        submit(store, [a_job("waits", target="target-0")])
        failing = len(WORKFLOWS)
        numbers = {"failed": failing, "blocks": failing + 1, "waits": failing + 2, "targets": targets}
        with by_hand(url) as execute:
            for text in COPIES:
                if jobs > failing + 1:
                    execute(text.format(each=(jobs - targets) // failing - 1, **numbers))
        end(store, worker, [a_job("asks") for _ in range(questions)], asking)
        while store.sequence():
            pass
        assert store.counts(None, ceiling=10_000_000)[JobState.FAILED] == jobs
        assert len(store.targets(TENANT, blocked=True, limit=targets + 1)) == targets
    with by_hand(url) as execute:
        # What autovacuum would have done by itself after a while.
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "PRAGMA optimize")


def failed(place: int) -> Outcome:
    kind = "ExecutionStuck" if place % STUCK_EACH == 0 else "ValueError"
    return Raised(ErrorInfo(kind, f"it is no feed: {place}", "Traceback (most recent call last): …"), retry=False)


def asking(place: int) -> Outcome:
    return Parked(Wait(WaitKind.APPROVAL, f"q{place}", f"release {place}?", timeout=86_400.0))


def submit(store: SqlStore, jobs: Sequence[NewJob]) -> None:
    for start in range(0, len(jobs), CHUNK):
        store.submit(jobs[start : start + CHUNK])
    while store.ingest().entries:
        pass


def end(store: SqlStore, worker: WorkerRecord, jobs: Sequence[NewJob], outcome: Callable[[int], Outcome]) -> None:
    """Submit them, and have each run end like that."""
    submit(store, jobs)
    ended = 0
    while routes := store.open_routes():
        shares = [Share(front.route, BATCH // len(routes) + 1) for front in routes]
        claimed = store.claim(worker.number, chance.nonce(), shares)
        reports = [Report(job.ref, outcome(ended + place), duration_ms=1) for place, job in enumerate(claimed)]
        for answer in store.settle(worker.number, reports):
            assert answer.verdict is Verdict.DONE, answer
        ended += len(claimed)
    assert ended == len(jobs), f"{ended} of {len(jobs)}"


def known(url: str) -> dict[str, str]:
    """What the screens of one thing are opened with."""
    with closing(open_store(url)) as store:
        states: dict[str, JobState | Shown] = {"failed": JobState.FAILED, "asks": JobState.WAITING}
        states["waits"] = Shown.BLOCKED
        first = {
            name: store.jobs(TENANT, JobFilter(states=(state,), newest_first=False), 1).jobs[0]
            for name, state in states.items()
        }
        return {name: job.id for name, job in first.items()} | {"target": str(first["waits"].target)}
