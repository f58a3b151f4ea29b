"""Signing keys that are revoked: by them nothing starts any more. The keys themselves are in no database."""

from __future__ import annotations

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_wording
from unstuck.operations.table import PLATFORM_ADMIN, Caller, operation
from unstuck.signing import is_key_id
from unstuck.views import Page
from unstuck.views.signing import RevocationAdded, RevocationRemoved, RevocationView


@operation(role=PLATFORM_ADMIN, whose="platform")
def revocations(caller: Caller) -> Page[RevocationView]:
    """The signing keys that are revoked, the newest first: since when, by whom, why. What their file revokes is not
    among them."""
    return Page(items=tuple(RevocationView.of(each) for each in caller.store.revoked_signers()))


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="signing.revoke",
    route="POST /signing/{key}/revoke",
)
def revoke(caller: Caller, key: str, *, reason: str | None = None) -> RevocationAdded:
    """Revoke a signing key: whatever it signed and has not begun ends DEAD at its next claim, on every worker that
    holds keys. What runs goes on. One that is revoked already stays so, with the reason it had."""
    found, is_new = caller.store.revoke_signer(_id(key), caller.by, check_wording(reason, "reason"))
    return RevocationAdded.of(found, created=is_new)


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="signing.unrevoke",
    route="POST /signing/{key}/unrevoke",
)
def unrevoke(caller: Caller, key: str) -> RevocationRemoved:
    """Take that back: what it signed starts again. What is DEAD by it stays so: see its dead letter."""
    found = caller.store.unrevoke_signer(_id(key), caller.by)
    return RevocationRemoved(key=key, was=None if found is None else RevocationView.of(found))


def _id(key: str) -> str:
    """Nobody needs to hold a key to revoke it, so its id is all there is to check."""
    if not is_key_id(key):
        raise InvalidInput(
            f"{quoted(key)} is not the id of a signing key: 1 to 64 letters, digits, points, dashes, _"
        )
    return key
