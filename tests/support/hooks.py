"""Hooks for tests: made, and deliveries as their senders sign them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from tests.support.builders import TENANT
from unstuck.intake.hooks import HookVerbs, MadeHook
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.store.port import Store

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "repo": {"type": "string"},
        "n": {"type": "integer"},
        "extra": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    },
    "required": ["repo"],
    "additionalProperties": False,
    "x-positional": ["repo", "n", "extra"],
}
REPO = {"repo": "body.repo", "n": {"from": "query.n", "default": 1}}
SEALER = Sealer.of("k1:" + base64.b64encode(b"k" * 32).decode())


def register(store: Store, name: str = "build", schema: Any = SCHEMA, **facts: Any) -> None:
    store.register_workflows([WorkflowRecord(name, "v1", "default", Policy(), schema, **facts)])


def verbs(store: Store, tenant: str = TENANT, sealer: Sealer = NO_SEALER) -> HookVerbs:
    return HookVerbs(store, tenant=tenant, by="ada", sealer=sealer)


def made(
    store: Store, name: str = "pushes", workflow: str = "build", sealer: Sealer = NO_SEALER, **said: Any
) -> MadeHook:
    if store.workflow(workflow) is None:
        register(store, workflow)
    return verbs(store, sealer=sealer).create(name, workflow, **{"scheme": "github", "arguments": REPO, **said})


def github(secret: str, body: bytes, delivery: str | None = "d-1") -> dict[str, str]:
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={signed}", "Content-Type": "application/json"}
    return headers | ({} if delivery is None else {"X-GitHub-Delivery": delivery})


def standard(secret: str, body: bytes, at: float, ident: str = "msg_1") -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.new(key, f"{ident}.{int(at)}.".encode() + body, hashlib.sha256).digest()
    text = base64.b64encode(signed).decode()
    return {"webhook-id": ident, "webhook-timestamp": str(int(at)), "webhook-signature": f"v1,{text}"}


def stripe(secret: str, body: bytes, at: float) -> dict[str, str]:
    signed = hmac.new(secret.encode(), f"{int(at)}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Stripe-Signature": f"t={int(at)},v1={signed}"}
