"""Targets, pauses, limits and weights as a program sees and changes them. On both databases."""

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
    while app._engine.store.ingest().entries:
        pass


def claimable(app: App) -> list[str]:
    """What a worker would take now."""
    ingest(app)
    return [job.id for job in Hand(app._engine.store).claim()]


def test_a_target_tells_whose_turn_it_is_what_blocks_it_and_how_many_wait(app: App, deliver: Deliver) -> None:
    """A39"""
    first = deliver.enqueue("ada", "lamp")
    second = deliver.enqueue("ada", "piano")
    ingest(app)
    found = app.targets.get("ada")
    assert (found.head, found.blocked_by, found.waiting) == (first.id, None, 1)
    assert [*app.targets.list(blocked=True)] == []

    Hand(app._engine.store).run_one(Raised(ErrorInfo("ValueError", "nobody is at home")))
    [blocked] = app.targets.list(blocked=True)
    assert (blocked.name, blocked.blocked_by, blocked.waiting) == ("ada", first.id, 1)
    assert second.why().codes[0] == "target_blocked"

    first.skip()
    assert [*app.targets.list(blocked=True)] == []
    assert claimable(app) == [second.id]


def test_targets_are_paged_by_name_and_belong_to_their_tenant(app: App, deliver: Deliver) -> None:
    for name in ("ada", "grace", "linus"):
        deliver.enqueue(name, "lamp")
    deliver.using(tenant="acme").enqueue("zoe", "lamp")
    assert [t.name for t in app.targets.list(limit=2)] == ["ada", "grace"]
    assert [t.name for t in app.targets.list(after="grace")] == ["linus"]
    assert [t.name for t in app.targets.list(tenant="acme")] == ["zoe"]
    with pytest.raises(UnknownTarget, match="zoe"):
        app.targets.get("zoe")
    with pytest.raises(InvalidInput):
        app.targets.list(limit=0)


@pytest.mark.parametrize(
    ("kind", "name"), [("queue", "default"), ("workflow", "deliver"), ("tenant", "default"), ("target", "ada")]
)
def test_what_is_paused_starts_nothing_until_it_is_lifted(app: App, deliver: Deliver, kind: Any, name: str) -> None:
    """A41"""
    job = deliver.enqueue("ada", "lamp")
    ingest(app)
    noun = getattr(app, f"{kind}s")
    set_ = noun.pause(name, reason="stocktaking")
    assert (set_.by, set_.until_at) == ("shop", None)
    assert [*app.pauses.list()] == [set_]
    assert claimable(app) == []
    assert job.why().codes[0] == f"{kind}_paused"
    assert noun.unpause(name).lifted is True
    assert noun.unpause(name).lifted is False
    assert [*app.pauses.list()] == []
    assert claimable(app) == [job.id]


def test_a_pause_may_end_by_itself(app: App, deliver: Deliver) -> None:
    now = app._engine.store.now()
    assert app.queues.pause("io", seconds=600).until_at is not None
    at = now + timedelta(hours=1)
    assert app.queues.pause("io", until=at, by="ada").until_at == at
    assert app.pauses.list()[0].by == "ada"


def test_bad_wishes_are_refused_and_nothing_is_written(app: App, deliver: Deliver, store_url: str) -> None:
    deliver.enqueue("ada", "lamp")
    before = counts_of_tables(store_url)
    for wrong in (
        lambda: app.queues.pause("io", until=datetime(2020, 1, 1, tzinfo=UTC)),
        lambda: app.queues.pause("io", seconds=-1),
        lambda: app.queues.pause("io", seconds=1, until=datetime(2090, 1, 1, tzinfo=UTC)),
        lambda: app.queues.pause(""),
        lambda: app.targets.pause("ada", tenant="*"),
        lambda: app.queues.limit("io"),
        lambda: app.queues.limit("io", concurrency=-1),
        lambda: app.queues.limit("io", rate="often"),
        lambda: app.tenants.weigh("acme", 0),
        lambda: app.tenants.list(limit=0),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    for unknown in (lambda: app.targets.pause("nobody"), lambda: app.targets.unpause("nobody")):
        with pytest.raises(UnknownTarget):
            unknown()
    for stranger in (lambda: app.tenants.pause("nobody"), lambda: app.tenants.unpause("nobody")):
        with pytest.raises(UnknownTenant):
            stranger()
    assert counts_of_tables(store_url) == before


def test_a_limit_keeps_what_is_not_named(app: App) -> None:
    app.queues.limit("io", concurrency=5)
    both = app.queues.limit("io", rate="100/m").limit
    assert both is not None
    assert (both.concurrency, both.rate, both.per) == (5, 100, 60.0)
    rest = app.queues.limit("io", concurrency=None, max_queued=7).limit
    assert rest is not None
    assert (rest.concurrency, rest.rate, rest.per, rest.max_queued) == (None, 100, 60.0, 7)
    assert [*app.limits.list()] == [rest]
    gone = app.queues.limit("io", rate=None, max_queued=None)
    assert (gone.limit, gone.before) == (None, rest)
    assert [*app.limits.list()] == []
    assert app.queues.unlimit("io").before is None


def test_limits_of_other_tenants_are_left_alone(app: App) -> None:
    app.queues.limit("io", concurrency=5)
    app.queues.limit("io", rate="1/s", tenant="*")
    app.queues.limit("io", max_queued=9, tenant="acme")
    app.tenants.limit("acme", concurrency=2)
    app.tenants.limit("acme", max_queued=3)
    found = {(x.kind, x.tenant): (x.concurrency, x.rate, x.max_queued) for x in app.limits.list(tenant="*")}
    assert found == {
        ("queue", "default"): (5, None, None),
        ("queue", "*"): (None, 1, None),
        ("queue", "acme"): (None, None, 9),
        ("tenant", "acme"): (2, None, 3),
    }
    assert {x.tenant for x in app.limits.list()} == {"default", "*"}


def test_a_limit_holds_a_second_job_back(app: App) -> None:
    """A60, as far as one hand can show it."""

    @app.workflow(concurrency=1)
    def print_label(order: int) -> int:
        return order

    app._engine.store.register_workflows(app._registry.records())
    first, second = print_label.enqueue(1), print_label.enqueue(2)
    hand = Hand(app._engine.store)
    [job] = hand.claim()
    assert job.id == first.id
    assert hand.claim() == []
    assert second.why().codes[0] == "concurrency_limit"
    hand.settle(job, Returned("1"))
    assert [job.id for job in hand.claim()] == [second.id]


def test_a_tenant_gets_a_weight(app: App, deliver: Deliver) -> None:
    deliver.enqueue("ada", "lamp")
    assert app.tenants.weigh("acme", 3).weight == 3
    assert [(t.name, t.weight) for t in app.tenants.list()] == [("acme", 3), ("default", 1)]
    assert [t.name for t in app.tenants.list(after="acme")] == ["default"]
