"""The terminal of `unstuck top`: keys as they are pressed, a frame whenever something is new, everything as it was at
the end."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from unstuck.cli.stop_signals import StopSignals
from unstuck.cli.top.frame import Seen, frame
from unstuck.cli.top.looking import Doer, Looker
from unstuck.cli.top.rows import rows_of
from unstuck.cli.top.state import Sheet, TopState, keys_in, press

#: Seconds after which ages are drawn anew although nothing is.
TICK = 1.0
#: Seconds that the threads get to end what they are at.
LEAVE_WITHIN = 0.5


class Window:
    """`stop`: counts signals, and wakes the loop for everything else."""

    def __init__(self, looker: Looker, doer: Doer, stop: StopSignals) -> None:
        self._looker = looker
        self._doer = doer
        self._stop = stop
        self._state = TopState()
        self._still: Seen | None = None
        is_colourless = bool(os.environ.get("NO_COLOR"))
        self._console = Console(
            file=sys.stdout, force_terminal=True, no_color=is_colourless, highlight=False, emoji=False, markup=False
        )

    def run(self) -> None:
        keyboard = sys.stdin.fileno()
        with _keys_at_once(keyboard), _resizes(self._stop), self._live() as live:
            self._looker.start()
            self._doer.start()
            try:
                self._loop(keyboard, live)
            finally:
                self._looker.stop(LEAVE_WITHIN)
                self._doer.stop(LEAVE_WITHIN)

    def _live(self) -> Live:
        return Live(console=self._console, screen=True, auto_refresh=False, redirect_stderr=False)

    def _loop(self, keyboard: int, live: Live) -> None:
        while not self._stop.asked:
            self._draw(live)
            if self._stop.wait(TICK, keyboard):
                typed = os.read(keyboard, 4096)
                if not typed or not self._typed(typed.decode("utf-8", errors="replace")):
                    return  # nobody is there any more, or somebody wants to leave
            while (came := self._doer.taken()) is not None:
                self._state = replace(self._state, **_shown(came))
                self._looker.look_soon()

    def _typed(self, text: str) -> bool:
        """False: leave."""
        page = max(1, self._console.size.height // 2)
        for key in keys_in(text):
            seen = self._seen()
            rows = rows_of(seen.view, self._state.words) if seen.view is not None else _NO_ROWS
            self._state, action = press(self._state, key, rows, page)
            if action is not None and action.verb == "quit":
                return False
            if action is not None:
                self._doer.do(action)
        return True

    def _seen(self) -> Seen:
        """What was there when somebody said to hold still, or what is."""
        if not self._state.is_still:
            self._still = None
            return self._looker.seen
        self._still = self._still or self._looker.seen
        return self._still

    def _draw(self, live: Live) -> None:
        size = self._console.size
        lines = frame(self._seen(), self._state, (size.width, size.height))
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        live.update(Group(*lines), refresh=True)


_NO_ROWS: Any = {"needs": [], "queues": [], "jobs": [], "workers": []}


def _shown(came: Sheet | str) -> dict[str, Any]:
    return {"sheet": came, "note": ""} if isinstance(came, Sheet) else {"note": came}


@contextmanager
def _keys_at_once(keyboard: int) -> Iterator[None]:
    """Without an Enter, and unseen. Ctrl-C stays a signal; Ctrl-Z would leave a terminal that nobody could use."""
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        ours = termios.tcgetattr(keyboard)
        ours[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(keyboard, termios.TCSANOW, ours)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _resizes(stop: StopSignals) -> Iterator[None]:
    """A window that changes its size wakes the loop."""
    before = signal.signal(signal.SIGWINCH, lambda *_: stop.wake())
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
