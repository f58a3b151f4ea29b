"""unstuck limits …: every limit in one list, and those of keys."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.operations import limits
from unstuck.store.port import EVERY
from unstuck.views import plain

app = options.group(
    "Limits: how many run at once, start in a time, or wait. Those of keys are set here; "
    "others with their noun: queues, workflows, tenants.",
    default="list",
)


@app.command("list")
def list_(
    all_tenants: Annotated[bool, option("--all-tenants", help="not only those that touch this tenant")] = False,
    *,
    common: options.Common,
) -> None:
    """Every limit that stands."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        everybodys = limits.list_(session.caller.about(EVERY)).items
        found = everybodys if all_tenants else limits.list_(session.caller).items
        now = session.now()
    if common.json:
        output.emit_each(map(plain, found))
        return
    output.table(
        ["OF", "NAME", "TENANT", "LIMIT", "SET BY", "SET"],
        [(x.kind, x.name, x.tenant, gates.limit_text(x), x.set_by, output.age(x.set_at, now)) for x in found],
        empty="no limits; set one: unstuck queues limit NAME --concurrency N",
    )
    if len(found) < len(everybodys):
        output.note(f"{len(everybodys) - len(found)} more touch other tenants only: --all-tenants")


@app.command()
def key(
    name: Annotated[str, Argument(metavar="KEY", help='a limit key, "family:*": each key of it, or "*": each key')],
    *,
    flags: gates.LimitFlags,
    all_tenants: gates.Together = False,
    by: options.By = None,
    common: options.Common,
) -> None:
    """Limit the jobs of a key. Jobs get one by their workflow's limit_key="host:{host}" or enqueue --limit-key."""
    gates.limit(limits.key, limits.unlimit_key, name, flags, Where(common, all_tenants), by)
