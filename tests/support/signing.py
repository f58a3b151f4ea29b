"""Signing keys for tests, and calls to sign."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope
from unstuck.signing import SigningKey, SigningKeys, StoredCall

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))
ALGORITHMS = ("hmac-sha256", "ed25519")


def a_key(algorithm: str = "hmac-sha256", **facts: Any) -> SigningKey:
    given: dict[str, Any] = {"id": "k1", "secret": SECRET, "algorithm": algorithm}
    return SigningKey(**(given | facts))


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


def toml(*keys: SigningKey) -> str:
    """As a file has them."""
    tables = []
    for key in keys:
        lines = ["[[key]]", f'id = "{key.id}"', f'algorithm = "{key.algorithm}"', f'tenant = "{key.tenant}"']
        lines.append(f"purposes = {list(key.purposes)}".replace("'", '"'))
        own = "secret" if key.algorithm == "hmac-sha256" else "private"
        halves = ((own, key.secret), ("public", key.public))
        lines += [f'{name} = "{base64.b64encode(half).decode()}"' for name, half in halves if half is not None]
        tables.append("\n".join(lines))
    return "\n".join(tables)
