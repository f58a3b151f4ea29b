"""Bulks: a verb over all the jobs that a filter wants, carried out by janitors."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    boom,
    chance,
    claim_all,
    claimed,
    kinds,
    record,
    settle,
    submitted,
)
from tests.support.eventually import eventually
from tests.support.parking import Stage
from tests.support.plans import filled, plan_of, run, scans
from tests.support.postgres import PostgresServer
from tests.support.troubles import execute, raising
from unstuck.model.bulk import BulkOptions, BulkState, BulkVerb, Refusal
from unstuck.model.errors import BulkEnded, OtherCount, UnknownBulk
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState, RequestKind, Shown
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.statements import Statements
from unstuck.store.life import bulks
from unstuck.store.port import HELD, BulkRecord, JobFilter, NewBulk, Store
from unstuck.store.sql_store import SqlStore

QUEUED = JobFilter(states=(JobState.QUEUED,))
FAILED = JobFilter(states=(JobState.FAILED,))


def start(
    store: Store, verb: BulkVerb, filter: JobFilter, *, expected: int | None = None, **options: Any
) -> BulkRecord:
    bulk = NewBulk(chance.nonce(), TENANT, verb, filter, "ada", BulkOptions(**options), expected)
    return store.start_bulk(bulk)


def shown(store: Store, bulk: BulkRecord) -> BulkRecord:
    found = store.bulk(TENANT, bulk.number)
    assert found is not None
    return found


def carried(store: Store, bulk: BulkRecord) -> BulkRecord:
    store.carry_bulks()
    return shown(store, bulk)


def numbers(bulk: BulkRecord) -> tuple[int, int, int, int, int]:
    return bulk.matched, bulk.done, bulk.refused, bulk.moved_on, bulk.left


def failed(store: SqlStore, count: int = 1, **options: Any) -> list[str]:
    worker = a_worker(store, lease=1e6)
    attempts = [claimed(store, worker, retries=0, **options) for _ in range(count)]
    for attempt in attempts:
        settle(store, worker, attempt.ref, boom())
    return [attempt.id for attempt in attempts]


def test_a_cancel_over_a_filter_ends_what_rests_and_asks_what_runs(store: SqlStore) -> None:
    worker = a_worker(store)
    running = claimed(store, worker, tags=("nightly",))
    resting = [submitted(store, tags=("nightly",), delay=delay).id for delay in (0.0, 60.0)]
    on_target = submitted(store, tags=("nightly",), target="acme")
    held = submitted(store, tags=("nightly",), on_hold=True)
    other = submitted(store)

    bulk = start(store, BulkVerb.CANCEL, JobFilter(tag="nightly"), reason="wrong file")
    assert (bulk.state, numbers(bulk)) == (BulkState.RUNNING, (0, 0, 0, 0, 0))
    done = carried(store, bulk)

    assert (done.state, numbers(done)) == (BulkState.DONE, (5, 5, 0, 0, 0))
    assert done.ended_at is not None
    assert done.is_looked_through
    for job in (*resting, on_target.id, held.id):
        assert record(store, job).error_message == "cancelled by ada: wrong file"
        last = store.history(TENANT, job)[-1]
        assert (last.kind, last.data["by"], last.data["bulk"]) == ("cancelled", "ada", bulk.number)
    assert record(store, running.id).request is RequestKind.CANCEL
    assert store.history(TENANT, running.id)[-1].data["bulk"] == bulk.number
    assert record(store, other.id).state is JobState.QUEUED


def test_an_interrupt_pauses_and_a_resume_lets_go_on(store: SqlStore) -> None:
    waiting = Stage(store).awaits("paid")
    queued = submitted(store)

    paused = carried(store, start(store, BulkVerb.INTERRUPT, JobFilter(states=(JobState.QUEUED, JobState.WAITING))))
    assert (paused.state, numbers(paused)) == (BulkState.DONE, (2, 2, 0, 0, 0))
    assert {record(store, job).state for job in (waiting, queued.id)} == {JobState.PAUSED}

    resumed = carried(store, start(store, BulkVerb.RESUME, JobFilter(states=(JobState.PAUSED,)), from_start=True))
    assert numbers(resumed) == (2, 2, 0, 0, 0)
    assert {record(store, job).run for job in (waiting, queued.id)} == {2}
    assert store.history(TENANT, queued.id)[-1].data == {"by": "ada", "bulk": resumed.number, "from_start": True}


def test_a_retry_runs_what_failed_again_and_hurries_what_waits_for_its_time(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    over = failed(store, 2, tags=("a",))
    later = submitted(store, tags=("a",), delay=3600.0)
    completed = claimed(store, worker, tags=("a",))
    settle(store, worker, completed.ref)

    bulk = carried(store, start(store, BulkVerb.RETRY, JobFilter(tag="a")))

    assert (bulk.state, numbers(bulk)) == (BulkState.DONE, (4, 3, 1, 0, 0))
    assert bulk.reasons == (
        Refusal(completed.id, f"job {completed.id}: a COMPLETED job cannot be retried: it has ended"),
    )
    assert {job.id for job in claim_all(store, worker)} == {*over, later.id}


def test_a_job_that_fails_again_is_not_retried_twice_by_one_bulk(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    (job,) = failed(store)
    bulk = start(store, BulkVerb.RETRY, FAILED)
    store.carry_bulks(enough=lambda: True)
    (again,) = claim_all(store, worker)
    settle(store, worker, again.ref, boom())

    done = carried(store, bulk)

    assert (done.state, numbers(done)) == (BulkState.DONE, (1, 1, 0, 0, 0))
    assert (record(store, job).state, record(store, job).run) == (JobState.FAILED, 2)


def test_a_release_lifts_holds_and_forces_where_it_is_told_to(store: SqlStore) -> None:
    first = submitted(store)
    held = [submitted(store, on_hold=True).id, submitted(store, after=(first.id,)).id]
    pending = JobFilter(states=(JobState.PENDING,))

    gently = carried(store, start(store, BulkVerb.RELEASE, pending))
    assert (numbers(gently), len(gently.reasons)) == ((2, 1, 1, 0, 0), 1)
    assert "force its release" in gently.reasons[0].reason

    assert numbers(carried(store, start(store, BulkVerb.RELEASE, pending, force=True))) == (1, 1, 0, 0, 0)
    assert {record(store, job).state for job in held} == {JobState.QUEUED}
    assert store.history(TENANT, held[1])[-1].data["force"] is True


def test_a_skip_lets_targets_move_on(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    blockers = []
    for name in ("acme", "zeta"):
        store.submit([a_job(target=name, retries=0), a_job(target=name)])
        store.ingest()
        (attempt,) = claim_all(store, worker)
        store.beat(worker.number, 1e6, [attempt.ref], started={attempt.ref.job: store.now()})
        settle(store, worker, attempt.ref, boom())
        blockers.append(attempt.id)
    assert all(record(store, job).is_blocker for job in blockers)

    bulk = carried(store, start(store, BulkVerb.SKIP, FAILED))

    assert numbers(bulk) == (2, 2, 0, 0, 0)
    assert kinds(store, blockers[0])[-1] == "skipped"
    assert len(claim_all(store, worker)) == 2, "the next of each target may run"


def test_a_whole_line_is_cancelled_and_its_target_is_free(store: SqlStore) -> None:
    """The cancel of each lets the next one in, which is cancelled by the same transaction."""
    worker = a_worker(store)
    store.submit([a_job(target="acme", priority=n % 3) for n in range(60)])
    store.ingest()
    (running,) = claim_all(store, worker)

    assert numbers(carried(store, start(store, BulkVerb.CANCEL, JobFilter(target="acme")))) == (60, 60, 0, 0, 0)

    settle(store, worker, running.ref, boom())
    assert store.counts()[JobState.CANCELLED] == 60
    assert store.line(TENANT, "acme", 5) == []
    new = submitted(store, target="acme")
    store.ingest()
    assert [attempt.id for attempt in claim_all(store, worker)] == [new.id]


def test_a_family_is_cancelled_once_each(store: SqlStore) -> None:
    """Parent, children and dependants together: what the cancel of one does to others is not undone or doubled."""
    stage = Stage(store)
    parent = stage.begun()
    children = [stage.spawn(parent, "child", ordinal).id for ordinal in (1, 2, 3)]
    after = submitted(store, after=tuple(children))
    store.ingest()

    bulk = carried(store, start(store, BulkVerb.CANCEL, JobFilter()))
    stage.end(parent, boom())
    store.ingest()
    store.tend_children()

    assert numbers(bulk) == (5, 5, 0, 0, 0)
    for job in (parent.id, *children, after.id):
        assert kinds(store, job).count("cancelled") == 1
        assert record(store, job).state is JobState.CANCELLED


def test_jobs_submitted_after_it_began_do_not_count(store: SqlStore) -> None:
    old = submitted(store)
    bulk = start(store, BulkVerb.CANCEL, QUEUED)
    young = submitted(store)

    assert numbers(carried(store, bulk)) == (1, 1, 0, 0, 0)
    assert (record(store, old.id).state, record(store, young.id).state) == (JobState.CANCELLED, JobState.QUEUED)


def test_a_bulk_is_about_its_own_tenant(store: SqlStore) -> None:
    other = a_job(tenant="zeta")
    store.submit([other])
    bulk = start(store, BulkVerb.CANCEL, JobFilter())

    assert numbers(carried(store, bulk)) == (0, 0, 0, 0, 0)
    assert record(store, other.id, "zeta").state is JobState.QUEUED
    assert store.bulk("zeta", bulk.number) is None
    assert (store.bulks("zeta"), len(store.bulks(TENANT)), len(store.bulks())) == ([], 1, 1)
    with pytest.raises(UnknownBulk):
        store.cancel_bulk("zeta", bulk.number, "eve")


def test_its_filter_is_frozen_with_all_it_says(store: SqlStore, clock: StoreClock) -> None:
    now = clock.now()
    filter = JobFilter(
        states=(JobState.FAILED, Shown.STUCK), workflow="w", queue="q", error_type="E", target="t", tag="g",
        before=now, since=now.replace(year=2020), newest_first=False,
    )  # fmt: skip
    bulk = start(store, BulkVerb.CANCEL, filter)
    assert shown(store, bulk).filter == filter == bulk.filter


def test_the_same_key_is_the_same_bulk(store: SqlStore) -> None:
    submitted(store)
    bulk = NewBulk("k1", TENANT, BulkVerb.CANCEL, QUEUED, "ada", expected=1)
    first = store.start_bulk(bulk)
    carried(store, first)

    assert store.start_bulk(bulk).number == first.number, "although none matches any more"
    assert len(store.bulks()) == 1
    assert [action.verb for action in store.audit()] == ["bulks.start"]


def test_a_count_says_how_many_it_is_about_and_whether_it_came_to_an_end(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit([a_job(workflow="a") for _ in range(7)] + [a_job(workflow="b") for _ in range(3)])
    assert store.count_matching(TENANT, JobFilter(workflow="a")) == (7, True)
    assert store.count_matching(TENANT, JobFilter(workflow="nobody's")) == (0, True)
    assert store.count_matching(TENANT, JobFilter(workflow="no\x00body")) == (0, True)

    monkeypatch.setattr(bulks, "MOST_COUNTED", 5)
    assert store.count_matching(TENANT, JobFilter()) == (5, False)


@pytest.mark.parametrize("expected", [2, 4])
def test_a_bulk_about_other_jobs_than_expected_is_not_started(store: SqlStore, expected: int) -> None:
    store.submit([a_job() for _ in range(3)])
    with pytest.raises(OtherCount, match=f"{expected} jobs were expected, and 3 match"):
        start(store, BulkVerb.CANCEL, QUEUED, expected=expected)
    assert store.bulks() == []
    assert start(store, BulkVerb.CANCEL, QUEUED, expected=3).expected == 3


def test_a_cancelled_bulk_does_nothing_more_and_keeps_what_it_did(store: SqlStore) -> None:
    store.submit([a_job() for _ in range(60)])
    bulk = start(store, BulkVerb.CANCEL, QUEUED)
    store.carry_bulks(40, enough=lambda: True)
    some = shown(store, bulk)
    assert (some.state, some.done, some.left) == (BulkState.RUNNING, bulks.AT_ONCE, 40 - bulks.AT_ONCE)

    ended = store.cancel_bulk(TENANT, bulk.number, "eve")

    assert (ended.state, ended.ended_by, ended.done) == (BulkState.CANCELLED, "eve", some.done)
    store.carry_bulks()
    assert shown(store, bulk) == ended
    assert store.counts()[JobState.CANCELLED] == some.done
    assert store.cancel_bulk(TENANT, bulk.number, "eve") == ended, "safe to repeat"
    assert [(a.verb, a.by, a.subject) for a in store.audit()] == [
        ("bulks.cancel", "eve", str(bulk.number)),
        ("bulks.start", "ada", str(bulk.number)),
    ]


def test_what_has_ended_cannot_be_cancelled(store: SqlStore) -> None:
    bulk = carried(store, start(store, BulkVerb.CANCEL, QUEUED))
    assert bulk.state is BulkState.DONE
    with pytest.raises(BulkEnded, match="is DONE"):
        store.cancel_bulk(TENANT, bulk.number, "eve")
    with pytest.raises(UnknownBulk):
        store.cancel_bulk(TENANT, bulk.number + 1, "eve")


def test_jobs_that_moved_on_after_the_look_are_left_as_they_are(store: SqlStore) -> None:
    """The bulk has looked at all of them and moved the first; then a person is quicker with the last."""
    jobs = failed(store, bulks.AT_ONCE + 2)
    bulk = start(store, BulkVerb.RETRY, FAILED)
    store.carry_bulks(enough=lambda: True)
    assert numbers(shown(store, bulk)) == (len(jobs), bulks.AT_ONCE, 0, 0, 2)
    store.resume(TENANT, jobs[-1], by="eve")

    done = carried(store, bulk)

    assert (done.state, numbers(done)) == (BulkState.DONE, (len(jobs), len(jobs) - 1, 0, 1, 0))
    assert store.history(TENANT, jobs[-1])[-1].data["by"] == "eve"


def test_jobs_that_were_forgotten_after_the_look_have_moved_on(store: SqlStore) -> None:
    jobs = failed(store, bulks.AT_ONCE + 2)
    bulk = start(store, BulkVerb.RETRY, FAILED)
    store.carry_bulks(enough=lambda: True)
    assert store.forget_ended(-1) == 2

    assert store.get(TENANT, jobs[-1]) is None
    assert numbers(carried(store, bulk)) == (len(jobs), bulks.AT_ONCE, 0, 2, 0)


def test_only_the_first_reasons_are_kept(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    for _ in range(8):
        attempt = claimed(store, worker)
        settle(store, worker, attempt.ref)
    bulk = carried(store, start(store, BulkVerb.CANCEL, JobFilter()))
    assert (numbers(bulk), len(bulk.reasons)) == ((8, 0, 8, 0, 0), bulks.MOST_REASONS)
    assert all("it has ended" in refusal.reason for refusal in bulk.reasons)


def test_a_job_that_the_database_refuses_is_refused_alone(store: SqlStore, store_url: str) -> None:
    jobs = [submitted(store) for _ in range(40)]
    bad = record(store, jobs[17].id)
    bulk = start(store, BulkVerb.CANCEL, QUEUED)
    with raising(store_url, "unstuck_done", f"NEW.job = {bad.number}"):
        done = carried(store, bulk)

    assert (done.state, numbers(done)) == (BulkState.DONE, (40, 39, 1, 0, 0))
    assert done.reasons[0].job == bad.id
    assert "not for you" in done.reasons[0].reason
    assert Counter(record(store, job.id).state for job in jobs) == {JobState.CANCELLED: 39, JobState.QUEUED: 1}


def test_a_bulk_that_cannot_be_read_fails_and_keeps_no_other_from_its_turn(store: SqlStore, store_url: str) -> None:
    submitted(store)
    damaged = start(store, BulkVerb.CANCEL, QUEUED)
    good = start(store, BulkVerb.CANCEL, QUEUED)
    execute(store_url, f"UPDATE unstuck_bulks SET filter = '[oops' WHERE id = {damaged.number}")

    store.carry_bulks()

    assert shown(store, good).state is BulkState.DONE
    ended = shown(store, damaged)
    assert (ended.state, ended.done) == (BulkState.FAILED, 0)
    assert ended.error is not None
    assert "cannot be read" in ended.error


def test_a_look_that_finds_nothing_goes_on_and_counts_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a rare kind the first are far from the beginning: a look is as short as its batch."""
    monkeypatch.setattr(bulks, "CANDIDATES", 2)
    store.submit([a_job() for _ in range(50)] + [a_job(priority=1)])
    worker = a_worker(store)
    (rare,) = claim_all(store, worker, 1)
    settle(store, worker, rare.ref, boom(type="Rare"))
    tiny = JobFilter(tag="nobody's", workflow="greet")
    bulk = start(store, BulkVerb.CANCEL, JobFilter(workflow="greet", error_type="Rare"))
    none = start(store, BulkVerb.CANCEL, tiny)

    assert store.carry_bulks(5) == 1
    assert (shown(store, bulk).state, numbers(shown(store, bulk))) == (BulkState.DONE, (1, 1, 0, 0, 0))
    assert (shown(store, none).state, shown(store, none).matched) == (BulkState.DONE, 0)


