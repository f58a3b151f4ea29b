"""Which use of a name this is, the first or the second: by both an attempt finds what earlier attempts have left."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

from unstuck.executor.caller import running_loop
from unstuck.model.errors import InvalidInput

Key = tuple[str, str]


class Ordinals:
    """Of one attempt. Uses of one name that overlap must come from one task or thread: only then is their order the
    same in every attempt, and nobody gets what belongs to another."""

    def __init__(self) -> None:
        # Reentrant: the collector may close a coroutine here that ends and gives back.
        self._lock = threading.RLock()
        self._counts: Counter[Key] = Counter()
        #: Given back while others had followed.
        self._returned: dict[Key, set[int]] = {}
        #: Whose uses of a name are under way, and how many.
        self._under_way: dict[Key, tuple[object, int]] = {}

    def take(self, kind: str, name: str) -> int:
        key, caller = (kind, name), _caller()
        with self._lock:
            other, count = self._under_way.get(key, (caller, 0))
            if other is not caller:
                raise InvalidInput(
                    f"{kind} {name!r} is under way in another task or thread: which of them comes first is chance, "
                    "and so would be which result belongs to which in a later attempt; give each a name of its own"
                )
            self._under_way[key] = (caller, count + 1)
            self._counts[key] += 1
            return self._counts[key]

    def end(self, kind: str, name: str) -> None:
        with self._lock:
            caller, count = self._under_way[kind, name]
            if count > 1:
                self._under_way[kind, name] = (caller, count - 1)
            else:
                del self._under_way[kind, name]

    def give_back(self, kind: str, name: str, ordinal: int) -> None:
        """It came to nothing. The next use is the same one again, as it will be in a later attempt that has more luck
        with it at once; unless others have followed, and did not come to nothing too."""
        key = (kind, name)
        with self._lock:
            returned = self._returned.setdefault(key, set())
            returned.add(ordinal)
            while self._counts[key] in returned:
                returned.remove(self._counts[key])
                self._counts[key] -= 1

    def untake(self, kind: str, name: str, ordinal: int) -> None:
        """A use that ends without a result."""
        self.give_back(kind, name, ordinal)
        self.end(kind, name)

    def count(self, kind: str, name: str) -> int:
        """Of what cannot overlap."""
        with self._lock:
            self._counts[kind, name] += 1
            return self._counts[kind, name]


def _caller() -> object:
    if running_loop() is not None and (task := asyncio.current_task()) is not None:
        return task
    return threading.current_thread()
