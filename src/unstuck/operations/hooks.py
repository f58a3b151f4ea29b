"""Webhooks in: other systems' calls that start a workflow, signed by a secret that both sides know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.intake.hooks import HookVerbs, as_delivery, tried
from unstuck.model.errors import (
    HookExists,
    InvalidArguments,
    TooManyHooks,
    UnknownHook,
    UnknownWorkflowName,
)
from unstuck.model.hooks import USUAL_BYTES
from unstuck.operations.kinds import (
    UNSAID,
    Cursor,
    Duration,
    HookOutcome,
    Scheme,
    Unsaid,
    number_of,
    seconds,
    whole_number,
)
from unstuck.operations.table import OPERATOR, READER, TENANT_ADMIN, Caller, operation
from unstuck.store.port import HookRecord
from unstuck.views import Page
from unstuck.views.hooks import HookDeliveryView, HookDryRunView, HookView, NewHookView

_MOST = 1000
OVERLAP = 86400.0


@operation(role=READER, whose="any", paged="after")
def list_(caller: Caller, *, after: Cursor | None = None, limit: int = 50) -> Page[HookView]:
    """The hooks of a tenant, in the order in which they were made."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    found = caller.store.hooks(caller.listed, number_of(after) or 0, most)
    items = tuple(_view(caller, record) for record in found)
    return Page(items=items, next=str(found[-1].number) if len(found) == most else None)


@operation(role=READER, errors=(UnknownHook,), command="hooks show")
def get(caller: Caller, hook: str) -> HookView:
    """One hook, by its name or id: its address, what it runs, how its deliveries are signed."""
    return _view(caller, _verbs(caller).get(hook))


@operation(
    role=TENANT_ADMIN,
    effect="change",
    repeat="refused",
    audited="hooks.create",
    errors=(HookExists, TooManyHooks, UnknownWorkflowName, InvalidArguments),
    status=201,
)
def create(
    caller: Caller,
    name: str,
    workflow: str,
    *,
    scheme: Scheme = "standard",
    arguments: Mapping[str, Any] | None = None,
    signature: Mapping[str, Any] | None = None,
    secret: str | None = None,
    queue: str | None = None,
    priority: int = 0,
    target: str | None = None,
    tags: Sequence[str] = (),
    policy: Mapping[str, Any] | None = None,
    max_bytes: int = USUAL_BYTES,
) -> NewHookView:
    """Let another system start a workflow by POST to the hook's `path`. `scheme`: how it signs; `arguments`: where
    each argument comes from, like {"repo": "body.repository.full_name"}; `secret`: left out, one is made. The secret
    is told this once. `signature`: of the scheme hmac, which header holds what."""
    made = _verbs(caller).create(
        name,
        workflow,
        secret,
        scheme=scheme,
        arguments=arguments,
        signature=signature,
        queue=queue,
        priority=priority,
        target=target,
        tags=list(tags),
        policy=policy,
        max_bytes=max_bytes,
    )
    return NewHookView.made(made, caller.redactions)


@operation(
    role=TENANT_ADMIN,
    effect="change",
    repeat="same",
    audited="hooks.update",
    errors=(UnknownHook, UnknownWorkflowName, InvalidArguments),
    route="PATCH /hooks/{hook}",
)
def update(
    caller: Caller,
    hook: str,
    *,
    workflow: str | Unsaid = UNSAID,
    arguments: Mapping[str, Any] | Unsaid | None = UNSAID,
    signature: Mapping[str, Any] | Unsaid | None = UNSAID,
    queue: str | Unsaid | None = UNSAID,
    priority: int | Unsaid = UNSAID,
    target: str | Unsaid | None = UNSAID,
    tags: Sequence[str] | Unsaid = UNSAID,
    policy: Mapping[str, Any] | Unsaid | None = UNSAID,
    max_bytes: int | Unsaid = UNSAID,
) -> HookView:
    """Change a hook; what is not named stays as it stands. Its address and its secret stay, too."""
    changed = _verbs(caller).update(
        hook,
        workflow=workflow,
        arguments=arguments,
        signature=signature,
        queue=queue,
        priority=priority,
        target=target,
        tags=tags if isinstance(tags, Unsaid) else list(tags),
        policy=policy,
        max_bytes=max_bytes,
    )
    return _view(caller, changed)


@operation(
    role=TENANT_ADMIN, effect="change", repeat="again", audited="hooks.rotate", errors=(UnknownHook,), status=201
)
def rotate(caller: Caller, hook: str, *, secret: str | None = None, overlap: Duration = OVERLAP) -> NewHookView:
    """Give it another secret. The one before it is accepted for `overlap` more, so that its sender has time."""
    made = _verbs(caller).rotate(hook, secret, seconds(overlap, "overlap"))
    return NewHookView.made(made, caller.redactions)


@operation(role=OPERATOR, effect="change", repeat="same", audited="hooks.pause", errors=(UnknownHook,))
def pause(caller: Caller, hook: str, *, reason: str | None = None) -> HookView:
    """Accept no delivery: its sender is told to come again later."""
    return _view(caller, _verbs(caller).pause(hook, reason))


@operation(role=OPERATOR, effect="change", repeat="same", audited="hooks.resume", errors=(UnknownHook,))
def resume(caller: Caller, hook: str) -> HookView:
    """Accept deliveries again."""
    return _view(caller, _verbs(caller).resume(hook))


@operation(
    role=TENANT_ADMIN,
    effect="change",
    repeat="refused",
    audited="hooks.delete",
    errors=(UnknownHook,),
    route="DELETE /hooks/{hook}",
)
def delete(caller: Caller, hook: str) -> HookView:
    """Answer at its address no more, and forget its secret. Its jobs stay as they are."""
    return _view(caller, _verbs(caller).delete(hook))


@operation(role=READER, paged="after", errors=(UnknownHook,))
def deliveries(
    caller: Caller,
    hook: str,
    *,
    outcome: HookOutcome | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[HookDeliveryView]:
    """What was done about each delivery, the newest first: the job, or why there is none."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    known = _verbs(caller).get(hook)
    found = caller.store.hook_deliveries(known.number, number_of(after), most, outcome)
    hidden = caller.redactions[known.spec.workflow]
    items = tuple(HookDeliveryView.of(record, hidden) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == most else None)


@operation(role=OPERATOR, effect="change", repeat="same", errors=(UnknownHook,))
def dry_run(
    caller: Caller,
    hook: str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> HookDryRunView:
    """What would become of such a delivery: its arguments, or why it is refused. Nothing is stored. A text is the
    body as it comes, anything else is written as JSON. A signature is verified if there is one."""
    known = _verbs(caller).get(hook)
    delivery = as_delivery(body, headers or {}, query or {})
    found = tried(caller.store, known, delivery, caller.sealer(), caller.times.max_timeout)
    return HookDryRunView.of(found, caller.redactions[known.spec.workflow])


def _verbs(caller: Caller) -> HookVerbs:
    return HookVerbs(
        caller.store, tenant=caller.one, by=caller.by, max_timeout=caller.times.max_timeout, sealer=caller.sealer()
    )


def _view(caller: Caller, record: HookRecord) -> HookView:
    return HookView.of(record, caller.redactions)
