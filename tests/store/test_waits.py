"""WAITING: parked for an event, a decision, a time, children. On both databases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import claim, folds, state, work_off
from tests.support.builders import TENANT, a_job, a_worker, begin, chance, claimed, kinds, record, settle, submitted
from tests.support.tables import counts_of_tables
from unstuck.model.errors import ErrorType, InvalidInput, NotStorable, NotWaiting, UnknownJob
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import NotStarted, Parked, Returned
from unstuck.model.waits import MOST_WAITS, Answer, Wait, WaitKind, WaitRecord
from unstuck.store.port import NewChild, NewStep, Report, Verdict
from unstuck.store.rows import packed
from unstuck.store.sql_store import SqlStore

PAID = Wait(WaitKind.EVENT, "event:paid#1", "paid")
PUSH = Wait(WaitKind.APPROVAL, "approval#1", "Push?", who=("ada", "bob", "ops"))
CHECKED_TABLES = ("unstuck_steps", "unstuck_waits", "unstuck_unclaimed_events", "unstuck_children", "unstuck_usage")


def parked(store: SqlStore, worker: WorkerRecord, wait: Wait = PAID, **options: Any) -> ClaimedJob:
    """A fresh job that ran and parked."""
    attempt = claimed(store, worker, **options)
    assert settle(store, worker, attempt.ref, Parked(wait)).verdict is Verdict.DONE
    return attempt


def send(store: SqlStore, job: str, event: str = "paid", payload: str = "1") -> str | None:
    return store.signal(TENANT, event, payload, "ada", job=job).job


def the_wait(store: SqlStore, job: str) -> WaitRecord:
    return store.waits_of(TENANT, job)[-1]


def check_invariant(store: SqlStore) -> None:
    """A WAITING job has an open wait and its timer, or an answered one and an entry in the inbox; nobody else has."""
    query = """SELECT j.uid, j.state,
                      (SELECT COUNT(*) FROM unstuck_waits w
                        WHERE w.job = j.id AND w.run = j.run AND w.answer IS NULL) AS waits,
                      (SELECT COUNT(*) FROM unstuck_waits w JOIN unstuck_timers t
                           ON t.kind = 'wait' AND t.due_at = w.until_at AND t.job = w.job
                        WHERE w.job = j.id AND w.run = j.run AND w.answer IS NULL) AS timed,
                      (SELECT COUNT(*) FROM unstuck_inbox i WHERE i.job = j.id) AS told,
                      (SELECT COUNT(*) FROM unstuck_timers t WHERE t.kind = 'wait' AND t.job = j.id) AS timers
                 FROM unstuck_jobs j"""
    for uid, at_rest, waits, timed, told, timers in rows_of(store, query):
        if at_rest == JobState.WAITING:
            assert (waits, timed) == (1, 1) or (waits == 0 and told > 0), uid
        else:
            assert (waits, timers) == (0, 0), uid


def rows_of(store: SqlStore, query: str) -> list[tuple[Any, ...]]:
    def read(t: Any) -> list[tuple[Any, ...]]:
        found = t._connection.execute(query).fetchall()
        return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in found]

    return store._database.read(read)


# --- events -------------------------------------------------------------------------------------------------------


def test_a_job_parks_without_an_attempt_and_an_event_wakes_it(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker, replace(PAID, timeout=60.0))
    found = record(store, attempt.id)
    assert (found.state, found.worker, found.lease_until) == (JobState.WAITING, None, None)
    wait = the_wait(store, attempt.id)
    assert (wait.wait, wait.answer, wait.until_at - wait.asked_at) == (
        replace(PAID, timeout=60.0),
        None,
        timedelta(seconds=60),
    )
    assert claim(store, worker) == []
    check_invariant(store)

    assert send(store, attempt.id, payload='{"sum": 3}') == attempt.id

    check_invariant(store)
    assert work_off(store) == 1
    check_invariant(store)
    assert [one.id for one in claim(store, worker)] == [attempt.id]
    answered = the_wait(store, attempt.id)
    assert (answered.answer, answered.payload, answered.by) == (Answer.EVENT, '{"sum": 3}', "ada")
    events = store.history(TENANT, attempt.id)
    assert [event.kind for event in events] == ["submitted", "claimed", "parked", "woken", "claimed"]
    assert events[2].data["name"] == "paid"
    assert events[2].data["wait"] == "event"
    assert {"by": "ada", "answer": "event", "name": "paid"}.items() <= events[3].data.items()
    assert next((one.outcome, one.duration_ms) for one in store.attempts(TENANT, attempt.id)) == ("parked", 5)


def test_an_early_event_is_kept_and_taken_once_in_the_order_sent(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    for payload in ("1", "2"):
        assert send(store, attempt.id, payload=payload) is None

    settle(store, worker, attempt.ref, Parked(PAID))

    assert kinds(store, attempt.id)[-2:] == ["parked", "woken"]
    assert the_wait(store, attempt.id).payload == "1"
    check_invariant(store)
    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(replace(PAID, key="event:paid#2")))
    assert the_wait(store, attempt.id).payload == "2"
    (third,) = claim(store, worker)
    settle(store, worker, third.ref, Parked(replace(PAID, key="event:paid#3")))
    assert state(store, attempt.id) is JobState.WAITING
    check_invariant(store)
    assert folds(store, [a_job(id=attempt.id)])


def test_an_event_of_another_name_or_tenant_wakes_nobody(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    assert send(store, attempt.id, event="shipped") is None
    with pytest.raises(UnknownJob):
        store.signal("other", "paid", "1", "ada", job=attempt.id)
    assert store.signal("other", "paid", "1", "ada", topic="orders").job is None
    work_off(store)
    assert state(store, attempt.id) is JobState.WAITING


def test_a_letter_lives_a_day_and_is_forgotten_then(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    attempt = claimed(store, worker)
    send(store, attempt.id)
    clock.advance(hours=24, seconds=1)

    settle(store, worker, attempt.ref, Parked(PAID))

    assert state(store, attempt.id) is JobState.WAITING
    assert (store.forget_unclaimed_events(), store.forget_unclaimed_events()) == (1, 0)


def test_a_topic_wakes_who_waited_longest_and_each_event_only_one(store: SqlStore) -> None:
    worker = a_worker(store)
    wait = replace(PAID, topic="orders")
    first, second = parked(store, worker, wait), parked(store, worker, wait)

    sent = [store.signal(TENANT, "paid", str(n), "ada", topic="orders").job for n in range(3)]

    assert sent == [first.id, second.id, None]
    third = parked(store, worker, wait)
    work_off(store)
    assert {one.id for one in claim(store, worker)} == {first.id, second.id, third.id}
    assert [the_wait(store, one.id).payload for one in (first, second, third)] == ["0", "1", "2"]


def test_two_events_at_once_answer_one_wait_and_leave_one_letter(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    assert (send(store, attempt.id, payload="1"), send(store, attempt.id, payload="2")) == (attempt.id, None)
    work_off(store)
    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(replace(PAID, key="event:paid#2")))
    assert [wait.payload for wait in store.waits_of(TENANT, attempt.id)] == ["1", "2"]


def test_an_event_for_an_unknown_or_ended_job_is_refused_and_leaves_nothing(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref)
    before = counts_of_tables(store_url)
    with pytest.raises(UnknownJob):
        send(store, chance.job_id())
    with pytest.raises(UnknownJob):
        send(store, "no\0body")
    with pytest.raises(NotWaiting, match=f"job {attempt.id} has ended"):
        send(store, attempt.id)
    with pytest.raises(NotStorable):
        send(store, attempt.id, payload="\ud800")
    with pytest.raises(InvalidInput):
        store.signal(TENANT, "paid", "1", "ada")
    assert counts_of_tables(store_url) == before


def test_an_event_of_an_earlier_run_is_not_taken_by_the_next(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    send(store, attempt.id, payload='"of run 1"')
    store.interrupt(TENANT, attempt.id, by="ada")
    settle(store, worker, attempt.ref, Parked(PAID))
    assert state(store, attempt.id) is JobState.PAUSED
    assert store.waits_of(TENANT, attempt.id) == []
    send(store, attempt.id, payload='"of run 2"')  # a paused job's next run is meant

    store.resume(TENANT, attempt.id, by="ada")

    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(PAID))
    assert [wait.payload for wait in store.waits_of(TENANT, attempt.id)] == ['"of run 2"']
    assert state(store, attempt.id) is JobState.QUEUED


def test_a_wait_is_asked_anew_in_each_run(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    send(store, attempt.id)
    work_off(store)
    (again,) = claim(store, worker)
    store.interrupt(TENANT, attempt.id, by="ada")
    settle(store, worker, again.ref, NotStarted())
    store.resume(TENANT, attempt.id, by="ada")
    (new,) = claim(store, worker)
    settle(store, worker, new.ref, Parked(PAID))
    assert state(store, attempt.id) is JobState.WAITING
    assert [(wait.run, wait.answer) for wait in store.waits_of(TENANT, attempt.id)] == [(1, Answer.EVENT), (2, None)]
    check_invariant(store)


def test_the_same_key_twice_in_a_run_is_the_same_wait(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    send(store, attempt.id)
    work_off(store)
    (again,) = claim(store, worker)

    settle(store, worker, again.ref, Parked(PAID))

    assert state(store, attempt.id) is JobState.QUEUED
    assert len(store.waits_of(TENANT, attempt.id)) == 1
    check_invariant(store)


def test_a_repeated_report_of_a_park_is_answered_as_the_first(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    send(store, attempt.id)
    answers = [settle(store, worker, attempt.ref, Parked(PAID)) for _ in range(2)]
    assert {(answer.verdict, answer.state) for answer in answers} == {(Verdict.DONE, JobState.WAITING)}
    assert len(kinds(store, attempt.id)) == 4


@pytest.mark.parametrize(
    "wait",
    [
        replace(PAID, name="p\0"),
        replace(PAID, key="k" * 1000),
        replace(PAID, timeout=float("nan")),
        replace(PAID, timeout=0.0),
        replace(PAID, timeout=1e12),
        replace(PAID, on_timeout="default", default="\ud800"),
        Wait(WaitKind.TIME, "time#1", until=1 << 70),
        Wait(WaitKind.CHILDREN, "children#1", children=("x",) * 1001),
    ],
    ids=lambda wait: wait.kind,
)
def test_a_wait_that_cannot_be_kept_fails_its_job_and_no_other(store: SqlStore, wait: Wait) -> None:
    worker = a_worker(store)
    bad, good = claimed(store, worker), claimed(store, worker)
    store.settle(worker.number, [Report(bad.ref, Parked(wait)), Report(good.ref, Parked(PAID))])
    assert (state(store, bad.id), state(store, good.id)) == (JobState.FAILED, JobState.WAITING)
    assert "cannot wait for this" in (record(store, bad.id).error_message or "")


# --- approvals ----------------------------------------------------------------------------------------------------


def test_a_decision_wakes_and_says_who_when_and_why(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker, PUSH)
    (shown,) = store.open_waits(TENANT)
    assert (shown.job, shown.wait, shown.workflow, shown.tenant) == (attempt.id, PUSH, attempt.workflow, TENANT)
    assert shown.until_at - shown.asked_at == timedelta(seconds=600)

    decided = store.decide(TENANT, attempt.id, Answer.APPROVED, "ada", "looks fine")

    assert (decided.job, decided.answer, decided.by, decided.comment) == (
        attempt.id,
        Answer.APPROVED,
        "ada",
        "looks fine",
    )
    assert store.open_waits(TENANT) == []
    check_invariant(store)
    assert work_off(store) == 1
    event = store.history(TENANT, attempt.id)[-1]
    assert event.kind == "woken"
    said = {"by": "ada", "answer": "approved", "comment": "looks fine", "name": "Push?"}
    assert said.items() <= event.data.items()
    (action,) = store.audit(TENANT, verb="approvals")
    assert (action.by, action.verb, action.subject) == ("ada", "approvals.approve", attempt.id)


def test_a_closed_approval_cannot_be_decided_and_says_what_is_the_case(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first, waiting, queued = parked(store, worker, PUSH), parked(store, worker), submitted(store)
    store.decide(TENANT, first.id, Answer.REJECTED, "ada")
    before = counts_of_tables(store_url)
    for job, said in [
        (first.id, "'Push\\?' of job .* is decided already: rejected by ada"),
        (waiting.id, "waits for no approval, but for event 'paid'"),
        (queued.id, "is QUEUED and waits for no approval"),
    ]:
        with pytest.raises(NotWaiting, match=said):
            store.decide(TENANT, job, Answer.APPROVED, "bob")
    with pytest.raises(UnknownJob):
        store.decide(TENANT, chance.job_id(), Answer.APPROVED, "bob")
    other = parked(store, worker, PUSH)
    with pytest.raises(NotWaiting, match="waits for another approval, 'approval#1'"):
        store.decide(TENANT, other.id, Answer.APPROVED, "bob", key="approval#2")
    store.decide(TENANT, other.id, Answer.APPROVED, "bob", key="approval#1")
    assert counts_of_tables(store_url)["unstuck_unclaimed_events"] == before["unstuck_unclaimed_events"] == 0


def test_open_approvals_come_in_pages_the_oldest_first_also_after_one_that_was_decided(store: SqlStore) -> None:
    worker = a_worker(store)
    ids = [parked(store, worker, PUSH).id for _ in range(5)]
    other = parked(store, worker, PUSH, tenant="other").id
    page = store.open_waits(TENANT, limit=2)
    assert [wait.job for wait in page] == ids[:2]
    store.decide(TENANT, ids[1], Answer.APPROVED, "ada")
    assert [wait.job for wait in store.open_waits(TENANT, after=page[1].cursor, limit=2)] == ids[2:4]
    assert [wait.job for wait in store.open_waits()] == [ids[0], *ids[2:], other]
    last = store.open_waits(TENANT)[-1]
    assert [wait.job for wait in store.open_waits(after=last.cursor)] == [other]


# --- time ---------------------------------------------------------------------------------------------------------


def test_a_wait_nobody_answers_fails_and_names_event_and_limit(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    clock.advance(seconds=299)
    assert store.expire_waits() == 0
    clock.advance(seconds=2)

    assert store.expire_waits() == 1

    found = record(store, attempt.id)
    assert (found.state, found.error_type) == (JobState.FAILED, ErrorType.WAIT_TIMEOUT)
    assert found.error_message == "event 'paid' did not come within 300 seconds"
    assert the_wait(store, attempt.id).answer is Answer.TIMEOUT
    with pytest.raises(NotWaiting):
        send(store, attempt.id)
    check_invariant(store)
    assert folds(store, [a_job(id=attempt.id)])
    assert store.expire_waits() == 0


def test_a_default_answer_was_agreed_beforehand(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    waits = {
        Answer.DEFAULT: replace(PAID, on_timeout="default", default='"nothing"', timeout=10.0),
        Answer.APPROVED: replace(PUSH, on_timeout="approve", timeout=10.0),
        Answer.REJECTED: replace(PUSH, on_timeout="reject", timeout=10.0),
        Answer.DUE: Wait(WaitKind.TIME, "time#1", timeout=10.0),
    }
    jobs = {answer: parked(store, worker, wait).id for answer, wait in waits.items()}
    clock.advance(seconds=11)

    assert store.expire_waits() == 4

    for answer, job in jobs.items():
        wait = the_wait(store, job)
        assert (wait.answer, wait.by, state(store, job)) == (answer, "timeout", JobState.QUEUED)
    assert the_wait(store, jobs[Answer.DEFAULT]).payload == '"nothing"'
    check_invariant(store)


def test_a_job_parks_until_an_instant(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    until = store.now() + timedelta(seconds=100)
    attempt = parked(store, worker, Wait(WaitKind.TIME, "time#1", until=round(until.timestamp() * 1_000_000)))
    assert abs(the_wait(store, attempt.id).until_at - until) < timedelta(milliseconds=1)
    clock.advance(seconds=101)
    store.expire_waits()
    assert state(store, attempt.id) is JobState.QUEUED


def test_an_answer_before_the_deadline_wins_even_if_its_wake_comes_later(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    send(store, attempt.id)
    clock.advance(hours=1)

    assert store.expire_waits() == 0

    assert state(store, attempt.id) is JobState.WAITING
    check_invariant(store)
    work_off(store)
    assert state(store, attempt.id) is JobState.QUEUED
    check_invariant(store)


def test_a_timer_of_an_earlier_wait_ends_no_later_one(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    send(store, attempt.id)
    work_off(store)
    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(replace(PAID, key="event:paid#2", timeout=7200.0)))
    execute(
        store,
        """INSERT INTO unstuck_timers (kind, due_at, job)
           SELECT 'wait', until_at, job FROM unstuck_waits WHERE key = 'event:paid#1'""",
    )
    clock.advance(hours=1)

    assert store.expire_waits() == 0

    check_invariant(store)
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_timers WHERE kind = 'wait'") == [(1,)]
    clock.advance(hours=2)
    assert store.expire_waits() == 1


def execute(store: SqlStore, text: str) -> None:
    def write(t: Any) -> None:
        t._connection.execute(text)

    store._database.write(write)


def test_more_waits_than_a_batch_all_expire(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    store.submit([a_job() for _ in range(25)])
    attempts = claim(store, worker)
    store.settle(worker.number, [Report(attempt.ref, Parked(PAID)) for attempt in attempts])
    clock.advance(hours=1)
    assert store.expire_waits(batch=10) == 25


def test_who_parks_learns_when_somebody_must_look_after_it(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    attempt = claimed(store, worker)
    first, again = (settle(store, worker, attempt.ref, Parked(replace(PAID, timeout=20.0))) for _ in range(2))
    assert (first.wait_ends_in, again.wait_ends_in) == (20.0, 0.0), "a repeat does not know it any more"
    assert store.next_wait() == pytest.approx(20, abs=5)
    clock.advance(seconds=21)
    assert store.next_wait() == 0

    early = claimed(store, worker)
    send(store, early.id)
    returned = claimed(store, worker)
    assert settle(store, worker, early.ref, Parked(PAID)).wait_ends_in is None
    assert settle(store, worker, returned.ref, Returned("1")).wait_ends_in is None
    past = claimed(store, worker)
    assert settle(store, worker, past.ref, Parked(Wait(WaitKind.TIME, "time#1", until=0))).wait_ends_in == 0


def waited_before(store: SqlStore, job: int, times: int) -> None:
    """So often, in its first run, and each time in an attempt of its own."""
    columns = {"job": job, "run": 1, "tenant": TENANT, "kind": "time", "name": "", "address": None, "spec": "{}"}
    columns |= {"asked_at": 1, "until_at": 1, "answer": "due", "payload": None, "answered_at": 1, "by": "timeout"}
    rows = [{**columns, "key": f"time#{n}", "token": n} for n in range(1, times + 1)]

    def write(t: Any) -> None:
        t.run("add_waits", rows=packed(rows))
        t._connection.execute(f"UPDATE unstuck_jobs SET token = {times} WHERE id = {job}")

    store._database.write(write)


def test_a_run_waits_only_so_often_and_fails_then_for_good(store: SqlStore) -> None:
    """The one before the last is granted, as is every one of another job in the same batch."""
    worker = a_worker(store, lease=1e6)
    jobs = [submitted(store, retries=5) for _ in range(3)]
    for job, before in zip(jobs, (MOST_WAITS, MOST_WAITS - 1, 0), strict=True):
        waited_before(store, number_of(store, job.id), before)
    attempts = claim(store, worker)

    answers = store.settle(worker.number, [Report(a.ref, Parked(replace(PAID, key="last"))) for a in attempts])

    states = {attempt.id: answer.state for attempt, answer in zip(attempts, answers, strict=True)}
    assert [states[job.id] for job in jobs] == [JobState.FAILED, JobState.WAITING, JobState.WAITING]
    failed = record(store, jobs[0].id)
    assert (failed.state, failed.error_type) == (JobState.FAILED, "InvalidInput")
    assert "10,000 times at most" in (failed.error_message or "")
    assert len(store.waits_of(TENANT, jobs[0].id)) == MOST_WAITS
    assert "retrying" not in kinds(store, jobs[0].id)
    check_invariant(store)


def test_a_later_run_waits_as_often_again(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    job = submitted(store)
    waited_before(store, number_of(store, job.id), MOST_WAITS)
    (attempt,) = claim(store, worker)
    settle(store, worker, attempt.ref, Parked(PAID))
    store.resume(TENANT, job.id, by="ada")
    (attempt,) = claim(store, worker)
    assert settle(store, worker, attempt.ref, Parked(replace(PAID, key="2:" + PAID.key))).state is JobState.WAITING


def number_of(store: SqlStore, job: str) -> int:
    return int(rows_of(store, f"SELECT id FROM unstuck_jobs WHERE uid = '{job}'")[0][0])


# --- targets ------------------------------------------------------------------------------------------------------


def on_target(store: SqlStore, worker: WorkerRecord, wait: Wait, **options: Any) -> tuple[str, str]:
    """The head of a target parks for this while another job stands in its line."""
    first = submitted(store, target="t", workflow="one", **options)
    work_off(store)
    (attempt,) = claim(store, worker)
    begin(store, worker, attempt)
    other = submitted(store, target="t", workflow="other", priority=10)
    work_off(store)
    settle(store, worker, attempt.ref, Parked(wait))
    work_off(store)
    return first.id, other.id


def test_a_waiting_job_keeps_its_target_and_comes_back_first(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    first, other = on_target(store, worker, PAID)
    assert claim(store, worker) == []
    send(store, first)
    work_off(store)
    (again,) = claim(store, worker)
    assert again.id == first
    settle(store, worker, again.ref)
    assert [one.id for one in claim(store, worker)] == [other]


def test_a_wait_that_lets_go_of_its_target_stands_in_line_again(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    first, other = on_target(store, worker, replace(PAID, release_target=True))
    (theirs,) = claim(store, worker)
    assert theirs.id == other
    send(store, first)
    work_off(store)
    assert claim(store, worker) == []
    settle(store, worker, theirs.ref)
    assert [one.id for one in claim(store, worker)] == [first]


def test_an_early_event_and_a_released_target_go_together(store: SqlStore) -> None:
    worker = a_worker(store, lease=1e6)
    submitted(store, target="t", workflow="one", id=(job := chance.job_id()))
    work_off(store)
    (attempt,) = claim(store, worker)
    other = submitted(store, target="t", workflow="other", priority=10)
    send(store, job)
    settle(store, worker, attempt.ref, Parked(replace(PAID, release_target=True)))
    work_off(store)
    assert [one.id for one in claim(store, worker)] == [other.id]


@pytest.mark.parametrize(("on_failure", "blocks"), [("block", True), ("continue", False)])
def test_a_wait_that_timed_out_leaves_its_target_as_any_failure(
    store: SqlStore, clock: StoreClock, on_failure: str, blocks: bool
) -> None:
    worker = a_worker(store, lease=1e6)
    first, other = on_target(store, worker, PAID, on_failure=on_failure)
    clock.advance(seconds=301)
    assert store.expire_waits() == 1
    assert record(store, first).is_blocker is blocks
    assert [one.id for one in claim(store, worker)] == ([] if blocks else [other])


# --- stop and resume ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [PAID, PUSH], ids=["event", "approval"])
def test_a_waiting_job_is_cancelled_at_once(store: SqlStore, clock: StoreClock, wait: Wait) -> None:
    """A16"""
    worker = a_worker(store)
    attempt = parked(store, worker, wait)
    ended = store.cancel(TENANT, attempt.id, by="ada", reason="wrong customer")
    assert (ended.state, ended.error_message) == (JobState.CANCELLED, "cancelled by ada: wrong customer")
    assert store.waits_of(TENANT, attempt.id) == store.open_waits(TENANT) == []
    check_invariant(store)
    with pytest.raises(NotWaiting):
        store.decide(TENANT, attempt.id, Answer.APPROVED, "ada")
    clock.advance(hours=1)
    assert (store.expire_waits(), work_off(store)) == (0, 0)
    assert state(store, attempt.id) is JobState.CANCELLED
    assert folds(store, [a_job(id=attempt.id)])


def test_a_waiting_job_is_interrupted_and_asks_again_after_its_resume(store: SqlStore) -> None:
    """A16"""
    worker = a_worker(store)
    attempt = parked(store, worker, PUSH)
    assert store.interrupt(TENANT, attempt.id, by="ada").state is JobState.PAUSED
    check_invariant(store)
    store.resume(TENANT, attempt.id, by="ada")
    (again,) = claim(store, worker)
    settle(store, worker, again.ref, Parked(PUSH))
    (shown,) = store.open_waits(TENANT)
    assert (shown.job, shown.run) == (attempt.id, 2)


def test_a_cancel_after_the_answer_and_before_the_wake_wins(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = parked(store, worker)
    send(store, attempt.id)
    store.cancel(TENANT, attempt.id, by="ada")
    assert work_off(store) == 0
    assert state(store, attempt.id) is JobState.CANCELLED
    check_invariant(store)


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [
        (RequestKind.CANCEL, JobState.CANCELLED),
        (RequestKind.INTERRUPT, JobState.PAUSED),
        (RequestKind.BUDGET, JobState.FAILED),
        (RequestKind.TIMEOUT, JobState.WAITING),
        (RequestKind.DRAIN, JobState.WAITING),
    ],
)
def test_a_park_after_a_request_is_what_the_table_says(store: SqlStore, kind: RequestKind, becomes: JobState) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.ask(attempt.ref, kind, "used 1,020 of 1,000 tokens")
    settle(store, worker, attempt.ref, Parked(PAID))
    assert state(store, attempt.id) is becomes
    assert len(store.waits_of(TENANT, attempt.id)) == (becomes is JobState.WAITING)
    if becomes is JobState.FAILED:
        assert record(store, attempt.id).error_message == "used 1,020 of 1,000 tokens"
    check_invariant(store)


# --- children -----------------------------------------------------------------------------------------------------


def gathering(store: SqlStore, worker: WorkerRecord, count: int = 2, **asked: Any) -> tuple[ClaimedJob, list[NewJob]]:
    parent = claimed(store, worker)
    born = [a_job(workflow="child") for _ in range(count)]
    for ordinal, job in enumerate(born, 1):
        assert store.spawn(NewChild(parent.ref, "child", ordinal, job)) is not None
    wait = Wait(WaitKind.CHILDREN, "children#1", children=tuple(job.id for job in born), **asked)
    settle(store, worker, parent.ref, Parked(wait))
    return parent, born


def test_a_parent_wakes_when_the_last_of_its_children_has_ended(store: SqlStore) -> None:
    worker = a_worker(store)
    parent, born = gathering(store, worker)
    work_off(store)
    assert state(store, parent.id) is JobState.WAITING
    for attempt in claim(store, worker):
        assert state(store, parent.id) is JobState.WAITING
        settle(store, worker, attempt.ref, Returned(f'"{attempt.id}"'))
        check_invariant(store)
        work_off(store)

    assert state(store, parent.id) is JobState.QUEUED
    wait = the_wait(store, parent.id)
    assert wait.answer is Answer.ENDED
    ends = json.loads(wait.payload or "")
    assert [(end["id"], end["state"], end["result"]) for end in ends] == [
        (job.id, "COMPLETED", job.id) for job in born
    ]
    check_invariant(store)
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_dependencies") == [(0,)]


def test_children_that_ended_before_the_park_wake_their_parent_too(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = a_job(workflow="child")
    store.spawn(NewChild(parent.ref, "child", 1, child))
    (attempt,) = claim(store, worker)
    settle(store, worker, attempt.ref)
    settle(store, worker, parent.ref, Parked(Wait(WaitKind.CHILDREN, "children#1", children=(child.id,))))
    assert work_off(store) == 1
    assert state(store, parent.id) is JobState.QUEUED


def test_a_gather_that_timed_out_names_what_is_missing_and_leaves_no_rows(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    parent, born = gathering(store, worker, timeout=60.0)
    work_off(store)
    done, _ = claim(store, worker)
    settle(store, worker, done.ref)
    work_off(store)
    (missing,) = [job.id for job in born if job.id != done.id]
    clock.advance(seconds=61)

    assert store.expire_waits() == 1

    found = record(store, parent.id)
    assert (found.state, found.error_type) == (JobState.FAILED, ErrorType.WAIT_TIMEOUT)
    assert found.error_message == f"1 of 2 children had not ended after 60 seconds: {missing}"
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_dependencies") == [(0,)]
    store.tend_children()
    assert record(store, missing).request is RequestKind.CANCEL


def test_a_cancelled_parent_waits_for_nobody_and_its_children_are_cancelled(store: SqlStore) -> None:
    worker = a_worker(store)
    parent, born = gathering(store, worker)
    work_off(store)
    store.cancel(TENANT, parent.id, by="ada")
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_dependencies") == [(0,)]
    store.tend_children()
    assert {state(store, job) for job in born} == {JobState.CANCELLED}
    work_off(store)
    assert state(store, parent.id) is JobState.CANCELLED
    check_invariant(store)


# --- what people read, what is forgotten --------------------------------------------------------------------------


def test_the_standing_tells_what_a_job_waits_for(store: SqlStore) -> None:
    worker = a_worker(store)
    waiting, (parent, born) = parked(store, worker, PUSH), gathering(store, worker)
    facts = store.gate_facts(TENANT, waiting.id)
    assert facts is not None
    assert facts.wait is not None
    assert (facts.wait.wait, facts.wait.job, facts.children_open) == (PUSH, waiting.id, 0)
    work_off(store)
    (attempt, *_) = claim(store, worker)
    settle(store, worker, attempt.ref)
    facts = store.gate_facts(TENANT, parent.id)
    assert facts is not None
    assert facts.wait is not None
    assert (facts.wait.wait.children, facts.children_open) == (tuple(job.id for job in born), 1)
    other = store.gate_facts(TENANT, born[0].id)
    assert other is not None
    assert other.wait is None


def test_all_that_belongs_to_a_job_goes_with_it(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e7)
    attempt = claimed(store, worker)
    store.record_steps([NewStep(attempt.ref, "build", 1, "1", 5)])
    store.spend(attempt.ref, 1, {"tokens": 5.0})
    store.spawn(NewChild(attempt.ref, "child", 1, a_job(workflow="child")))
    settle(store, worker, attempt.ref, Parked(PAID))
    send(store, attempt.id, event="shipped")
    send(store, attempt.id)
    work_off(store)
    before = counts_of_tables(store_url)
    assert {table: before[table] for table in CHECKED_TABLES} == dict.fromkeys(CHECKED_TABLES, 1)
    for one in claim(store, worker):
        settle(store, worker, one.ref)
    clock.advance(days=8)

    assert [store.forget_ended(7 * 86400.0) for _ in range(2)] == [1, 1]  # the parent, then its child

    after = counts_of_tables(store_url)
    assert {table: after.get(table, 0) for table in CHECKED_TABLES} == dict.fromkeys(CHECKED_TABLES, 0)
