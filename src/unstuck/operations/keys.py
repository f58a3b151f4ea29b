"""API keys: who may ask over HTTP, about whose things, with which role, and for how long.

A key is shown once, when it is made. Whoever makes, revokes or rotates one must have its role and its scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from unstuck.chance import unguessable
from unstuck.model.errors import InvalidInput, KeyEnded, NotPermitted, OutcomeUnknown, UnknownKey, quoted
from unstuck.model.keys import (
    ID_LENGTH,
    IDS,
    SECRETS,
    KeyRecord,
    NewKey,
    Within,
    check_key_name,
    check_names,
    check_scopes,
    digest,
    id_in,
    is_id,
    spell,
)
from unstuck.operations.kinds import Cursor, Duration, number_of, seconds, seconds_or_none, whole_number
from unstuck.operations.table import INCLUDED, PLATFORM_ADMIN, TENANT_ADMIN, Caller, Role, operation
from unstuck.store.port import SeenKey
from unstuck.views import Page
from unstuck.views.keys import KeyView, NewKeyView

OVERLAP = 3600.0
MOST_KEYS = 1000
#: Two keys of one id are rarer than a broken disk; somebody may have broken the dice.
_TRIES = 5


@operation(
    role=TENANT_ADMIN, effect="change", whose="own", repeat="again", audited="keys.create", errors=(NotPermitted,),
    status=201,
)  # fmt: skip
def create(
    caller: Caller,
    name: str,
    *,
    role: str,
    scopes: Collection[str] = (),
    queues: Collection[str] | None = None,
    workflows: Collection[str] | None = None,
    expires: Duration | None = None,
) -> NewKeyView:
    """Make a key of a tenant, or of the platform if no tenant is named. `name`: whose it is, as the audit will say.
    `queues`, `workflows`: all that it may touch. `expires`: in how many seconds, or "90d". It is told this once."""
    new = NewKey(
        id="",
        name=check_key_name(name),
        digest="",
        tenant=caller.own,
        role=_role(role),
        by=caller.by,
        scopes=check_scopes(scopes),
        within=Within(check_names(queues, "queue"), check_names(workflows, "workflow")),
        lasting=_lasting(expires),
    )
    if new.role == PLATFORM_ADMIN and new.tenant is not None:
        raise InvalidInput(f"a {PLATFORM_ADMIN} is of no tenant: leave the tenant out, or give another role")
    check_grant(caller, new.role, new.scopes)
    return _made(caller, new, caller.store.add_key)


@operation(role=TENANT_ADMIN, whose="own", paged="after")
def list_(caller: Caller, *, ended: bool = False, after: Cursor | None = None, limit: int = 50) -> Page[KeyView]:
    """The keys that work, with `ended` also those that were revoked or expired; the newest first."""
    most = whole_number(limit, "limit", 1, MOST_KEYS)
    found = caller.store.keys(caller.own, ended=ended, before=number_of(after), limit=most)
    now = caller.store.now()
    items = tuple(KeyView.of(record, now) for record in found)
    return Page(items=items, next=str(found[-1].number) if len(found) == most else None)


@operation(role=TENANT_ADMIN, whose="own", errors=(UnknownKey,), command="keys show")
def get(caller: Caller, key: str) -> KeyView:
    """One key, by its id (the 8 characters behind "usk_"): what it may do, who made it, when it was used last."""
    seen = _known(caller, key)
    return KeyView.of(seen.key, seen.at)


@operation(
    role=TENANT_ADMIN, effect="change", whose="own", repeat="same", audited="keys.revoke",
    errors=(UnknownKey, NotPermitted),
)  # fmt: skip
def revoke(caller: Caller, key: str) -> KeyView:
    """End a key, and the browser sessions that were begun with it: everywhere within 5 seconds, and for good."""
    known = _known(caller, key).key
    check_grant(caller, known.role, ())
    revoked = caller.store.revoke_key(known.id, caller.by)
    assert revoked is not None
    return KeyView.of(revoked, caller.store.now())


@operation(
    role=TENANT_ADMIN, effect="change", whose="own", repeat="refused", audited="keys.rotate",
    errors=(UnknownKey, KeyEnded, NotPermitted), status=201,
)  # fmt: skip
def rotate(caller: Caller, key: str, *, overlap: Duration = OVERLAP, expires: Duration | None = None) -> NewKeyView:
    """Make a key that takes the place of this one, with the same rights; the old one works for `overlap` more.
    `expires`: left out, the new one lasts as long as the old one was to last."""
    lasts, old = seconds(overlap, "overlap"), _known(caller, key).key
    check_grant(caller, old.role, old.scopes)
    lasting = _lasting(expires)
    if lasting is None and old.expires_at is not None:
        lasting = (old.expires_at - old.created_at).total_seconds()
    new = NewKey(
        id="",
        name=old.name,
        digest="",
        tenant=old.tenant,
        role=old.role,
        by=caller.by,
        scopes=old.scopes,
        within=old.within,
        lasting=lasting,
    )
    return _made(caller, new, lambda new: caller.store.rotate_key(old.id, new, lasts))


def _made(caller: Caller, new: NewKey, write: Callable[[NewKey], KeyRecord | None]) -> NewKeyView:
    for _ in range(_TRIES):
        text = spell(unguessable(IDS), unguessable(SECRETS))
        named = replace(new, id=id_in(text) or "", digest=digest(text))
        if (record := _written(caller, named, write)) is not None:
            return NewKeyView.made(record, caller.store.now(), text)
    raise RuntimeError("no id could be found that no other API key has")


def _written(caller: Caller, new: NewKey, write: Callable[[NewKey], KeyRecord | None]) -> KeyRecord | None:
    try:
        return write(new)
    except OutcomeUnknown:
        seen = caller.store.key(new.id)
        return seen.key if seen is not None and seen.key.digest == new.digest else write(new)


def _known(caller: Caller, key: str) -> SeenKey:
    """By its id. Whoever pastes the whole key is understood, and the key is repeated nowhere."""
    ident = key if is_id(key) else id_in(key)
    if ident is None:
        # What is longer than an id may be a key with a slip of the pen in it.
        raise UnknownKey(key if isinstance(key, str) and len(key) <= 2 * ID_LENGTH else "of so long an id")
    seen = caller.store.key(ident, caller.own)
    if seen is None:
        raise UnknownKey(ident)
    return seen


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise InvalidInput(f"there is no role {quoted(name)}; known: {', '.join(Role)}") from None


def _lasting(expires: Duration | None) -> float | None:
    lasting = seconds_or_none(expires, "expires")
    if lasting == 0:
        raise InvalidInput("expires=0: it would have ended before anybody could use it")
    return lasting


def check_grant(caller: Caller, role: str, scopes: Collection[str]) -> None:
    """Nobody hands out, takes away or renews more than they have."""
    if caller.role is PLATFORM_ADMIN:
        return
    if role not in INCLUDED[caller.role]:
        raise NotPermitted(f"{caller.by} is {caller.role}, and has no say about a key of role {role}")
    if missing := sorted(set(scopes) - caller.scopes):
        raise NotPermitted(f"{caller.by} cannot give the scope {missing[0]}: its own key does not have it")
