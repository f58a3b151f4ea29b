"""What stays open: streams, long polls and waits, by one reader of the feed; who may stay, and for how long."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.conftest import Site, problem, running
from tests.store import feed_crowd
from tests.store.feed_crowd import listed
from tests.store.test_feed_storm import expected, held_open, in_order_of_each_job, written_by_process
from tests.support.builders import a_job, a_worker, boom, claim_all, claimed, submitted
from tests.support.eventually import eventually
from tests.support.sse import SseReader
from tests.support.tables import ask
from tests.support.warm import warm_process
from tests.tiers import in_tiers, slow
from unstuck import App
from unstuck.assembly.server import ServerOptions
from unstuck.assembly.store import open_store
from unstuck.clock import MachineClock
from unstuck.model.job import WorkflowRecord
from unstuck.model.news import Publication
from unstuck.model.policy import Policy
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.observe import logs as observed_logs
from unstuck.operations import events, keys
from unstuck.operations.table import Caller
from unstuck.server import connections, guests, hub, live
from unstuck.store.port import EVERY, AttemptOutput, FeedFilter, Pause, Report
from unstuck.store.sql_store import SqlStore

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
WRITERS = 4


@dataclass
class Stage:
    """A server that the tests of this module share, and the store behind it."""

    site: Site
    store: SqlStore

    @property
    def url(self) -> str:
        return self.site.url

    def submit(self, **more: Any) -> str:
        return submitted(self.store, **more).id

    def stream(self, query: str = "", key: str | None = None, last: str = "", patience: float = 30.0) -> SseReader:
        return SseReader(self.url, f"/api/v1/events{query}", shown(key), last, patience)


def shown(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Stage]:
    file = tmp_path_factory.mktemp("live") / "unstuck.db"
    shutil.copyfile(sqlite_template, file)
    store = open_store(f"sqlite:///{file}", Times())
    assert isinstance(store, SqlStore)
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    with running(ServerOptions(f"sqlite:///{file}", port=0)) as site:
        yield Stage(site, store)
    store.close()


# --- nothing missing, nothing twice, in order ---------------------------------------------------------------------


class CutReader(threading.Thread):
    """Reads a stream, is cut at random places, and goes on at another server with what it saw last."""

    def __init__(self, urls: list[str], count: int, seed: int) -> None:
        super().__init__()
        self._urls, self._count, self._chance = urls, count, random.Random(seed)
        self.seen: list[str] = []
        self.cuts = 0
        self.start()

    def run(self) -> None:
        last = ""
        while len(self.seen) < self._count:
            query = "" if last else "?after=start"
            with SseReader(
                self._chance.choice(self._urls), f"/api/v1/events{query}", last=last, patience=60
            ) as reader:
                for event in islice(reader.events(), self._chance.randint(0, 150)):
                    self.seen.append(f"{event['job']}:{event['number']}")
                    if len(self.seen) == self._count:
                        break
                last = reader.last
            self.cuts += 1


class Poller(threading.Thread):
    """Reads by long polls, each at another server."""

    def __init__(self, urls: list[str], count: int, seed: int) -> None:
        super().__init__()
        self._urls, self._count, self._chance = urls, count, random.Random(seed)
        self.seen: list[str] = []
        self.start()

    def run(self) -> None:
        after = "start"
        with httpx2.Client(timeout=60) as client:
            while len(self.seen) < self._count:
                query = {"after": after, "wait": "5", "limit": str(self._chance.randint(1, 300))}
                page = client.get(f"{self._chance.choice(self._urls)}/api/v1/events", params=query).json()
                self.seen += [f"{event['job']}:{event['number']}" for event in page["items"]]
                after = page["next"]


@pytest.mark.timeout(240)
@in_tiers("events", 800, 12_000)
def test_a51_what_streams_tell_is_complete_wherever_they_are_cut(
    store_url: str, store: SqlStore, site: Site, events: int
) -> None:
    """A51: streams that are cut at random places and go on at either of two servers, and long polls, beside writers
    that commit late or not at all: nothing missing, nothing twice, in order, and all of them the same."""
    is_file = store_url.startswith("sqlite")
    warm_process()  # before several threads ask for it at once
    jobs = [submitted(store).id for _ in range(WRITERS)]
    numbers = {uid: number for number, uid in ask(store_url, "SELECT id, uid FROM unstuck_jobs")}
    each = events // WRITERS
    write, delay = (written_by_process, 0.01) if is_file else (feed_crowd.write, 0.3)
    with (
        running(ServerOptions(store_url, port=0)) as other,
        held_open(store_url),
        ThreadPoolExecutor(WRITERS) as pool,
    ):
        urls, count = [site.url, other.url], WRITERS * (each + 1)
        cut, poller = [CutReader(urls, count, seed) for seed in (1, 2)], Poller(urls, count, 3)
        list(pool.map(lambda n: write(store_url, numbers[jobs[n]], each, n, delay), range(WRITERS)))
        for reader in (*cut, poller):
            reader.join(120)
            assert not reader.is_alive()
    first = poller.seen
    assert sorted(first) == expected(jobs, each)
    assert in_order_of_each_job(first)
    assert all(reader.seen == first for reader in cut)
    assert listed(store_url) == first
    assert all(reader.cuts >= 2 for reader in cut)


def test_a52_who_sees_the_final_event_reads_the_final_state(store: SqlStore, site: Site) -> None:
    """A52: state, result and logs are there with the event."""
    worker = a_worker(store)
    with SseReader(site.url, "/api/v1/events?after=now&kinds=completed") as reader:
        reader.begun()
        for n in range(5):
            attempt = claimed(store, worker)
            report = Report(attempt.ref, Returned(str(n)), output=f"said {n}\n")
            threading.Timer(0.02, store.settle, [worker.number, [report]]).start()
            event = next(reader.events())
            seen = site.get(f"/api/v1/jobs/{event['job']}").json()
            assert (event["job"], seen["state"], seen["result"]) == (attempt.id, "COMPLETED", n)
            assert f"said {n}" in site.get(f"/api/v1/jobs/{attempt.id}/logs").text


# --- where a stream begins ------------------------------------------------------------------------------------------


def test_a_stream_begins_with_what_is_committed_next_and_says_where_it_is(stage: Stage) -> None:
    stage.submit()
    with stage.stream() as reader:
        assert reader.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert reader.answer.headers["cache-control"] == "no-store"
        assert reader.answer.headers["x-accel-buffering"] == "no"
        events = reader.begun().events()
        job = stage.submit()
        assert next(events)["job"] == job
        assert reader.retry == live.RETRY
        first = reader.last
    missed = stage.submit()
    with stage.stream(last=first) as reader:
        assert next(reader.events())["job"] == missed
    with stage.stream(f"?after={first}") as reader:
        assert next(reader.events())["job"] == missed
    with stage.stream("?after=start", last=first) as reader:  # a browser that comes again says its old address
        assert next(reader.events())["job"] == missed


def test_filters_choose_and_those_that_match_nothing_are_quiet(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.05)
    job = stage.submit(workflow="other", target="printer")
    queries = {
        f"?after=start&job={job}": [job], "?after=start&workflow=other": [job], "?after=start&target=printer": [job],
        "?after=start&kinds=submitted&kinds=completed&workflow=other": [job],
    }  # fmt: skip
    for query, wanted in queries.items():
        with stage.stream(query) as reader:
            assert [event["job"] for event in islice(reader.events(), len(wanted))] == wanted, query
        assert [event["job"] for event in stage.site.get(f"/api/v1/events{query}&wait=1").json()["items"]] == wanted
    for query in ("?workflow=nobody", "?topic=nothing", "?kinds=completed", "?target=x", f"?job={job}"):
        with stage.stream(query) as reader:
            before = reader.begun().last
            for _ in range(4):
                stage.submit()
            lines, moved = list[bytes](), before
            while lines.count(b": \n") < 3 or moved == before:  # it moves past what was not wanted
                lines.append(reader.answer.readline())
                assert not lines[-1].startswith(b"data"), query
                assert len(lines) < 2000, lines[-20:]
                if lines[-1].startswith(b"id: "):
                    moved = lines[-1].removeprefix(b"id: ").decode().strip()
    page = stage.site.get("/api/v1/events?after=now&workflow=nobody&wait=0.2").json()
    assert page["items"] == []
    assert stage.site.get(f"/api/v1/events?workflow=nobody&after={page['next']}&wait=0.1").json()["items"] == []


def test_cursors_that_cannot_go_on_are_told_so(stage: Stage) -> None:
    """Of another database, from the future, of a backup; what is no cursor is refused."""
    newest = stage.site.get("/api/v1/events?after=now").json()["next"]
    era = newest.split("-")[0]
    foreign = ("1" if era[0] == "0" else "0") + era[1:] + "-1"
    for last, reason in ((foreign, "foreign"), (f"{newest}9", "ahead"), (f"{era}-{10**17}", "ahead")):
        with stage.stream(last=last, patience=60) as reader:
            frame = next(reader.frames())
            assert (frame.name, frame.data["reason"]) == ("reset", reason)
            assert frame.id == frame.data["cursor"] != last
            job = stage.submit()
            assert any(event["job"] == job for event in reader.events())
        refused = stage.site.get(f"/api/v1/events?after={last}&wait=5")
        assert problem(refused, 410, "StaleCursor")["about"]["go_on"].startswith(era)
    for bad in ("x", "12", "zzzzzzzz-1", "00000000-", "0" * 500, "%0Aid:1"):
        problem(
            stage.site.get(f"/api/v1/events?after={bad}", headers={"accept": "text/event-stream"}),
            422,
            "InvalidInput",
        )
    for bad in ("?limit=5", "?wait=5", "?nonsense=1", "?kinds=a%20b"):
        assert stage.site.get(f"/api/v1/events{bad}", headers={"accept": "text/event-stream"}).status_code == 422
    problem(stage.site.get("/api/v1/events?wait=61"), 422, "InvalidInput")


def test_a_stream_of_an_expired_cursor_goes_on_from_what_is_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECENT", 0)  # what a server still has in its memory is not lost
    with stage.stream() as reader:
        reader.begun()
        stage.submit()
        told = next(reader.events())["cursor"]
    era, place = told.split("-")
    stage.store._database.write(lambda t: t.run("raise_feed_floor", floor=int(place)))
    with stage.stream(last=f"{era}-0") as reader:
        frame = next(reader.frames())
        assert (frame.name, frame.data["reason"], frame.id) == ("reset", "expired", told)
        job = stage.submit()
        assert next(reader.events())["job"] == job


def test_what_is_told_cannot_break_out_of_its_frame(stage: Stage) -> None:
    evil = "a\ndata: {}\r\n\r\nevent: reset\nid: 1\n\u2028\x85 b"
    with stage.stream() as reader:
        reader.begun()
        job = stage.site.post("/api/v1/jobs", {"workflow": "greet"}).json()["id"]
        assert stage.site.post(f"/api/v1/jobs/{job}/cancel", {"reason": evil}).status_code == 200
        said = {"data": {evil: evil}, "topic": "orders"}
        assert stage.site.post("/api/v1/events/order.paid/publish", said).status_code == 200
        frames = [*islice(reader.frames(), 3)]
    assert {frame.name for frame in frames} == {"message"}
    assert [frame.id for frame in frames] == [frame.data["cursor"] for frame in frames]
    assert frames[1].data["data"]["reason"] == evil
    assert (frames[2].data["kind"], frames[2].data["data"]) == ("order.paid", {evil: evil})


# --- who may stay ---------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(store_url: str, store: SqlStore) -> Iterator[tuple[Site, Callable[..., str]]]:
    """A server with keys, and what makes one."""

    def make(role: str = "reader", tenant: str | None = None, **more: Any) -> str:
        return keys.create(Caller(store, "ada", tenant), "deploy", role=role, **more).key

    make("platform-admin")
    with running(ServerOptions(store_url, port=0)) as site:
        yield site, make


@SQLITE
def test_a_stream_tells_a_key_what_it_may_see_and_nothing_else(
    guarded: tuple[Site, Callable[..., str]], store: SqlStore
) -> None:
    """Check 2."""
    site, make = guarded
    acme, limited = make(tenant="acme"), make(tenant="acme", queues=["mail"])
    with ExitStack() as stack:
        whole, part = (stack.enter_context(SseReader(site.url, headers=shown(key))) for key in (acme, limited))
        assert whole.begun()
        assert part.begun()
        submitted(store, tenant="beta", workflow="canary", target="canary")
        other = submitted(store, tenant="acme").id
        mail = submitted(store, tenant="acme", queue="mail").id
        assert [event["job"] for event in islice(whole.events(), 2)] == [other, mail]
        assert next(part.events())["job"] == mail
    for query in ("?tenant=beta", "?tenant=*"):
        for more in ({"accept": "text/event-stream"}, {}):
            answer = site.get(f"/api/v1/events{query}&wait=1", headers=shown(acme) | more)
            assert answer.status_code in (403, 422), answer.text
    foreign = submitted(store, tenant="beta").id
    for name in ("wait", "logs", "partials"):
        for more in ({"accept": "text/event-stream"}, {}):
            problem(site.get(f"/api/v1/jobs/{foreign}/{name}", headers=shown(acme) | more), 404, "UnknownJob")
    assert "canary" not in site.get("/api/v1/events?wait=1&after=start", headers=shown(acme)).text
    problem(site.get("/api/v1/events", headers={"accept": "text/event-stream"}), 401, "Unauthenticated")


@SQLITE
def test_a_stream_hides_what_only_admins_see_and_tells_what_is_everybodys(
    guarded: tuple[Site, Callable[..., str]], store: SqlStore
) -> None:
    site, make = guarded
    store.register_workflows([WorkflowRecord("pay", "v1", "default", Policy(), {}, redact=("card",))])
    attempt = claimed(store, a_worker(store), tenant="acme", workflow="pay")
    whole, part = (make(role, tenant="acme") for role in ("tenant-admin", "reader"))
    start = site.get("/api/v1/events?after=now", headers=shown(part)).json()["next"]
    with ExitStack() as stack:
        readers = {key: stack.enter_context(SseReader(site.url, headers=shown(key))) for key in (whole, part)}
        assert all(reader.begun() for reader in readers.values())
        store.publish_from(attempt.ref, 1, Publication("paid", '{"card": "canary", "sum": 7}'))
        store.pause(Pause("workflow", "greet", EVERY, "ada", store.now(), None))
        told = {key: [*islice(reader.events(), 2)] for key, reader in readers.items()}
    assert [told[whole][0]["data"]["card"], told[whole][0]["data"]["sum"]] == ["canary", 7]
    assert "canary" not in str(told[part])
    assert told[part][0]["data"]["sum"] == 7
    assert [event["tenant"] for event in told[part]] == ["acme", "*"]
    for query in (f"after={start}&wait=5", f"after={start}"):
        assert site.get(f"/api/v1/events?{query}", headers=shown(part)).json()["items"] == told[part]
        assert site.get(f"/api/v1/events?{query}", headers=shown(whole)).json()["items"] == told[whole]
    with SseReader(site.url, headers=shown(part), last=start) as reader:
        assert [*islice(reader.events(), 2)] == told[part]


@SQLITE
def test_a_revoked_key_ends_what_stays_within_five_seconds(
    guarded: tuple[Site, Callable[..., str]], store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Check 5, check 20: stream, long poll and wait; the log holds no key."""
    site, make = guarded
    revoked, other = keys.create(Caller(store, "ada"), "gone", role="reader"), make()
    job = submitted(store).id
    with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        polls = [
            pool.submit(httpx2.get, f"{site.url}/api/v1/{path}", headers=shown(revoked.key), timeout=30)
            for path in ("events?after=now&wait=25", f"jobs/{job}/wait?timeout=25")
        ]
        ended, goes_on = (
            stack.enter_context(SseReader(site.url, headers=shown(key))) for key in (revoked.key, other)
        )
        eventually(lambda: len(site.server._api._guests) == 4)
        store.revoke_key(revoked.id, "ada")
        began = time.monotonic()
        assert [frame.data["reason"] for frame in ended.frames()] == ["revoked"]
        assert [poll.result(10).status_code for poll in polls] == [401, 401]
        assert time.monotonic() - began < 5
        submitted(store)
        assert next(goes_on.events())
    assert revoked.key not in caplog.text


