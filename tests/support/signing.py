"""Signed jobs for tests: keys, envelopes, and what somebody with SQL does to them."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.builders import a_worker, claim_all
from tests.support.troubles import execute
from unstuck.clock import MachineClock
from unstuck.intake.signing import stored_call
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope
from unstuck.signing import SignatureRule, SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import Report, Store
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger
from unstuck.worker.verifier import Verifier

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))
ALGORITHMS = ("hmac-sha256", "ed25519")
EVERYWHERE = [SignatureRule("*")]


def a_key(id: str = "web", algorithm: Any = "hmac-sha256", **facts: Any) -> SigningKey:
    return SigningKey(id, algorithm, **{"secret": SECRET, **facts})


def toml(*keys: SigningKey) -> str:
    """As a file has them."""
    return "\n".join(map(_table, keys))


def _table(key: SigningKey) -> str:
    lines = ["[[key]]", f'id = "{key.id}"', f'algorithm = "{key.algorithm}"', f'tenant = "{key.tenant}"']
    lines.append(f"purposes = {list(key.purposes)}".replace("'", '"'))
    own = "secret" if key.algorithm == "hmac-sha256" else "private"
    halves = ((own, key.secret), ("public", key.public))
    lines += [f'{name} = "{base64.b64encode(half).decode()}"' for name, half in halves if half is not None]
    lines += [f"{name} = {at.isoformat()}" for name, at in (("begin", key.begin), ("end", key.end)) if at]
    lines += ["revoked = true"] if key.is_revoked else []
    return "\n".join(lines)


def write_keys(path: Path, *keys: SigningKey) -> Path:
    """The file of these keys; at once, as an editor's rename does."""
    new = path.with_suffix(".new")
    new.write_text(toml(*keys))
    new.rename(path)
    return path


# --- calls without a database --------------------------------------------------------------------------------------


def a_call(**facts: Any) -> StoredCall:
    given: dict[str, Any] = {
        "job": "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36",
        "tenant": "acme",
        "workflow": "charge",
        "queue": "money",
        "target": "card-7",
        "priority": 3,
        "payload": '{"args":[1],"kwargs":{}}',
        "policy": Policy(timeout=60.0, retries=2),
    }
    return StoredCall(**(given | facts))


def signed(key: SigningKey, call: StoredCall, *, policy: str = "", at: datetime = NOW) -> Envelope:
    return SigningKeys([key]).sign(key, call, at, policy=policy)


def accepted(envelope: Envelope, at: datetime = NOW) -> Envelope:
    return replace(envelope, accepted_at=int(at.timestamp() * 1_000_000))


# --- jobs of a database --------------------------------------------------------------------------------------------


def envelope_of(
    store: Store,
    job: NewJob,
    key: SigningKey | None = None,
    *,
    policy: str = "",
    now: datetime | None = None,
    ago: float = 0.0,
    life: float = 3600.0,
    **changes: Any,
) -> Envelope:
    """As a door would store it, accepted so many seconds ago; `changes` are what nobody has signed."""
    signer, at = key or a_key(), (now or store.now()) - timedelta(seconds=ago)
    made = SigningKeys([signer]).sign(signer, stored_call(job), at, policy=policy, life=life)
    return replace(made, **{"accepted_at": micros(at), **changes})


def attach(url: str, *pairs: tuple[NewJob, Envelope | str | None]) -> None:
    """Into the rows of jobs that are stored already."""
    lines = ["BEGIN"]
    for job, envelope in pairs:
        text = envelope.text() if isinstance(envelope, Envelope) else envelope
        lines.append(f"UPDATE unstuck_jobs SET signature = {literal(text)} WHERE uid = {literal(job.id)}")
    execute(url, ";\n".join([*lines, "COMMIT"]))


def literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


# --- a worker ------------------------------------------------------------------------------------------------------


class Desk:
    """A worker as far as it matters here: it claims, verifies, and keeps what it may run."""

    def __init__(self, store: Store, keys: HeldKeys | SigningKeys | SigningKey | None = None) -> None:
        self.store = store
        self.worker: WorkerRecord = a_worker(store)
        self.ledger = Ledger()
        self.kept: list[Report] = []
        held = keys if isinstance(keys, HeldKeys) else HeldKeys(_keys(keys))
        self.verifier = Verifier(
            store, self.worker.number, self.ledger, held, MachineClock(), report=self.kept.extend
        )

    def admitted(self, limit: int = 10_000) -> list[ClaimedJob]:
        """Of what is ready now."""
        claim = claim_all(self.store, self.worker, limit)
        return list(self.verifier.admitted(claim[0].ref.claim, claim)) if claim else []


def _keys(keys: SigningKeys | SigningKey | None) -> SigningKeys:
    return SigningKeys([keys or a_key()], EVERYWHERE) if not isinstance(keys, SigningKeys) else keys
