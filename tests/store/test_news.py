"""News in the feed: each told once, in order, with its fact and by whoever may see it; what is published, fenced and
bounded. The same on both databases."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, begin, boom, claim_all, claimed, record, settle, submitted
from tests.support.event_data import check_events
from tests.support.tables import counts_of_tables
from tests.support.troubles import raising
from unstuck.model.errors import InvalidInput, NotAsked, NotStorable, StoreBusy, UnknownJob, UnknownTarget
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.keys import Within
from unstuck.model.news import MAX_DATA, MOST_OF_ATTEMPT, Publication, publication
from unstuck.model.settlement import ErrorInfo, Parked, Stopped, Stuck
from unstuck.model.waits import Answer, Wait, WaitKind
from unstuck.store.life import news
from unstuck.store.port import EVERY, FeedEvent, FeedFilter, NewWorker, Pause, Verdict
from unstuck.store.sql_store import SqlStore

DAY = 86400.0
PUSH = Wait(WaitKind.APPROVAL, "approval#1", "Push?", timeout=100.0, who=("ada", "bob"))


class Reader:
    """Reads on from where it stood."""

    def __init__(self, store: SqlStore, **wanted: Any) -> None:
        self._store = store
        self._wanted = FeedFilter(**wanted)
        self._sequence()
        self._cursor = store.feed_bounds().newest

    def _sequence(self) -> None:
        while self._store.sequence() > 0:
            pass

    def read(self) -> list[FeedEvent]:
        self._sequence()
        page = self._store.feed(self._cursor, self._wanted, 100_000)
        assert page.is_last
        self._cursor = page.cursor
        check_events(event for event in page.events if event.by is None)
        return list(page.events)

    def news(self) -> list[FeedEvent]:
        return [event for event in self.read() if event.is_news]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.read()]


def on_disk(store: SqlStore, worker: WorkerRecord, target: str = "disk", **options: Any) -> ClaimedJob:
    submitted(store, target=target, **options)
    store.ingest()
    (attempt,) = claim_all(store, worker)
    return attempt


def blocked(store: SqlStore, worker: WorkerRecord) -> ClaimedJob:
    attempt = on_disk(store, worker, queue="io", retries=0)
    settle(store, worker, attempt.ref, boom())
    assert record(store, attempt.id).is_blocker
    return attempt


def asking(store: SqlStore, worker: WorkerRecord, wait: Wait = PUSH, **options: Any) -> ClaimedJob:
    attempt = on_disk(store, worker, **options)
    settle(store, worker, attempt.ref, Parked(wait))
    return attempt


def said(kind: str = "order.paid", data: dict[str, Any] | None = None, **options: Any) -> Publication:
    return publication(kind, data or {}, options.get("topic"), options.get("ttl"))


# --- what we tell -------------------------------------------------------------------------------------------------


def test_a_worker_joins_leaves_or_is_lost_and_each_is_told_once(store: SqlStore, clock: StoreClock) -> None:
    reader, ours = Reader(store), Reader(store, tenant=TENANT)
    first = a_worker(store, "ada")
    again = store.register_worker(_same(first))  # its answer was lost
    assert again.number == first.number
    second = a_worker(store, "bob", lease=10.0)
    store.unregister_worker(first.number)
    store.unregister_worker(first.number)
    clock.advance(seconds=60)
    for _ in range(2):
        store.recover_lost(1.0)

    told = reader.news()
    assert [(e.kind, e.worker) for e in told] == [
        ("worker.joined", "ada"),
        ("worker.joined", "bob"),
        ("worker.left", "ada"),
        ("worker.lost", "bob"),
    ]
    assert [e.data["number"] for e in told] == [first.number, second.number, first.number, second.number]
    assert {(e.tenant, e.job, e.number) for e in told} == {(None, None, None)}
    assert ours.read() == []  # the platform's


def _same(worker: WorkerRecord) -> Any:
    named = ("incarnation", "name", "host", "boot_id", "pid_namespace", "pid", "pid_start", "queues", "code_version")
    return NewWorker(lease=30.0, **{name: getattr(worker, name) for name in named})


@pytest.mark.parametrize("how", ["resume", "resolve", "skip"])
def test_a_target_is_blocked_and_freed_with_the_move_that_did_it(store: SqlStore, how: str) -> None:
    worker, reader = a_worker(store), Reader(store, target="disk")
    attempt = blocked(store, worker)
    moves = {
        "resume": lambda: store.resume(TENANT, attempt.id, "ada"),
        "resolve": lambda: store.resolve(TENANT, attempt.id, "ada", "1"),
        "skip": lambda: store.skip(TENANT, attempt.id, "ada"),
    }
    moves[how]()
    told = reader.read()
    assert [e.kind for e in told][:3] == ["submitted", "claimed", "failed"]
    assert [e.kind for e in told][3:] == ["target.blocked", _event_of(how), "target.freed"]
    [block, free] = [e for e in told if e.is_news]
    about = (attempt.id, attempt.workflow, "io", "disk", TENANT)
    assert all((e.job, e.workflow, e.queue, e.target, e.tenant) == about for e in (block, free))
    assert free.data == {"by": "ada"}


def _event_of(how: str) -> str:
    return {"resume": "resumed", "resolve": "resolved", "skip": "skipped"}[how]


def test_a_job_that_is_cancelled_frees_the_target_that_it_blocked(store: SqlStore) -> None:
    worker, reader = a_worker(store), Reader(store, kinds=("target.blocked", "target.freed"))
    attempt = on_disk(store, worker)
    store.interrupt(TENANT, attempt.id, "ada")
    begin(store, worker, attempt)
    settle(store, worker, attempt.ref, Stopped())
    assert reader.kinds() == ["target.blocked"]
    store.cancel(TENANT, attempt.id, "ada")
    assert reader.kinds() == ["target.freed"]


@pytest.mark.parametrize(
    ("kind", "name", "tenant", "about"),
    [
        ("queue", "mail", TENANT, {"queue": "mail"}),
        ("queue", "mail", EVERY, {"queue": "mail"}),
        ("workflow", "greet", TENANT, {"workflow": "greet"}),
        ("tenant", TENANT, TENANT, {}),
        ("target", "disk", TENANT, {"target": "disk"}),
    ],
)
def test_a_pause_is_told_when_it_begins_and_when_it_ends(
    store: SqlStore, clock: StoreClock, kind: Any, name: str, tenant: str, about: dict[str, str]
) -> None:
    submitted(store, target="disk")
    ours, others, all_of_it = Reader(store, tenant=TENANT), Reader(store, tenant="acme"), Reader(store)
    now = store.now()
    store.pause(Pause(kind, name, tenant, "ada", now, None, "paint"))
    assert store.unpause(kind, name, tenant, "bob")
    assert not store.unpause(kind, name, tenant, "bob")
    store.pause(Pause(kind, name, tenant, "ada", now, now + timedelta(seconds=5), "paint"))
    clock.advance(seconds=6)
    for _ in range(2):
        store.release_due()
        store.end_pauses()

    told = all_of_it.news()
    facts = {"pause": kind, "name": name, "reason": "paint"}
    until = told[2].data.pop("until")
    assert [(e.kind, e.data) for e in told] == [
        ("pause.begun", {**facts, "by": "ada"}),
        ("pause.ended", {**facts, "by": "bob"}),
        ("pause.begun", {**facts, "by": "ada"}),
        ("pause.ended", {**facts, "by": "time"}),
    ]
    assert until == (now + timedelta(seconds=5)).isoformat()
    assert {(e.tenant, *((f, getattr(e, f)) for f in about)) for e in told} == {(tenant, *about.items())}
    assert len(ours.news()) == 4
    assert len(others.news()) == (4 if tenant == EVERY else 0)
    assert store.pauses() == []


def test_an_entry_of_the_blacklist_is_told_with_its_notification(store: SqlStore) -> None:
    ours, all_of_it = Reader(store, tenant=TENANT, workflow="greet"), Reader(store)
    entry, _ = store.blacklist_add(TENANT, "greet", "it loops", "ada")
    store.blacklist_add(TENANT, "greet", "again", "bob")  # it stands already
    store.blacklist_remove(None, "greet", "bob")
    assert store.blacklist_remove(None, "greet", "bob") == []
    store.notify("Disk", "it is full", "/disk")
    store.notify("Disk", "it is full", "/disk")  # open already
    told = all_of_it.news()
    assert [(e.kind, e.tenant, e.workflow) for e in told] == [
        ("blacklist.added", TENANT, "greet"),
        ("blacklist.removed", TENANT, "greet"),
        ("notification.made", None, None),
    ]
    assert told[0].data == {"number": entry.number, "by": "ada", "reason": entry.reason}
    assert told[1].data == {"number": entry.number, "by": "bob"}
    assert told[2].data["number"] == store.notifications()[0].number
    assert len(ours.read()) == 2


def test_the_breaker_tells_its_entry_and_its_notification(store: SqlStore) -> None:
    worker, reader = a_worker(store), Reader(store, workflow="loops")
    for _ in range(5):
        attempt = claimed(store, worker, workflow="loops")
        settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "it does not answer")))
        if store.blacklist(TENANT):
            break
    told = reader.news()
    assert [(e.kind, e.tenant) for e in told] == [("blacklist.added", TENANT), ("notification.made", TENANT)]
    assert told[0].data["by"] == "system"


def test_an_approval_is_told_when_it_is_asked_and_when_it_is_decided(store: SqlStore) -> None:
    worker, reader = a_worker(store), Reader(store)
    attempt = asking(store, worker)
    store.decide(TENANT, attempt.id, Answer.REJECTED, "ada", "not now")
    store.ingest()
    told = reader.read()
    assert [e.kind for e in told] == [
        "submitted", "claimed", "parked", "approval.asked", "approval.decided", "woken",
    ]  # fmt: skip
    asked, decided = told[3:5]
    assert {(e.job, e.workflow, e.target, e.run, e.token) for e in (asked, decided)} == {
        (attempt.id, attempt.workflow, "disk", 1, attempt.ref.token)
    }
    assert asked.data.pop("until")
    assert asked.data == {"key": "approval#1", "question": "Push?", "who": ["ada", "bob"]}
    assert decided.data == {
        "key": "approval#1", "question": "Push?", "answer": "rejected", "by": "ada", "comment": "not now",
    }  # fmt: skip


def test_an_approval_whose_time_is_over_is_decided_by_it(store: SqlStore, clock: StoreClock) -> None:
    worker, reader = a_worker(store), Reader(store, kinds=("approval.decided", "failed"))
    attempt = asking(store, worker)
    clock.advance(seconds=101)
    store.expire_waits()
    told = reader.read()
    assert [(e.kind, e.job) for e in told] == [("approval.decided", attempt.id), ("failed", attempt.id)]
    assert told[0].data == {"key": "approval#1", "question": "Push?", "answer": "timeout", "by": "timeout"}


def test_what_is_refused_tells_nothing(store: SqlStore, store_url: str) -> None:
    """A decision by somebody who was not asked is rolled back, and its news with it."""
    worker = a_worker(store)
    attempt = asking(store, worker)
    reader = Reader(store)
    with pytest.raises(NotAsked):
        store.decide(TENANT, attempt.id, Answer.APPROVED, "eve")
    with pytest.raises(UnknownTarget):
        store.pause(Pause("target", "nowhere", TENANT, "ada", store.now(), None))
    with pytest.raises(UnknownJob):
        store.publish(TENANT, said(), "ada", "k1", job="nobody")
    assert reader.read() == []
    assert counts_of_tables(store_url)["unstuck_news"] == 2  # the worker, and the question


def test_no_history_of_a_job_has_news(store: SqlStore) -> None:
    """A13: its events are numbered without gaps and fold to its row."""
    worker = a_worker(store)
    attempt = on_disk(store, worker, retries=0)
    store.publish_from(attempt.ref, 1, said())
    settle(store, worker, attempt.ref, boom())
    history = store.history(TENANT, attempt.id)
    assert [(e.number, e.kind) for e in history] == [(1, "submitted"), (2, "claimed"), (3, "failed")]
    assert record(store, attempt.id).events == 3


# --- what is published --------------------------------------------------------------------------------------------


def test_what_is_published_is_told_once_to_its_tenant(store: SqlStore) -> None:
    ours, others = Reader(store, topic="project:7"), Reader(store, tenant="acme")
    job = submitted(store, target="disk", queue="io")
    done = store.publish(TENANT, said(data={"n": 1}, topic="project:7"), "ada", "k1", job=job.id)
    again = store.publish(TENANT, said(data={"n": 1}, topic="project:7"), "ada", "k1", job=job.id)
    assert (done.is_repeat, again.is_repeat, again.number) == (False, True, done.number)
    store.publish("acme", said(), "eve", "k1")  # the same key of another tenant is another
    [told] = ours.read()
    assert (told.kind, told.data, told.topic, told.by, told.tenant) == (
        "order.paid", {"n": 1}, "project:7", "ada", TENANT,
    )  # fmt: skip
    assert (told.job, told.workflow, told.queue, told.target) == (job.id, "greet", "io", "disk")
    assert (told.is_news, told.number, told.run, told.token) == (True, None, None, None)
    assert [(e.by, e.job) for e in others.read()] == [("eve", None)]


def test_a_handler_publishes_under_its_fence(store: SqlStore) -> None:
    """A zombie publishes nothing: its token, or its claim id, is another's."""
    worker, reader = a_worker(store, "ada"), Reader(store, kinds=("other",))
    attempt = on_disk(store, worker)
    ref = attempt.ref
    assert store.publish_from(ref, 1, said("begun", {"n": 1}, topic="t")) is Verdict.DONE
    assert store.publish_from(ref, 1, said("begun", {"n": 1}, topic="t")) is Verdict.DONE  # its answer was lost
    assert reader.read() == []
    for stale in (ref._replace(token=ref.token + 1), ref._replace(claim="x"), ref._replace(job=ref.job + 1)):
        assert store.publish_from(stale, 2, said("begun")) is Verdict.FENCED
    settle(store, worker, ref)
    assert store.publish_from(ref, 3, said("begun")) is Verdict.FENCED
    told = [e for e in Whole(store).read() if e.by is not None]
    assert [(e.kind, e.data, e.topic, e.by, e.job, e.target, e.run, e.token) for e in told] == [
        ("begun", {"n": 1}, "t", "ada", attempt.id, "disk", 1, ref.token)
    ]


