"""unstuck stats: how many jobs are in which state."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.lifecycle import JobState

app = options.single()

CEILING = 100_000


@app.command()
def stats(
    all_tenants: Annotated[bool, option("--all-tenants", help="not only this tenant's")] = False,
    watch: Annotated[bool, option("--watch", "-w", help="again every second, until Ctrl-C")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """Jobs by state, and the workers that serve them."""
    with opened(database, tenant) as session:
        while True:
            _print(session, all_tenants, json_, one_line=watch)
            if not watch:
                return
            session.pause(1.0)


def _print(session: Session, all_tenants: bool, as_json: bool, *, one_line: bool) -> None:
    found = session.store.counts(None if all_tenants else session.tenant, CEILING)
    counts = {state.value: found.get(state, 0) for state in JobState}
    alive = [w for w, state in session.workers() if state in ("active", "draining")]
    running = sum(w.running for w in alive)
    if as_json:
        output.emit_json(
            {
                "tenant": None if all_tenants else session.tenant,
                "states": counts,
                "ceiling": CEILING,
                "workers": {"alive": len(alive), "running": running},
                "at": output.rfc3339(session.now()),
            }
        )
    elif one_line:
        shown = "  ".join(f"{name} {_count(n)}" for name, n in counts.items() if n)
        output.say(f"{shown or 'no jobs'}  · {len(alive)} workers")
    else:
        output.table(["STATE", "JOBS"], [(name, _count(n)) for name, n in counts.items()], empty="")
        output.say(f"\n{len(alive)} worker{'' if len(alive) == 1 else 's'} alive, running {running}")


def _count(number: int) -> str:
    return f"{number:,}" if number < CEILING else f"{CEILING:,} or more"
