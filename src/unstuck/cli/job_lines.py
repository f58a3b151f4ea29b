"""JobLines: a line per job that ended for the person at a worker's terminal, elsewhere per job that failed for good.

At most so many a second, those that did not complete apart from those that did, so that a flood of one kind does not
hide the other; how many were left out is said. What is left out costs no more than being counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from unstuck import clock
from unstuck.cli.output import count, rfc3339, visible
from unstuck.model.lifecycle import JobState
from unstuck.model.log_lines import object_line
from unstuck.model.wording import duration
from unstuck.store.port import Settled

#: Lines of each kind, and the seconds they are for.
LINES = 10
SPAN = 1.0
#: As much of an id as still names one job.
ID = 23
_ERROR = 200
_COLOURS = {"COMPLETED": 32, "CANCELLED": 2, "WAITING": 35, "QUEUED": 36, "RETRYING": 33, "PAUSED": 33}
_RED = 31
#: What somebody should look at.
_FAILED = frozenset({JobState.FAILED, JobState.TIMEOUT, JobState.DEAD})

Facts = Callable[[Settled], dict[str, Any]]


class JobLines:
    def __init__(
        self,
        mention: Callable[[Callable[[], str]], None],
        *,
        colour: bool,
        as_json: bool = False,
        only_failed: bool = False,
    ) -> None:
        self._mention = mention
        self._colour = colour
        self._as_json = as_json
        self._only_failed = only_failed
        self._lock = threading.Lock()
        self._until = 0.0
        self._room = {True: LINES, False: LINES}
        #: How many were left out of those that completed, and of the others.
        self._left_out = {True: 0, False: 0}

    def __call__(self, ended: Sequence[Settled], facts: Facts) -> None:
        if self._only_failed:
            ended = [each for each in ended if each.state in _FAILED]
            if not ended:
                return
        now = clock.boot()
        with self._lock:
            if now >= self._until:
                self._say_left_out()
                self._until = now + SPAN
                self._room = {True: LINES, False: LINES}
            completed = [each for each in ended if each.state is JobState.COMPLETED]
            others = [each for each in ended if each.state is not JobState.COMPLETED]
            for found, is_completed in ((others, False), (completed, True)):
                self._say(found, is_completed, facts)

    def _say(self, found: Sequence[Settled], is_completed: bool, facts: Facts) -> None:
        shown = found[: self._room[is_completed]]
        for each in shown:
            at, known = clock.wall(), facts(each)
            if self._as_json:
                self._mention(partial(json_line, at, "job_ended", known))
            else:
                self._mention(partial(_line, at, known, self._colour))
        self._room[is_completed] -= len(shown)
        if len(found) > len(shown):
            if not any(self._left_out.values()):  # nobody may end after these, so that a call would say it
                waker = threading.Timer(SPAN, self.finish)
                waker.daemon = True
                waker.start()
            self._left_out[is_completed] += len(found) - len(shown)

    def finish(self) -> None:
        """What was left out so far is told."""
        with self._lock:
            self._say_left_out()

    def _say_left_out(self) -> None:
        others, at = self._left_out[False], clock.wall()
        number = others + self._left_out[True]
        if not number:
            return
        if self._as_json:
            text = json_line(at, "more_jobs_ended", {"failed": others})
        else:
            kind = "FAILED or TIMEOUT" if self._only_failed else "not COMPLETED"
            troubled = f", {others:,} of them {kind}" if others else ""
            text = f"{clock_text(at)}  … {count(number, 'job')} more ended{troubled}; -v tells each"
        self._mention(lambda: text)
        self._left_out = {True: 0, False: 0}


def json_line(at: datetime, event: str, facts: dict[str, object]) -> str:
    return object_line({"at": rfc3339(at), "event": event, **facts})


def clock_text(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M:%S")


def _line(at: datetime, facts: dict[str, Any], colour: bool) -> str:
    return f"{clock_text(at)}  {job_line(facts, colour=colour)}"


def job_line(facts: dict[str, Any], *, colour: bool = False, whole: bool = False) -> str:
    """How it ended, what it is, how long it ran, and what went wrong; `whole`: with all of its id."""
    error = facts["error_type"]
    state = "RETRYING" if facts["state"] == "QUEUED" and error else facts["state"]
    took, ident = facts["duration_ms"], facts["job"]
    parts = [f"{state:<9}", facts["workflow"] or "?", ident if whole else ident[:ID]]
    if took is not None:
        parts.append(duration(took / 1000) if took else "<1 ms")
    if error:
        said = " ".join(f"{error}: {facts['error_message'] or ''}".split())
        parts.append(said if len(said) <= _ERROR else said[: _ERROR - 1] + "…")
    text = visible("  ".join(parts))
    if not colour:
        return text
    return f"\x1b[{_COLOURS.get(state, _RED)}m{text[:9]}\x1b[0m{text[9:]}"
