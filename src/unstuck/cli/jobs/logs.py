"""unstuck jobs logs: what a job printed and logged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.observe.stream import Stream
from unstuck.operations import jobs
from unstuck.operations.table import Caller
from unstuck.views.jobs import LogView


def logs(
    job: options.JobName,
    follow: Annotated[bool, option("--follow", "-f", help="go on until the job ends")] = False,
    attempt: Annotated[int | None, option("--attempt", least=1, help="only this one")] = None,
    level: Annotated[
        str | None, option("--level", metavar="LEVEL", help="only records of this level and above, e.g. warning")
    ] = None,
    times: Annotated[bool, option("--times", "-t", help="when each record was logged")] = False,
    *,
    common: options.Common,
) -> None:
    """What a job printed and logged, attempt by attempt."""
    with opened(common) as session:
        if follow:
            found: Iterator[LogView] = Stream(jobs.follow_logs(session.caller, job, attempt=attempt, level=level))
        else:
            found = _so_far(session.caller, job, attempt, level)
        if common.json:
            for piece in found:
                output.emit_view(piece)
            return
        told = _Told(times)
        for piece in found:
            told.tell(piece)
        told.end_line()
    if told.attempt is None:
        output.note("it has said nothing like that" if level else "it has printed nothing so far")


def _so_far(caller: Caller, job: str, attempt: int | None, level: str | None) -> Iterator[LogView]:
    after: str | None = "0"
    while after is not None:
        page = jobs.logs(caller, job, attempt=attempt, level=level, after=after)
        yield from page
        after = page.next


class _Told:
    """What has been printed of a job's output so far."""

    def __init__(self, times: bool) -> None:
        self.attempt: int | None = None
        self._times = times
        self._mid_line = False

    def tell(self, piece: LogView) -> None:
        if piece.attempt != self.attempt:
            self.attempt = piece.attempt
            self.end_line()
            output.note(f"--- attempt #{piece.attempt} on {piece.worker}")
        if self._times and piece.at:
            print(output.styled(output.rfc3339(piece.at) or "", "dim"), end="  ")
        # For a pipe exactly as it was printed, half lines included; a terminal would obey what is in it.
        print(_harmless(piece.text) if sys.stdout.isatty() else piece.text, end="", flush=True)
        self._mid_line = not piece.text.endswith("\n")

    def end_line(self) -> None:
        if self._mid_line:
            output.say("")
            self._mid_line = False


def _harmless(text: str) -> str:
    """A progress bar that overwrites itself becomes a line per state."""
    return output.visible(text.replace("\r\n", "\n").replace("\r", "\n"))
