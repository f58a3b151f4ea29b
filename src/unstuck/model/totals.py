"""Totals: how many jobs were enqueued of each name, how many runs have ended, and how long they took, ever since; and
how a counter of them never falls, although only some names have a counter of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from unstuck.model.lifecycle import JobState
from unstuck.model.series import BUCKETS, COUNTS
from unstuck.records import dataclass

#: The ends that are counted, in the order in which a total holds them.
ENDS: Final = tuple(state for state in JobState if state.is_final)
#: What a total holds, by the names of its columns: `stuck` of those that FAILED; `waited` in microseconds, `ran` in
#: milliseconds.
COLUMNS: Final = (*COUNTS, "stuck", "waited", "ran", "enqueued")
_WAITS, _RUNS = len(ENDS), len(ENDS) + BUCKETS
_STUCK, _WAITED, _RAN, _ENQUEUED = range(len(COUNTS), len(COLUMNS))

#: Queue and workflow.
EndName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EndTotal:
    """Of the runs of one queue and workflow, or of all of them."""

    numbers: tuple[int, ...] = (0,) * len(COLUMNS)

    @property
    def ended(self) -> dict[JobState, int]:
        return dict(zip(ENDS, self.numbers, strict=False))

    @property
    def stuck(self) -> int:
        return self.numbers[_STUCK]

    @property
    def enqueued(self) -> int:
        """The jobs that were stored, whether or not they ended."""
        return self.numbers[_ENQUEUED]

    @property
    def waits(self) -> tuple[int, ...]:
        """How many waited as long as each bucket of `model/series.py` says."""
        return self.numbers[_WAITS:_RUNS]

    @property
    def waited(self) -> float:
        """All of them together, in seconds."""
        return self.numbers[_WAITED] / 1_000_000

    @property
    def runs(self) -> tuple[int, ...]:
        return self.numbers[_RUNS : _RUNS + BUCKETS]

    @property
    def ran(self) -> float:
        return self.numbers[_RAN] / 1_000

    def since(self, before: EndTotal) -> EndTotal:
        """What came after that one. A total that is smaller was forgotten meanwhile, and begun anew."""
        if any(now < then for now, then in zip(self.numbers, before.numbers, strict=True)):
            return self
        return EndTotal(tuple(now - then for now, then in zip(self.numbers, before.numbers, strict=True)))

    def with_(self, more: EndTotal) -> EndTotal:
        return EndTotal(tuple(max(0, a + b) for a, b in zip(self.numbers, more.numbers, strict=True)))

    def less(self, others: Iterable[EndTotal]) -> EndTotal:
        found = list(self.numbers)
        for other in others:
            found = [a - b for a, b in zip(found, other.numbers, strict=True)]
        return EndTotal(tuple(max(0, number) for number in found))


class NamedTotals:
    """The totals of the first `most` names that were seen, each by itself, and what came of all others since.

    Who has a counter of its own keeps it for as long as this lives: a name that changed places with the others' one
    would make that fall, or leap, and every rate that is computed from it would be wrong.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: dict[EndName, EndTotal] = {}
        self._all: EndTotal | None = None
        self._others = EndTotal()

    def update(self, found: Mapping[EndName, EndTotal], everything: EndTotal) -> None:
        """`found`: the largest first; what is missing has not moved. `everything`: of these and all others."""
        grown: list[EndTotal] = []
        for name, total in found.items():
            if name in self._own or len(self._own) < self._most:
                grown.append(total.since(self._own.get(name, EndTotal())))
                self._own[name] = total
        if self._all is not None:
            self._others = self._others.with_(everything.since(self._all).less(grown))
        self._all = everything

    def __iter__(self) -> Iterator[tuple[EndName, EndTotal]]:
        yield from self._own.items()

    @property
    def others(self) -> EndTotal:
        """Of the names without a counter of their own, since this began to look."""
        return self._others
