"""What changed among files, and when it is over. Pure: who looks at the disk says what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from unstuck.records import dataclass

#: When it was written, how long it is, and which file it is: an editor that saves puts another in its place.
Stamp = tuple[int, int, int]
Files = Mapping[str, Stamp]

#: Seconds without a further change, after which a save is taken for complete.
REST = 0.15
#: Seconds after which it is told all the same: something may write a file for ever.
LONGEST = 2.0
#: As many names as a line has room for.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class FileChanges:
    written: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    @classmethod
    def between(cls, before: Files, after: Files) -> FileChanges:
        both = before.keys() & after.keys()
        written = frozenset(path for path in both if before[path] != after[path])
        return cls(written, frozenset(after.keys() - both), frozenset(before.keys() - both))

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def paths(self) -> list[str]:
        return sorted(self.written | self.new | self.gone)

    def then(self, later: FileChanges) -> FileChanges:
        """Both together, each file once, as it was last seen."""
        new = (self.new | later.new) - later.gone
        gone = (self.gone - later.new - later.written) | later.gone
        return FileChanges((self.written | later.written) - new - gone, new, gone)

    def text(self, folder: Path) -> str:
        """shop.py and mail.py changed, old.py is gone."""
        kinds = ((self.written, "changed"), (self.new, "new"), (self.gone, "gone"))
        return ", ".join(f"{_names(paths, folder)} {_verb(kind, len(paths))}" for paths, kind in kinds if paths)


class Burst:
    """Gathers what is saved together (a checkout, a formatter, an editor that saves all): told once it is over."""

    def __init__(self, files: Files) -> None:
        self._told = self._seen = files
        self._first: float | None = None
        self._last = 0.0

    def look(self, files: Files, now: float) -> FileChanges:
        """What is different from what was told last; nothing while changes still come."""
        if files != self._seen:
            self._seen, self._last = files, now
            self._first = now if self._first is None else self._first
        if self._first is None or (now < self._last + REST and now < self._first + LONGEST):
            return FileChanges()
        found = FileChanges.between(self._told, files)
        self._told, self._first = files, None
        return found

    @property
    def is_growing(self) -> bool:
        """Something changed that was not told yet: look again soon."""
        return self._first is not None


def _names(paths: Iterable[str], folder: Path) -> str:
    names = [_short(path, folder) for path in sorted(paths)]
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def _short(path: str, folder: Path) -> str:
    return path.removeprefix(f"{folder}/")


def _verb(kind: str, number: int) -> str:
    return kind if kind == "changed" else f"{'is' if number == 1 else 'are'} {kind}"
