"""DevLines: what `unstuck dev` itself says, a line each, between those of its worker; for people or for programs."""

from __future__ import annotations

import sys

from unstuck import clock
from unstuck.cli import output
from unstuck.cli.job_lines import clock_text, json_line
from unstuck.cli.log_writer import LogWriter

_RED, _DIM = 31, 2


class DevLines:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._colour = not output.is_plain(sys.stdout)
        # A terminal that is held (Ctrl-S) or gone must not keep us from ending.
        self._writer = LogWriter(sys.stdout)

    def head(self, title: str, rows: list[tuple[str, str]]) -> None:
        """What runs where, once, before anything happens; programs get it as facts."""
        if not self.as_json:
            self._writer.say(output.visible(title))
            for name, text in rows:
                self._writer.say(f"  {self._painted(f'{name:<8}', _DIM)} {output.visible(text)}")

    def say(self, event: str, sentence: str, *, is_loud: bool = False, **facts: object) -> None:
        at = clock.wall()
        if self.as_json:
            self._writer.say(json_line(at, event, facts))
            return
        text = output.indented(output.visible(sentence), len(clock_text(at)) + 2)
        self._writer.say(f"{clock_text(at)}  {self._painted(text, _RED) if is_loud else text}")

    def tell_programs(self, event: str, **facts: object) -> None:
        """What people have read already."""
        if self.as_json:
            self._writer.say(json_line(clock.wall(), event, facts))

    def finish(self) -> None:
        self._writer.finish()

    def _painted(self, text: str, colour: int) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text
