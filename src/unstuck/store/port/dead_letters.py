"""The port of dead letters: what never ran or ran out of tries, and what people make of it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple, Protocol

from unstuck.model.job import JobRecord
from unstuck.model.keys import Within
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class NewLetter:
    """What is written beside the end that it is about. `job`: the store's number; `signature`: the envelope as it is
    stored."""

    job: int
    run: int
    tenant: str
    queue: str
    workflow: str
    reason: str
    message: str
    signature: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One that stands. `job`: the id that people use."""

    number: int
    job: str
    run: int
    tenant: str
    queue: str
    workflow: str
    reason: str
    message: str
    signature: str | None
    created_at: datetime

    @property
    def characters(self) -> int:
        """What it adds to a page."""
        return len(self.message) + len(self.signature or "")


class LetterTerms(NamedTuple):
    """Which letters; None: not asked for. `before`, `since`: made then."""

    reason: str | None = None
    before: datetime | None = None
    since: datetime | None = None


ALL_LETTERS: Final = LetterTerms()


@dataclass(frozen=True, slots=True)
class LetterFilter:
    terms: LetterTerms = ALL_LETTERS
    workflow: str | None = None
    queue: str | None = None
    within: Within | None = None


class DeadLettersPort(Protocol):
    """A letter goes with the run that it is about: with a redrive, resume or resolve of its job, and with its job."""

    def dead_letters(
        self, tenant: str | None, filter: LetterFilter, *, before: int | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """The newest first, below this number; of one tenant, or with None of all. Fewer, if they hold as much text
        as a page may."""
        ...

    def dead_letter(self, tenant: str, job: str) -> DeadLetter | None: ...

    def redrive(
        self, tenant: str, job: str, by: str, *, signature: str | None = None, signed_until: int | None = None
    ) -> JobRecord:
        """A new run of a job whose dead letter stands: of a DEAD one under another envelope, if one is given; of one
        that ran out of tries from its start. IllegalMove, NoDeadLetter."""
        ...

    def discard_letter(self, tenant: str, job: str, by: str) -> DeadLetter:
        """The letter is gone, the job stays as it is. NoDeadLetter."""
        ...

    def forget_dead_letters(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Those that were made longer ago than this."""
        ...
