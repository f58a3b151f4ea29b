"""Feeding: claimed jobs go to executors, and the claimer learns how much more there is room for."""

from __future__ import annotations

from unstuck.worker.placing import place, room, suspects_to_seat
from unstuck.worker.processes import FleetPort
from unstuck.worker.shares import FreeRoom
from unstuck.worker.shutdown import Phase
from unstuck.worker.state import WorkerState


class Feeding:
    def __init__(self, state: WorkerState, fleet: FleetPort) -> None:
        self._state = state
        self._fleet = fleet

    def place(self, now: float) -> None:
        state = self._state
        state.unseated += state.ledger.take_fresh()
        if not state.unseated or state.phase is not Phase.WORKING or now >= state.fence.cancel_at:
            return
        seats, state.unseated = place(
            state.unseated,
            state.feedable(),
            suspects_to_seat(state.roster.posts.values(), is_wary=now < state.wary_until),
            coroutines=state.imported.coroutines if state.imported is not None else (),
            unresponsive=state.times.unresponsive,
        )
        for number, holdings in seats.items():
            state.roster.seat(state.roster.posts[number], holdings, now)
            try:
                self._fleet.feed(number, [holding.job for holding in holdings])
            except ValueError as error:
                state.refuse(holdings, str(error), now)

    def publish(self, now: float) -> None:
        """None once the lease is going: what is claimed then cannot start here, and would only come back late."""
        state = self._state
        is_behind = state.cannot_settle or state.ledger.unsettled > 4 * state.seats.ahead
        state.ledger.publish(
            room(
                state.roster.posts.values(),
                state.unseated,
                state.seats,
                may_fetch_ahead=not state.is_congested,
                unresponsive=state.times.unresponsive,
            )
            if state.phase is Phase.WORKING and not is_behind and now < state.fence.cancel_at
            else FreeRoom(0)
        )
