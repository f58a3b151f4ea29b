"""What the database itself refuses to write: a trigger that raises, a constraint of somebody else's."""

from __future__ import annotations

from unstuck.model.errors import StoreError

_DRIVERS = ("sqlite3", "psycopg")
#: By name, because the rooms that ask know no driver. Whatever else a driver raises is a bug of ours.
_REFUSALS = frozenset({"IntegrityError", "RaiseException"})


def refusal(error: BaseException) -> StoreError | None:
    """The driver's error in words for whoever asked; None of any other."""
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _DRIVERS}
    if not kinds & _REFUSALS:
        return None
    words = str(error).partition("\n")[0]
    return StoreError(f"the database refused it ({type(error).__name__}: {words}); nothing was written")
