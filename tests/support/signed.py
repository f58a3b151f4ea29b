"""Signed jobs for tests: keys, envelopes, and what somebody with SQL does to them."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.troubles import execute
from unstuck.model.job import NewJob
from unstuck.model.signing import Envelope
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import Store


def a_key(id: str = "web", **options: Any) -> SigningKey:
    return SigningKey(id, "hmac-sha256", **{"secret": id.encode().ljust(32, b"-"), **options})


def call_of(job: NewJob) -> StoredCall:
    return StoredCall(
        job=job.id,
        tenant=job.tenant,
        workflow=job.workflow,
        queue=job.queue,
        target=job.target,
        priority=job.priority,
        payload=job.payload,
        policy=job.policy,
        not_before=None if job.start_at is None else micros(job.start_at),
    )


def envelope_of(
    store: Store,
    job: NewJob,
    key: SigningKey | None = None,
    *,
    policy: str = "",
    ago: float = 0.0,
    life: float = 3600.0,
    **changes: Any,
) -> Envelope:
    """As a door would store it, accepted so many seconds ago; `changes` are what nobody has signed."""
    signer, accepted = key or a_key(), store.now() - timedelta(seconds=ago)
    signed = SigningKeys([signer]).sign(signer, call_of(job), accepted, policy=policy, life=life)
    return replace(signed, **{"accepted_at": micros(accepted), **changes})


def attach(url: str, *pairs: tuple[NewJob, Envelope | str | None]) -> None:
    """Into the rows of jobs that are stored already."""
    lines = ["BEGIN"]
    for job, envelope in pairs:
        text = envelope.text() if isinstance(envelope, Envelope) else envelope
        lines.append(f"UPDATE unstuck_jobs SET signature = {literal(text)} WHERE uid = {literal(job.id)}")
    execute(url, ";\n".join([*lines, "COMMIT"]))


def literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def write_keys(path: Path, *keys: SigningKey) -> Path:
    """The file of these keys; at once, as an editor's rename does."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(map(_table, keys)))
    new.rename(path)
    return path


def _table(key: SigningKey) -> str:
    secret = base64.b64encode(key.secret or b"").decode()
    lines = ["[[key]]", f'id = "{key.id}"', f'secret = "{secret}"', f'tenant = "{key.tenant}"']
    lines += [f"purposes = [{', '.join(repr(purpose) for purpose in key.purposes)}]"]
    lines += [f"begin = {key.begin.isoformat()}"] if key.begin else []
    lines += [f"end = {key.end.isoformat()}"] if key.end else []
    lines += ["revoked = true"] if key.is_revoked else []
    return "\n".join(lines)
