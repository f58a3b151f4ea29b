"""A bulk: one verb over all the jobs that a filter wants, carried out by the janitors in batches."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from unstuck.model.errors import InvalidInput


class BulkVerb(StrEnum):
    """What a bulk does to each of its jobs: as a person's verb of the same name."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    RESUME = "resume"
    RETRY = "retry"
    RELEASE = "release"
    SKIP = "skip"


class BulkState(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"

    @property
    def is_final(self) -> bool:
        return self is not BulkState.RUNNING


class BulkOptions(NamedTuple):
    """What some verbs take besides: cancel and interrupt a `reason`, resume `from_start`, release `force`; a retry of
    dead letters `force`, too: those whose signature was refused are verified again."""

    reason: str | None = None
    from_start: bool = False
    force: bool = False


class Refusal(NamedTuple):
    """A job that the verb was refused for, and why."""

    job: str
    reason: str


class Counted(NamedTuple):
    """How many jobs match. Not exact: there are that many, and maybe more; counting ends somewhere."""

    number: int
    is_exact: bool


NO_OPTIONS = BulkOptions()

_VERBS_WITH = {
    "reason": (BulkVerb.CANCEL, BulkVerb.INTERRUPT),
    "from_start": (BulkVerb.RESUME,),
    "force": (BulkVerb.RELEASE,),
}


def check_options(verb: BulkVerb, options: BulkOptions, *, are_letters: bool = False) -> None:
    """InvalidInput for one that the verb does not know: who gives it expects something of it."""
    if are_letters and verb is BulkVerb.RETRY:
        options = options._replace(force=False)
    for name, verbs in _VERBS_WITH.items():
        if getattr(options, name) and verb not in verbs:
            raise InvalidInput(f"{name} says nothing about {verb}; it is for {' and '.join(verbs)}")
