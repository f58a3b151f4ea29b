"""Names are ordered the same by PostgreSQL and by us, whatever its locale: most have en_US, the tests' has C."""

from __future__ import annotations

import pytest

from unstuck.store.drivers.statements import Statements

#: Locked in this order by every claim of a limited route; a deploy writes them as Python sorts them.
ORDER = "ORDER BY kind, name, tenant"


def test_limits_are_locked_in_an_order_that_does_not_depend_on_the_locale() -> None:
    """Under en_US "apple" comes before "Zebra", in Python after it: a deploy and a claim then wait in a circle."""
    text = Statements("postgres")["lock_limits"]
    assert ORDER not in text
    assert 'name COLLATE "C"' in text


@pytest.mark.parametrize("statement", ["queue_names", "workflow_names"])
def test_pages_of_names_are_in_the_order_of_those_who_add_names_of_their_own(statement: str) -> None:
    """`queues list` puts queues without jobs between the others: a page of another order skips some, or repeats."""
    text = Statements("postgres")[statement]
    assert text.count('COLLATE "C"') == 2
