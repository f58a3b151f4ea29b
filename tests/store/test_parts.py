"""Partial results: kept under the fence, one value per name, numbered for whoever follows."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, boom, claim_all, claimed, give_up, insist, settle
from tests.support.tables import counts_of_tables
from unstuck.model.errors import InvalidInput, NotStorable, UnknownJob
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.parts import MAX_PART, MOST_PARTS
from unstuck.model.settlement import Parked, Stopped
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.flow import parts as parts_module
from unstuck.store.port import Verdict
from unstuck.store.sql_store import SqlStore


def kept(store: SqlStore, job: str, after: int = 0) -> list[tuple[str, str, int]]:
    return [(part.name, part.value, part.number) for part in store.parts_of(TENANT, job, after)]


def number_of(store: SqlStore, job: str) -> int:
    found = store.dossier(TENANT, job)
    assert found is not None
    return found.parts


def resumed(store: SqlStore, worker: WorkerRecord, attempt: ClaimedJob, *, from_start: bool) -> ClaimedJob:
    store.interrupt(TENANT, attempt.id, "ada")
    settle(store, worker, attempt.ref, Stopped())
    store.resume(TENANT, attempt.id, "ada", from_start=from_start)
    (again,) = claim_all(store, worker)
    return again


def test_a_part_is_there_when_its_call_returns_with_who_gave_it_and_when(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    before = store.now()

    assert store.keep_part(attempt.ref, 1, "page 1", '{"words":[1,"ä"]}') is Verdict.DONE

    (part,) = store.parts_of(TENANT, attempt.id)
    assert (part.name, part.value, part.number) == ("page 1", '{"words":[1,"ä"]}', 1)
    assert (part.run, part.token) == (1, attempt.ref.token)
    assert before <= part.at <= store.now()
    assert number_of(store, attempt.id) == 1


def test_the_same_name_again_replaces_the_value_and_is_new_to_a_follower(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    for serial, (name, value) in enumerate([("a", "1"), ("b", "2"), ("a", "3")], start=1):
        store.keep_part(attempt.ref, serial, name, value)

    assert kept(store, attempt.id) == [("b", "2", 2), ("a", "3", 3)]
    assert kept(store, attempt.id, after=2) == [("a", "3", 3)]
    assert kept(store, attempt.id, after=3) == []
    assert number_of(store, attempt.id) == 2
    store.keep_part(attempt.ref, 4, "a", "4")
    assert kept(store, attempt.id, after=3) == [("a", "4", 4)]


def test_parts_are_read_in_pages(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    for serial in range(1, 6):
        store.keep_part(attempt.ref, serial, f"p{serial}", str(serial))
    first = store.parts_of(TENANT, attempt.id, limit=3)
    rest = store.parts_of(TENANT, attempt.id, first[-1].number, limit=3)
    assert [part.name for part in (*first, *rest)] == ["p1", "p2", "p3", "p4", "p5"]


def test_a_repeated_part_is_kept_once_and_one_that_comes_late_changes_nothing(store: SqlStore) -> None:
    """Its answer was lost, so it was sent again; or the database carries out at last what its caller gave up on."""
    attempt = claimed(store, a_worker(store))
    store.keep_part(attempt.ref, 1, "a", "1")
    assert store.keep_part(attempt.ref, 1, "a", "1") is Verdict.DONE
    assert kept(store, attempt.id) == [("a", "1", 1)]

    store.keep_part(attempt.ref, 3, "a", "3")
    assert store.keep_part(attempt.ref, 2, "a", "2") is Verdict.DONE

    assert kept(store, attempt.id) == [("a", "3", 2)]


def test_a_later_attempt_goes_on_with_what_the_earlier_one_gave(store: SqlStore) -> None:
    """After a retry, a loss and a wake-up alike; its own serials begin with 1 again."""
    worker = a_worker(store)
    attempt = claimed(store, worker, backoff_base=0.0)
    store.keep_part(attempt.ref, 7, "a", "1")
    settle(store, worker, attempt.ref, boom())
    (second,) = claim_all(store, worker)
    assert store.keep_part(second.ref, 1, "a", "2") is Verdict.DONE
    store.keep_part(second.ref, 2, "b", "2")
    give_up(store, worker, second)
    store.run_now(TENANT, attempt.id, "ada")
    (third,) = claim_all(store, worker)
    store.keep_part(third.ref, 1, "c", "3")
    settle(store, worker, third.ref, Parked(Wait(WaitKind.EVENT, "event:go#1", "go", timeout=60.0)))
    store.signal(TENANT, "go", "null", "kim", job=attempt.id)
    store.ingest()
    (fourth,) = claim_all(store, worker)
    store.keep_part(fourth.ref, 1, "d", "4")

    assert kept(store, attempt.id) == [("a", "2", 2), ("b", "2", 3), ("c", "3", 4), ("d", "4", 5)]


def test_a_part_of_a_zombie_is_refused(store: SqlStore) -> None:
    """A7: also where its successor has given nothing yet."""
    worker = a_worker(store)
    zombie = claimed(store, worker)
    store.keep_part(zombie.ref, 1, "a", '"old"')
    give_up(store, worker, zombie)
    assert store.keep_part(zombie.ref, 2, "a", '"late"') is Verdict.FENCED
    store.run_now(TENANT, zombie.id, "ada")
    (living,) = claim_all(store, worker)

    assert store.keep_part(zombie.ref, 3, "a", '"late"') is Verdict.FENCED
    assert store.keep_part(zombie.ref, 4, "b", '"late"') is Verdict.FENCED
    assert kept(store, zombie.id) == [("a", '"old"', 1)]
    store.keep_part(living.ref, 1, "a", '"new"')
    settle(store, worker, living.ref)
    assert store.keep_part(living.ref, 2, "a", '"after its end"') is Verdict.FENCED
    assert kept(store, zombie.id) == [("a", '"new"', 2)]


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("", "1", "must be text that is not empty"),
        ("x" * 201, "1", "the limit is 200"),
        ("a\nb", "1", "cannot be printed"),
        ("a", '"\x00"', "NUL"),
        ("a", '"' + "x" * MAX_PART + '"', "65,538 bytes of JSON; the limit is 65,536"),
        ("a", '"' + "ä" * (MAX_PART // 2) + '"', "65,538 bytes of JSON; the limit is 65,536"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    store: SqlStore, name: str, value: str, match: str
) -> None:
    attempt = claimed(store, a_worker(store))
    store.keep_part(attempt.ref, 1, "a", "1")
    with pytest.raises(InvalidInput, match=match):
        store.keep_part(attempt.ref, 2, name, value)
    assert kept(store, attempt.id) == [("a", "1", 1)]


def test_the_largest_value_is_kept_and_a_larger_one_is_told_what_to_do(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    largest = '"' + "x" * (MAX_PART - 2) + '"'
    store.keep_part(attempt.ref, 1, "a", largest)
    assert kept(store, attempt.id) == [("a", largest, 1)]
    with pytest.raises(NotStorable, match="a storage of your own"):
        store.keep_part(attempt.ref, 2, "a", largest + " ")


def test_one_name_too_many_is_refused_and_a_known_one_is_not(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_PARTS == 1000
    monkeypatch.setattr(parts_module, "MOST_PARTS", 5)
    worker = a_worker(store)
    attempt = claimed(store, worker)
    for serial in range(1, 6):
        store.keep_part(attempt.ref, serial, f"p{serial}", "1")

    with pytest.raises(InvalidInput, match=r"'p6' is one too many: a job has 1,000 names .* use a name again"):
        store.keep_part(attempt.ref, 6, "p6", "1")

    assert number_of(store, attempt.id) == 5
    assert store.keep_part(attempt.ref, 7, "p3", "2") is Verdict.DONE
    assert kept(store, attempt.id, after=5) == [("p3", "2", 6)]
    again = resumed(store, worker, attempt, from_start=True)
    for serial in range(1, 6):
        assert store.keep_part(again.ref, serial, f"q{serial}", "1") is Verdict.DONE


def test_parts_survive_a_resume(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.keep_part(attempt.ref, 1, "a", "1")
    again = resumed(store, worker, attempt, from_start=False)
    store.keep_part(again.ref, 1, "b", "2")
    assert [(part.name, part.run) for part in store.parts_of(TENANT, attempt.id)] == [("a", 1), ("b", 2)]


def test_from_the_start_forgets_them_and_a_follower_misses_nothing_that_comes_then(store: SqlStore) -> None:
    """Twice, since what is left to keep the number must not be in the way."""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    for serial, name in enumerate("abc", start=1):
        store.keep_part(attempt.ref, serial, name, "1")
    seen = 3
    for _ in range(2):
        attempt = resumed(store, worker, attempt, from_start=True)
        assert kept(store, attempt.id) == []
        assert number_of(store, attempt.id) == 0
        store.keep_part(attempt.ref, 1, "a", "2")
        assert kept(store, attempt.id, after=seen) == [("a", "2", seen + 1)]
        seen += 1
    for _ in range(2):  # the second time before it has given anything
        attempt = resumed(store, worker, attempt, from_start=True)
        assert kept(store, attempt.id) == []


def test_parts_go_with_their_job(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e7)
    gone, stays = claimed(store, worker), claimed(store, worker)
    for attempt in (gone, stays):
        store.keep_part(attempt.ref, 1, "a", "1")
    settle(store, worker, gone.ref)
    clock.advance(days=8)

    assert store.forget_ended(7 * 86400.0) == 1

    with pytest.raises(UnknownJob):
        store.parts_of(TENANT, gone.id)
    assert kept(store, stays.id) == [("a", "1", 1)]
    assert counts_of_tables(store_url)["unstuck_parts"] == 1


def test_parts_of_another_tenant_or_of_nobody_are_not_found(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    store.keep_part(attempt.ref, 1, "a", "1")
    for tenant, job in [("other", attempt.id), (TENANT, "no-such-job"), (TENANT, "\x00")]:
        with pytest.raises(UnknownJob):
            store.parts_of(tenant, job)
        assert store.dossier(tenant, job) is None


def test_threads_of_one_attempt_get_a_number_each(store: SqlStore) -> None:
    attempt = claimed(store, a_worker(store))
    start = threading.Barrier(8)

    def one(thread: int) -> None:
        start.wait(20)
        for n in range(10):
            insist(partial(store.keep_part, attempt.ref, 1 + thread * 10 + n, f"p{thread}-{n % 3}", str(n)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(8)))

    parts = store.parts_of(TENANT, attempt.id)
    assert len({part.number for part in parts}) == len(parts) == 24
    assert max(part.number for part in parts) == 80
    assert {part.value for part in parts} == {"7", "8", "9"}


def test_a_settle_and_a_part_at_the_same_instant_leave_the_part_or_a_fence(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(25):
        attempt = claimed(store, worker)
        start = threading.Barrier(2)

        def given(attempt: ClaimedJob = attempt, start: threading.Barrier = start) -> Verdict:
            start.wait(10)
            return insist(partial(store.keep_part, attempt.ref, 1, "a", "1"))

        with ThreadPoolExecutor(1) as thread:
            giving = thread.submit(given)
            start.wait(10)
            settle(store, worker, attempt.ref)
            verdict = giving.result(20)
        assert number_of(store, attempt.id) == (verdict is Verdict.DONE)
