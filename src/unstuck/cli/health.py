"""unstuck health: one look at everything, for people and for probes."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import exits, options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.operations import health as operations
from unstuck.views.health import CheckView

app = options.single()


@app.command()
def health(
    need_workers: Annotated[
        bool, option("--workers", off="--no-workers", help="a database without a worker is unhealthy (default)")
    ] = True,
    worker: Annotated[
        str | None, option("--worker", metavar="NAME", help="this one must be active and ready: a readiness probe")
    ] = None,
    bounds: Annotated[bool, option("--bounds", help="also how long things can take at most")] = False,
    *,
    common: options.Common,
) -> int:
    """Database reachable, schema current, workers alive, nothing in trouble. Exit code 10 if not, 6 if the database
    cannot be reached. A warning changes no exit code: it is about single things."""
    with opened(common) as session:
        found = operations.check(session.caller, need_workers=need_workers, worker=worker)
    if common.json:
        output.emit_view(found)
    else:
        for check in found.checks:
            _print(check)
        if bounds:
            output.say("\nAt most, while the database can be written and a worker is alive:")
            for what, seconds in found.bounds.items():
                output.say(f"  {output.duration(seconds):>7}  {what}")
    return exits.OK if found.healthy else exits.UNHEALTHY if found.checks[0].ok else exits.UNREACHABLE


def _print(check: CheckView) -> None:
    mark, style = ("ok", "green") if check.ok else ("BAD", "bold red") if check.fatal else ("warn", "yellow")
    output.say(f"{output.styled(f'{mark:<4}', style)}  {check.name:<13} {output.visible(check.detail)}")
