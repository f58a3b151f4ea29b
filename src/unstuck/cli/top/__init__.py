"""unstuck top: everything live in one window, with keys to act."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

from unstuck.cli import exits, options, output
from unstuck.cli.asking import asked
from unstuck.cli.parser import option

app = options.single()

#: Columns of a frame that goes into a pipe.
WIDE = 160


@app.command()
def top(
    once: Annotated[bool, option("--once", help="one look, printed, and the end")] = False,
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="running jobs of this queue")] = None,
    workflow: Annotated[
        str | None, option("--workflow", "-w", metavar="NAME", help="running jobs of this workflow")
    ] = None,
    by: options.By = None,
    *,
    common: options.CommonAnywhere,
) -> int:
    """Queues, running jobs, workers and what needs you, live; keys to cancel, show a stack, ask why, approve, pause
    (? tells them). Without a terminal, or with --once or --json, one look is printed."""
    from unstuck.cli.stop_signals import StopSignals
    from unstuck.cli.top.looking import Doer, Looker

    with asked(common, by) as asker:
        if once or common.json or not _is_window():
            view = Looker(asker, queue, workflow, lambda: None).look()
            if common.json:
                output.emit_view(view)
                return exits.OK
            from unstuck.cli.top.frame import Seen, whole

            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
            screen = output.console()
            for line in whole(Seen(asker.where, view), width):
                line.rstrip()
                screen.print(line, soft_wrap=True)
            if not once:
                output.note("this is no terminal: that was one look; --json gives it to programs")
            return exits.OK
        from unstuck.cli.top.window import Window

        with StopSignals() as stop:
            Window(Looker(asker, queue, workflow, stop.wake), Doer(asker, stop.wake), stop).run()
    return exits.OK


def _is_window() -> bool:
    """Somebody sees it and has keys; a terminal that knows no cursor is none."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", None)
