"""Role watch: the main thread's look at the worker's own roles, and what it does about those that fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from unstuck.model.job import WorkerRecord
from unstuck.model.trouble import Trouble
from unstuck.telemetry import emit
from unstuck.worker.loops import Loop
from unstuck.worker.requests import News
from unstuck.worker.roles import UNFIT, VITAL, WorkerRole, cannot_settle, lasting, unfit
from unstuck.worker.shutdown import Phase, Shutdown
from unstuck.worker.state import WorkerState

TITLE = "Worker Role Failing"


class RoleWatch:
    """`duties` and `side_tasks` fail inside of a loop that goes on: the janitor's, the claimer's. `ends` are those of
    single jobs, which the store takes nowhere."""

    def __init__(
        self,
        me: WorkerRecord,
        state: WorkerState,
        shutdown: Shutdown,
        loops: Sequence[Loop],
        *,
        duties: Callable[[], Mapping[str, Trouble]],
        side_tasks: Callable[[], Mapping[str, Trouble]],
        ends: Callable[[], Mapping[str, Trouble]],
        tell: Callable[[News], None],
    ) -> None:
        self._me = me
        self._state = state
        self._shutdown = shutdown
        self._loops = loops
        self._duties = duties
        self._side_tasks = side_tasks
        self._ends = ends
        self._tell = tell
        #: What was told as news, for as long as it lasts.
        self._told: set[str] = set()

    def look(self, now: float) -> None:
        state, times = self._state, self._state.times
        troubles = state.troubles = self._troubles()
        state.cannot_settle = cannot_settle(troubles, state.fence.lease_ends_at - times.lease, times, now)
        for_good = lasting(troubles, times, now)
        for role in for_good:
            if role.name not in self._told:
                emit("role_failed", level=logging.ERROR, role=role.name, error=role.error)
                self._tell(self._news(role, now))
        self._told = {role.name for role in for_good}
        if state.phase is Phase.WORKING and (lost := unfit(troubles, times, now)) is not None:
            emit("unfit", level=logging.ERROR, role=lost.name, error=lost.error, code=UNFIT)
            self._shutdown.leave(UNFIT)

    def _troubles(self) -> dict[str, Trouble]:
        loops = {loop.name: trouble for loop in self._loops if (trouble := loop.trouble) is not None}
        duties = {f"janitor/{name}": trouble for name, trouble in self._duties().items()}
        side_tasks = {f"claim/{name}": trouble for name, trouble in self._side_tasks().items()}
        return {**loops, **duties, **side_tasks, **self._ends()}

    def _news(self, role: WorkerRole, now: float) -> News:
        is_vital = role.name in VITAL
        then = "; it leaves, so that another can take its place" if is_vital else "; other workers do it as well"
        return News(
            title=f"{TITLE}: {role.name}",
            message=f"worker {self._me.name} on {self._me.host}: {role.sentence(now)}{then}",
            link=f"/platform/diagnostics?tab=workers&worker={quote(self._me.name)}",
            severity="error" if is_vital else "warning",
        )
