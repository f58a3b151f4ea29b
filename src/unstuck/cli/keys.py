"""unstuck keys …: who may ask over HTTP, about whose things, with which role, and for how long."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.operations import keys
from unstuck.operations.table import Role
from unstuck.store.port import EVERY
from unstuck.views.keys import KeyView, NewKeyView

app = options.group(
    "API keys: who may ask over HTTP. Without --tenant: the platform's, of all tenants.",
    default="list",
)

Key = Annotated[str, Argument(metavar="KEY", help='its id: the 8 characters behind "usk_"')]
Expires = Annotated[
    float | None,
    option("--expires", read=options.seconds, metavar="DURATION", help="how long it works, e.g. 90d; else for good"),
]
Platform = Annotated[bool, option("--all-tenants", help="of the platform, whatever UNSTUCK_TENANT says")]


@app.command()
def create(
    name: Annotated[str, Argument(metavar="NAME", help="whose it is, as the audit will say")],
    role: Annotated[str | None, option("--role", metavar="ROLE", help=f"what it may ask: {', '.join(Role)}")] = None,
    queue: Annotated[
        list[str] | None, option("--queue", "-q", metavar="NAME", help="only this queue; may be repeated")
    ] = None,
    workflow: Annotated[
        list[str] | None, option("--workflow", "-w", metavar="NAME", help="only this workflow; may be repeated")
    ] = None,
    scope: Annotated[
        list[str] | None, option("--scope", metavar="SCOPE", help="act-as: may name another person as who asks")
    ] = None,
    expires: Expires = None,
    all_tenants: Platform = False,
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Make a key. It is shown once: nobody stores it."""
    options.check_whose(all_tenants, common)
    if role is None:
        raise InvalidInput(f"say what it may ask: --role ROLE, one of {', '.join(Role)}")
    with opened(common) as session:
        caller = session.caller.about(EVERY if all_tenants else None, by)
        view = keys.create(
            caller, name, role=role, scopes=scope or (), queues=queue, workflows=workflow, expires=expires
        )
    _print_new(view, common.json)


@app.command("list")
def list_(
    all_: Annotated[bool, option("--all", help="also those that were revoked or expired")] = False,
    limit: Annotated[int, options.rows(keys.MOST_KEYS)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """The keys there are, the newest first. None of them is shown."""
    with opened(common) as session:
        page, now = keys.list_(session.caller, ended=all_, after=after, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["KEY", "NAME", "TENANT", "ROLE", "STATE", "MADE", "EXPIRES", "USED"],
        [
            (
                k.id,
                k.name,
                k.tenant,
                k.role + ("" if k.queues is None and k.workflows is None else " (limited)"),
                k.state,
                output.age(k.created_at, now),
                output.rfc3339(k.expires_at),
                output.age(k.last_used_at, now) if k.last_used_at else None,
            )
            for k in page
        ],
        empty="no keys; make one: unstuck keys create NAME --role ROLE",
    )
    output.tell_next(page)


@app.command()
def show(key: Key, *, common: options.CommonOneTenant) -> None:
    """One key: what it may do, who made it, when it was used last."""
    with opened(common) as session:
        view, now = keys.get(session.caller, key), session.now()
    _print(view, now, common.json)


@app.command()
def revoke(key: Key, by: options.By = None, *, common: options.CommonOneTenant) -> None:
    """End a key for good, everywhere within 5 seconds."""
    with opened(common) as session:
        view, now = keys.revoke(session.caller.about(by=by), key), session.now()
    _print(view, now, common.json)


@app.command()
def rotate(
    key: Key,
    overlap: Annotated[
        float,
        option("--overlap", read=options.seconds, metavar="DURATION", help="how long the old one works on  [1h]"),
    ] = keys.OVERLAP,
    expires: Expires = None,
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Make a key that takes the place of this one. The old one works for a while, then it ends."""
    with opened(common) as session:
        view = keys.rotate(session.caller.about(by=by), key, overlap=overlap, expires=expires)
    _print_new(view, common.json)
    if not common.json:
        output.note(f"{view.rotated_from} works for {output.duration(overlap)} more; then it ends")


def _print_new(view: NewKeyView, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    output.say(view.key)
    output.note(f"keep it now: it is shown this once. Its id is {view.id}: unstuck keys revoke {view.id}")


def _print(view: KeyView, now: datetime, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    output.say(f"key {view.id} of {output.visible(view.name)} is {view.state}")
    output.say(f"  role      {', '.join([view.role, *view.scopes])}")
    output.say(f"  tenant    {output.visible(view.tenant) if view.tenant else 'all (the platform)'}")
    for what, names in (("queues", view.queues), ("workflows", view.workflows)):
        if names is not None:
            output.say(f"  {what:<9} {output.visible(', '.join(names))}")
    output.say(f"  made      {output.age(view.created_at, now)} by {output.visible(view.created_by)}")
    if view.rotated_from:
        output.say(f"  place of  {view.rotated_from}")
    if view.rotated_to:
        output.say(f"  rotated   {view.rotated_to} took its place")
    if view.revoked_at and view.revoked_by:
        output.say(f"  revoked   {output.age(view.revoked_at, now)} by {output.visible(view.revoked_by)}")
    elif view.expires_at:
        output.say(f"  expires   {output.rfc3339(view.expires_at)}")
    output.say(f"  used      {output.age(view.last_used_at, now) if view.last_used_at else 'never'}")
