"""Parts: the partial results of a job, as they come."""

from __future__ import annotations

from typing import Final

from unstuck.model.parts import Part
from unstuck.observe.lookup import Lookup
from unstuck.observe.stream import Found

#: Of one look: values are up to 64 KiB each, and a job may have a thousand.
PAGE: Final = 20


class PartialsReader:
    """One reader of one job's partial results. Both colours of following ask it."""

    def __init__(self, lookup: Lookup, job: str, after: int = 0) -> None:
        self._lookup = lookup
        self._job = job
        self._seen = after

    def look(self) -> tuple[list[Part], Found]:
        """What is new, or some of it, and what another look would find. The state is read first: what an attempt
        gives under its fence is there before its job has ended, so this look sees it, or is not the last."""
        ended = self._lookup.job(self._job).state.is_final
        found = self._lookup.parts(self._job, self._seen, PAGE)
        self._seen = found[-1].number if found else self._seen
        if len(found) == PAGE:
            return found, Found.MORE
        return found, Found.OVER if ended else Found.END
