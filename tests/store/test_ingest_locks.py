"""Who holds one row on PostgreSQL holds up what is his: nothing that serves everybody waits for him."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TypeVar

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.store.test_children import gathering, run, spawned
from tests.store.test_pending import claim, end, state
from tests.store.test_targets import ids, on_target, take
from tests.support.builders import TENANT, a_job, a_worker, boom, claimed, record, settle, submitted
from tests.support.eventually import eventually
from tests.support.troubles import holding
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Parked, Stuck
from unstuck.model.waits import Answer, Wait, WaitKind
from unstuck.store.drivers.connect import open_database
from unstuck.store.flow import waits
from unstuck.store.port import Pause, Report
from unstuck.store.sql_store import SqlStore

T = TypeVar("T")
PAID = Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=60.0)


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """SQLite has one lock, on the file: these are PostgreSQL's own troubles."""
    return postgres_url


def at_once(work: Callable[[], T]) -> T:
    """A call that waits for a lock gives up after 1.2 seconds at the earliest."""
    began = monotonic()
    answer = work()
    assert monotonic() - began < 1.0, "it waited"
    return answer


def inbox_of(url: str) -> list[tuple[int | None, int | None]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT target, job FROM unstuck_inbox ORDER BY seq").fetchall()


def sweep(store: SqlStore) -> None:
    store.ingest()
    store.ingest_again()


# --- targets ------------------------------------------------------------------------------------------------------


def test_one_held_target_keeps_one_entry_and_nobody_else(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first = submitted(store, workflow="first")
    after = submitted(store, after=(first.id,))
    asking = claimed(store, worker)
    settle(store, worker, asking.ref, Parked(PAID))
    sweep(store)
    end(store, worker)
    store.signal(TENANT, "paid", "1", "ada", job=asking.id)
    held = on_target(store, 300, target="held")
    others = [on_target(store, 1, target=f"t{n}")[0] for n in range(5)]
    with holding(store_url, "unstuck_targets", "name = 'held'"):
        found = at_once(store.ingest)

        assert found.woken == 7
        assert set(ids(claim(store, worker))) == {*others, after.id, asking.id}
        for _ in range(3):
            at_once(store.ingest)
        assert len(inbox_of(store_url)) == 1
    assert store.ingest().woken == 1
    assert ids(claim(store, worker)) == held[:1]
    assert inbox_of(store_url) == []


def test_a_hundred_thousand_entries_of_a_held_target_become_one_while_others_go_on(
    store: SqlStore, store_url: str
) -> None:
    worker = a_worker(store)
    on_target(store, 1, target="held")
    with psycopg.connect(store_url) as connection:
        connection.execute(
            "INSERT INTO unstuck_inbox (target) SELECT id FROM unstuck_targets, generate_series(1, 100000)"
        )
    (other,) = on_target(store, 1, target="other")
    with holding(store_url, "unstuck_targets", "name = 'held'"):
        longest, found = 0.0, []
        for _ in range(300):
            began = monotonic()
            entries = store.ingest().entries
            longest = max(longest, monotonic() - began)
            found += ids(claim(store, worker))
            if entries <= 1:
                break
        assert found == [other]
        assert len(inbox_of(store_url)) == 1
        assert longest < 2.0
    assert store.ingest().woken == 1


def test_one_target_that_is_too_slow_for_any_call_is_set_aside(store_url: str) -> None:
    store = SqlStore(open_database(store_url, store_call=1.0))
    store.submit([a_job(target=f"t{n}") for n in range(40)])
    slow = store.target(TENANT, "t7")
    assert slow is not None
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE TRIGGER doze BEFORE UPDATE ON unstuck_targets FOR EACH ROW "
            f"WHEN (NEW.id = {slow.number}) EXECUTE FUNCTION doze()"
        )

        def is_set_aside() -> bool:
            with suppress(StoreError):
                store.ingest()
            return [one.target for one in store.quarantined()] == ["t7"]

        eventually(is_set_aside, timeout=60.0)
        store.ingest()
        assert len(claim(store, a_worker(store))) == 39
        connection.execute("DROP TRIGGER doze ON unstuck_targets")
    sweep(store)
    assert store.quarantined() == []
    store.close()


def test_entries_of_a_target_that_is_gone_go(store: SqlStore, store_url: str) -> None:
    with psycopg.connect(store_url) as connection:
        connection.execute("INSERT INTO unstuck_inbox (target) VALUES (999999)")
    assert store.ingest().entries == 1
    assert inbox_of(store_url) == []


def test_a_head_that_somebody_is_claiming_is_looked_at_again(store: SqlStore, store_url: str) -> None:
    """A claim whose answer nobody reads holds its ready row; should it be rolled back, the head yields after all."""
    worker = a_worker(store)
    (low,) = on_target(store, 1, target="acme")
    store.ingest()
    (high,) = on_target(store, 1, target="acme", priority=9)
    (other,) = on_target(store, 1, target="other")
    with holding(store_url, "unstuck_ready", f"job = {record(store, low).number}"):
        assert at_once(store.ingest).woken == 1
        assert ids(claim(store, worker)) == [other]
    store.ingest()
    assert ids(claim(store, worker)) == [high]
    assert inbox_of(store_url) == []


def test_a_head_that_runs_is_not_looked_at_for_ever(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    on_target(store, 1, target="acme")
    take(store, worker)
    on_target(store, 1, target="acme", priority=9)
    store.ingest()
    assert inbox_of(store_url) == []


def test_one_held_target_keeps_no_other_paused(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    jobs = [on_target(store, 1, target=f"t{n}")[0] for n in range(3)]
    for n in range(3):
        store.pause(Pause("target", f"t{n}", TENANT, "me", until_at=clock.now() + timedelta(seconds=60)))
    store.ingest()
    clock.advance(61)
    with holding(store_url, "unstuck_targets", "name = 't1'"):
        assert at_once(store.release_due) == 2
        assert ids(claim(store, worker)) == [jobs[0], jobs[2]]
    assert store.release_due() == 1


def _stuck(store: SqlStore, names: list[str], lease: float) -> int:
    worker = a_worker(store, lease=lease)
    for name in names:
        on_target(store, 2, target=name, on_failure="continue")
    attempts = take(store, worker)
    stuck = Stuck(ErrorInfo("ExecutionStuck", "did not respond"))
    store.settle(worker.number, [Report(one.ref, stuck, duration_ms=1) for one in attempts])
    return worker.number


def test_one_held_target_keeps_no_other_hold(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    _stuck(store, ["t0", "t1", "t2"], lease=10.0)
    clock.advance(60)
    with holding(store_url, "unstuck_targets", "name = 't1'"):
        assert at_once(lambda: store.lift_body_marks(8.0)) == 2
        assert at_once(lambda: store.lift_body_marks(8.0)) == 0
    assert store.lift_body_marks(8.0) == 1


def test_what_a_living_worker_lifts_while_the_target_is_held_the_next_sweep_lifts(
    store: SqlStore, store_url: str
) -> None:
    worker = _stuck(store, ["acme"], lease=600.0)
    with psycopg.connect(store_url) as connection:
        row = connection.execute("SELECT job FROM unstuck_body_marks").fetchone()
    assert row is not None
    with holding(store_url, "unstuck_targets", "name = 'acme'"):
        assert at_once(lambda: store.lift_body_mark(worker, row[0]))
        assert store.ingest().woken == 0
    assert len(store.open_routes()) == 0
    assert store.lift_body_marks(8.0) == 1
    assert len(store.open_routes()) == 1


def test_a_person_waits_for_his_own_target_and_is_told_why(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    (job,) = on_target(store, 1, target="acme")
    (attempt,) = take(store, worker)
    settle(store, worker, attempt.ref, boom())
    store.cancel(TENANT, job, "me")
    with holding(store_url, "unstuck_targets", "name = 'acme'"), pytest.raises(StoreBusy, match="lock"):
        store.resume(TENANT, job, "me")
    assert store.resume(TENANT, job, "me").state is JobState.QUEUED


# --- jobs, waits, entries -----------------------------------------------------------------------------------------


def test_one_held_dependant_keeps_no_other(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first = submitted(store)
    jobs = [submitted(store, after=(first.id,)) for _ in range(5)]
    sweep(store)
    end(store, worker)
    with holding(store_url, "unstuck_jobs", f"uid = '{jobs[2].id}'"):
        assert at_once(store.ingest).woken == 4
        at_once(store.ingest)
        assert state(store, jobs[2]) is JobState.PENDING
    sweep(store)
    assert state(store, jobs[2]) is JobState.QUEUED


def test_a_held_place_in_a_line_keeps_no_other_from_its_turn(store: SqlStore, store_url: str) -> None:
    """Nobody can skip it; but nobody waits long for it, and not for ever."""
    worker = a_worker(store)
    (held,) = on_target(store, 1, target="held")
    others = [on_target(store, 1, target=f"t{n}")[0] for n in range(5)]
    with holding(store_url, "unstuck_line", f"job = {record(store, held).number}"):
        store.ingest()
        assert set(ids(claim(store, worker))) == set(others)
        store.ingest()
    sweep(store)
    assert ids(claim(store, worker)) == [held]
    assert store.quarantined() == []


def test_a_held_word_about_who_waits_for_whom_keeps_no_other_waiting(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first = submitted(store)
    held, *others = [submitted(store, after=(first.id,)) for _ in range(5)]
    sweep(store)
    end(store, worker)
    with holding(store_url, "unstuck_dependencies", f"job = {record(store, held.id).number}"):
        store.ingest()
        assert {state(store, job) for job in others} == {JobState.QUEUED}
        assert state(store, held) is JobState.PENDING
    sweep(store)
    assert state(store, held) is JobState.QUEUED
    assert store.quarantined() == []


def test_the_held_timer_of_a_wait_keeps_no_other_from_its_answer(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    held, *others = [claimed(store, worker) for _ in range(4)]
    for attempt in (held, *others):
        settle(store, worker, attempt.ref, Parked(PAID))
        store.signal(TENANT, "paid", "1", "ada", job=attempt.id)
    with holding(store_url, "unstuck_timers", f"job = {held.ref.job}"):
        store.ingest()
        assert {state(store, attempt.id) for attempt in others} == {JobState.QUEUED}
        assert state(store, held.id) is JobState.WAITING
    sweep(store)
    assert state(store, held.id) is JobState.QUEUED
    assert store.quarantined() == []


def test_one_held_wait_keeps_no_other_parent(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    parents = [claimed(store, worker) for _ in range(4)]
    kids = [spawned(store, parent, workflow=f"child-{n}") for n, parent in enumerate(parents)]
    for parent, child in zip(parents, kids, strict=True):
        settle(store, worker, parent.ref, gathering(child))
    sweep(store)
    for child in kids:
        run(store, worker, child)
    with holding(store_url, "unstuck_waits", f"job = {parents[1].ref.job}"):
        assert at_once(store.ingest).woken == 3
        at_once(store.ingest)
        assert state(store, parents[1].id) is JobState.WAITING
    sweep(store)
    assert state(store, parents[1].id) is JobState.QUEUED


def test_one_held_wait_keeps_no_other_from_its_end(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    jobs = [claimed(store, worker) for _ in range(4)]
    for attempt in jobs:
        settle(store, worker, attempt.ref, Parked(PAID))
    clock.advance(61)
    with holding(store_url, "unstuck_waits", f"job = {jobs[0].ref.job}"):
        assert at_once(lambda: store.expire_waits(2)) == 3
        assert at_once(lambda: store.expire_waits(2)) == 0
    assert store.expire_waits() == 1


def test_many_waits_on_a_held_target_keep_no_other_from_its_end(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    """They are older, and more than one look shows."""
    worker = a_worker(store, lease=1e6)
    parked = Parked(Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=60.0, release_target=True))
    on_target(store, 10, target="held")
    for _ in range(10):
        for attempt in take(store, worker):
            settle(store, worker, attempt.ref, parked)
    (last,) = on_target(store, 1, target="other")
    (attempt,) = take(store, worker)
    settle(store, worker, attempt.ref, parked)
    clock.advance(61)
    with holding(store_url, "unstuck_targets", "name = 'held'"):
        assert at_once(lambda: store.expire_waits(3)) == 1
        assert state(store, last) is JobState.FAILED
    assert store.expire_waits(3) > 0


def test_one_held_entry_keeps_no_other(store: SqlStore, store_url: str) -> None:
    store.submit([a_job(target=f"t{n}") for n in range(5)])
    with holding(store_url, "unstuck_inbox", "target = (SELECT min(target) FROM unstuck_inbox)"):
        assert at_once(store.ingest).woken == 4
    sweep(store)
    assert len(claim(store, a_worker(store))) == 5


def test_children_that_somebody_holds_keep_no_other_from_its_end(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    kids = [spawned(store, parent, ordinal=n, target=f"t{n}", workflow=f"w{n}") for n in range(1, 7)]
    sweep(store)
    running = claim(store, worker)[0]
    settle(store, worker, parent.ref, boom())
    store.cancel(TENANT, parent.id, "me")
    free = [kid for kid in kids if kid.id != running.id]
    with (
        holding(store_url, "unstuck_targets", "name = 't2'"),
        holding(store_url, "unstuck_jobs", f"uid = '{free[2].id}'"),
    ):
        at_once(lambda: store.tend_children(2))
        at_once(lambda: store.tend_children(100))
    store.tend_children()
    assert {state(store, kid.id) for kid in free} <= {JobState.CANCELLED, JobState.RUNNING}
    assert store.tend_children() == 0


# --- what is forgotten --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["unstuck_keys", "unstuck_orders", "unstuck_audit"])
def test_one_that_somebody_holds_keeps_no_other_from_being_forgotten(
    store: SqlStore, store_url: str, clock: StoreClock, table: str
) -> None:
    worker = a_worker(store)
    for pid in ("1", "2"):
        store.submit([a_job(key=f"key-{pid}", fingerprint="f")])
        store.give_order(worker.number, "recycle", pid, "me")
    for attempt in claim(store, worker):
        settle(store, worker, attempt.ref)
    clock.advance(days=400)
    forgets: dict[str, Callable[[], int]] = {
        "unstuck_keys": store.forget_keys,
        "unstuck_orders": lambda: store.forget_orders(3600.0),
        "unstuck_audit": lambda: store.forget_audit(3600.0),
    }
    forget = forgets[table]
    oldest = "key = 'key-1'" if table == "unstuck_keys" else f"id = (SELECT MIN(id) FROM {table})"
    with holding(store_url, table, oldest):
        assert forget() == 1
    assert forget() == 1


# --- addresses ----------------------------------------------------------------------------------------------------


def test_who_parks_while_his_event_is_being_sent_gets_it(store: SqlStore, store_url: str) -> None:
    """The address is held by a sender who saw nobody wait; the park, and others in its batch, wait for nobody."""
    worker = a_worker(store)
    asking, other = claimed(store, worker), claimed(store, worker)
    key = waits._mutex(TENANT, f"job:{asking.id}")
    with psycopg.connect(store_url) as sender:
        sender.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        reports = [Report(one.ref, Parked(PAID), duration_ms=1) for one in (asking, other)]
        assert {one.state for one in at_once(lambda: store.settle(worker.number, reports))} == {JobState.WAITING}
        store.signal(TENANT, "paid", "2", "ada", job=other.id)
        at_once(store.ingest)
        assert [state(store, one.id) for one in (asking, other)] == [JobState.WAITING, JobState.QUEUED]
        sender.execute(
            "INSERT INTO unstuck_unclaimed_events (tenant, address, event, payload, run, by, sent_at, expires_at) "
            "VALUES (%s, %s, 'paid', '1', 1, 'eve', 1, 1::bigint << 60)",
            (TENANT, f"job:{asking.id}"),
        )
        sender.commit()
    sweep(store)
    (found,) = store.waits_of(TENANT, asking.id)
    assert (state(store, asking.id), found.answer, found.payload) == (JobState.QUEUED, Answer.EVENT, "1")
    assert inbox_of(store_url) == []


def test_letters_of_one_topic_go_to_those_who_ask_each_one(store: SqlStore) -> None:
    worker = a_worker(store)
    for n in range(3):
        store.signal(TENANT, "paid", str(n), "ada", topic="orders")
    asking = [claimed(store, worker) for _ in range(4)]
    wait = Wait(WaitKind.EVENT, "event:paid#1", "paid", topic="orders", timeout=60.0)
    store.settle(worker.number, [Report(one.ref, Parked(wait), duration_ms=1) for one in asking])
    got = sorted(found.payload or "" for one in asking for found in store.waits_of(TENANT, one.id))
    assert got == ["", "0", "1", "2"]
