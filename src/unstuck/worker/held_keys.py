"""The signing keys that a worker holds: its settings', with what its file says by now and its code requires besides.

The file is looked at before a claim and while none comes, a beat after the last look; if it was changed it is read.
So a key that is revoked there is so after a beat, without a restart; one that was added is known as soon as somebody
signs with it, because nothing is refused for an unknown key before another look. A file that cannot be read, or has
no key, changes nothing: its trouble is said, and told by `trouble` until it can be read again. The first look reads
it in any case: between the settings and us somebody may have changed it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from unstuck.model.errors import InvalidSettings
from unstuck.model.trouble import Trouble
from unstuck.signing import SigningKeys, read_keys
from unstuck.telemetry import emit


class HeldKeys:
    """Falsy: this worker has nothing to do with signatures. Of the threads of a worker each may ask; what two of them
    read at once is the same."""

    def __init__(self, keys: SigningKeys | None = None, file: str | None = None, every: float = 10.0) -> None:
        self._keys = self._given = keys or SigningKeys()
        self._file = file
        self._every = every
        self._looked_at = float("-inf")
        self._seen: tuple[int, int, int] | None = None
        self._workflows: frozenset[str] = frozenset()
        self.trouble: Trouble | None = None

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def troubles(self) -> dict[str, Trouble]:
        """What does not work about them, for those who watch the worker."""
        return {} if self.trouble is None else {"signing keys": self.trouble}

    def require(self, workflows: Iterable[str]) -> None:
        """What the code asks for. InvalidSettings where that could never run, because there is no key."""
        names = frozenset(workflows)
        self._keys = self._given.also_requiring(names)
        self._workflows = names

    def at(self, now: float, *, at_once: bool = False) -> SigningKeys:
        """Those in force; `now` by BOOTTIME. `at_once`: somebody named a key that is not known yet."""
        if self._file is not None and (at_once or now >= self._looked_at + self._every):
            self._looked_at = now
            self._look(self._file, now)
        return self._keys

    def _look(self, file: str, now: float) -> None:
        mark = _mark(file)
        if mark is not None and mark == self._seen and self.trouble is None:
            return
        try:
            given = SigningKeys(read_keys(file), self._given.required)
            self._keys = given.also_requiring(self._workflows)
        except InvalidSettings as error:
            self.trouble = Trouble.after(self.trouble, error, now)
            if self.trouble.is_worth_saying:
                emit("signing_keys_unread", level=logging.WARNING, file=file, error=str(error))
            return
        was, self._given, self._seen, self.trouble = self._given, given, mark, None
        if list(was) == list(given):
            return
        revoked = sorted(key.id for key in given if key.is_revoked)
        emit("signing_keys_read", file=file, keys=len(given), revoked=", ".join(revoked) or None)


class KeysOfServer(HeldKeys):
    """Of a worker at a distance: it holds none, its server verifies and signs for it. `verifies`: whether that has
    keys, as it said last; it is asked again with each claim."""

    def __init__(self, address: str, verifies: Callable[[], bool]) -> None:
        super().__init__()
        self._address = address
        self._verifies = verifies

    def require(self, workflows: Iterable[str]) -> None:
        names = sorted(workflows)
        if names and not self._verifies():
            rules = ", ".join(f"workflow:{name}" for name in names)
            raise InvalidSettings(
                [f"a signature is required ({rules}), and {self._address} has no signing key: set signing_keys there"]
            )


def _mark(file: str | None) -> tuple[int, int, int] | None:
    """Of a file as it is; another mark, another text."""
    try:
        found = os.stat(file) if file is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
