"""Trouble: what fails again and again, and whether waiting may help."""

from __future__ import annotations

from unstuck.model.errors import SchemaMismatch, StoreError
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    """Failures in a row. Instants are BOOTTIME seconds."""

    error: Exception
    since: float
    failures: int = 1
    #: Since when it was never the store's being away: a schema that changed under us, or a mistake of ours.
    lasting_since: float | None = None

    @classmethod
    def after(cls, before: Trouble | None, error: Exception, now: float) -> Trouble:
        """One more failure."""
        lasting_since = None if before is None else before.lasting_since
        if _may_pass(error):
            lasting_since = None
        elif lasting_since is None:
            lasting_since = now
        if before is None:
            return cls(error, now, lasting_since=lasting_since)
        return cls(error, before.since, before.failures + 1, lasting_since)

    @property
    def is_worth_saying(self) -> bool:
        """The first time, the second, the fourth, …: an outage of hours must not fill the log."""
        return self.failures & (self.failures - 1) == 0


def _may_pass(error: Exception) -> bool:
    """The store is away, or busy: it will be back."""
    return isinstance(error, StoreError) and not isinstance(error, SchemaMismatch)
