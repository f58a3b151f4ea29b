"""Webhooks: events of the feed, sent to a URL as they happen, signed as Standard Webhooks says.

A secret is told once, when the webhook is made or its secret rotated. Those of all tenants, with `tenant="*"`, are
the platform's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from unstuck.chance import SystemChance, unguessable
from unstuck.deliver.dialler import WebhookDialler
from unstuck.model.errors import (
    AddressRefused,
    Conflict,
    InvalidInput,
    NotActive,
    OutcomeUnknown,
    StaleCursor,
    TooManyWebhooks,
    UnknownWebhook,
    WebhookExists,
)
from unstuck.model.payload import check_instant, check_name, check_wording, plain_text
from unstuck.model.webhooks import (
    SECRET_SIZE,
    TEST_KIND,
    WebhookFilter,
    WebhookState,
    body_of,
    check_kind_count,
    check_secret,
    secret_bytes,
    secret_place,
    spell_secret,
)
from unstuck.observe.feed import check_cursor, check_kinds
from unstuck.operations.kinds import UNSAID, Cursor, Duration, Unsaid, number_of, seconds, whole_number
from unstuck.operations.table import OPERATOR, READER, TENANT_ADMIN, Caller, operation
from unstuck.store.port import EVERY, NewWebhook, WebhookRecord
from unstuck.views import Page, rfc3339
from unstuck.views.webhooks import DeliveryView, NewWebhookView, ReplayView, WebhookView

#: Seconds for which a secret that was rotated signs beside the new one.
OVERLAP = 86400.0
_MOST = 1000
_LONGEST_NAME = 100
_TRIES = 5
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@operation(role=READER, whose="any", paged="after")
def list_(caller: Caller, *, after: Cursor | None = None, limit: int = 50) -> Page[WebhookView]:
    """The webhooks of a tenant, in the order in which they were made; of "*" everybody's."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    found = caller.store.webhooks(caller.listed, number_of(after) or 0, most)
    items = tuple(_view(caller, record) for record in found)
    return Page(items=items, next=str(found[-1].number) if len(found) == most else None)


@operation(role=READER, whose="any", errors=(UnknownWebhook,), command="webhooks show")
def get(caller: Caller, webhook: str) -> WebhookView:
    """One webhook: where it goes, what is sent there, what waits, whether its receiver takes it."""
    return _view(caller, known(caller, webhook))


@operation(
    role=TENANT_ADMIN,
    effect="change",
    whose="any",
    repeat="refused",
    audited="webhooks.create",
    errors=(WebhookExists, TooManyWebhooks, AddressRefused),
    status=201,
)
def create(
    caller: Caller,
    name: str,
    url: str,
    *,
    kinds: str | Iterable[str] = (),
    workflow: str | None = None,
    queue: str | None = None,
    target: str | None = None,
    topic: str | None = None,
    job: str | None = None,
    secret: str | None = None,
) -> NewWebhookView:
    """Send what happens from now on to a URL. `kinds` and what follows choose events, as `events.list` does; left
    out: all. Its `secret` is told this once; left out: a new one is made."""
    named = check_name(name, "webhook")
    if len(named) > _LONGEST_NAME:
        raise InvalidInput(f"webhook {named[:20]}… has a name of more than {_LONGEST_NAME} characters")
    wanted = _filter(caller, kinds=kinds, workflow=workflow, queue=queue, target=target, topic=topic, job=job)
    text = _new_secret() if secret is None else check_secret(secret)
    _check_url(caller, url)
    new = NewWebhook(named, url, wanted, _kept(caller, _tenant(caller), named, text))
    try:
        made = caller.store.create_webhook(_tenant(caller), new, caller.by)
    except OutcomeUnknown:
        made = caller.store.create_webhook(_tenant(caller), new, caller.by)
    return NewWebhookView.made(made, text)


@operation(
    role=TENANT_ADMIN,
    effect="change",
    whose="any",
    repeat="same",
    audited="webhooks.update",
    errors=(UnknownWebhook, AddressRefused),
    route="PATCH /webhooks/{webhook}",
)
def update(
    caller: Caller,
    webhook: str,
    *,
    url: str | Unsaid = UNSAID,
    kinds: str | Iterable[str] | Unsaid = UNSAID,
    workflow: str | Unsaid | None = UNSAID,
    queue: str | Unsaid | None = UNSAID,
    target: str | Unsaid | None = UNSAID,
    topic: str | Unsaid | None = UNSAID,
    job: str | Unsaid | None = UNSAID,
) -> WebhookView:
    """Change where it goes, or what is sent; what is not named stays as it stands. What waits goes to the new URL."""
    said = {"kinds": kinds, "workflow": workflow, "queue": queue, "target": target, "topic": topic, "job": job}
    if not isinstance(url, Unsaid):
        _check_url(caller, url)
    for _ in range(_TRIES):
        found = known(caller, webhook)
        before = {name: getattr(found.wanted, name) for name in said}
        new = {name: before[name] if isinstance(value, Unsaid) else value for name, value in said.items()}
        where = found.url if isinstance(url, Unsaid) else url
        wanted = _filter(caller, **new)
        try:
            changed = caller.store.change_webhook(found.tenant, found.name, where, wanted, caller.by, found.version)
        except (Conflict, OutcomeUnknown):
            continue
        return _view(caller, changed)
    raise Conflict(f"webhook {webhook} is changed by others all the time; try again")