class Whole(Reader):
    """From the beginning."""

    def __init__(self, store: SqlStore, **wanted: Any) -> None:
        super().__init__(store, **wanted)
        self._cursor = store.feed_bounds().oldest


@pytest.mark.parametrize(
    ("kind", "data", "options", "problem"),
    [
        ("", {}, {}, "is no word"),
        ("a\nb", {}, {}, "is no word"),
        ("a b", {}, {}, "is no word"),
        ("a,b", {}, {}, "is no word"),
        ("1st", {}, {}, "is no word"),
        ("x" * 65, {}, {}, "is no word"),
        (7, {}, {}, "is no word"),
        ("completed", {}, {}, "tells itself"),
        ("worker.joined", {}, {}, "tells itself"),
        ("job.moved", {}, {}, "tells itself"),
        ("reset", {}, {}, "tells itself"),
        ("ok", [1], {}, "is an object"),
        ("ok", {"a": float("nan")}, {}, "nan"),
        ("ok", {"a": "\x00"}, {}, "NUL"),
        ("ok", {"a": {1, 2}}, {}, "the data of ok"),
        ("ok", {"a": "x" * MAX_DATA}, {}, "the limit is"),
        ("ok", {}, {"topic": "a\nb"}, "cannot be printed"),
        ("ok", {}, {"topic": ""}, "not empty"),
        ("ok", {}, {"ttl": 0}, "ttl=0"),
        ("ok", {}, {"ttl": 1e9}, "ttl="),
        ("ok", {}, {"ttl": "x"}, "ttl="),
    ],
)
def test_what_cannot_be_published_is_refused(kind: Any, data: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((InvalidInput, NotStorable), match=f"(?i){problem}"):
        publication(kind, data, options.get("topic"), options.get("ttl"))


def test_an_attempt_publishes_so_much_and_no_more(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    assert store.publish_from(attempt.ref, MOST_OF_ATTEMPT, said()) is Verdict.DONE
    for place in (0, MOST_OF_ATTEMPT + 1):
        with pytest.raises(InvalidInput, match="publish less often"):
            store.publish_from(attempt.ref, place, said())
    with pytest.raises(NotStorable, match="no object"):
        store.publish_from(attempt.ref, 1, Publication("ok", "7"))


def test_data_with_newlines_comes_back_as_it_was(store: SqlStore) -> None:
    reader = Reader(store)
    data = {"text": "a\nb\r\nevent: reset\n\n", "ä": "\u2028"}
    store.publish(TENANT, said(data=data), "ada", "k")
    [told] = reader.read()
    assert told.data == data


# --- who sees what ------------------------------------------------------------------------------------------------


def everything_there_is(store: SqlStore) -> None:
    """Events of every kind that is easily made, of two tenants, on two queues."""
    worker = a_worker(store)
    blocked(store, worker)
    asked = asking(store, worker, target="tape", queue="mail", workflow="greet")
    submitted(store, tenant="acme", workflow="greet", queue="io", target="disk")
    for tenant, by in itertools.product((TENANT, "acme"), ("ada",)):
        store.publish(tenant, said(topic="t"), by, "k1")
        store.pause(Pause("queue", "io", tenant, "ada", store.now(), None))
    store.pause(Pause("workflow", "greet", EVERY, "ada", store.now(), None))
    store.publish(TENANT, said("Order_Paid"), "ada", "k2", job=asked.id)
    store.blacklist_add("acme", "greet", "x", "ada")
    store.notify("a", "b", "/c")


def test_admits_says_what_the_database_says(store: SqlStore) -> None:
    everything_there_is(store)
    events = Whole(store).read()
    jobs = sorted({e.job for e in events if e.job})
    choices: dict[str, list[Any]] = {
        "tenant": [None, TENANT, "acme", "nobody"],
        "workflow": [None, "greet"],
        "target": [None, "disk"],
        "topic": [None, "t"],
        "job": [None, jobs[0]],
        "kinds": [(), ("submitted", "order.paid"), ("pause.begun",), ("order_paid",)],
        "within": [
            None,
            Within(frozenset({"io"})),
            Within(None, frozenset({"greet"})),
            Within(frozenset({"mail"}), frozenset({"greet"})),
        ],
    }
    seen = set()
    for chosen in itertools.product(*choices.values()):
        if sum(value not in (None, ()) for value in chosen) > 3:
            continue
        wanted = FeedFilter(**dict(zip(choices, chosen, strict=True)))
        page = store.feed(store.feed_bounds().oldest, wanted, 1000)
        assert list(page.events) == [event for event in events if wanted.admits(event)], wanted
        seen.add(len(page.events))
    assert {0, len(events)} < seen


def test_a_reader_kept_to_a_queue_or_workflow_sees_nothing_of_others(store: SqlStore) -> None:
    everything_there_is(store)
    mine = Whole(store, within=Within(frozenset({"io"}))).read()
    assert {e.queue for e in mine} == {"io"}
    assert {"pause.begun", "target.blocked"} <= {e.kind for e in mine}
    greet = Whole(store, tenant="acme", within=Within(None, frozenset({"greet"}))).read()
    assert {(e.workflow, e.tenant) for e in greet} == {("greet", "acme"), ("greet", EVERY)}


# --- in one order with moves ---------------------------------------------------------------------------------------

POSTGRES = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
SLOWLY = (
    "INSERT INTO unstuck_news (number, tenant, by, told_at) VALUES (-1, 'default', 'slow', unstuck_now())",
    "INSERT INTO unstuck_events (job, number, at, kind, run, token) VALUES (0, -1, unstuck_now(), 'slow', 0, 0)",
)


@POSTGRES
def test_a_slow_transaction_hides_no_news_but_its_own(store: SqlStore, store_url: str) -> None:
    """A51: what others commit meanwhile is told at the next look; its own comes behind it, once."""
    reader = Reader(store)
    with psycopg.connect(store_url) as slow:
        for statement in SLOWLY:
            slow.execute(statement)
        for n in range(3):
            store.publish(TENANT, said(f"n{n}"), "ada", f"k{n}")
            job = submitted(store)
            assert [(e.kind, e.job) for e in reader.read()] == [(f"n{n}", None), ("submitted", job.id)]
        assert reader.read() == []
        slow.commit()
    assert reader.kinds() == ["slow"]
    assert Whole(store).kinds() == ["n0", "submitted", "n1", "submitted", "n2", "submitted", "slow"]


@POSTGRES
def test_a_transaction_that_publishes_waits_for_no_other_that_does(store: SqlStore, store_url: str) -> None:
    """Of the same tenant, and of the same attempt's row: nothing here is a row that all publishers share."""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    with psycopg.connect(store_url) as slow:
        for statement in SLOWLY:
            slow.execute(statement)
        slow.execute("SELECT 1 FROM unstuck_running FOR KEY SHARE")  # as another publication of the attempt holds it
        store.publish(TENANT, said("one"), "ada", "k1")
        assert store.publish_from(attempt.ref, 1, said("two")) is Verdict.DONE
        slow.execute("LOCK TABLE unstuck_workers IN SHARE MODE")
        assert store.publish_from(attempt.ref, 2, said("three")) is Verdict.DONE
        slow.rollback()
    assert [e.kind for e in Whole(store).read() if e.by] == ["one", "two", "three"]


@POSTGRES
def test_an_attempt_whose_row_somebody_holds_is_busy_and_holds_up_nobody(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    held, free = claimed(store, worker), claimed(store, worker)
    with psycopg.connect(store_url) as holder:
        holder.execute("SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE", (held.ref.job,))
        with pytest.raises(StoreBusy):
            store.publish_from(held.ref, 1, said("late"))
        assert store.publish_from(free.ref, 1, said("early")) is Verdict.DONE
        holder.rollback()
    assert store.publish_from(held.ref, 1, said("late")) is Verdict.DONE
    assert [e.kind for e in Whole(store).read() if e.by] == ["early", "late"]


@POSTGRES
def test_after_a_dump_is_restored_elsewhere_news_are_neither_lost_nor_doubled(
    store: SqlStore, store_url: str
) -> None:
    """There transactions count from the beginning; see test_feed_storm.py, which does the same to moves."""
    store.publish(TENANT, said("one"), "ada", "k1")
    reader = Whole(store)
    assert reader.kinds() == ["one"]
    store.publish(TENANT, said("two"), "ada", "k2")  # committed, and no position yet
    shift = "CAST(CAST(CAST(CAST({0} AS TEXT) AS BIGINT) + 1000000 AS TEXT) AS XID8)"
    with psycopg.connect(store_url, autocommit=True) as session:
        session.execute(f"UPDATE unstuck_events SET xid = {shift.format('xid')}")
        session.execute(f"UPDATE unstuck_sequencer SET since = {shift.format('since')}")
    store.publish(TENANT, said("three"), "ada", "k3")
    assert store.publish(TENANT, said("two"), "ada", "k2").is_repeat
    store.forget_feed(DAY)
    assert reader.kinds() == ["two", "three"]
    assert Whole(store).kinds() == ["one", "two", "three"]


# --- how long it is kept ------------------------------------------------------------------------------------------


def test_what_has_a_ttl_is_gone_after_it_and_breaks_no_cursor(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    whole = Whole(store)
    store.publish(TENANT, said("short", ttl=10), "ada", "k1")
    store.publish(TENANT, said("long"), "ada", "k2")
    [short, _] = Whole(store).read()
    clock.advance(seconds=11)
    assert Whole(store).kinds() == ["long"]  # before any janitor came
    page = store.feed(short.cursor, FeedFilter())
    assert store.forget_news(DAY) == 1
    assert store.feed(short.cursor, FeedFilter()) == page
    assert [e.kind for e in page.events] == ["long"]
    assert counts_of_tables(store_url)["unstuck_news"] == 1
    assert store.publish(TENANT, said("short"), "ada", "k1").is_repeat is False  # its key went with it
    assert whole.kinds() == ["long", "short"]
    clock.advance(hours=25)
    assert store.forget_news(DAY) == 2
    assert counts_of_tables(store_url)["unstuck_events"] == counts_of_tables(store_url)["unstuck_news"] == 0
    while store.forget_feed(DAY):
        pass
    store.publish(TENANT, said("after"), "ada", "k3")
    assert Reader(store).read() == []
    assert Whole(store).kinds() == ["after"]


def test_the_newest_of_a_tenant_are_kept(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MOST_OF_TENANT", 5)
    store.pause(Pause("queue", "io", TENANT, "ada", store.now(), None))  # not published: it does not count
    for tenant, count in (("acme", 3), (TENANT, 9), ("zoo", 6)):
        for n in range(count):
            store.publish(tenant, said(data={"n": n}), "ada", f"k{n}")
    assert store.forget_news(DAY) == 0
    assert store.forget_published(batch=3) == 3
    assert store.forget_published() == 2
    assert store.forget_published() == 0
    kept = [(e.tenant, e.data["n"]) for e in Whole(store).read() if e.by]
    assert kept == [("acme", n) for n in range(3)] + [(TENANT, n) for n in range(4, 9)] + [
        ("zoo", n) for n in range(1, 6)
    ]


def test_one_that_cannot_be_forgotten_keeps_no_pause_from_its_end(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    now = store.now()
    for name in ("bad", "good"):
        store.pause(Pause("queue", name, TENANT, "ada", now, now + timedelta(seconds=1)))
    clock.advance(seconds=2)
    reader = Reader(store)
    with raising(store_url, "unstuck_pauses", "OLD.name = 'bad'", on="DELETE"):
        assert store.end_pauses() == (1, 1)
        assert [(e.kind, e.queue) for e in reader.read()] == [("pause.ended", "good")]
    assert store.end_pauses() == (1, 0)
    assert [(e.kind, e.queue) for e in reader.read()] == [("pause.ended", "bad")]


def test_what_is_forgotten_while_it_is_looked_for_is_published_again(store: SqlStore) -> None:
    """A janitor between the two statements of a publication: its key is free, as a moment later."""
    first = store.publish(TENANT, said(), "ada", "k1")

    class Meanwhile:
        """A transaction in which somebody forgets the first one, just before it is looked for."""

        def __init__(self, t: Any) -> None:
            self._t = t

        def __getattr__(self, name: str) -> Any:
            return getattr(self._t, name)

        def one(self, statement: str, /, **values: Any) -> Any:
            if statement == "published":
                news._forget(self._t, [first.number])
            return self._t.one(statement, **values)

    again = store._database.write(lambda t: news.publish(Meanwhile(t), TENANT, said(), "ada", "k1", None))
    assert not again.is_repeat
    assert again.number > first.number
