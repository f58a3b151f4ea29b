"""Steps: recorded once, under the fence, and read back by every later attempt."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    boom,
    claim_all,
    claimed,
    give_up,
    insist,
    record,
    settle,
)
from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Stopped
from unstuck.model.waits import Journal, StepRecord
from unstuck.store.flow import steps as steps_module
from unstuck.store.port import NewStep, Verdict
from unstuck.store.sql_store import SqlStore


def a_step(ref: AttemptRef, name: str = "build", ordinal: int = 1, result: str = '"done"') -> NewStep:
    return NewStep(ref, name, ordinal, result, 12)


def whole_journal(store: SqlStore, ref: AttemptRef) -> list[Journal]:
    pages: list[Journal] = []
    after: int | None = 0
    while after is not None:
        page = store.journal(ref, after)
        assert page is not None
        pages.append(page)
        after = page.after
    return pages


def all_steps(store: SqlStore, ref: AttemptRef) -> list[StepRecord]:
    return [step for page in whole_journal(store, ref) for step in page.steps]


def test_a_step_is_found_by_the_next_attempt_of_a_retry(store: SqlStore) -> None:
    worker = a_worker(store)
    first = claimed(store, worker, backoff_base=0.0)
    assert store.record_steps([a_step(first.ref, result='{"a":[1,2]}')]) == [Verdict.DONE]
    settle(store, worker, first.ref, boom())
    (second,) = claim_all(store, worker)

    (step,) = all_steps(store, second.ref)

    assert (step.name, step.ordinal, step.result) == ("build", 1, '{"a":[1,2]}')
    assert (step.run, step.token, step.duration_ms) == (1, first.ref.token, 12)
    assert store.steps_of(TENANT, first.id) == [step]


def test_a_step_recorded_already_is_done_and_stays_as_it_is(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    store.record_steps([a_step(attempt.ref, result="1")])

    again = store.record_steps([a_step(attempt.ref, result="2"), a_step(attempt.ref, ordinal=2, result="3")])

    assert again == [Verdict.DONE, Verdict.DONE]
    assert [(step.ordinal, step.result) for step in all_steps(store, attempt.ref)] == [(1, "1"), (2, "3")]


def test_the_same_step_twice_in_one_batch_counts_once(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))

    verdicts = store.record_steps([a_step(attempt.ref, result="1"), a_step(attempt.ref, result="2")])

    assert verdicts == [Verdict.DONE, Verdict.DONE]
    assert [step.result for step in all_steps(store, attempt.ref)] == ["1"]


def test_a_zombie_records_nothing_and_reads_nothing(store: SqlStore) -> None:
    """The attempt was given up; whoever was thought dead comes back with a result of his own."""
    worker = a_worker(store)
    zombie = claimed(store, worker)
    give_up(store, worker, zombie)
    (living,) = claim_all(store, worker)
    store.record_steps([a_step(living.ref, result='"of the living"')])

    verdicts = store.record_steps([a_step(zombie.ref, result='"late"'), a_step(zombie.ref, "more")])

    assert verdicts == [Verdict.FENCED, Verdict.FENCED]
    assert store.journal(zombie.ref) is None
    assert [step.result for step in all_steps(store, living.ref)] == ['"of the living"']


def test_every_part_of_the_fence_counts(store: SqlStore) -> None:
    """Check 22."""
    attempt = claimed(store, a_worker(store))

    for ref in (
        attempt.ref._replace(job=77_777),
        attempt.ref._replace(token=attempt.ref.token + 1),
        attempt.ref._replace(claim="other"),
    ):
        assert store.record_steps([a_step(ref)]) == [Verdict.FENCED]
        assert store.journal(ref) is None
        assert store.spend(ref, 1, {"tokens": 1}) is None
    assert all_steps(store, attempt.ref) == []


def test_a_batch_is_judged_attempt_by_attempt(store: SqlStore) -> None:
    worker = a_worker(store)
    gone, one, other = (claimed(store, worker) for _ in range(3))
    settle(store, worker, gone.ref)

    verdicts = store.record_steps([a_step(other.ref), a_step(gone.ref), a_step(one.ref)])

    assert verdicts == [Verdict.DONE, Verdict.FENCED, Verdict.DONE]
    assert [len(store.steps_of(TENANT, attempt.id)) for attempt in (gone, one, other)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"result": '"\x00"'}, "NUL"),
        ({"result": '"\ud800"'}, "surrogate"),
        ({"name": "\x00"}, "NUL"),
        ({"name": ""}, "0 characters"),
        ({"name": "x" * 201}, "201 characters"),
        ({"ordinal": 0}, "ordinal"),
        ({"result": "1" * ((8 << 20) + 1)}, "limit is 8,388,608"),
    ],
    ids=["nul", "surrogate", "name", "empty", "long", "ordinal", "large"],
)
def test_a_step_that_cannot_be_kept_is_refused_with_its_batch(
    store: SqlStore, wrong: dict[str, Any], says: str
) -> None:
    """Nothing half-written; whoever sent the batch sends its parts one by one."""
    worker = a_worker(store)
    one, other = claimed(store, worker), claimed(store, worker)

    with pytest.raises(InvalidInput, match=says):
        store.record_steps([a_step(other.ref), replace(a_step(one.ref), **wrong)])

    assert store.steps_of(TENANT, one.id) == store.steps_of(TENANT, other.id) == []


def test_with_a_step_the_count_of_losses_begins_anew(store: SqlStore) -> None:
    """A job that gets on is not given up for the crashes it survived."""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    for _ in range(2):
        give_up(store, worker, attempt)
        store.run_now(TENANT, attempt.id, "ada")
        (attempt,) = claim_all(store, worker)
    assert record(store, attempt.id).losses == 2

    store.record_steps([a_step(attempt.ref)])

    assert record(store, attempt.id).losses == 0
    give_up(store, worker, attempt)
    assert (record(store, attempt.id).losses, record(store, attempt.id).state) == (1, JobState.QUEUED)


def test_steps_survive_a_resume(store: SqlStore) -> None:
    """A19"""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.record_steps([a_step(attempt.ref)])
    store.interrupt(TENANT, attempt.id, "ada")
    settle(store, worker, attempt.ref, Stopped())
    store.resume(TENANT, attempt.id, "ada")
    (again,) = claim_all(store, worker)

    assert [step.run for step in all_steps(store, again.ref)] == [1]


def test_from_the_start_means_without_the_old_steps(store: SqlStore) -> None:
    """A19"""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.record_steps([a_step(attempt.ref)])
    store.interrupt(TENANT, attempt.id, "ada")
    settle(store, worker, attempt.ref, Stopped())
    store.resume(TENANT, attempt.id, "ada", from_start=True)
    (again,) = claim_all(store, worker)

    assert all_steps(store, again.ref) == []
    assert store.steps_of(TENANT, attempt.id) == []


def test_pages_of_a_journal_are_bounded_in_rows(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    wanted = [a_step(attempt.ref, f"step-{n % 7}", 1 + n // 7, str(n)) for n in range(1203)]
    assert set(store.record_steps(wanted)) == {Verdict.DONE}

    pages = whole_journal(store, attempt.ref)

    assert [len(page.steps) for page in pages] == [500, 500, 203]
    found = {(step.name, step.ordinal): step.result for page in pages for step in page.steps}
    assert found == {(step.name, step.ordinal): step.result for step in wanted}


def test_pages_of_a_journal_are_bounded_in_bytes(store: SqlStore) -> None:
    """Also counted in bytes, not characters: an ä has two."""
    attempt = claimed(store, a_worker(store))
    big = '"' + "ä" * 150_000 + '"'
    store.record_steps([a_step(attempt.ref, "big", n, big) for n in range(1, 11)])
    store.record_steps([a_step(attempt.ref, "huge", 1, '"' + "x" * (3 << 20) + '"')])

    pages = whole_journal(store, attempt.ref)

    assert all(sum(len(step.result.encode()) for step in page.steps) <= (4 << 20) for page in pages)
    assert [len(page.steps) for page in pages[:2]] == [4, 4]
    assert sum(len(page.steps) for page in pages) == 11


def test_a_cursor_that_no_page_gave_out_is_refused(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    for cursor in (-1, 3 << 32, 1 << 70):
        with pytest.raises(InvalidInput):
            store.journal(attempt.ref, cursor)


def test_one_step_too_many_is_refused_and_a_repeat_of_the_last_is_not(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_module, "MOST_STEPS", 20)
    attempt, other = (claimed(store, worker) for worker in [a_worker(store)] * 2)
    store.record_steps([a_step(attempt.ref, f"s{n}") for n in range(20)])
    assert store.record_steps([a_step(attempt.ref, "s19")]) == [Verdict.DONE]
    store.record_steps([a_step(attempt.ref, "s20")])

    with pytest.raises(InvalidInput, match="'s21' is one too many"):
        store.record_steps([a_step(other.ref), a_step(attempt.ref, "s21")])
    assert store.record_steps([a_step(other.ref)]) == [Verdict.DONE]
    assert len(store.steps_of(TENANT, attempt.id)) == 21


def test_sixteen_threads_record_the_same_steps_once_and_nobody_waits_in_a_circle(store: SqlStore) -> None:
    """The same batch, each time in another order, and at the end the attempts are settled in between."""
    worker = a_worker(store)
    store.submit([a_job() for _ in range(8)])
    attempts = claim_all(store, worker)
    start = threading.Barrier(16)

    def one(thread: int) -> list[Verdict]:
        wanted = [a_step(a.ref, f"s{n}", result=str(thread)) for a in attempts for n in range(6)]
        random.Random(thread).shuffle(wanted)
        start.wait(20)
        return insist(partial(store.record_steps, wanted))

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, range(16)))

    assert all(set(verdicts) == {Verdict.DONE} for verdicts in answers)
    assert [len(store.steps_of(TENANT, attempt.id)) for attempt in attempts] == [6] * 8


def test_a_settle_and_a_step_at_the_same_instant_leave_the_step_or_a_fence(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(25):
        attempt = claimed(store, worker)
        start = threading.Barrier(2)

        def recorded(attempt: ClaimedJob = attempt, start: threading.Barrier = start) -> Verdict:
            start.wait(10)
            return store.record_steps([a_step(attempt.ref)])[0]

        with ThreadPoolExecutor(1) as thread:
            recording = thread.submit(recorded)
            start.wait(10)
            settle(store, worker, attempt.ref)
            verdict = recording.result(20)
        assert len(store.steps_of(TENANT, attempt.id)) == (verdict is Verdict.DONE)


def test_steps_of_a_job_that_is_not_there(store: SqlStore) -> None:
    for name in ("nobody", "\x00"):
        with pytest.raises(UnknownJob):
            store.steps_of(TENANT, name)


def test_a_replay_says_of_what(store: SqlStore) -> None:
    job = replace(a_job(), replay_of="other")
    store.submit([job])

    assert record(store, job.id).replay_of == "other"
