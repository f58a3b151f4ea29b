"""The feed of one store: what it shows, from where it goes on, how long it is kept; the same on both databases."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, claimed, record, settle, submitted
from tests.support.eventually import eventually
from tests.support.troubles import SAYS, execute, raising
from unstuck.model.errors import InvalidInput, StaleCursor, StoreBusy
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.observe.feed import Reader
from unstuck.observe.stream import Stream
from unstuck.store.database import Transaction
from unstuck.store.port import FeedFilter, FeedPage, Report
from unstuck.store.rows import packed
from unstuck.store.sql_store import SqlStore
from unstuck.views.flow import FeedEventView

DAY = 86400.0


def read(store: SqlStore, after: str, limit: int = 1000, **wanted: object) -> FeedPage:
    while store.sequence() > 0:
        pass
    return store.feed(after, FeedFilter(**wanted), limit)  # type: ignore[arg-type]


def told(page: FeedPage) -> list[tuple[str | None, str]]:
    return [(event.job, event.kind) for event in page.events]


def newest(store: SqlStore) -> str:
    while store.sequence() > 0:
        pass
    return store.feed_bounds().newest


def test_a_feed_begins_empty_and_shows_every_event_once_in_order(store: SqlStore) -> None:
    bounds = store.feed_bounds()
    assert bounds.oldest == bounds.newest
    worker = a_worker(store)
    attempt = claimed(store, worker, workflow="greet", queue="mail")
    settle(store, worker, attempt.ref)
    page = read(store, bounds.oldest, tenant=TENANT)
    assert told(page) == [(attempt.id, kind) for kind in ("submitted", "claimed", "completed")]
    assert [(e.tenant, e.workflow, e.queue, e.number) for e in page.events] == [
        (TENANT, "greet", "mail", n) for n in (1, 2, 3)
    ]
    assert [(e.job, e.number, e.kind, e.at, e.run, e.token, e.data) for e in page.events] == [
        (e.job, e.number, e.kind, e.at, e.run, e.token, e.data) for e in store.history(TENANT, attempt.id)
    ]
    assert page.is_last
    assert read(store, page.cursor).events == ()


def test_a_reader_goes_on_after_any_event_it_has_seen(store: SqlStore) -> None:
    start = newest(store)
    jobs = [submitted(store).id for _ in range(5)]
    whole = read(store, start)
    for place, event in enumerate(whole.events):
        assert [e.job for e in read(store, event.cursor).events] == jobs[place + 1 :]
    first = read(store, start, limit=2)
    assert not first.is_last
    assert [e.job for e in first.events + read(store, first.cursor, limit=3).events] == jobs


def test_a_filtered_reader_moves_on_past_what_it_does_not_want(store: SqlStore) -> None:
    start = newest(store)
    greet, bill = submitted(store, workflow="greet").id, submitted(store, workflow="bill").id
    other = submitted(store, tenant="acme", workflow="greet").id
    store.cancel(TENANT, bill, "me")
    assert told(read(store, start, workflow="bill")) == [(bill, "submitted"), (bill, "cancelled")]
    assert told(read(store, start, kinds=("cancelled", "failed"))) == [(bill, "cancelled")]
    assert told(read(store, start, job=greet)) == [(greet, "submitted")]
    assert told(read(store, start, tenant="acme")) == [(other, "submitted")]
    nothing = read(store, start, workflow="unheard\x00of")
    assert (nothing.events, nothing.cursor) == ((), newest(store))
    few = read(store, start, limit=1, workflow="bill")
    assert (few.events, few.is_last) == ((), False)
    assert told(read(store, few.cursor, limit=1, workflow="bill")) == [(bill, "submitted")]


def test_what_was_rolled_back_is_in_no_feed(store: SqlStore) -> None:
    start = newest(store)
    job = submitted(store)

    def half(t: Transaction) -> None:
        event = {"job": 1, "number": 2, "at": 1, "kind": "requested", "run": 1, "token": 0, "data": "{}"}
        assert t.run("add_events", rows=packed([event])) == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store._database.write(half)
    after = submitted(store)
    assert told(read(store, start)) == [(job.id, "submitted"), (after.id, "submitted")]


@pytest.mark.parametrize("cursor", ["", "x", "12", "0000000-1", "zzzzzzzz-1", "00000000-", "00000000-1 "])
def test_what_is_no_cursor_is_refused(store: SqlStore, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not a cursor that a feed gave out"):
        store.feed(cursor, FeedFilter())


def test_a_cursor_of_another_database_is_told_where_the_feed_begins(store: SqlStore) -> None:
    oldest = store.feed_bounds().oldest
    other = ("1" if oldest[0] == "0" else "0") + oldest[1:8]
    with pytest.raises(StaleCursor, match="another database's feed") as refused:
        store.feed(f"{other}-0", FeedFilter())
    assert (refused.value.go_on, refused.value.reason) == (oldest, "foreign")


def test_a_cursor_ahead_of_the_feed_is_told_where_the_feed_ends(store: SqlStore) -> None:
    """A backup was restored: what the reader has seen is gone."""
    submitted(store)
    end = newest(store)
    with pytest.raises(StaleCursor, match="ahead of the feed") as refused:
        store.feed(f"{end}0", FeedFilter())
    assert refused.value.go_on == end


def test_a_cursor_that_is_too_old_is_told_from_where_to_go_on(store: SqlStore, clock: StoreClock) -> None:
    start = newest(store)
    old = submitted(store)
    seen = read(store, start)
    clock.advance(hours=23)
    assert store.forget_feed(DAY) == 0
    young = submitted(store)
    assert told(read(store, seen.cursor)) == [(young.id, "submitted")]
    clock.advance(hours=2)
    assert store.forget_feed(DAY) == 1
    with pytest.raises(StaleCursor, match="what is kept begins after") as refused:
        store.feed(start, FeedFilter())
    assert refused.value.go_on == store.feed_bounds().oldest
    assert told(read(store, refused.value.go_on)) == [(young.id, "submitted")]
    assert told(read(store, seen.cursor)) == [(young.id, "submitted")]
    assert len(store.history(TENANT, old.id)) == 1, "the events of a job live as long as it does"


def test_a_feed_that_nobody_read_for_a_day_begins_anew(store: SqlStore, clock: StoreClock) -> None:
    start = newest(store)
    for _ in range(3):
        submitted(store)
    clock.advance(hours=25)
    late = submitted(store)
    store.sequence(DAY)
    store.forget_feed(DAY)
    with pytest.raises(StaleCursor) as refused:
        store.feed(start, FeedFilter())
    after = submitted(store)
    assert [e.job for e in read(store, refused.value.go_on).events] in ([late.id, after.id], [after.id])


def test_events_of_forgotten_jobs_are_gone_and_the_feed_goes_on(store: SqlStore, clock: StoreClock) -> None:
    start = newest(store)
    worker = a_worker(store, lease=1e9)
    gone = claimed(store, worker)
    settle(store, worker, gone.ref)
    read(store, start)
    clock.advance(hours=2)
    assert store.forget_ended(3600) == 1
    stays = submitted(store)
    assert told(read(store, start, tenant=TENANT)) == [(stays.id, "submitted")]


def test_whoever_sees_the_last_event_reads_state_result_and_logs_at_once(store: SqlStore) -> None:
    """A52, with the settle on another thread, and a read as soon as the event shows."""
    worker = a_worker(store)
    feed = Stream(Reader(store, "now", FeedFilter(kinds=("completed",)), FeedEventView.of, kept=DAY))
    attempts = [claimed(store, worker) for _ in range(30)]
    settler = threading.Thread(target=settle_all, args=(store, worker.number, attempts))
    settler.start()
    try:
        for _ in attempts:
            event = next(feed)
            assert event.job is not None
            job = record(store, event.job)
            assert (job.state, job.result) == (JobState.COMPLETED, f'"{event.job}"')
            assert store.attempts(TENANT, event.job)[-1].output == f"said by {event.job}\n"
    finally:
        settler.join(30)


def settle_all(store: SqlStore, worker: int, attempts: list[ClaimedJob]) -> None:
    for a in attempts:
        store.settle(worker, [Report(a.ref, Returned(f'"{a.id}"'), output=f"said by {a.id}\n")])


def test_a_feed_follows_until_it_is_closed(store: SqlStore) -> None:
    submitted(store)
    feed = Stream(Reader(store, "now", FeedFilter(), FeedEventView.of, kept=DAY))
    seen: list[FeedEventView] = []
    follower = threading.Thread(target=lambda: keep(seen, feed))
    follower.start()
    jobs = [submitted(store).id for _ in range(3)]
    eventually(lambda: len(seen) == 3)
    feed.close()
    follower.join(10)
    assert not follower.is_alive()
    assert [event.job for event in seen] == jobs
    assert feed.cursor == seen[-1].cursor == newest(store)


def keep(seen: list[FeedEventView], feed: Stream[FeedEventView]) -> None:
    for event in feed:
        seen.append(event)  # noqa: PERF402 - one by one, so that others see them


def test_the_cursor_of_a_feed_is_behind_what_was_not_taken_yet(store: SqlStore) -> None:
    feed = listing(store)
    jobs = [submitted(store).id for _ in range(3)]
    assert next(feed).job == jobs[0]
    assert [event.job for event in listing(store, feed.cursor)] == jobs[1:]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.timeout(20)
def test_a_list_waits_for_nobody_who_holds_the_feed(store: SqlStore, store_url: str) -> None:
    """Over HTTP lists have eight threads, and everybody else's requests have the same eight."""
    first = submitted(store)
    assert [event.job for event in listing(store)] == [first.id]
    with psycopg.connect(store_url) as holder:
        holder.execute("SELECT 1 FROM unstuck_sequencer FOR UPDATE")
        late = submitted(store)
        feed = listing(store)
        assert [event.job for event in feed] == [first.id]
        holder.rollback()
    assert [event.job for event in listing(store, feed.cursor)] == [late.id]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.timeout(20)
