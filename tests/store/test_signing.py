"""Signed jobs at rest: what people may not change of them, and what a claim is told about them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.builders import a_worker, claim_all, record, submitted
from tests.support.signed import attach, envelope_of
from unstuck.model.errors import Conflict
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store


def test_the_priority_of_a_signed_job_is_the_signers(store: Store, store_url: str) -> None:
    job, unsigned = submitted(store), submitted(store)
    attach(store_url, (job, envelope_of(store, job)))

    with pytest.raises(Conflict, match="is signed with its priority"):
        store.reprioritise("default", job.id, 5, "kim")

    store.reprioritise("default", unsigned.id, 5, "kim")
    assert (record(store, job.id).priority, record(store, unsigned.id).priority) == (0, 5)


def test_nobody_hurries_a_job_past_its_signed_time(store: Store, store_url: str) -> None:
    job = submitted(store, start_at=store.now() + timedelta(hours=1))
    attach(store_url, (job, envelope_of(store, job)))

    with pytest.raises(Conflict, match="is signed not to begin before"):
        store.run_now("default", job.id, "kim")
    store.cancel("default", job.id, "kim")
    with pytest.raises(Conflict, match="is signed not to begin before"):
        store.resume("default", job.id, "kim")

    assert record(store, job.id).state is JobState.CANCELLED


def test_a_claim_is_told_of_its_signed_jobs_alone_and_of_revoked_keys(store: Store, store_url: str) -> None:
    job = submitted(store, priority=2)
    submitted(store)
    attach(store_url, (job, envelope_of(store, job)))
    store.revoke_signer("b", "kim")
    store.revoke_signer("a", "kim")
    worker = a_worker(store)
    claim = claim_all(store, worker)

    facts = store.signed_facts(worker.number, claim[0].ref.claim)

    [row] = facts.rows.values()
    assert (row.priority, row.tenant, row.is_first, row.is_made) == (2, "default", True, False)
    assert facts.revoked == {"a", "b"}
    assert facts.clock is not None
    assert store.signed_facts(worker.number, "another").rows == {}
