"""What this worker can run: its workflows and queues, and the routes it has met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from unstuck.model.job import WorkflowRecord
from unstuck.model.schedules import DeclaredSchedule
from unstuck.records import dataclass
from unstuck.store.port import ClaimPort, Route
from unstuck.worker.processes import Imported


@dataclass(frozen=True, slots=True)
class Declared:
    """What the app runs by the clock, the name by which that is its own, where it was imported from, its version."""

    app: str
    origin: str
    code_version: str
    schedules: tuple[DeclaredSchedule, ...]

    @classmethod
    def of(cls, imported: Imported) -> Declared | None:
        if not imported.app:
            return None
        return cls(imported.app, imported.origin, imported.code_version, imported.schedules)


@dataclass(frozen=True, slots=True)
class Served:
    """What this worker can run."""

    workflows: dict[str, WorkflowRecord]
    queues: frozenset[str]
    declared: Declared | None = None

    @classmethod
    def of(
        cls, workflows: Sequence[WorkflowRecord], queues: Sequence[str], declared: Declared | None = None
    ) -> Served:
        """No queues named: all that the workflows name."""
        return cls({w.name: w for w in workflows}, frozenset(queues or [w.queue for w in workflows]), declared)


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


def signed_only(workflows: Iterable[WorkflowRecord]) -> frozenset[str]:
    """Those whose code says that nothing of them runs unsigned."""
    return frozenset(record.name for record in workflows if record.require_signature)