def test_a_list_waits_for_no_feed_that_takes_no_rows(store: SqlStore, store_url: str) -> None:
    with raising(store_url, "unstuck_feed", "NEW.last > 0"):
        submitted(store)
        with pytest.raises(StoreBusy, match="the feed takes no new events"):
            list(listing(store))


@pytest.mark.parametrize(
    "damaged", ["{bad", "[1]", "null", '{"a":' + "[" * 5000 + "]" * 5000 + "}"], ids=["text", "list", "null", "deep"]
)
def test_an_event_that_cannot_be_read_keeps_nobody_from_what_follows(
    store: SqlStore, store_url: str, damaged: str
) -> None:
    before, hit, after = (submitted(store) for _ in range(3))
    number = f"(SELECT id FROM unstuck_jobs WHERE uid = '{hit.id}')"
    execute(store_url, f"UPDATE unstuck_events SET data = '{damaged}' WHERE job = {number}")
    events = [*listing(store)]
    assert [event.job for event in events] == [before.id, hit.id, after.id]
    assert [event.data == {"unreadable": True} for event in events] == [False, True, False]
    assert [event.data for event in store.history(TENANT, hit.id)] == [{"unreadable": True}]


def listing(store: SqlStore, after: str | None = None) -> Stream[FeedEventView]:
    return Stream(Reader(store, after, FeedFilter(), FeedEventView.of, kept=DAY), follow=False)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_feed_that_takes_no_rows_says_so_and_loses_nothing(store: SqlStore, store_url: str) -> None:
    """SQLite's events are its feed."""
    start = newest(store)
    with raising(store_url, "unstuck_feed", "NEW.last > 0"):
        job = submitted(store)
        with pytest.raises(StoreBusy, match=f"the feed takes no new events: .*{SAYS}"):
            store.sequence()

    assert told(read(store, start)) == [(job.id, "submitted")]