def test_bulks_share_a_turn(store: SqlStore) -> None:
    """A long one keeps no short one waiting: each has a batch, whoever waited longest first."""
    store.submit([a_job(workflow="long") for _ in range(100)] + [a_job(workflow="short")])
    long = start(store, BulkVerb.CANCEL, JobFilter(workflow="long"))
    short = start(store, BulkVerb.CANCEL, JobFilter(workflow="short"))

    store.carry_bulks(10, enough=lambda: True)
    store.carry_bulks(10, enough=lambda: True)

    assert (shown(store, short).done, shown(store, long).done) == (1, 10)


def test_ended_bulks_are_forgotten_and_running_ones_are_not(store: SqlStore, clock: StoreClock) -> None:
    ended = carried(store, start(store, BulkVerb.CANCEL, QUEUED))
    running = start(store, BulkVerb.CANCEL, QUEUED)
    assert store.forget_bulks(60) == 0
    clock.advance(seconds=61)
    assert store.forget_bulks(60) == 1
    assert store.bulk(TENANT, ended.number) is None
    assert shown(store, running).state is BulkState.RUNNING


def test_lists_are_paged_and_chosen_by_state(store: SqlStore) -> None:
    made = [start(store, BulkVerb.CANCEL, QUEUED) for _ in range(3)]
    store.cancel_bulk(TENANT, made[1].number, "eve")
    assert [bulk.number for bulk in store.bulks(limit=2)] == [made[2].number, made[1].number]
    assert [bulk.number for bulk in store.bulks(before=made[1].number)] == [made[0].number]
    assert [bulk.number for bulk in store.bulks(state=BulkState.CANCELLED)] == [made[1].number]


