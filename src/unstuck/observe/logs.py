"""Logs: what a job printed and logged, attempt by attempt, as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.job import AttemptRecord
from unstuck.model.logs import SEVERITIES, LogRecord, complete, level_named, severity, split
from unstuck.observe.lookup import Lookup
from unstuck.observe.stream import Found
from unstuck.records import dataclass

#: Characters of output after which a look ends, and attempts that it reads at a time: a job that was tried a thousand
#: times has printed more than anybody can hold at once.
MOST_AT_ONCE = 256 << 10
ATTEMPTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class LogPiece:
    """One record, or a stretch of printed text. `text` is what a person reads, of either."""

    attempt: int
    worker: str
    text: str
    record: LogRecord | None = None


class Logs:
    """One reader of one job's output. Both colours of following ask it."""

    def __init__(
        self, lookup: Lookup, job: str, attempt: int | None = None, level: str | None = None, *, follow: bool = False
    ) -> None:
        self._lookup = lookup
        self._job = job
        self._attempt = attempt
        self._least = None if level is None else check_level(level)
        self._follow = follow
        #: How much of each attempt's text has been handed out: it only ever grows at its end.
        self._seen: dict[int, int] = {}
        #: The last attempt up to which all have ended and have been handed out.
        self._over = 0

    def look(self) -> tuple[list[LogPiece], Found]:
        """What is new, or some of it, and what another look would find. The state is read first, so what an attempt
        said last, which is written together with the end of its job, is seen by this look or it is not the last."""
        record = self._lookup.job(self._job)
        is_last = record.state.is_final or not self._follow
        if is_last and self._attempt is not None:
            self._check_attempt(record.token)
        found: list[LogPiece] = []
        read = 0
        for attempt in self._attempts():
            found += self.said_by(attempt)
            self._note_end(attempt)
            read += len(attempt.framed or "")
            if read >= MOST_AT_ONCE:
                return found, Found.MORE
        return found, Found.OVER if is_last else Found.END

    def said_by(self, attempt: AttemptRecord) -> Iterator[LogPiece]:
        """What is new of one attempt, as far as it is wanted."""
        return filter(self._is_wanted, self._fresh(attempt))

    def _attempts(self) -> Iterator[AttemptRecord]:
        """Those that may have something new: what an attempt says after its end nobody keeps."""
        if self._attempt is not None:
            is_number = isinstance(self._attempt, int)
            yield from self._lookup.attempts(self._job, self._attempt - 1, 1) if is_number else ()
            return
        yield from self._lookup.tries(self._job, self._over, ATTEMPTS_AT_ONCE)

    def _note_end(self, attempt: AttemptRecord) -> None:
        if self._attempt is None and attempt.ended_at is not None and attempt.token == self._over + 1:
            self._over = attempt.token
            self._seen.pop(attempt.token, None)

    def _check_attempt(self, last: int) -> None:
        if self._attempt not in range(1, last + 1):
            known = "1" if last == 1 else f"1 to {last}"
            there = f"it has {known}" if last else "it has none so far"
            raise InvalidInput(f"job {self._job} has no attempt {quoted(self._attempt)}; {there}")

    def _fresh(self, record: AttemptRecord) -> Iterator[LogPiece]:
        seen = self._seen.get(record.token, 0)
        fresh = (record.framed or "")[seen:]
        if record.ended_at is None:
            fresh = complete(fresh)
        self._seen[record.token] = seen + len(fresh)
        for piece in split(fresh):
            if isinstance(piece, str):
                yield LogPiece(record.token, record.worker, piece)
            else:
                yield LogPiece(record.token, record.worker, piece.text, piece)

    def _is_wanted(self, piece: LogPiece) -> bool:
        return self._least is None or (piece.record is not None and piece.record.severity >= self._least)


def check_level(level: Any) -> int:
    """How important a record of this level is; also by number, as the standard library counts."""
    name = level_named(level)
    if name not in SEVERITIES and not name.startswith("level "):
        raise InvalidInput(f"there is no level {quoted(level)}; known: {', '.join(SEVERITIES)}")
    return severity(name)
