"""Feeding: claimed jobs go to executors, and the claimer learns how much more there is room for."""

from __future__ import annotations

from unstuck.worker.placing import place, room, suspects_to_seat
from unstuck.worker.processes import FleetPort
from unstuck.worker.shares import FreeRoom
from unstuck.worker.shutdown import Phase
from unstuck.worker.state import Books


class Feeding:
    def __init__(self, books: Books, fleet: FleetPort) -> None:
        self._books = books
        self._fleet = fleet

    def place(self, now: float) -> None:
        books = self._books
        books.standing += books.ledger.take_fresh()
        if not books.standing or books.phase is not Phase.WORKING or now >= books.fence.cancel_at:
            return
        seats, books.standing = place(
            books.standing,
            books.feedable(),
            suspects_to_seat(books.roster.posts.values(), is_wary=now < books.wary_until),
            coroutines=books.imported.coroutines if books.imported is not None else (),
            unresponsive=books.times.unresponsive,
        )
        for number, holdings in seats.items():
            books.roster.seat(books.roster.posts[number], holdings, now)
            try:
                self._fleet.feed(number, [holding.job for holding in holdings])
            except ValueError as error:
                books.refuse(holdings, str(error), now)

    def publish(self, now: float) -> None:
        """None once the lease is going: what is claimed then cannot start here, and would only come back late."""
        books = self._books
        is_behind = books.cannot_settle or books.ledger.unsettled > 4 * books.seats.ahead
        books.ledger.publish(
            room(
                books.roster.posts.values(),
                books.standing,
                books.seats,
                may_fetch_ahead=not books.is_congested,
                unresponsive=books.times.unresponsive,
            )
            if books.phase is Phase.WORKING and not is_behind and now < books.fence.cancel_at
            else FreeRoom(0)
        )