@operation(
    role=TENANT_ADMIN,
    effect="change",
    whose="any",
    repeat="again",
    audited="webhooks.rotate",
    errors=(UnknownWebhook,),
)
def rotate(caller: Caller, webhook: str, *, overlap: Duration = OVERLAP, secret: str | None = None) -> NewWebhookView:
    """A new secret; the old one signs beside it for `overlap` more, so that its receiver can change in peace. It is
    told this once."""
    lasts, found = seconds(overlap, "overlap"), known(caller, webhook)
    text = _new_secret() if secret is None else check_secret(secret)
    kept = _kept(caller, found.tenant, found.name, text)
    made = caller.store.rotate_webhook(found.tenant, found.name, kept, lasts, caller.by)
    return NewWebhookView.made(made, text)


@operation(
    role=OPERATOR, effect="change", whose="any", repeat="same", audited="webhooks.pause", errors=(UnknownWebhook,)
)
def pause(caller: Caller, webhook: str, *, reason: str | None = None) -> WebhookView:
    """Send nothing for now. What happens meanwhile waits, and is sent once it is enabled."""
    return _become(caller, webhook, WebhookState.PAUSED, reason)


@operation(
    role=OPERATOR, effect="change", whose="any", repeat="same", audited="webhooks.enable", errors=(UnknownWebhook,)
)
def enable(caller: Caller, webhook: str) -> WebhookView:
    """Send again, and at once: what waits, and what happens from now on. What happened while it was disabled is
    sent by a replay."""
    return _become(caller, webhook, WebhookState.ACTIVE, None)


@operation(
    role=OPERATOR, effect="change", whose="any", repeat="same", audited="webhooks.disable", errors=(UnknownWebhook,)
)
def disable(caller: Caller, webhook: str, *, reason: str | None = None) -> WebhookView:
    """Send nothing any more. What waits stays; what happens from now on is not kept for it."""
    return _become(caller, webhook, WebhookState.DISABLED, reason)


@operation(
    role=OPERATOR,
    effect="change",
    whose="any",
    repeat="again",
    audited="webhooks.test",
    errors=(UnknownWebhook, NotActive),
    status=201,
)
def test(caller: Caller, webhook: str) -> DeliveryView:
    """Send a test, signed like all others, of the kind `webhook.test`. What came of it: `deliveries.get`."""
    found = known(caller, webhook)
    data = {"webhook": found.name, "by": caller.by}
    body = body_of(TEST_KIND, rfc3339(caller.store.now()) or "", data)
    sent = caller.store.test_webhook(found.tenant, found.name, f"test-{SystemChance().nonce()}", body, caller.by)
    return DeliveryView.of(sent)


@operation(
    role=OPERATOR,
    effect="change",
    whose="any",
    repeat="again",
    audited="webhooks.replay",
    errors=(UnknownWebhook, NotActive, StaleCursor),
)
def replay(caller: Caller, webhook: str, *, since: datetime | None = None, after: str | None = None) -> ReplayView:
    """Send once more what happened since an instant, or behind a cursor of the feed: what was taken, what was given
    up, and what was never sent because it was disabled or its filter was another. Each under the id that it had. What
    is older than the feed is only what was sent before, 10,000 of it at a time."""
    if (since is None) == (after is None):
        raise InvalidInput("a replay takes since=… or after=…, one of them")
    begin = _BEGIN if since is None else check_instant(since, "since")
    cursor = None if after is None else check_cursor(after)
    found = known(caller, webhook)
    done = caller.store.replay_webhook(found.tenant, found.name, caller.by, since=begin, after=cursor)
    return ReplayView(name=found.name, reopened=done.reopened, has_more=done.has_more)


@operation(
    role=TENANT_ADMIN,
    effect="change",
    whose="any",
    repeat="refused",
    audited="webhooks.delete",
    errors=(UnknownWebhook,),
    route="DELETE /webhooks/{webhook}",
)
def delete(caller: Caller, webhook: str) -> WebhookView:
    """Send nothing there any more, and forget it with all its deliveries."""
    found = known(caller, webhook)
    return _view(caller, caller.store.delete_webhook(found.tenant, found.name, caller.by))


def known(caller: Caller, name: Any) -> WebhookRecord:
    found = caller.store.webhook(_tenant(caller), plain_text(name)) if isinstance(name, str) else None
    if found is None:
        raise UnknownWebhook(name)
    return found


def _tenant(caller: Caller) -> str:
    return caller.listed or EVERY


def _become(caller: Caller, webhook: str, state: WebhookState, reason: str | None) -> WebhookView:
    found, why = known(caller, webhook), check_wording(reason, "reason")
    return _view(caller, caller.store.state_webhook(found.tenant, found.name, state, caller.by, why))


def _filter(caller: Caller, **said: Any) -> WebhookFilter:
    kinds = check_kinds(said.pop("kinds") or ())
    check_kind_count(kinds)
    job = said.pop("job")
    return WebhookFilter(
        kinds=kinds,
        job=None if job is None else caller.of_job(job).lookup.job(job).id,
        **{name: check_wording(value, name) for name, value in said.items()},
    )


def _check_url(caller: Caller, url: Any) -> None:
    rules = caller.store.webhook_rules()
    WebhookDialler().check(url, rules.allow, rules.timeout)


def _kept(caller: Caller, tenant: str, name: str, secret: str) -> str:
    """As it is stored."""
    return caller.sealer().seal(secret_bytes(secret), secret_place(tenant, name))


def _new_secret() -> str:
    return spell_secret(unguessable(1 << (8 * SECRET_SIZE)).to_bytes(SECRET_SIZE, "big"))


def _view(caller: Caller, record: WebhookRecord) -> WebhookView:
    return WebhookView.of(record, caller.sees_all)
