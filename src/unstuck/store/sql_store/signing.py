"""The verbs of signed jobs and of revoked signing keys."""

from __future__ import annotations

from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.store.guard import signing
from unstuck.store.port import Revocation, SignedFacts
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlSigning(SqlVerbs):
    def signed_facts(self, worker: int, claim: str) -> SignedFacts:
        return self._database.read(lambda t: signing.facts(t, worker, claim))

    def policy_of(self, job: NewJob) -> Policy:
        return self._name_ids.policy_with(self._database, job)

    def revoke_signer(self, key: str, by: str, reason: str | None = None) -> tuple[Revocation, bool]:
        return self._database.write(lambda t: signing.revoke(t, key, by, reason))

    def unrevoke_signer(self, key: str, by: str) -> Revocation | None:
        return self._database.write(lambda t: signing.unrevoke(t, key, by))

    def revoked_signers(self) -> list[Revocation]:
        return self._database.read(signing.revocations)
