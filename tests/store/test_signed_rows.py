"""What is stored of a signature, and for how long: on both databases, by every statement that stores jobs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, chance, claim_all, claimed, record, settle, submitted
from tests.support.troubles import execute
from unstuck.model.job import Alike, NewJob
from unstuck.signing import micros
from unstuck.store.drivers.migrations import shipped
from unstuck.store.port import NewChild
from unstuck.store.sql_store import SqlStore

ENVELOPE = '{"version":1,"policy":"{\\"a\\":\\"ä\\\\n\\"}","signature":"AA=="}'


def alike(count: int, signed: bool) -> Alike:
    ids = chance.job_ids(count)
    signatures = [f"{ENVELOPE} {ident}" for ident in ids] if signed else None
    return Alike(a_job(said="{}"), ids, ["{}"] * count, None, signatures, 7 if signed else None)


def listed(**options: object) -> list[NewJob]:
    made = [a_job(**options) for _ in range(3)]
    for job in made[:2]:
        job.signature, job.signed_until = f"{ENVELOPE} {job.id}", 7
    return made


ROADS: dict[str, Sequence[NewJob]] = {
    "alike": alike(3, signed=True),
    "alike, unsigned": alike(3, signed=False),
    "one by one": listed(),
    "with targets": listed(target="t"),
    "with keys": [job for key in "abc" for job in listed(key=key)[:1]],
    "given ids": listed(has_given_id=True),
}


@pytest.mark.parametrize("road", ROADS)
def test_an_envelope_is_stored_as_it_came(road: str, store: SqlStore) -> None:
    jobs = ROADS[road]
    assert all(answer.created for answer in store.submit(jobs))
    assert all(not answer.created for answer in store.submit(jobs))
    for job in jobs:
        record = store.get(TENANT, job.id)
        assert record is not None
        assert record.signature == job.signature


def test_a_part_of_many_has_its_own_signatures() -> None:
    jobs = alike(5, signed=True)
    some = jobs[1:3]
    assert [job.signature for job in some] == [f"{ENVELOPE} {ident}" for ident in jobs.ids[1:3]]
    assert [job.signed_until for job in some] == [7, 7]
    assert alike(2, signed=False)[0].signature is None


def test_a_row_stays_until_its_signature_has_expired(store: SqlStore, clock: StoreClock) -> None:
    """Who sends it again must be told of the job that it made, however short the retention is."""
    until = micros(clock.now()) + 3 * 3600 * 1_000_000
    signed, plain = a_job(signature=ENVELOPE, signed_until=until), a_job()
    store.submit([signed, plain])
    worker = a_worker(store, lease=1e6)
    for job in claim_all(store, worker):
        settle(store, worker, job.ref)

    clock.advance(hours=2)
    assert store.forget_ended(60.0) == 1
    assert store.get(TENANT, plain.id) is None
    assert not store.submit([signed])[0].created
    clock.advance(hours=2)
    assert store.forget_ended(60.0) == 1
    assert store.get(TENANT, signed.id) is None


def test_what_the_engine_made_before_there_was_a_word_for_it_is_told_by_the_migration(
    store: SqlStore, store_url: str
) -> None:
    parent, replay = claimed(store, a_worker(store)), submitted(store, replay_of="other")
    child = store.spawn(NewChild(parent.ref, "c", 1, a_job()))
    assert child is not None
    dialect = "sqlite" if store_url.startswith("sqlite") else "postgres"
    [migration] = [each for each in shipped(dialect) if each.name == "made_by"]

    execute(store_url, migration.sql.partition("made_by TEXT")[2].partition(";")[2])

    made = {job: record(store, job).made_by for job in (parent.id, replay.id, child.id)}
    assert made == {parent.id: None, replay.id: "replay", child.id: "parent"}