def test_more_than_may_stay_are_refused_and_told_when_to_come_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guests, "MOST_GUESTS", 3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(stage.stream())
        eventually(lambda: len(stage.site.server._api._guests) == 3)
        for path, more in (("events", {"accept": "text/event-stream"}), ("events?wait=5", {})):
            refused = stage.site.get(f"/api/v1/{path}", headers=more)
            problem(refused, 503, "Overloaded")
            assert int(refused.headers["retry-after"]) >= 1
        assert stage.site.get("/api/v1/events?limit=1").status_code == 200
    eventually(lambda: len(stage.site.server._api._guests) == 0)
    assert stage.site.get("/api/v1/events?after=now&wait=0.01").status_code == 200


@SQLITE
def test_one_key_may_not_take_all_places(
    guarded: tuple[Site, Callable[..., str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, make = guarded
    monkeypatch.setattr(guests, "MOST_OF_KEY", 1)
    one, other = make(), make()
    with SseReader(site.url, headers=shown(one)):
        eventually(lambda: len(site.server._api._guests) == 1)
        refused = site.get("/api/v1/events?after=now&wait=1", headers=shown(one))
        problem(refused, 429, "TooManyRequests")
        assert int(refused.headers["retry-after"]) >= 1
        assert site.get("/api/v1/events?after=now&wait=0.01", headers=shown(other)).status_code == 200


# --- those who do not read, and those who leave ---------------------------------------------------------------------


def test_who_does_not_read_is_cut_costs_a_buffer_and_goes_on_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are told meanwhile; what it missed it gets when it comes again."""
    monkeypatch.setattr(connections, "LONGEST_ANSWER", 0.5)
    monkeypatch.setattr(hub, "MOST_BYTES", 64 << 10)
    start = stage.site.get("/api/v1/events?after=now").json()["next"]
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = stage.url.removeprefix("http://").split(":")
    deaf.connect((host, int(port)))
    deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
    with stage.stream() as awake, deaf:
        awake.begun()
        eventually(lambda: len(stage.site.server._api._guests) == 2)
        wide, count = "x" * 400, 0
        told = awake.events()
        while len(stage.site.server._api._guests) == 2 and count < 30_000:
            jobs = [a_job(tags=(wide,), workflow=f"greet-{wide[:50]}") for _ in range(500)]
            stage.store.submit(jobs)
            count += len(jobs)
            assert [event["job"] for event in islice(told, len(jobs))] == [job.id for job in jobs]
        eventually(lambda: len(stage.site.server._api._guests) == 1)
        for listener in stage.site.server._api._hub._desks[
            next(iter(stage.site.server._api._hub._desks))
        ]._everybody():
            assert listener._bytes <= hub.MOST_BYTES
    with stage.stream(last=start) as again:
        assert len([*islice(again.events(), count)]) == count


def test_what_is_large_is_read_from_the_database_a_buffer_at_a_time(store: SqlStore) -> None:
    """Else a reader of old events who takes none of them holds as many as are read at once, whatever their size."""
    for number in range(60):
        events.publish(Caller(store, "ada"), "large.one", {"n": number, "x": "y" * 15_000})
    assert len(events.list_(Caller(store, "ada")).items) == 60  # which gives them their places
    reader = hub.Hub(lambda: store, lambda: 3600.0, MachineClock())
    cursor, told = reader.oldest(), list[Any]()
    for _ in range(60):
        heard, cursor = reader.read(cursor, FeedFilter(), sees_all=True)
        texts = [each.text(sees_all=True) for each in heard]
        assert sum(map(len, texts)) <= hub.MOST_BYTES + len(max(texts, default=b""))
        told += [json.loads(text)["data"]["n"] for text in texts]
        if len(told) == 60:
            break
    assert told == list(range(60))
    assert reader.read(cursor, FeedFilter(), sees_all=True)[0] == []


def test_a_leaving_server_sends_everybody_away_at_once(store_url: str, store: SqlStore) -> None:
    job = submitted(store).id
    with running(ServerOptions(store_url, port=0)) as site, ThreadPoolExecutor(2) as pool:
        polls = [
            pool.submit(httpx2.get, f"{site.url}/api/v1/{path}", timeout=30)
            for path in ("events?after=now&wait=25", f"jobs/{job}/wait?timeout=25")
        ]
        with SseReader(site.url) as reader:
            eventually(lambda: len(site.server._api._guests) == 3)
            began = time.monotonic()
            site.server.stop()
            assert [frame.data for frame in reader.frames()] == [{"reason": "leaving"}]
            assert reader.retry is not None
            assert live.RETRY <= reader.retry <= 2 * live.RETRY
            page, waited = (poll.result(10) for poll in polls)
            assert time.monotonic() - began < 2
    assert page.json()["items"] == []
    assert waited.json()["state"] == "QUEUED"


# --- waits and what a job says --------------------------------------------------------------------------------------


def test_many_wait_for_one_job_and_each_hears_of_its_end(stage: Stage) -> None:
    job = stage.submit()

    async def wait(client: httpx2.AsyncClient) -> tuple[str, float]:
        answer = await client.get(f"/api/v1/jobs/{job}/wait?timeout=20")
        return answer.json()["state"], time.monotonic()

    async def all_wait() -> tuple[list[tuple[str, float]], float]:
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(base_url=stage.url, timeout=30, limits=limits) as client:
            waits = [asyncio.create_task(wait(client)) for _ in range(150)]
            while len(stage.site.server._api._guests) < 150:
                await asyncio.sleep(0.02)
            cancelled = (await client.post(f"/api/v1/jobs/{job}/cancel", json={})).status_code
            assert cancelled == 200
            at = time.monotonic()
            return [await each for each in waits], at

    ends, at = asyncio.run(all_wait())
    assert {state for state, _ in ends} == {"CANCELLED"}
    assert max(ended for _, ended in ends) - at < 15  # their time would be over after 20
    assert sum(thread.name.startswith("unstuck-http-waits") for thread in threading.enumerate()) == 0


def test_what_a_job_prints_and_gives_is_streamed_until_it_ends(stage: Stage) -> None:
    worker = a_worker(stage.store)
    attempt = claimed(stage.store, worker)
    with SseReader(stage.url, f"/api/v1/jobs/{attempt.id}/logs") as logs:
        frames = logs.frames()
        for text in ("one\n", "two\n"):
            stage.store.keep_output([AttemptOutput(attempt.ref, output=text)])
            assert next(frames).data["text"] == text
        stage.store.settle(worker.number, [Report(attempt.ref, Returned('"ok"'), output="three\n")])
        assert next(frames).data["text"] == "three\n"
        assert [(frame.name, frame.data) for frame in frames] == [("end", {"reason": "over"})]
    with SseReader(stage.url, f"/api/v1/jobs/{attempt.id}/partials") as parts:
        assert [frame.data for frame in parts.frames()] == [{"reason": "over"}]


def test_streams_of_logs_and_partial_results_are_woken_and_do_not_look_by_themselves(
    store: SqlStore, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many follow what a job says, one question for all of them tells whether there is more."""
    worker = a_worker(store)
    attempt, quiet = claimed(store, worker), claimed(store, worker)
    looks, marks = list[str](), list[int]()
    get, asked = type(store).get, type(store).output_marks

    def counted(self: Any, tenant: str, job: str) -> Any:
        looks.append(job)
        return get(self, tenant, job)

    def marked(self: Any, jobs: Any) -> Any:
        marks.append(len(jobs))
        return asked(self, jobs)

    monkeypatch.setattr(type(store), "get", counted)
    monkeypatch.setattr(type(store), "output_marks", marked)
    with ExitStack() as stack:
        paths = [f"/api/v1/jobs/{attempt.id}/{name}" for name in ("logs", "partials")]
        logs, parts = ([stack.enter_context(SseReader(site.url, path)) for _ in range(5)] for path in paths)
        stack.enter_context(SseReader(site.url, f"/api/v1/jobs/{quiet.id}/logs"))
        eventually(lambda: len(site.server._api._guests) == 11)
        eventually(lambda: marks[-2:] == [2, 2])

        def seen_in_two_rounds() -> list[str]:
            looks.clear()
            before = len(marks)
            eventually(lambda: len(marks) >= before + 4)
            return list(looks)

        eventually(lambda: seen_in_two_rounds() == [], timeout=30)  # the last of them has looked by now
        assert seen_in_two_rounds() == []
        store.keep_output([AttemptOutput(attempt.ref, output="one\n")])
        assert [next(each.frames()).data["text"] for each in logs] == ["one\n"] * 5
        store.keep_part(attempt.ref, 1, "page", "7")
        assert [next(each.frames()).data["value"] for each in parts] == [7] * 5
        assert quiet.id not in looks
        store.settle(worker.number, [Report(attempt.ref, Returned("1"), output="two\n")])
        assert [[*each.frames()][-1].data for each in (*logs, *parts)] == [{"reason": "over"}] * 10


def test_logs_of_many_attempts_are_streamed_some_at_a_time(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was tried a thousand times has printed more than a stream may hold; a level may leave nothing."""
    worker = a_worker(stage.store)
    job = stage.submit(retries=9, backoff_base=0.0)
    for number in range(1, 10):
        (attempt,) = eventually(lambda: [each for each in claim_all(stage.store, worker) if each.id == job])
        end = Returned("1") if number == 9 else boom()
        stage.store.settle(worker.number, [Report(attempt.ref, end, output=f"{number}" * 100 + "\n")])
    monkeypatch.setattr(observed_logs, "MOST_AT_ONCE", 250)
    read: list[int] = []
    attempts = type(stage.store).attempts

    def counted(self: Any, tenant: str, job: str, after: int = 0, limit: int = 100) -> Any:
        read.append(limit)
        return attempts(self, tenant, job, after, limit)

    monkeypatch.setattr(type(stage.store), "attempts", counted)
    with SseReader(stage.url, f"/api/v1/jobs/{job}/logs") as logs:
        frames = [*logs.frames()]
    assert [frame.data.get("text") for frame in frames] == [*(f"{n}" * 100 + "\n" for n in range(1, 10)), None]
    assert len(read) >= 3
    assert set(read) == {observed_logs.ATTEMPTS_AT_ONCE}
    with SseReader(stage.url, f"/api/v1/jobs/{job}/logs?level=error") as logs:
        assert [frame.data for frame in logs.frames()] == [{"reason": "over"}]


# --- one reader -----------------------------------------------------------------------------------------------------


def test_one_reader_serves_all_streams_and_nobody_listening_costs_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LINGER", 0.2)
    served = stage.site.server._api._hub
    looks: list[str] = []
    feed = type(stage.store).feed

    def counted(self: Any, cursor: str, *rest: Any) -> Any:
        looks.append(threading.current_thread().name)
        return feed(self, cursor, *rest)

    monkeypatch.setattr(type(stage.store), "feed", counted)
    with ExitStack() as stack:
        readers = [stack.enter_context(stage.stream()).begun() for _ in range(60)]
        looks.clear()
        job = stage.submit()
        assert all(next(reader.events())["job"] == job for reader in readers)
        assert set(looks) == {"unstuck-hub"}
        assert len(looks) < 100
        assert [thread.name for thread in threading.enumerate()].count("unstuck-hub") == 1
    eventually(lambda: served._thread is None)
    looks.clear()
    time.sleep(0.3)
    assert looks == []


@slow
def test_500_streams_and_1000_waits_share_one_reader_and_a_few_connections(
    store_url: str, store: SqlStore, site: Site
) -> None:
    """All of them are told, by one thread that looks as often as for one."""
    host, port = site.url.removeprefix("http://").split(":")
    waited = submitted(store).id
    ask_stream = b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"
    ask_wait = f"GET /api/v1/jobs/{waited}/wait?timeout=60 HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()

    async def opened(asked: bytes) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(asked)
        readers.append(writer)
        return reader

    async def told(reader: asyncio.StreamReader, count: int) -> list[str]:
        seen: list[str] = []
        while len(seen) < count:
            line = await asyncio.wait_for(reader.readline(), 30)
            seen += [json.loads(line[6:])["job"]] if line.startswith(b"data: ") else []
        return seen

    async def whole() -> None:
        streams = [await opened(ask_stream) for _ in range(500)]
        for each in streams:
            while not (await asyncio.wait_for(each.readline(), 30)).startswith(b"id:"):
                pass
        waits = [await opened(ask_wait) for _ in range(1000)]
        while len(site.server._api._guests) < 1500:
            await asyncio.sleep(0.05)
        assert [thread.name for thread in threading.enumerate()].count("unstuck-hub") == 1
        assert sum(thread.name.startswith("unstuck-http") for thread in threading.enumerate()) <= 12
        if store_url.startswith("postgres"):
            [(sessions,)] = ask(
                store_url, "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name LIKE 'unstuck server%'"
            )
            assert sessions <= 20
        jobs = [submitted(store).id for _ in range(20)]
        assert all(seen == jobs for seen in await asyncio.gather(*(told(each, 20) for each in streams)))
        assert (await asyncio.to_thread(site.post, f"/api/v1/jobs/{waited}/cancel")).status_code == 200
        for each in waits:
            assert b"200 OK" in await asyncio.wait_for(each.readline(), 30)
            assert b'"state":"CANCELLED"' in (await asyncio.wait_for(each.readuntil(b"}"), 30))
        for writer in readers:
            writer.close()

    readers: list[asyncio.StreamWriter] = []
    asyncio.run(whole())


@SQLITE
def test_inside_another_program_streams_are_the_same(store_url: str, store: SqlStore) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from unstuck.server.listening import address_of, listen

    key = keys.create(Caller(store, "ada"), "deploy", role="operator").key
    with App(store_url) as app:
        mounted = app.asgi()
        outer = Starlette(routes=[Mount("/jobs-api", app=mounted)])
        server = uvicorn.Server(uvicorn.Config(outer, log_config=None, lifespan="off"))
        listener = listen("127.0.0.1", 0)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            with SseReader(address_of(listener), "/jobs-api/api/v1/events", shown(key)) as reader:
                reader.begun()
                job = submitted(store).id
                assert next(reader.events())["job"] == job
                mounted.leave()
                assert [frame.data["reason"] for frame in reader.frames()] == ["leaving"]
        finally:
            server.should_exit = True
            thread.join(10)
            mounted.close()
        assert not thread.is_alive()


@slow
def test_who_asks_for_far_too_many_streams_is_refused_and_nobody_else_suffers(
    store_url: str, guarded: tuple[Site, Callable[..., str]], store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench live` asks for 10,000 of a server as it is; here the limits are a tenth of its own."""
    monkeypatch.setattr(guests, "MOST_OF_KEY", 200)
    monkeypatch.setattr(guests, "MOST_GUESTS", 400)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 500)
    site, make = guarded
    greedy, other = make(), make()
    host, port = site.url.removeprefix("http://").split(":")
    head = ["GET /api/v1/events HTTP/1.1", "host: localhost", "accept: text/event-stream"]
    asked = "\r\n".join([*head, f"authorization: Bearer {greedy}", "", ""])
    answers: Counter[tuple[int, bool]] = Counter()
    held: list[asyncio.StreamWriter] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        held.append(writer)
        writer.write(asked.encode())
        status, headers = 0, b""
        try:
            status = int((await asyncio.wait_for(reader.readline(), 60)).split()[1])
            while (line := await asyncio.wait_for(reader.readline(), 60)).strip():
                headers += line.lower()
            if status != 200:
                await asyncio.wait_for(reader.read(), 60)  # it hangs up
        except (ConnectionError, IndexError):
            pass  # it hung up before all was said
        answers[status, b"retry-after: " in headers] += 1

    async def crowd() -> None:
        for _ in range(10):  # a hundred at a time, as many as come in a moment
            await asyncio.gather(*(one() for _ in range(100)))
        assert answers[200, False] == 200
        assert answers[429, True] == 800, answers
        heard = await asyncio.to_thread(of_another)
        assert heard
        for writer in held:
            writer.close()

    def of_another() -> bool:
        with SseReader(site.url, headers=shown(other)) as reader:
            reader.begun()
            job = submitted(store).id
            assert site.get("/api/v1/jobs", headers=shown(other)).status_code == 200
            return bool(next(reader.events())["job"] == job)

    asyncio.run(crowd())
    eventually(lambda: len(site.server._api._guests) == 0)
