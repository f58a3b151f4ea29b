"""Who gets the free slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstuck.store.port import Share
from unstuck.worker.shares import Bid, Room, divide


def test_slots_are_divided_evenly_and_the_oldest_gets_the_remainder() -> None:
    bids = [Bid(1, "t", rank=20), Bid(2, "t", rank=10)]
    assert divide(bids, Room(5), {}) == [Share(2, 3), Share(1, 2)]


def test_with_fewer_slots_than_routes_the_oldest_go_first() -> None:
    bids = [Bid(n, "t", rank=100 - n) for n in range(1, 6)]
    assert [share.route for share in divide(bids, Room(2), {})] == [5, 4]


def test_a_tenant_that_was_just_served_waits_behind_one_that_was_not() -> None:
    """A55: age does not count between tenants."""
    bids = [Bid(1, "big", rank=0), Bid(2, "small", rank=10**9)]
    assert divide(bids, Room(1), {"big": 7}) == [Share(2, 1)]
    assert divide(bids, Room(1), {"big": 7, "small": 8}) == [Share(1, 1)]


def test_only_quick_workflows_are_fetched_ahead() -> None:
    bids = [Bid(1, "t", rank=0), Bid(2, "t", rank=1, is_quick=True)]
    assert divide(bids, Room(2, ahead=100), {}) == [Share(1, 1), Share(2, 101)]
    assert divide(bids[:1], Room(0, ahead=100), {}) == []


def test_workflows_that_want_a_process_each_take_no_shared_slot() -> None:
    bids = [Bid(1, "t", rank=0, is_solo=True), Bid(2, "t", rank=1)]
    assert divide(bids, Room(4, ahead=10, solo=1), {}) == [Share(2, 4), Share(1, 1)]
    assert divide(bids[:1], Room(4, ahead=10, solo=0), {}) == []


_BIDS = st.lists(
    st.builds(Bid, st.integers(1, 50), st.sampled_from("abc"), st.integers(0, 9), st.booleans(), st.booleans()),
    unique_by=lambda bid: bid.route,
)
_ROOMS = st.builds(Room, st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))


@given(_BIDS, _ROOMS)
def test_never_more_is_asked_for_than_there_is_room(bids: list[Bid], room: Room) -> None:
    solo = {bid.route for bid in bids if bid.is_solo}
    slow = {bid.route for bid in bids if not bid.is_solo and not bid.is_quick}
    granted = {share.route: share.limit for share in divide(bids, room, {})}

    assert sum(n for r, n in granted.items() if r not in solo) <= room.slots + room.ahead
    assert sum(n for r, n in granted.items() if r in slow) <= room.slots
    assert sum(n for r, n in granted.items() if r in solo) <= room.solo
    assert all(n > 0 for n in granted.values())


@given(_BIDS, st.integers(1, 20))
def test_no_slot_stays_empty_while_somebody_could_use_it(bids: list[Bid], slots: int) -> None:
    shared = [bid for bid in bids if not bid.is_solo]
    total = sum(share.limit for share in divide(shared, Room(slots), {}))
    assert total == (slots if shared else 0)
