"""What a claim is told about its signed jobs."""

from __future__ import annotations

from tests.support.builders import a_worker, claim_all, submitted
from tests.support.signing import attach, envelope_of
from unstuck.store.port import Store


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
    assert (row.priority, row.tenant, row.is_first, row.made_by) == (2, "default", True, None)
    assert facts.revoked == {"a", "b"}
    assert facts.clock is not None
    assert store.signed_facts(worker.number, "another").rows == {}
