"""Two operators at one limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from unstuck.intake.gates import Gates
from unstuck.store.port import Store


def test_two_who_change_different_parts_of_a_limit_at_once_both_have_their_way(store: Store) -> None:
    """What one does not name stays as it stands: also as it stands by the other's word of this instant."""
    gates = Gates(store)
    for number in range(1, 41):
        with ThreadPoolExecutor(2) as people:
            one = people.submit(gates.change_limit, "queue", "io", concurrency=number)
            other = people.submit(gates.change_limit, "queue", "io", rate=f"{number}/s")
            one.result(20), other.result(20)
        [limit] = store.limits("default")
        assert (limit.concurrency, limit.rate) == (number, number)