def test_two_statements_mean_the_same_filter() -> None:
    """One reads whole jobs, for lists, the other only who they are."""
    for dialect in ("sqlite", "postgres"):
        texts = [Statements(dialect)[name] for name in ("list_rows", "list_matching")]
        assert texts[0].partition("\n")[2] == texts[1].partition("\n")[2] != ""


# --- several at once ----------------------------------------------------------------------------------------------


@pytest.fixture
def others(store_url: str) -> Iterator[Callable[[], SqlStore]]:
    """More processes of the same database."""
    opened: list[SqlStore] = []

    def another() -> SqlStore:
        opened.append(SqlStore(open_database(store_url, store_call=20.0)))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


def test_two_janitors_at_once_do_each_job_once(store: SqlStore, others: Callable[[], SqlStore]) -> None:
    jobs = [submitted(store, delay=3600.0).id for _ in range(200)]
    bulk = start(store, BulkVerb.RETRY, QUEUED)
    barrier = threading.Barrier(3)
    problems: list[Exception] = []

    def carry(mine: SqlStore) -> None:
        barrier.wait()
        try:
            eventually(lambda: mine.carry_bulks(20) == 0 and shown(mine, bulk).state is BulkState.DONE, timeout=60)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=carry, args=(others(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)

    assert problems == []
    assert numbers(shown(store, bulk)) == (200, 200, 0, 0, 0)
    assert Counter(kind for job in jobs for kind in kinds(store, job)) == {"submitted": 200, "hurried": 200}


def test_a_cancel_of_the_bulk_between_two_batches_is_the_last_word(
    store: SqlStore, others: Callable[[], SqlStore]
) -> None:
    """However it falls: what is counted as done is what was done, and nothing comes after."""
    store.submit([a_job() for _ in range(300)])
    bulk = start(store, BulkVerb.CANCEL, QUEUED)
    carrying, counts = others(), []
    thread = threading.Thread(target=lambda: counts.append(carrying.carry_bulks(50)))
    thread.start()
    eventually(lambda: shown(store, bulk).done > 0, timeout=30)

    ended = store.cancel_bulk(TENANT, bulk.number, "eve")
    at_the_end = store.counts()[JobState.CANCELLED]
    thread.join(60)

    assert ended.state is BulkState.CANCELLED
    assert at_the_end == ended.done == shown(store, bulk).done == store.counts()[JobState.CANCELLED] < 300


def test_claims_and_a_bulk_share_the_jobs_without_loss(store: SqlStore, others: Callable[[], SqlStore]) -> None:
    """A job is claimed or cancelled; what is claimed at that instant is asked, or counted as moved on."""
    store.submit([a_job(target=f"t{n % 7}" if n % 2 else None) for n in range(200)])
    store.ingest()
    bulk = start(store, BulkVerb.CANCEL, QUEUED)
    carrying = others()
    thread = threading.Thread(target=lambda: carrying.carry_bulks(20))
    thread.start()
    worker = a_worker(store, lease=1e6)
    attempts: list[ClaimedJob] = []
    while thread.is_alive():
        attempts += claim_all(store, worker, 3)
    thread.join(60)
    eventually(lambda: carried(store, bulk).state is BulkState.DONE, timeout=30)

    assert attempts, "they met"
    done = shown(store, bulk)
    states = Counter(store.counts())
    running = [attempt for attempt in attempts if record(store, attempt.id).state is JobState.RUNNING]
    asked = sum(record(store, attempt.id).request is RequestKind.CANCEL for attempt in running)
    assert len(running) == len(attempts)
    assert states[JobState.CANCELLED] + asked == done.done
    assert states[JobState.CANCELLED] + len(running) == 200
    assert done.refused == 0


@pytest.fixture
def held_row(server_url: str) -> Iterator[Callable[[str], psycopg.Connection]]:
    people: list[psycopg.Connection] = []

    def hold(sql: str) -> psycopg.Connection:
        person = psycopg.connect(server_url)
        person.execute(sql.encode())
        people.append(person)
        return person

    yield hold
    for person in people:
        person.close()


@pytest.mark.parametrize(
    "what",
    [
        "SELECT 1 FROM unstuck_jobs WHERE id = {job} FOR UPDATE",
        "SELECT 1 FROM unstuck_targets WHERE id = (SELECT target FROM unstuck_jobs WHERE id = {job}) FOR UPDATE",
        "SELECT 1 FROM unstuck_ready WHERE job = {job} FOR UPDATE",
    ],
    ids=["jobs", "targets", "ready"],
)
def test_a_job_that_somebody_holds_is_passed_over_and_tried_again_at_the_end(
    server: SqlStore, held_row: Callable[[str], psycopg.Connection], what: str
) -> None:
    server.submit([a_job(target=f"t{n}") for n in range(60)])
    server.ingest()
    job = 17
    bulk = start(server, BulkVerb.CANCEL, QUEUED)
    person = held_row(what.format(job=job))

    def stands_at(state: BulkState, done: int, left: int) -> None:
        """On a machine that is busy a turn may get less far."""
        found = carried(server, bulk)
        assert (found.state, numbers(found)) == (state, (60, done, 0, 0, left))

    eventually(lambda: stands_at(BulkState.RUNNING, 59, 1))
    stands_at(BulkState.RUNNING, 59, 1)

    person.rollback()
    eventually(lambda: stands_at(BulkState.DONE, 60, 0))


def test_a_job_that_is_held_for_too_long_is_refused(
    server: SqlStore, server_url: str, held_row: Callable[[str], psycopg.Connection]
) -> None:
    server.submit([a_job(), a_job()])
    bulk = start(server, BulkVerb.CANCEL, QUEUED)
    held_row("SELECT 1 FROM unstuck_jobs WHERE id = 1 FOR UPDATE")
    assert carried(server, bulk).state is BulkState.RUNNING
    with psycopg.connect(server_url, autocommit=True) as hand:
        hand.execute("UPDATE unstuck_test_clock SET offset_us = offset_us + 601000000")

    done = carried(server, bulk)

    assert (done.state, numbers(done)) == (BulkState.DONE, (2, 1, 1, 0, 0))
    assert done.reasons[0].reason == HELD


def test_a_held_bulk_keeps_no_other_from_its_turn(
    server: SqlStore, held_row: Callable[[str], psycopg.Connection]
) -> None:
    server.submit([a_job()])
    held = start(server, BulkVerb.CANCEL, QUEUED)
    other = start(server, BulkVerb.INTERRUPT, QUEUED)
    held_row(f"SELECT 1 FROM unstuck_bulks WHERE id = {held.number} FOR UPDATE")
    server.carry_bulks()
    assert shown(server, other).state is BulkState.DONE
    assert shown(server, held).state is BulkState.RUNNING


# --- many ---------------------------------------------------------------------------------------------------------

MANY_ROWS = """
INSERT INTO unstuck_bulks (key, tenant, verb, filter, by, began_at, carried_at, ended_at, upto, state)
SELECT 'k' || n, 'default', 'cancel', '{}', 'ada', n, n, n, 0, 'DONE' FROM generate_series(1, 10000) n;
INSERT INTO unstuck_bulks (key, tenant, verb, filter, by, began_at, carried_at, upto)
SELECT 'r' || n, 'default', 'cancel', '{}', 'ada', n, n, 0 FROM generate_series(1, 3) n;
INSERT INTO unstuck_bulk_jobs (bulk, job, tried_at)
SELECT 1 + n % 2, n, CASE WHEN n % 3 = 0 THEN n ELSE 0 END FROM generate_series(1, 40000) n;
"""


@pytest.mark.parametrize(
    ("name", "values", "most"),
    [
        ("running_bulks", {"most": 100}, 3),
        ("has_new_bulk_jobs", {"number": 1}, 1),
        ("due_bulk_jobs", {"number": 1, "before": 1, "most": 25}, 25),
        ("due_bulk_jobs", {"number": 1, "before": 1 << 60, "most": 25}, 25),
        ("bulk_jobs", {"number": 1, "jobs": list(range(1, 51))}, 50),
        ("places_of_jobs", {"jobs": list(range(1, 51))}, 50),
        ("lock_free_attempts", {"jobs": list(range(1, 51))}, 50),
    ],
)
def test_a_turn_reads_what_it_moves_however_many_there_are(
    postgres_server: PostgresServer, name: str, values: dict[str, Any], most: int
) -> None:
    with filled(postgres_server, run(MANY_ROWS), what=__name__) as url:
        for scan in scans(plan_of(url, name, values, generic=False)):
            touched = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
            assert touched <= most, f"{name}: {scan}"
