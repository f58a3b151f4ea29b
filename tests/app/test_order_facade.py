"""app.order: targets, pauses, limits and weights as a program sees and changes them. On both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import unstuck
from tests.app.hand import Hand
from tests.support.tables import counts_of_tables
from unstuck import App, InvalidInput, UnknownTarget, UnknownTenant
from unstuck.model.settlement import ErrorInfo, Raised, Returned

Deliver = unstuck.Workflow[[str, str], str]


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    with App(store_url, name="shop") as app:
        yield app


@pytest.fixture
def deliver(app: App) -> Deliver:
    @app.workflow(target="{customer}", retries=0)
    def deliver(customer: str, item: str) -> str:
        return item

    return deliver


def ingest(app: App) -> None:
    while app.store.ingest().entries:
        pass


def claimable(app: App) -> list[str]:
    """What a worker would take now."""
    ingest(app)
    return [job.id for job in Hand(app.store).claim()]


def test_a_target_tells_whose_turn_it_is_what_blocks_it_and_how_many_wait(app: App, deliver: Deliver) -> None:
    """A39"""
    first = deliver.enqueue("ada", "lamp")
    second = deliver.enqueue("ada", "piano")
    ingest(app)
    found = app.order.target("ada")
    assert (found.head, found.blocked_by, found.waiting) == (first.id, None, 1)
    assert app.order.targets(blocked=True) == []

    Hand(app.store).run_one(Raised(ErrorInfo("ValueError", "nobody is at home")))
    [blocked] = app.order.targets(blocked=True)
    assert (blocked.name, blocked.blocked_by, blocked.waiting) == ("ada", first.id, 1)
    assert second.why().codes[0] == "target_blocked"

    first.skip()
    assert app.order.targets(blocked=True) == []
    assert claimable(app) == [second.id]


def test_targets_are_paged_by_name_and_belong_to_their_tenant(app: App, deliver: Deliver) -> None:
    for name in ("ada", "grace", "linus"):
        deliver.enqueue(name, "lamp")
    deliver.using(tenant="acme").enqueue("zoe", "lamp")
    assert [t.name for t in app.order.targets(limit=2)] == ["ada", "grace"]
    assert [t.name for t in app.order.targets(after="grace")] == ["linus"]
    assert [t.name for t in app.order.targets(tenant="acme")] == ["zoe"]
    with pytest.raises(UnknownTarget, match="zoe"):
        app.order.target("zoe")
    with pytest.raises(InvalidInput):
        app.order.targets(limit=0)


@pytest.mark.parametrize(
    ("kind", "name"), [("queue", "default"), ("workflow", "deliver"), ("tenant", "default"), ("target", "ada")]
)
def test_what_is_paused_starts_nothing_until_it_is_lifted(app: App, deliver: Deliver, kind: Any, name: str) -> None:
    """A41"""
    job = deliver.enqueue("ada", "lamp")
    ingest(app)
    set_ = app.order.pause(kind, name, reason="stocktaking")
    assert (set_.by, set_.until_at) == ("shop", None)
    assert app.order.pauses() == [set_]
    assert claimable(app) == []
    assert job.why().codes[0] == f"{kind}_paused"
    assert app.order.unpause(kind, name) is True
    assert app.order.unpause(kind, name) is False
    assert app.order.pauses() == []
    assert claimable(app) == [job.id]


def test_a_pause_may_end_by_itself(app: App, deliver: Deliver) -> None:
    now = app.store.now()
    assert app.order.pause("queue", "io", for_=600).until_at is not None
    at = now + timedelta(hours=1)
    assert app.order.pause("queue", "io", until=at, by="ada").until_at == at
    assert app.order.pauses()[0].by == "ada"


def test_bad_wishes_are_refused_and_nothing_is_written(app: App, deliver: Deliver, store_url: str) -> None:
    deliver.enqueue("ada", "lamp")
    before = counts_of_tables(store_url)
    order = app.order
    for wrong in (
        lambda: order.pause("queue", "io", until=datetime(2020, 1, 1, tzinfo=UTC)),
        lambda: order.pause("queue", "io", for_=-1),
        lambda: order.pause("queue", "io", for_=1, until=datetime(2090, 1, 1, tzinfo=UTC)),
        lambda: order.pause("queue", ""),
        lambda: order.pause("shelf", "io"),  # type: ignore[arg-type]
        lambda: order.pause("target", "ada", tenant="*"),
        lambda: order.limit("queue", "io"),
        lambda: order.limit("queue", "io", concurrency=-1),
        lambda: order.limit("queue", "io", rate="often"),
        lambda: order.limit("workflow", "deliver", max_queued=5),
        lambda: order.weigh("acme", 0),
        lambda: order.tenants(limit=0),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    for unknown in (lambda: order.pause("target", "nobody"), lambda: order.unpause("target", "nobody")):
        with pytest.raises(UnknownTarget):
            unknown()
    for stranger in (lambda: order.pause("tenant", "nobody"), lambda: order.unpause("tenant", "nobody")):
        with pytest.raises(UnknownTenant):
            stranger()
    assert counts_of_tables(store_url) == before


def test_a_limit_keeps_what_is_not_named(app: App) -> None:
    order = app.order
    order.limit("queue", "io", concurrency=5)
    both = order.limit("queue", "io", rate="100/m")
    assert both is not None
    assert (both.concurrency, both.rate, both.per) == (5, 100, 60.0)
    rest = order.limit("queue", "io", concurrency=None, max_queued=7)
    assert rest is not None
    assert (rest.concurrency, rest.rate, rest.per, rest.max_queued) == (None, 100, 60.0, 7)
    assert order.limits() == [rest]
    assert order.limit("queue", "io", rate=None, max_queued=None) is None
    assert order.limits() == []
    assert order.unlimit("queue", "io") is False


def test_limits_of_other_tenants_are_left_alone(app: App) -> None:
    order = app.order
    order.limit("queue", "io", concurrency=5)
    order.limit("queue", "io", rate="1/s", tenant="*")
    order.limit("queue", "io", max_queued=9, tenant="acme")
    order.limit("tenant", "acme", concurrency=2)
    order.limit("tenant", "acme", max_queued=3)
    found = {(x.kind, x.tenant): (x.concurrency, x.rate, x.max_queued) for x in order.limits(tenant="*")}
    assert found == {
        ("queue", "default"): (5, None, None),
        ("queue", "*"): (None, 1, None),
        ("queue", "acme"): (None, None, 9),
        ("tenant", "acme"): (2, None, 3),
    }
    assert {x.tenant for x in order.limits()} == {"default", "*"}


def test_a_limit_holds_a_second_job_back(app: App) -> None:
    """A60, as far as one hand can show it."""

    @app.workflow(concurrency=1)
    def print_label(order: int) -> int:
        return order

    app.store.register_workflows(app.registry.records())
    first, second = print_label.enqueue(1), print_label.enqueue(2)
    hand = Hand(app.store)
    [job] = hand.claim()
    assert job.id == first.id
    assert hand.claim() == []
    assert second.why().codes[0] == "concurrency_limit"
    hand.settle(job, Returned("1"))
    assert [job.id for job in hand.claim()] == [second.id]


def test_a_tenant_gets_a_weight(app: App, deliver: Deliver) -> None:
    deliver.enqueue("ada", "lamp")
    assert app.order.weigh("acme", 3).weight == 3
    assert [(t.name, t.weight) for t in app.order.tenants()] == [("acme", 3), ("default", 1)]
    assert [t.name for t in app.order.tenants(after="acme")] == ["default"]
