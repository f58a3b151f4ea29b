"""Submit: keys, delays, expiry, bulk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    chance,
    claim_all,
    claimed,
    kinds,
    record,
    settle,
    submitted,
)
from tests.support.tables import ask, counts_of_tables
from unstuck.assembly.store import open_store
from unstuck.model.errors import InvalidInput, KeyConflict, NotStorable
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.store.order import name_ids
from unstuck.store.port import Report, Submitted
from unstuck.store.sql_store import SqlStore


def test_the_same_key_and_body_is_one_job(store: SqlStore) -> None:
    """A45"""
    first = submitted(store, key="k", fingerprint="f")
    twin = a_job(key="k", fingerprint="f")

    (answer,) = store.submit([twin])

    assert (answer.id, answer.created) == (first.id, False)
    assert store.get(TENANT, twin.id) is None


def test_the_same_key_with_another_body_is_a_conflict_and_nothing_is_written(store: SqlStore) -> None:
    """A45"""
    first = submitted(store, key="k", fingerprint="f")
    innocent, other = a_job(), a_job(key="k", fingerprint="g")

    with pytest.raises(KeyConflict) as caught:
        store.submit([innocent, other])

    assert caught.value.job == first.id
    assert store.get(TENANT, innocent.id) is None


def test_ten_clients_with_one_key_at_once_make_one_job(store: SqlStore) -> None:
    """A45"""
    for round in range(10):
        twins = [a_job(key=f"k{round}", fingerprint="f") for _ in range(10)]
        with ThreadPoolExecutor(10) as clients:
            answers = list(clients.map(lambda job: store.submit([job])[0], twins))
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1


def test_a_key_belongs_to_its_tenant(store: SqlStore) -> None:
    submitted(store, key="k", fingerprint="f")
    assert store.submit([a_job(key="k", fingerprint="g", tenant="other")])[0].created


def test_two_jobs_of_a_batch_with_one_key_are_one(store: SqlStore) -> None:
    first, second = a_job(key="k", fingerprint="f"), a_job(key="k", fingerprint="f")
    answers = store.submit([first, second])
    assert [a.id for a in answers] == [first.id, first.id]
    assert [a.created for a in answers] == [True, False]
    with pytest.raises(KeyConflict):
        store.submit([a_job(key="n", fingerprint="f"), a_job(key="n", fingerprint="g")])


def test_a_key_lives_a_day_and_never_less_than_its_job(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e7)
    attempt = claimed(store, worker, key="k", fingerprint="f")
    clock.advance(hours=25)
    assert not store.submit([a_job(key="k", fingerprint="f")])[0].created
    assert store.forget_keys() == 0

    settle(store, worker, attempt.ref)

    assert store.submit([a_job(key="k", fingerprint="g")])[0].created


def test_keys_of_ended_jobs_are_forgotten_after_their_retention(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e7)
    ended, alive = claimed(store, worker, key="a"), submitted(store, key="b")
    settle(store, worker, ended.ref)
    assert store.forget_keys() == 0
    clock.advance(hours=25)
    assert store.forget_keys() == 1
    assert store.submit([a_job(key="b")])[0].id == alive.id


def test_a_key_lives_as_long_as_its_submitter_says(store: SqlStore, clock: StoreClock) -> None:
    """Also after a day, and whoever sweeps."""
    patient = SqlStore(store._database, key_retention=3 * 86400)
    worker = a_worker(store, lease=1e7)
    attempt = claimed(patient, worker, key="k", fingerprint="f")
    settle(store, worker, attempt.ref)
    clock.advance(hours=71)
    for each in (patient, store):
        assert each.forget_keys() == 0
        assert each.submit([a_job(key="k", fingerprint="f")]) == [Submitted(attempt.id, created=False)]

    clock.advance(hours=2)

    assert store.submit([a_job(key="k", fingerprint="f")])[0].created


def test_the_life_of_keys_is_a_setting(store_url: str) -> None:
    with closing(open_store(store_url, Times(key_retention=3 * 86400))) as store:
        store.submit([a_job(key="k", fingerprint="f")])
    assert ask(store_url, "SELECT (expires_at - created_at) / 1000000 FROM unstuck_keys") == [(3 * 86400,)]


def test_a_repeated_submit_of_the_same_id_is_the_earlier_job(store: SqlStore) -> None:
    job = submitted(store)
    assert store.submit([replace(job, payload='"other"')])[0].created is False
    assert record(store, job.id).payload == "{}"
    keyed = submitted(store, key="k", fingerprint="f")
    assert store.submit([keyed])[0].created is False
    assert len(claim_all(store, a_worker(store))) == 2


def test_thousands_of_jobs_in_one_call_keep_their_order(store: SqlStore) -> None:
    jobs = [a_job(payload=f"{number}") for number in range(2500)]

    answers = store.submit(jobs)

    assert [a.id for a in answers] == [j.id for j in jobs]
    assert all(a.created for a in answers)
    assert [a.payload for a in claim_all(store, a_worker(store))] == [j.payload for j in jobs]


def test_a_delayed_job_becomes_claimable_when_it_is_due(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    later = submitted(store, delay=60.0)
    at = submitted(store, start_at=clock.now() + timedelta(seconds=120))
    past = submitted(store, start_at=clock.now() - timedelta(days=1))
    assert [a.id for a in claim_all(store, worker)] == [past.id]
    assert store.release_due() == 0
    clock.advance(seconds=61)
    assert store.release_due() == 1
    assert [a.id for a in claim_all(store, worker)] == [later.id]
    clock.advance(seconds=60)
    assert store.release_due() == 1
    assert [a.id for a in claim_all(store, worker)] == [at.id]


def test_a_stay_in_the_queue_that_lasts_too_long_fails(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    waits = submitted(store, expires_after=10.0)
    delayed = submitted(store, expires_after=10.0, delay=5.0)
    runs = claimed(store, worker, expires_after=10.0)
    clock.advance(seconds=11)
    store.release_due()

    ended = record(store, waits.id)
    assert (ended.state, ended.error_type) == (JobState.FAILED, "QueueTimeout")
    assert kinds(store, waits.id) == ["submitted", "failed"]
    assert record(store, runs.id).state is JobState.RUNNING
    assert record(store, delayed.id).state is JobState.QUEUED
    clock.advance(seconds=5)
    store.release_due()
    assert record(store, delayed.id).state is JobState.FAILED
    assert claim_all(store, worker) == []


def test_a_timer_of_an_earlier_stay_does_not_end_a_later_one(store: SqlStore, clock: StoreClock) -> None:
    from unstuck.model.settlement import NotStarted

    worker = a_worker(store, lease=1e6)
    attempt = claimed(store, worker, expires_after=10.0)
    clock.advance(seconds=8)
    settle(store, worker, attempt.ref, NotStarted())
    clock.advance(seconds=4)
    store.release_due()
    assert record(store, attempt.id).state is JobState.QUEUED
    clock.advance(seconds=7)
    store.release_due()
    assert record(store, attempt.id).error_type == "QueueTimeout"


def test_timers_of_stays_that_ended_well_do_not_hold_up_a_real_expiry(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    store.submit([a_job(expires_after=60.0) for _ in range(35)])
    store.settle(worker.number, [Report(a.ref, Returned("1")) for a in claim_all(store, worker)])
    late = submitted(store, expires_after=60.0)
    clock.advance(seconds=61)

    assert store.release_due(batch=10) == 1

    assert record(store, late.id).error_type == "QueueTimeout"


@pytest.mark.parametrize("text", ['"a\x00b"', '"\ud800"'])
def test_a_payload_that_no_database_gives_back_is_refused_at_the_door(store: SqlStore, text: str) -> None:
    job = a_job(payload=text)
    with pytest.raises(NotStorable):
        store.submit([a_job(), job])
    assert store.counts()[JobState.QUEUED] == 0


@pytest.mark.parametrize(
    "wrong", [{"priority": 1 << 70}, {"delay": float("nan")}, {"delay": float("inf")}, {"delay": -1.0}]
)
def test_numbers_that_no_column_takes_are_refused_at_the_door(store: SqlStore, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        store.submit([a_job(), a_job(**wrong)])
    assert store.counts()[JobState.QUEUED] == 0


def test_text_of_every_plane_comes_back_unchanged(store: SqlStore) -> None:
    text = '"\\u0001 \x7f \u2028 \U0001f600 \\" \\\\ {} ' + "x" * 100_000 + '"'
    assert record(store, submitted(store, payload=text).id).payload == text


def test_jobs_are_found_by_the_beginning_of_their_id(store: SqlStore) -> None:
    job = submitted(store)
    assert store.find(TENANT, job.id[:30]) == [job.id]
    assert store.find("other", job.id[:30]) == []
    assert store.find(TENANT, chance.nonce()) == []
    assert store.get("other", job.id) is None
    assert store.history("other", job.id) == []


def test_a_job_with_a_target_enters_by_its_line_and_the_inbox_tells_of_it(store: SqlStore, store_url: str) -> None:
    before = counts_of_tables(store_url)
    store.submit([a_job(target="t"), a_job(target="t", priority=3), a_job(target="u"), a_job(target="u", delay=60.0)])
    after = counts_of_tables(store_url)
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert (grown["unstuck_line"], grown["unstuck_inbox"], grown["unstuck_targets"], grown["unstuck_timers"]) == (
        3,
        2,
        2,
        1,
    )
    assert "unstuck_ready" not in grown
    assert ask(store_url, "SELECT place, COUNT(*) FROM unstuck_line GROUP BY place ORDER BY place") == [
        (-3, 1),
        (0, 2),
    ]
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_timers WHERE route IS NULL") == [(0,)]


def test_a_target_belongs_to_its_tenant(store: SqlStore) -> None:
    mine, theirs = submitted(store, target="t"), submitted(store, target="t", tenant="other")
    assert (record(store, mine.id).target, record(store, theirs.id, "other").target) == ("t", "t")
    store.ingest()
    assert len(claim_all(store, a_worker(store))) == 2


def test_a_limit_key_is_part_of_the_route(store: SqlStore) -> None:
    jobs = [submitted(store, limit_key=key) for key in (None, "a", "b", "a")]
    assert [record(store, job.id).limit_key for job in jobs] == [None, "a", "b", "a"]
    assert len(store.open_routes()) == 3


def test_tags_are_found_by_tenant_and_go_with_their_job(store: SqlStore, store_url: str) -> None:
    job = submitted(store, tags=("red", "blue", "red"))
    submitted(store, tags=("red",), tenant="other")
    assert record(store, job.id).tags == ("red", "blue", "red")
    rows = ask(store_url, "SELECT tenant, tag FROM unstuck_tags ORDER BY tenant, tag")
    assert rows == [("default", "blue"), ("default", "red"), ("other", "red")]


def test_a_star_names_no_tenant(store: SqlStore, store_url: str) -> None:
    before = counts_of_tables(store_url)
    for options in ({"tenant": "*"}, {"target": "*"}):
        with pytest.raises(InvalidInput):
            store.submit([a_job(), a_job(**options)])
    assert counts_of_tables(store_url) == before


def test_hundreds_of_new_targets_at_once_do_not_deadlock(store: SqlStore) -> None:
    """Each client names the same new targets, in an order of its own. With a thousand of them the last of six clients
    waits longer for SQLite's one writer, on a busy machine, than a call may take."""
    names = [f"t{n}" for n in range(400)]

    def submit(turn: int) -> int:
        order = names[turn * 40 :] + names[: turn * 40]
        return len(store.submit([a_job(target=name) for name in (reversed(order) if turn % 2 else order)]))

    with ThreadPoolExecutor(6) as clients:
        assert sum(clients.map(submit, range(6))) == 2400

    while store.ingest().entries:
        pass
    assert len(claim_all(store, a_worker(store))) == 400


def test_names_that_memory_forgot_are_found_again(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_ids, "MOST_KEPT", 3)
    for round in range(2):
        store.submit([a_job(target=f"t{n}", limit_key=f"k{n}", retries=n) for n in range(5)])
        assert len(store.targets(TENANT)) == 5, round
    store.ingest()
    assert len(claim_all(store, a_worker(store))) == 5
