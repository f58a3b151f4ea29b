"""Hooks: other systems' calls that start a workflow, and what was done about each. No view has a stored secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.intake.hooks import MadeHook, TriedDelivery
from unstuck.model.hooks import DeliveryProblem, HookOutcome, Scheme
from unstuck.model.redaction import Redaction, Redactions
from unstuck.store.port import HookDelivery, HookRecord
from unstuck.views import View

_HIDDEN = "what does not fit is hidden: the workflow redacts arguments"


class HookSecretView(View, frozen=True, kw_only=True):
    """That a hook accepts a secret, and how long; `until` null: it is the one in use."""

    since: datetime
    until: datetime | None


class HookView(View, frozen=True, kw_only=True):
    """One hook. `path`: where deliveries go, behind the address of the server. `arguments`: for each argument of the
    workflow where its value comes from. `sealed`: whoever reads the database cannot read its secrets."""

    id: str
    name: str
    tenant: str
    path: str
    paused: bool
    workflow: str
    scheme: Scheme
    signature: dict[str, Any]
    arguments: dict[str, Any]
    queue: str | None
    priority: int
    target: str | None
    tags: tuple[str, ...]
    policy: dict[str, Any]
    max_bytes: int
    secrets: tuple[HookSecretView, ...]
    sealed: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str

    @classmethod
    def of(cls, record: HookRecord, hidden: Redactions) -> HookView:
        return cls(**_facts_of(record, hidden))


class NewHookView(HookView, frozen=True, kw_only=True):
    """A hook with the secret that it was just given: it goes to the sender, and no other answer has it."""

    secret: str

    @classmethod
    def made(cls, made: MadeHook, hidden: Redactions) -> NewHookView:
        return cls(**_facts_of(made.hook, hidden), secret=made.secret)


def _facts_of(record: HookRecord, hidden: Redactions) -> dict[str, Any]:
    spec = record.spec
    return {
        "id": record.uid,
        "name": record.name,
        "tenant": record.tenant,
        "path": f"/hooks/{record.uid}",
        "paused": record.paused_at is not None,
        "workflow": spec.workflow,
        "scheme": spec.scheme,
        "signature": dict(spec.signature),
        "arguments": {name: _said(name, said, hidden[spec.workflow]) for name, said in spec.arguments.items()},
        "queue": spec.queue,
        "priority": spec.priority,
        "target": spec.target,
        "tags": spec.tags,
        "policy": dict(spec.policy),
        "max_bytes": spec.max_bytes,
        "secrets": tuple(
            HookSecretView(since=secret.since, until=secret.until)
            for secret in record.secrets
            if secret.until is None or secret.until > record.now
        ),
        "sealed": record.is_sealed,
        "paused_at": record.paused_at,
        "paused_by": record.paused_by,
        "pause_reason": record.pause_reason,
        "version": record.version,
        "created_at": record.created_at,
        "created_by": record.created_by,
        "changed_at": record.changed_at,
        "changed_by": record.changed_by,
    }


def _said(name: str, said: Any, hidden: Redaction) -> Any:
    """Where it comes from is no secret; a constant may be."""
    if not isinstance(said, dict):
        return said
    return {
        key: hidden.value({name: value})[name] if key in ("value", "default") else value
        for key, value in said.items()
    }


class HookDeliveryView(View, frozen=True, kw_only=True):
    """What was done about a delivery: its `job`, or the `problem` and the `reason` why there is none; `status` is
    what its sender was answered. `calls`: how often it came; of refused ones whose sender is not known, how many of
    them it stands for."""

    number: int
    delivery: str | None
    at: datetime
    last_at: datetime
    outcome: HookOutcome
    status: int
    job: str | None
    problem: str | None
    reason: str | None
    address: str | None
    bytes: int | None
    calls: int
    version: int

    @classmethod
    def of(cls, record: HookDelivery, hidden: Redaction) -> HookDeliveryView:
        is_hidden = bool(hidden) and record.problem in (DeliveryProblem.MISFIT, DeliveryProblem.NOT_ACCEPTED)
        return cls(
            number=record.number,
            delivery=None if record.key is None else record.key.removeprefix("id:"),
            at=record.at,
            last_at=record.last_at,
            outcome=record.outcome,
            status=record.status,
            job=record.job,
            problem=record.problem,
            reason=_HIDDEN if is_hidden else record.reason,
            address=record.address,
            bytes=record.size,
            calls=record.calls,
            version=record.version,
        )


class HookDryRunView(View, frozen=True, kw_only=True):
    """What would become of a delivery. `signed` null: it carries no signature, and that was passed over."""

    accepted: bool
    signed: bool | None
    arguments: dict[str, Any] | None
    problem: str | None
    reason: str | None

    @classmethod
    def of(cls, tried: TriedDelivery, hidden: Redaction) -> HookDryRunView:
        arguments = tried.arguments
        return cls(
            accepted=tried.problem is None,
            signed=tried.is_signed,
            arguments=None if arguments is None else dict(hidden.value(arguments)),
            problem=tried.problem,
            reason=_HIDDEN if hidden and tried.problem == DeliveryProblem.MISFIT else tried.reason,
        )
