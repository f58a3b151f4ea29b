"""Logs: what a job printed and logged, attempt by attempt, as it comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError
from unstuck.model.job import AttemptRecord
from unstuck.observe.lookup import Lookup
from unstuck.observe.wait import Watch


@dataclass(frozen=True, slots=True)
class LogPiece:
    """What one attempt said since the last look."""

    attempt: int
    worker: str
    text: str


class Logs:
    """One reader of one job's output. Both colours of following ask it."""

    def __init__(self, lookup: Lookup, job: str, attempt: int | None = None) -> None:
        self._lookup = lookup
        self._job = job
        self._attempt = attempt
        self._seen: dict[int, str] = {}

    def look(self) -> tuple[list[LogPiece], bool]:
        """What is new, and whether that was all: the state is read first, so what an attempt said last, which is
        written together with the end of its job, is seen by this look or none is the last."""
        ended = self._lookup.job(self._job).state.is_final
        attempts = self._lookup.attempts(self._job)
        pieces = [piece for record in attempts if (piece := self._fresh(record)) is not None]
        return pieces, ended

    def _fresh(self, record: AttemptRecord) -> LogPiece | None:
        text, seen = record.output or "", self._seen.get(record.token, "")
        if self._attempt not in (None, record.token) or not text or text == seen:
            return None
        self._seen[record.token] = text
        # Past its cap the stored text is cut; then it may no longer continue what was shown.
        return LogPiece(record.token, record.worker, text[len(seen) :] if text.startswith(seen) else text)


def pieces(logs: Logs, *, follow: bool, clock: Clock | None = None) -> Iterator[LogPiece]:
    """What is there; with `follow` also what comes, until the job has ended."""
    clock = clock or MachineClock()
    watch, never = Watch(None, clock), threading.Event()
    while True:
        try:
            found, ended = logs.look()
        except StoreError as error:
            watch.lost(error)
        else:
            yield from found
            if ended or not follow:
                return
            if found:
                watch = Watch(None, clock)
            watch.saw()
        clock.wait(never, watch.pause() or 0.0)
