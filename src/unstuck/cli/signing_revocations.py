"""unstuck signing revoke, unrevoke, revocations: signing keys by which nothing starts any more."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.operations import signing

KeyId = Annotated[str, Argument(metavar="KEY", help="the id of a signing key")]


def revocations(common: options.CommonPlatform) -> None:
    """The signing keys that are revoked in the database. What their file revokes is not among them."""
    with opened(common) as session:
        page, now = signing.revocations(session.caller), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["KEY", "REVOKED", "BY", "REASON"],
        [(each.key, output.age(each.revoked_at, now), each.revoked_by, each.reason) for each in page],
        empty="no signing key is revoked",
    )


def revoke(
    key: KeyId,
    reason: Annotated[str | None, option("--reason", metavar="TEXT", help="why, for those who ask later")] = None,
    by: options.By = None,
    *,
    common: options.CommonPlatform,
) -> None:
    """Whatever it signed and has not begun ends DEAD at its next claim. What runs goes on."""
    with opened(common) as session:
        found = signing.revoke(session.caller.about(by=by), key, reason=reason)
    if common.json:
        output.emit_view(found)
        return
    if found.created:
        output.say(f"signing key {key} is {output.styled('revoked', 'red')}: nothing that it signed starts any more")
    else:
        output.note(f"signing key {key} was revoked already, by {found.revoked_by}")
    output.note(f"workers that hold keys see it with their next claim; take it back: unstuck signing unrevoke {key}")


def unrevoke(key: KeyId, by: options.By = None, *, common: options.CommonPlatform) -> None:
    """Let what it signed start again. What is DEAD by it stays so, with its dead letter."""
    with opened(common) as session:
        found = signing.unrevoke(session.caller.about(by=by), key)
    if common.json:
        output.emit_view(found)
    elif found.was is None:
        output.note(f"signing key {key} was not revoked")
    else:
        output.say(f"signing key {key} is no longer revoked; it was by {found.was.revoked_by}")
