"""Hint: what is heard of new work while nobody looks. A hint only; everybody polls too."""

from __future__ import annotations

from collections.abc import Collection

from unstuck.records import dataclass

#: Whoever hears of more routes than this looks at all of them.
_MOST = 100


@dataclass(frozen=True, slots=True)
class Hint:
    """Jobs may have become ready: on these routes and nowhere else, or anywhere (None)."""

    routes: frozenset[int] | None = None

    @classmethod
    def at(cls, routes: Collection[int]) -> Hint:
        return cls(frozenset(routes)) if len(set(routes)) == 1 else ANYWHERE

    @classmethod
    def heard(cls, words: Collection[bytes]) -> Hint | None:
        """None: nothing was heard. A word that names no route, as another version may say it, means any."""
        if not words:
            return None
        if len(words) > _MOST or not all(map(bytes.isdigit, words)):
            return ANYWHERE
        return cls(frozenset(map(int, words)))

    @property
    def word(self) -> str:
        """As it is said: the number of one route, or nothing."""
        return "" if self.routes is None else str(next(iter(self.routes)))


ANYWHERE = Hint()
