"""Dead letters: written with the end that they are about, read, redriven, discarded and forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.store.test_news import Reader
from tests.support.builders import (
    TENANT,
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
from tests.support.burying import Graveyard
from tests.support.troubles import execute, holding
from tests.tiers import slow
from unstuck.janitor.retention import Oldest
from unstuck.model.bulk import BulkOptions, BulkState, BulkVerb
from unstuck.model.dead_letters import EXHAUSTED
from unstuck.model.errors import IllegalMove, NoDeadLetter
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Raised
from unstuck.model.signing import SignatureProblem
from unstuck.model.times import Times
from unstuck.signing import micros
from unstuck.store.guard import dead_letters
from unstuck.store.port import (
    BulkRecord,
    DeadLetter,
    JobFilter,
    LetterFilter,
    LetterTerms,
    NewBulk,
    NewLetter,
)
from unstuck.store.sql_store import SqlStore

DAY = Times().dead_letter_retention


@pytest.fixture
def graveyard(store: SqlStore, store_url: str) -> Graveyard:
    return Graveyard(store, store_url)


def letters(store: SqlStore, tenant: str | None = TENANT, **asked: Any) -> list[DeadLetter]:
    terms = LetterTerms(asked.pop("reason", None))
    return store.dead_letters(tenant, LetterFilter(terms, **asked))


def jobs_of(found: list[DeadLetter]) -> list[str]:
    return [letter.job for letter in found]


# --- made ---------------------------------------------------------------------------------------------------------


def test_a_letter_tells_of_its_job_and_is_there_once_per_run(graveyard: Graveyard, store: SqlStore) -> None:
    job = graveyard.bury(SignatureProblem.REVOKED, signature='{"key":"k1"}', queue="default")
    at = record(store, job)

    graveyard.add(at.number, at.run, TENANT, "default", "greet", SignatureProblem.ALTERED, None)

    (letter,) = letters(store)
    assert (letter.job, letter.run, letter.reason) == (job, 1, "revoked")
    assert (letter.message, letter.signature) == ("its key is revoked", '{"key":"k1"}')
    assert (record(store, job).state, kinds(store, job)[-1]) == (JobState.DEAD, "buried")


def test_letters_are_told_in_the_feed_and_once_to_operators_with_their_number(
    graveyard: Graveyard, store: SqlStore
) -> None:
    reader = Reader(store, tenant=TENANT)
    jobs = [graveyard.bury(SignatureProblem.ALTERED) for _ in range(3)]
    graveyard.bury(SignatureProblem.EXPIRED)

    told = [event for event in reader.news() if event.kind == "dead_letter.added"]
    assert [(event.job, event.data["reason"]) for event in told][:3] == [(job, "altered") for job in jobs]
    found = {(note.title, note.count) for note in store.notifications(TENANT)}
    assert found == {("Dead letters: altered", 3), ("Dead letters: expired", 1)}

    (open_one,) = [note for note in store.notifications(TENANT) if note.title.endswith("altered")]
    store.ack_notification(open_one.number, "kim")
    graveyard.bury(SignatureProblem.ALTERED)

    assert {(note.title, note.count) for note in store.notifications(TENANT)} == {
        ("Dead letters: altered", 1),
        ("Dead letters: expired", 1),
    }


@pytest.mark.parametrize(("retries", "outcome"), [(0, boom()), (3, Raised(boom().error, retry=False))])
def test_what_ran_out_of_tries_has_a_letter_where_its_workflow_says_so(
    retries: int, outcome: Raised, graveyard: Graveyard, store: SqlStore
) -> None:
    said = claimed(store, graveyard.worker, retries=retries, dead_letter="exhausted")
    unsaid = claimed(store, graveyard.worker, retries=retries)
    for attempt in (said, unsaid):
        settle(store, graveyard.worker, attempt.ref, outcome)

    (letter,) = letters(store)
    assert (letter.job, letter.reason, letter.message) == (said.id, EXHAUSTED, "ValueError: boom")
    assert record(store, said.id).state is JobState.FAILED


def test_one_that_is_tried_again_has_none_and_one_of_a_lost_worker_has_one(
    graveyard: Graveyard, store: SqlStore, clock: StoreClock
) -> None:
    again = claimed(store, graveyard.worker, retries=1, dead_letter="exhausted")
    settle(store, graveyard.worker, again.ref, boom())
    doomed = a_worker(store, name="bob", lease=10.0)
    lost = claimed(store, doomed, dead_letter="exhausted", on_lost="fail")
    clock.advance(60)

    store.recover_lost(0.0)

    (letter,) = letters(store)
    assert letter.job == lost.id
    assert letter.message.startswith("WorkerLost: worker bob")


def test_a_damaged_signature_does_not_keep_an_end_from_being_written(
    graveyard: Graveyard, store: SqlStore, store_url: str
) -> None:
    """Of a worker without keys, which verifies nothing."""
    damaged = "CAST(X'7bff' AS TEXT)" if store_url.startswith("sqlite") else "repeat('x', 100000)"
    attempt = claimed(store, graveyard.worker, retries=0, dead_letter="exhausted")
    execute(store_url, f"UPDATE unstuck_jobs SET signature = {damaged} WHERE id = {attempt.ref.job}")

    settle(store, graveyard.worker, attempt.ref, boom())

    (letter,) = letters(store)
    assert letter.signature in ("{\ufffd", None)


# --- whose --------------------------------------------------------------------------------------------------------


def test_a_tenant_sees_its_own_and_filters_find_what_they_name(graveyard: Graveyard, store: SqlStore) -> None:
    mine = graveyard.bury(SignatureProblem.ALTERED)
    other = graveyard.bury(SignatureProblem.MISSING, tenant="acme")
    worn = graveyard.exhaust(workflow="mail")

    assert jobs_of(letters(store)) == [worn, mine]
    assert jobs_of(letters(store, "acme")) == [other]
    assert jobs_of(letters(store, None)) == [worn, other, mine]
    assert jobs_of(letters(store, reason="altered")) == [mine]
    assert jobs_of(letters(store, workflow="mail")) == [worn]
    assert letters(store, queue="elsewhere") == []
    assert letters(store, queue="no\x00where") == []
    assert store.dead_letter("acme", mine) is None
    with pytest.raises(NoDeadLetter):
        store.discard_letter("acme", mine, "eve")


def test_pages_go_on_where_the_last_one_ended(graveyard: Graveyard, store: SqlStore) -> None:
    jobs = [graveyard.bury() for _ in range(5)]
    seen: list[str] = []
    before: int | None = None
    while page := store.dead_letters(TENANT, LetterFilter(), before=before, limit=2):
        seen += jobs_of(page)
        before = page[-1].number

    assert seen == jobs[::-1]


def test_a_letter_whose_job_is_gone_is_not_shown_and_goes_with_time(
    graveyard: Graveyard, store: SqlStore, clock: StoreClock
) -> None:
    store._database.write(lambda t: t.run("add_dead_letters", rows=_row(999_999)))

    assert letters(store) == []
    clock.advance(DAY + 1)
    assert store.forget_dead_letters(DAY) == 1


def _row(job: int) -> str:
    return (
        f'[{{"job":{job},"run":1,"tenant":"{TENANT}","queue":"q","workflow":"w","reason":"altered","message":"m",'
        '"signature":null}]'
    )


# --- redriven, discarded ------------------------------------------------------------------------------------------


def test_signed_anew_it_is_queued_in_a_new_run_and_completes(graveyard: Graveyard, store: SqlStore) -> None:
    """A43"""
    job = graveyard.bury()

    after = store.redrive(TENANT, job, "ada", signature='{"key":"k2"}', signed_until=5)

    assert (after.state, after.run) == (JobState.QUEUED, 2)
    assert letters(store) == []
    assert graveyard.signature(after.number) == '{"key":"k2"}'
    last = store.history(TENANT, job)[-1]
    assert (last.kind, last.data) == ("redriven", {"by": "ada", "resigned": True})
    assert [(line.verb, line.subject, line.by) for line in store.audit(TENANT, verb="dead_letters")] == [
        ("dead_letters.resign", job, "ada")
    ]
    (attempt,) = claim_all(store, graveyard.worker)
    settle(store, graveyard.worker, attempt.ref)
    assert record(store, job).state is JobState.COMPLETED


def test_what_ran_out_of_tries_begins_from_its_start(graveyard: Graveyard, store: SqlStore) -> None:
    job = graveyard.exhaust()

    after = store.redrive(TENANT, job, "ada")

    assert (after.state, after.run, letters(store)) == (JobState.QUEUED, 2, [])
    assert store.history(TENANT, job)[-1].data == {"by": "ada", "from_start": True}


@pytest.mark.parametrize("verb", ["resume", "resolve"])
def test_a_letter_goes_with_the_run_that_it_is_about(verb: str, graveyard: Graveyard, store: SqlStore) -> None:
    job = graveyard.exhaust()

    if verb == "resume":
        store.resume(TENANT, job, "ada")
    else:
        store.resolve(TENANT, job, "ada", "1")

    assert letters(store) == []


def test_a_job_without_a_letter_is_not_redriven(graveyard: Graveyard, store: SqlStore) -> None:
    job = graveyard.bury()
    failed = claimed(store, graveyard.worker, retries=0)
    settle(store, graveyard.worker, failed.ref, boom())
    queued = submitted(store)

    store.discard_letter(TENANT, job, "ada")

    assert record(store, job).state is JobState.DEAD
    for ident in (job, failed.id):
        with pytest.raises(NoDeadLetter, match=ident):
            store.redrive(TENANT, ident, "ada")
    with pytest.raises(NoDeadLetter):
        store.discard_letter(TENANT, job, "ada")
    with pytest.raises(IllegalMove, match="cannot be redriven"):
        store.redrive(TENANT, queued.id, "ada")
    with pytest.raises(IllegalMove, match="cannot be redriven"):
        store.redrive(TENANT, failed.id, "ada", signature="{}")


@pytest.mark.parametrize("others", ["redrive", "resign", "discard", "resume"])
def test_of_two_who_act_at_once_one_does(others: str, graveyard: Graveyard, store: SqlStore) -> None:
    """Many pairs: whoever comes second is told, and no job runs twice."""
    verbs: dict[str, Callable[[str], object]] = {
        "redrive": lambda job: store.redrive(TENANT, job, "bob"),
        "resign": lambda job: store.redrive(TENANT, job, "bob", signature="{}"),
        "discard": lambda job: store.discard_letter(TENANT, job, "bob"),
        "resume": lambda job: store.resume(TENANT, job, "bob"),
    }
    bury = graveyard.exhaust if others == "resume" else graveyard.bury
    for _ in range(5):
        job, refused, barrier = bury(), list[str](), threading.Barrier(2)

        def act(verb: Callable[[str], object], job: str = job, refused: list[str] = refused) -> None:
            barrier.wait()  # noqa: B023
            try:
                verb(job)
            except (IllegalMove, NoDeadLetter) as error:
                refused.append(type(error).__name__)

        both = [verbs["redrive"], verbs[others]]
        threads = [threading.Thread(target=act, args=(verb,)) for verb in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(refused) == 1
        assert record(store, job).run == kinds(store, job).count("submitted") + sum(
            kinds(store, job).count(kind) for kind in ("redriven", "resumed")
        )
        assert letters(store) == []


def bulk(store: SqlStore, letter: LetterTerms, *, force: bool = False, **filter: Any) -> BulkRecord:
    options = BulkOptions(force=force)
    wanted = JobFilter(letter=letter, **filter)
    started = store.start_bulk(NewBulk(chance.nonce(), TENANT, BulkVerb.RETRY, wanted, "ada", options))
    store.carry_bulks()
    found = store.bulk(TENANT, started.number)
    assert found is not None
    return found


def test_a_bulk_redrives_what_ran_out_of_tries_and_refuses_what_needs_a_signature(
    graveyard: Graveyard, store: SqlStore
) -> None:
    worn, dead = graveyard.exhaust(), graveyard.bury()
    other = graveyard.exhaust(workflow="mail")
    graveyard.exhaust(tenant="acme")

    done = bulk(store, LetterTerms(), workflow="greet")

    assert (done.state, done.matched, done.done, done.refused) == (BulkState.DONE, 2, 1, 1)
    assert done.filter == JobFilter(letter=LetterTerms(), workflow="greet", newest_first=False)
    assert done.reasons[0].job == dead
    assert "unstuck dead-letters resign" in done.reasons[0].reason
    assert record(store, worn).state is JobState.QUEUED
    assert set(jobs_of(letters(store))) == {dead, other}

    forced = bulk(store, LetterTerms("altered", since=None), force=True)

    assert (forced.done, forced.refused, record(store, dead).state) == (1, 0, JobState.QUEUED)
    assert store.history(TENANT, dead)[-1].kind == "redriven"


def test_a_bulk_goes_by_the_age_of_letters(graveyard: Graveyard, store: SqlStore, clock: StoreClock) -> None:
    old = graveyard.exhaust()
    clock.advance(3600)
    between = store.now()
    clock.advance(1)
    young = graveyard.exhaust()

    done = bulk(store, LetterTerms(before=between))

    assert (done.done, record(store, old).state, record(store, young).state) == (1, JobState.QUEUED, JobState.FAILED)
    assert jobs_of(store.dead_letters(TENANT, LetterFilter(LetterTerms(since=between)))) == [young]


# --- time ---------------------------------------------------------------------------------------------------------


def test_a_letter_older_than_a_day_is_gone_and_younger_ones_stay(
    graveyard: Graveyard, store: SqlStore, clock: StoreClock
) -> None:
    """A43"""
    old = graveyard.bury()
    clock.advance(DAY - 10)
    young = graveyard.bury()
    assert store.forget_dead_letters(DAY) == 0

    clock.advance(20)

    assert store.forget_dead_letters(DAY) == 1
    assert jobs_of(letters(store)) == [young]
    assert record(store, old).state is JobState.DEAD
    with pytest.raises(NoDeadLetter):
        store.redrive(TENANT, old, "ada")


def test_a_letter_goes_with_its_job_at_the_latest(graveyard: Graveyard, store: SqlStore, clock: StoreClock) -> None:
    graveyard.bury()
    clock.advance(2 * 3600)

    assert store.forget_ended(3600.0) == 1
    assert store.trouble_stands(TENANT)[-1].what != "dead_letters"


def test_signed_anew_its_row_stays_as_long_as_any_of_its_signatures_lives(
    graveyard: Graveyard, store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    """The first one may still be sent again by whoever has seen it, and must find the job that it made"""
    first, second = (micros(clock.now()) + hours * 3600 * 1_000_000 for hours in (5, 1))
    job = graveyard.bury(SignatureProblem.UNKNOWN_KEY)
    execute(store_url, f"UPDATE unstuck_jobs SET signature = '{{}}', signed_until = {first}")
    store.redrive(TENANT, job, "ada", signature='{"key":"k2"}', signed_until=second)
    (attempt,) = claim_all(store, graveyard.worker)
    settle(store, graveyard.worker, attempt.ref)

    clock.advance(hours=2)
    assert store.forget_ended(60.0) == 0
    clock.advance(hours=4)
    assert store.forget_ended(60.0) == 1


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_held_letter_delays_nobody(
    graveyard: Graveyard, store: SqlStore, clock: StoreClock, store_url: str
) -> None:
    held, other = graveyard.bury(), graveyard.bury()
    number = letters(store)[-1].number
    clock.advance(DAY + 1)
    with (
        holding(store_url, "unstuck_dead_letters", f"id = {number}"),
        holding(store_url, "unstuck_notifications", "acked_at IS NULL"),
    ):
        young = graveyard.bury()
        assert set(jobs_of(letters(store))) == {held, other, young}
        assert store.forget_dead_letters(DAY) == 1
    assert set(jobs_of(letters(store))) == {held, young}
    assert store.forget_dead_letters(DAY) == 1


# --- many ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(store: SqlStore, store_url: str) -> int:
    """A hundred thousand on one job, one of a thousand for another reason: lists do not look at jobs to find them."""
    number, count = record(store, submitted(store).id).number, 100_000
    numbers = f"generate_series(1, {count}) AS c (n)"
    if store_url.startswith("sqlite"):
        counting = f"SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}"
        numbers = f"(WITH RECURSIVE c (n) AS ({counting}) SELECT n FROM c) AS c"
    reason = "CASE WHEN n % 1000 = 0 THEN 'revoked' ELSE 'altered' END"
    execute(
        store_url,
        "INSERT INTO unstuck_dead_letters (job, run, tenant, queue, workflow, reason, message, created_at) "
        f"SELECT {number}, n, '{TENANT}', 'q', 'w', {reason}, 'm', n FROM {numbers}",
    )
    return count


@slow
def test_a_hundred_thousand_are_listed_filtered_counted_and_forgotten_in_batches(many: int, store: SqlStore) -> None:
    assert len(store.dead_letters(TENANT, LetterFilter(), limit=1000)) == 1000
    assert len(store.dead_letters(TENANT, LetterFilter(LetterTerms("revoked")), limit=1000)) == many // 1000
    job = store.jobs(TENANT, JobFilter()).jobs[0].number
    theirs = NewLetter(job, many + 1, "acme", "q", "w", "altered", "m", None)
    store._database.write(lambda t: dead_letters.add(t, [theirs]))
    for terms in (LetterTerms(), LetterTerms("altered")):
        assert len(store.dead_letters("acme", LetterFilter(terms))) == 1
    stands = {stand.kind: stand.number for stand in store.trouble_stands(TENANT) if stand.what == "dead_letters"}
    assert stands == {"revoked": many // 1000, "altered": many - many // 1000}

    duty, gone = Oldest(lambda size, past: store.forget_dead_letters(DAY, size, past)), 0
    while (some := duty.batch(5_000)).has_more:
        assert some.gone <= 5_000
        gone += some.gone

    assert gone + some.gone == many
