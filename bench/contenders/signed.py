"""unstuck with signed jobs: a worker that holds keys, and the same one without. The app signs what it enqueues."""

from __future__ import annotations

import base64
import os
import sys
from typing import NoReturn

from bench.contenders.ours import APP, OnPostgresSync, OnSqliteSync, Ours
from unstuck.assembly.worker import WorkerOptions, build_worker
from unstuck.signing import SignatureRule, SigningKey, SigningKeys

HMAC = SigningKey("bench", "hmac-sha256", secret=bytes(range(32)))


def ed25519() -> SigningKey:
    return SigningKey("bench", "ed25519", secret=bytes(range(32)))


class Unsigned(Ours):
    """Started in the same way, so that nothing else differs."""

    setting = "a worker without keys, --concurrency 400 --processes 2"

    def key(self) -> SigningKey | None:
        return None

    def worker_commands(self) -> list[list[str]]:
        return [[sys.executable, "-m", "bench", "work", self.name]]

    def prepare(self) -> None:
        super().prepare()
        if (key := self.key()) is not None:
            half, secret = ("secret" if key is HMAC else "private"), base64.b64encode(key.secret or b"").decode()
            os.environ["UNSTUCK_SIGNING_KEYS"] = (
                f'[[key]]\nid = "{key.id}"\nalgorithm = "{key.algorithm}"\n{half} = "{secret}"'
            )

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
