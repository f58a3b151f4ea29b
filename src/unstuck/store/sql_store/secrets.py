"""The verbs of stored secrets."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.store.guard import secrets
from unstuck.store.port import KeptSecret, SecretOwner
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlSecrets(SqlVerbs):
    def kept_secrets(self, owner: SecretOwner, after: int = 0, limit: int = 100) -> Sequence[KeptSecret]:
        return self._database.read(lambda t: secrets.page(t, owner, after, limit))

    def reseal_secret(self, kept: KeptSecret, stored: str, by: str) -> bool:
        return self._database.write(lambda t: secrets.reseal(t, kept, stored, by))
