"""unstuck with signed jobs: a worker that holds keys, and the same one without.

Envelopes are written into the rows once the jobs are there: what is measured is the drain, not the submit.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from typing import NoReturn

from bench.contenders.ours import APP, OnPostgresSync, OnSqliteSync, Ours
from bench.worlds import by_hand, open_store
from unstuck.assembly import WorkerOptions, build_worker
from unstuck.model.signing import keeps_policy
from unstuck.signing import SignatureRule, SigningKey, SigningKeys, StoredCall, micros

HMAC = SigningKey("bench", "hmac-sha256", secret=bytes(range(32)))
CHUNK = 1000


def ed25519() -> SigningKey:
    return SigningKey("bench", "ed25519", secret=bytes(range(32)))


class Unsigned(Ours):
    """Started in the same way, so that nothing else differs."""

    setting = "a worker without keys, --concurrency 400 --processes 2"

    def key(self) -> SigningKey | None:
        return None

    def worker_commands(self) -> list[list[str]]:
        return [[sys.executable, "-m", "bench", "work", self.name]]

    def fill(self, jobs: int) -> None:
        super().fill(jobs)
        if (key := self.key()) is not None:
            sign_all(self.url(), key)

    def work(self) -> NoReturn:
        key = self.key()
        # A worker needs the public half alone.
        keys = SigningKeys() if key is None else SigningKeys([key.for_verifying()], [SignatureRule("*")])
        options = WorkerOptions(app=APP, database=self.url(), concurrency=400, processes=2, signing=keys)
        sys.exit(build_worker(options).run())


class SignedHmac(Unsigned):
    setting = "a worker that requires hmac-sha256 signatures"

    def key(self) -> SigningKey | None:
        return HMAC


class SignedEd25519(Unsigned):
    setting = "a worker that requires ed25519 signatures"

    def key(self) -> SigningKey | None:
        return ed25519()


def sign_all(url: str, key: SigningKey) -> None:
    store, keys = open_store(url), SigningKeys([key])
    now = store.now()
    with by_hand(url) as execute:
        rows = execute("SELECT uid, payload FROM unstuck_jobs ORDER BY id")
        [first] = execute("SELECT tenant, workflow, queue, priority FROM unstuck_jobs ORDER BY id LIMIT 1")
        tenant, workflow, queue, priority = first
        known = store.get(str(tenant), str(rows[0][0]))
        assert known is not None
        call = StoredCall("", str(tenant), str(workflow), str(queue), None, priority, "", known.policy)
        assert keeps_policy(known.policy.to_json(), known.policy)
        for start in range(0, len(rows), CHUNK):
            lines = [_line(keys, key, call, now, str(uid), str(payload)) for uid, payload in rows[start:][:CHUNK]]
            execute(
                f"WITH signed (uid, signature) AS (VALUES {', '.join(lines)}) UPDATE unstuck_jobs SET signature = "
                "(SELECT signature FROM signed WHERE signed.uid = unstuck_jobs.uid) "
                "WHERE uid IN (SELECT uid FROM signed)"
            )
    store.close()


def _line(keys: SigningKeys, key: SigningKey, call: StoredCall, now: datetime, uid: str, payload: str) -> str:
    envelope = keys.sign(key, replace(call, job=uid, payload=payload), now, policy=call.policy.to_json())
    text = replace(envelope, accepted_at=micros(now)).text()
    return f"('{uid}', '{text}')"


class OnPostgresUnsigned(Unsigned, OnPostgresSync):
    pass


class OnPostgresHmac(SignedHmac, OnPostgresSync):
    pass


class OnPostgresEd25519(SignedEd25519, OnPostgresSync):
    pass


class OnSqliteUnsigned(Unsigned, OnSqliteSync):
    pass


class OnSqliteHmac(SignedHmac, OnSqliteSync):
    pass


class OnSqliteEd25519(SignedEd25519, OnSqliteSync):
    pass
