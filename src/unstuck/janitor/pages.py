"""Pages: the routes on which jobs wait, so many a turn; the next turn goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.store.port import Store, Waiting

_PAGE = 1000
_PAGES = 20


class Pages:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_to = 0

    def turn(self) -> Iterator[Waiting]:
        """Up to twenty thousand routes: a turn ends, however many there are."""
        for _ in range(_PAGES):
            page = self._store.waits(self._looked_to, _PAGE)
            self._looked_to = page.looked_to
            yield from page
            if self._looked_to == 0:
                break


class Said:
    """What was reported lately: the same news again only after a while."""

    AGAIN_AFTER = 3600.0

    def __init__(self) -> None:
        self._said: dict[tuple[int, str], float] = {}

    def is_news(self, route: int, what: str, now: float) -> bool:
        if now - self._said.get((route, what), float("-inf")) < self.AGAIN_AFTER:
            return False
        self._said = {key: at for key, at in self._said.items() if now - at < self.AGAIN_AFTER}
        self._said[route, what] = now
        return True
