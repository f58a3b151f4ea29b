"""What this worker can run: its workflows and queues, and the routes it has met."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from unstuck.model.job import WorkflowRecord
from unstuck.store.port import ClaimPort, Route


@dataclass(frozen=True, slots=True)
class Served:
    """What this worker can run."""

    workflows: dict[str, WorkflowRecord]
    queues: frozenset[str]

    @classmethod
    def of(cls, workflows: Sequence[WorkflowRecord], queues: Sequence[str]) -> Served:
        """No queues named: all that the workflows name."""
        return cls({w.name: w for w in workflows}, frozenset(queues or [w.queue for w in workflows]))


class RouteBook:
    """Which number means which route. A route never changes; those met lately are remembered, not all there are."""

    MOST = 10_000

    def __init__(self, store: ClaimPort) -> None:
        self._store = store
        self._routes: dict[int, Route] = {}

    def learn(self, numbers: Collection[int]) -> None:
        """Find out about numbers not met before."""
        unknown = [number for number in numbers if number not in self._routes]
        if not unknown:
            return
        if len(self._routes) + len(unknown) > self.MOST:
            self._routes = {number: route for number in numbers if (route := self._routes.get(number))}
        self._routes.update({route.number: route for route in self._store.routes(unknown)})

    def get(self, number: int) -> Route | None:
        return self._routes.get(number)

    def __len__(self) -> int:
        return len(self._routes)
