"""Who gets the free slots."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.store.port import Share
from unstuck.worker.shares import Bid, FreeRoom, Turns, divide


def serve(bids: list[Bid], turns: Turns, rounds: int, slots: int = 1) -> Counter[str]:
    """So many claims in a row, each of which brings all it asked for."""
    tenants = {bid.route: bid.tenant for bid in bids}
    total: Counter[str] = Counter()
    for _ in range(rounds):
        got: Counter[str] = Counter()
        for share in divide(bids, FreeRoom(slots), turns):
            got[tenants[share.route]] += share.limit
        turns.served(list(got), got)
        total += got
    return total


def test_slots_are_divided_evenly_and_the_oldest_gets_the_remainder() -> None:
    bids = [Bid(1, "t", rank=20), Bid(2, "t", rank=10)]
    assert divide(bids, FreeRoom(5), Turns()) == [Share(2, 3), Share(1, 2)]


def test_with_fewer_slots_than_routes_the_oldest_go_first() -> None:
    bids = [Bid(n, "t", rank=100 - n) for n in range(1, 6)]
    assert [share.route for share in divide(bids, FreeRoom(2), Turns())] == [5, 4]


def test_a_tenant_that_was_just_served_waits_behind_one_that_was_not() -> None:
    """A55: age does not count between tenants."""
    bids, turns = [Bid(1, "big", rank=0), Bid(2, "small", rank=10**9)], Turns()
    turns.served(["big"], {"big": 1})
    assert divide(bids, FreeRoom(1), turns) == [Share(2, 1)]
    turns.served(["small"], {"small": 2})
    assert divide(bids, FreeRoom(1), turns) == [Share(1, 1)]


def test_many_routes_get_a_tenant_no_more_than_one_route_does() -> None:
    """A55: turns belong to tenants, however they cut their work."""
    bids = [Bid(n, "many", rank=n) for n in range(1, 21)] + [Bid(99, "one", rank=99)]
    assert serve(bids, Turns(), rounds=10, slots=10) == {"many": 50, "one": 50}


@pytest.mark.parametrize("slots", [1, 7, 40])
def test_tenants_share_by_weight(slots: int) -> None:
    bids = [Bid(n, tenant, rank=n) for n, tenant in enumerate("abc", start=1)]
    rounds = 600 // slots
    got = serve(bids, Turns({"a": 3, "b": 2}), rounds, slots)
    for tenant, part in (("a", 3 / 6), ("b", 2 / 6), ("c", 1 / 6)):
        assert got[tenant] == pytest.approx(part * rounds * slots, abs=2)


def test_who_was_idle_has_saved_up_no_turns_and_who_is_new_starts_level() -> None:
    turns = Turns()
    busy, late = Bid(1, "busy", rank=0), Bid(2, "late", rank=0)
    serve([busy, late], turns, rounds=10)
    serve([busy], turns, rounds=1000)
    assert serve([busy, late, Bid(3, "new", rank=0)], turns, rounds=30) == {"busy": 10, "late": 10, "new": 10}


def test_who_got_nothing_of_what_was_asked_still_had_a_turn() -> None:
    """Or a tenant whose only job is held would be asked for ever."""
    turns, bids = Turns(), [Bid(1, "held", rank=0), Bid(2, "other", rank=1)]
    assert [share.route for share in divide(bids, FreeRoom(1), turns)] == [1]
    turns.served(["held"], {})
    assert [share.route for share in divide(bids, FreeRoom(1), turns)] == [2]


def test_what_was_asked_for_and_did_not_come_is_not_charged() -> None:
    """A tenant with ten jobs that was offered four hundred slots has had ten turns."""
    turns = Turns()
    turns.served(["big", "small"], {"big": 200, "small": 10})
    got = serve([Bid(1, "big", rank=0), Bid(2, "small", rank=1)], turns, rounds=190)
    assert got == {"small": 190}


def test_only_tenants_that_are_ahead_are_remembered() -> None:
    turns = Turns()
    for n in range(30_000):
        turns.served([f"t{n}"], {f"t{n}": 1})
        turns.served(["always"], {"always": 1})
    assert len(turns.marks) <= 10_001


def test_only_quick_workflows_are_fetched_ahead() -> None:
    bids = [Bid(1, "t", rank=0), Bid(2, "t", rank=1, is_quick=True)]
    assert divide(bids, FreeRoom(2, ahead=100), Turns()) == [Share(1, 1), Share(2, 101)]
    assert divide(bids[:1], FreeRoom(0, ahead=100), Turns()) == []


def test_nothing_is_fetched_ahead_of_a_route_with_a_limit() -> None:
    """A60: what waits in front of a busy slot would use up the limit, and fewer bodies run than may."""
    bids = [Bid(1, "t", rank=0, is_quick=True, is_limited=True)]
    assert divide(bids, FreeRoom(2, ahead=100), Turns()) == [Share(1, 2, is_limited=True)]
    assert divide(bids, FreeRoom(0, ahead=100), Turns()) == []


def test_workflows_that_want_a_process_each_take_no_shared_slot() -> None:
    bids = [Bid(1, "t", rank=0, is_solo=True), Bid(2, "t", rank=1)]
    assert divide(bids, FreeRoom(4, ahead=10, solo=1), Turns()) == [Share(2, 4), Share(1, 1)]
    assert divide(bids[:1], FreeRoom(4, ahead=10, solo=0), Turns()) == []


_BIDS = st.lists(
    st.builds(Bid, st.integers(1, 50), st.sampled_from("abc"), st.integers(0, 9), st.booleans(), st.booleans()),
    unique_by=lambda bid: bid.route,
)
_ROOMS = st.builds(FreeRoom, st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))


@given(_BIDS, _ROOMS)
def test_never_more_is_asked_for_than_there_is_room(bids: list[Bid], room: FreeRoom) -> None:
    solo = {bid.route for bid in bids if bid.is_solo}
    slow = {bid.route for bid in bids if not bid.is_solo and not bid.is_quick}
    granted = {share.route: share.limit for share in divide(bids, room, Turns())}

    assert sum(n for r, n in granted.items() if r not in solo) <= room.slots + room.ahead
    assert sum(n for r, n in granted.items() if r in slow) <= room.slots
    assert sum(n for r, n in granted.items() if r in solo) <= room.solo
    assert all(n > 0 for n in granted.values())


@given(_BIDS, st.integers(1, 20))
def test_no_slot_stays_empty_while_somebody_could_use_it(bids: list[Bid], slots: int) -> None:
    shared = [bid for bid in bids if not bid.is_solo]
    total = sum(share.limit for share in divide(shared, FreeRoom(slots), Turns()))
    assert total == (slots if shared else 0)


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9)), st.integers(1, 12))
def test_no_tenant_falls_behind_its_part_by_more_than_a_claim(weights: dict[str, int], slots: int) -> None:
    bids = [Bid(n, tenant, rank=n) for n, tenant in enumerate("abcde", start=1)]
    got = serve(bids, Turns(weights), rounds=50, slots=slots)
    whole = sum(weights.get(tenant, 1) for tenant in "abcde")
    for tenant in "abcde":
        part = weights.get(tenant, 1) / whole
        assert got[tenant] >= part * 50 * slots - slots - 1
