"""What an operator may shut or limit: a clear error, and nothing written, for what makes no sense."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.builders import submitted
from unstuck.intake.gates import Gates
from unstuck.model.errors import InvalidInput, UnknownTarget, UnknownTenant
from unstuck.store.port import EVERY, Store

Ask = Callable[[Gates, Store], Any]
#: In UTC it would be in the year 10000.
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))

REFUSED: list[tuple[str, Ask]] = [
    ("a kind there is not", lambda gates, store: gates.pause("moon", "x")),  # type: ignore[arg-type]
    ("an empty name", lambda gates, store: gates.pause("queue", "")),
    ("all queues", lambda gates, store: gates.pause("queue", EVERY)),
    ("a target of all tenants", lambda gates, store: gates.pause("target", "site", tenant=EVERY)),
    ("a pause that has ended", lambda gates, store: gates.pause("queue", "q", until=store.now())),
    ("a pause of no time", lambda gates, store: gates.pause("queue", "q", lasting=0)),
    ("a pause of less than no time", lambda gates, store: gates.pause("queue", "q", lasting=-5)),
    ("a pause for ever", lambda gates, store: gates.pause("queue", "q", lasting=float("inf"))),
    ("a pause that rounds to nothing", lambda gates, store: gates.pause("queue", "q", lasting=1e-9)),
    ("a pause until a word", lambda gates, store: gates.pause("queue", "q", until="tomorrow")),  # type: ignore[arg-type]
    ("a pause until a day", lambda gates, store: gates.pause("queue", "q", until=date(2090, 1, 1))),  # type: ignore[arg-type]
    ("a pause beyond the calendar", lambda gates, store: gates.pause("queue", "q", until=BEYOND)),
    ("a pause for a number", lambda gates, store: gates.pause("queue", "q", reason=5)),  # type: ignore[arg-type]
    ("a pause by a number", lambda gates, store: gates.pause("queue", "q", by=5)),  # type: ignore[arg-type]
    ("a limit by a number", lambda gates, store: gates.limit("queue", "q", concurrency=1, by=5)),  # type: ignore[arg-type]
    ("a weight by a number", lambda gates, store: gates.weigh("acme", 2, by=5)),  # type: ignore[arg-type]
    ("a kind that is a list", lambda gates, store: gates.pause([], "x")),  # type: ignore[arg-type]
    ("a rate of ages", lambda gates, store: gates.limit("queue", "q", rate="1/999999999d")),
    ("a rate of too many", lambda gates, store: gates.limit("queue", "q", rate="1000000001/s")),
    ("tenants above a number", lambda gates, store: gates.tenants(after=5)),  # type: ignore[arg-type]
    (
        "two ends",
        lambda gates, store: gates.pause("queue", "q", lasting=5, until=store.now() + timedelta(hours=1)),
    ),
    ("no limit at all", lambda gates, store: gates.limit("queue", "q")),
    ("a limit of none", lambda gates, store: gates.limit("queue", "q", concurrency=0)),
    ("a negative limit", lambda gates, store: gates.limit("queue", "q", concurrency=-1)),
    ("half a job", lambda gates, store: gates.limit("queue", "q", concurrency=1.5)),  # type: ignore[arg-type]
    ("a true limit", lambda gates, store: gates.limit("queue", "q", concurrency=True)),
    ("a negative cap", lambda gates, store: gates.limit("queue", "q", max_queued=-1)),
    ("a rate of nothing", lambda gates, store: gates.limit("queue", "q", rate="0/s")),
    ("a rate of words", lambda gates, store: gates.limit("queue", "q", rate="often")),
    ("a family within a family", lambda gates, store: gates.limit("key", "a:b:*", concurrency=1)),
    ("a rate per millisecond", lambda gates, store: gates.limit("queue", "q", rate="5/ms")),
    ("a change that says nothing", lambda gates, store: gates.change_limit("queue", "q")),
    ("the signature of the code", lambda gates, store: gates.limit("queue", "q", concurrency=1, by="code")),
    ("keys that wait", lambda gates, store: gates.limit("workflow_key", "w", max_queued=1)),
    ("each key of each workflow", lambda gates, store: gates.limit("workflow_key", EVERY, concurrency=1)),
    ("each queue by itself", lambda gates, store: gates.limit("queue", EVERY, concurrency=1)),
    ("a tenant of all tenants", lambda gates, store: gates.limit("tenant", "acme", tenant=EVERY, concurrency=1)),
    ("a weight of nothing", lambda gates, store: gates.weigh("acme", 0)),
    ("a negative weight", lambda gates, store: gates.weigh("acme", -3)),
    ("all tenants' weight", lambda gates, store: gates.weigh(EVERY, 3)),
]


@pytest.fixture
def gates(store: Store) -> Gates:
    return Gates(store, by="dana")


@pytest.mark.parametrize("ask", [ask for _, ask in REFUSED], ids=[name for name, _ in REFUSED])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_what_makes_no_sense_is_refused_and_writes_nothing(gates: Gates, store: Store, ask: Ask) -> None:
    with pytest.raises(InvalidInput):
        ask(gates, store)
    assert (store.pauses(), store.limits(), store.tenants()) == ([], [], [])


def test_what_nobody_ever_used_is_unknown(gates: Gates) -> None:
    with pytest.raises(UnknownTenant):
        gates.pause("tenant", "nobody")
    with pytest.raises(UnknownTarget):
        gates.pause("target", "nowhere")


def test_a_pause_lasts_as_long_as_it_says_and_names_who_asked(gates: Gates, store: Store) -> None:
    pause = gates.pause("queue", "mail", lasting=60, reason="vendor outage")
    assert (pause.by, pause.reason, pause.tenant) == ("dana", "vendor outage", "default")
    assert pause.since_at is not None
    assert pause.until_at is not None
    assert timedelta(seconds=59) < pause.until_at - pause.since_at <= timedelta(seconds=60)
    assert gates.pauses() == [pause]
    assert gates.unpause("queue", "mail")
    assert not gates.unpause("queue", "mail")


def test_limits_are_set_replaced_listed_and_removed(gates: Gates, store: Store) -> None:
    submitted(store, tenant="acme")
    first = gates.limit("workflow", "send", tenant=EVERY, concurrency=4, rate="100/m")
    assert (first.concurrency, first.rate, first.per, first.by) == (4, 100, 60.0, "dana")
    second = gates.limit("workflow", "send", tenant=EVERY, concurrency=7)
    assert (second.concurrency, second.rate, second.by) == (7, None, "dana")
    family = gates.limit("key", "account:*", tenant="acme", concurrency=1)
    each = gates.limit("tenant", EVERY, concurrency=9)
    assert gates.limits() == [each, second]
    assert gates.limits(tenant="acme") == [family, each, second]
    assert gates.limits(tenant=EVERY) == [family, each, second]
    assert gates.unlimit("workflow", "send", tenant=EVERY)
    assert not gates.unlimit("workflow", "send", tenant=EVERY)


def test_a_tenant_gets_its_weight(gates: Gates, store: Store) -> None:
    gates.weigh("acme", 5)
    assert store.weights() == {"acme": 5}
    assert [(tenant.name, tenant.weight) for tenant in gates.tenants()] == [("acme", 5)]
