"""What no database can give back unchanged never leaves a job RUNNING, and ends alike on both."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.support.builders import TENANT, a_worker, claimed, record, settle
from tests.support.troubles import allow, refuse
from unstuck.model.errors import NotStorable
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.store.database import Transaction
from unstuck.store.port import Report, Verdict
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("result", ['"a\x00b"', '"\ud800"', 17, b"bytes"])
def test_a_result_that_cannot_be_stored_fails_its_job_and_not_its_neighbours(store: SqlStore, result: Any) -> None:
    worker = a_worker(store)
    good, bad = claimed(store, worker), claimed(store, worker, retries=5)

    answers = store.settle(worker.number, [Report(bad.ref, Returned(result)), Report(good.ref, Returned("1"))])

    assert [a.verdict for a in answers] == [Verdict.DONE, Verdict.DONE]
    assert record(store, good.id).state is JobState.COMPLETED
    ended = record(store, bad.id)
    assert (ended.state, ended.error_type) == (JobState.FAILED, "ResultNotStorable")
    assert settle(store, worker, bad.ref, Returned(result)).verdict is Verdict.DONE


def test_errors_of_any_shape_are_stored(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    wild = ErrorInfo(
        "E\x00\ud800\nfalse: " + "x" * 999, "m\x00\udfff" + "y" * 99_999, stack="s\x00\ud800" + "z" * 999_999
    )
    store.settle(worker.number, [Report(attempt.ref, Raised(wild, retry=False), output="\x00\ud800")])
    ended = record(store, attempt.id)
    assert ended.state is JobState.FAILED
    assert len(ended.error_type or "") < 300
    assert "\n" not in (ended.error_type or "")  # lists show it in a line
    assert len(ended.error_message or "") < 9000
    (kept,) = store.attempts(TENANT, attempt.id)
    assert len(kept.stack or "") < 70_000


def test_what_no_database_can_take_is_settled_one_by_one(store: SqlStore, store_url: str) -> None:
    """A report that passes our own check and still fails inside the statement, for its data."""
    _refuse_poison(store_url)
    worker = a_worker(store)
    good, bad = claimed(store, worker), claimed(store, worker, retries=5)

    answers = store.settle(worker.number, [Report(bad.ref, Returned(POISON)), Report(good.ref, Returned("1"))])

    assert [a.verdict for a in answers] == [Verdict.DONE, Verdict.DONE]
    assert record(store, good.id).state is JobState.COMPLETED
    ended = record(store, bad.id)
    assert (ended.state, ended.error_type) == (JobState.FAILED, "ResultNotStorable")


POISON = '"poison"'


def _refuse_poison(url: str) -> None:
    """Too large for SQLite; no number for PostgreSQL: both are errors about the data."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute(
                f"CREATE TRIGGER poison BEFORE INSERT ON unstuck_done WHEN NEW.result = '{POISON}' "
                "BEGIN SELECT LENGTH(zeroblob(2147483647)); END"
            )
        return
    with psycopg.connect(url) as server:
        server.execute(
            f"ALTER TABLE unstuck_done ADD CONSTRAINT poison "
            f"CHECK (CASE WHEN result = '{POISON}' THEN CAST(result AS INTEGER) > 0 ELSE TRUE END)"
        )


def test_what_a_rule_of_somebody_refuses_stays_with_its_worker_until_the_rule_allows_it(
    store: SqlStore, store_url: str
) -> None:
    """A constraint, a trigger: the result is right, and the trouble may pass."""
    refuse(store_url, "unstuck_done", f"NEW.result = '{POISON}'")
    worker = a_worker(store)
    good, bad = claimed(store, worker), claimed(store, worker, retries=5)
    reports = [Report(bad.ref, Returned(POISON)), Report(good.ref, Returned("1"))]

    refused, done = store.settle(worker.number, reports)

    assert (refused.verdict, done.verdict) == (Verdict.BUSY, Verdict.DONE)
    assert "not for you" in refused.problem
    assert record(store, bad.id).state is JobState.RUNNING
    allow(store_url, "unstuck_done")
    assert [answer.verdict for answer in store.settle(worker.number, reports)] == [Verdict.DONE, Verdict.DONE]
    assert record(store, bad.id).result == POISON


def test_an_impossible_duration_is_measured_by_the_store_instead(store: SqlStore) -> None:
    worker = a_worker(store)
    for duration in (1 << 80, -1):
        attempt = claimed(store, worker)
        store.settle(worker.number, [Report(attempt.ref, Returned("1"), duration_ms=duration)])
        assert record(store, attempt.id).state is JobState.COMPLETED


def test_a_resolution_that_cannot_be_stored_is_refused(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker, retries=0)
    settle(store, worker, attempt.ref, Raised(ErrorInfo("E", "m"), retry=False))
    with pytest.raises(NotStorable):
        store.resolve(TENANT, attempt.id, by="me", result='"\ud800"')
    assert record(store, attempt.id).state is JobState.FAILED


def test_no_refused_write_leaves_half_a_move(store: SqlStore) -> None:
    """An error inside a transaction takes all of it back."""
    worker = a_worker(store)
    attempt = claimed(store, worker)

    def half(t: Transaction) -> None:
        t.run("drop_done", job=attempt.ref.job)
        t.run("close_attempts", jobs=[attempt.ref.job])
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        store._database.write(half)
    assert record(store, attempt.id).state is JobState.RUNNING
