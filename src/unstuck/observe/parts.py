"""Parts: the partial results of a job, as they come."""

from __future__ import annotations

from typing import Final

from unstuck.model.parts import Part
from unstuck.observe.lookup import Lookup

#: Of one look: values are up to 64 KiB each, and a job may have a thousand.
PAGE: Final = 100


class PartialsReader:
    """One reader of one job's partial results. Both colours of following ask it."""

    def __init__(self, lookup: Lookup, job: str, after: int = 0) -> None:
        self._lookup = lookup
        self._job = job
        self._seen = after

    def look(self) -> tuple[list[Part], bool]:
        """What is new, and whether that was all. The state is read first: what an attempt gives under its fence is
        there before its job has ended, so this look sees it, or is not the last."""
        ended = self._lookup.job(self._job).state.is_final
        found = self._lookup.parts(self._job, self._seen, PAGE)
        self._seen = found[-1].number if found else self._seen
        return found, ended and len(found) < PAGE
