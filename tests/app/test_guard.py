"""app.blacklist, app.runtime, app.notifications, app.audit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import unstuck


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck.App]:
    with unstuck.App(store_url, name="shop") as opened:
        yield opened


def test_a_workflow_is_shut_out_and_let_in_again(app: unstuck.App) -> None:
    """A35, A36 in Python: enqueue, enqueue_many, resume"""

    @app.workflow(on_blacklist="hold")
    def release(repo: str) -> str:
        return repo

    ended = release.enqueue("a")
    ended.cancel()

    entry = app.blacklist.add("release", reason="burns the builders", by="kim")

    assert (entry.tenant, entry.reason, entry.blacklisted_by) == ("*", "manual:burns the builders", "kim")
    assert [e.number for e in app.blacklist.list()] == [entry.number]
    for verb in (
        lambda: release.enqueue("b"),
        lambda: release.enqueue_many([("b",), ("c",)]),
        ended.resume,
        ended.retry,
    ):
        with pytest.raises(unstuck.WorkflowBlacklisted, match=r"^Workflow is blacklisted") as refused:
            verb()
        assert (refused.value.workflow, refused.value.entry.reason) == ("release", entry.reason)

    [gone] = app.blacklist.remove("release", by="me").removed

    assert (gone.removed_by, [*app.blacklist.list()]) == ("me", [])
    assert [*app.blacklist.history("release")] == [gone]
    release.enqueue("b")
    assert [(line.verb, line.by) for line in app.audit.list(verb="blacklist")] == [
        ("blacklist.remove", "me"),
        ("blacklist.add", "kim"),
    ]
    with pytest.raises(unstuck.NotBlacklisted):
        app.blacklist.remove("release")


def test_an_app_of_a_tenant_speaks_for_that_tenant(store_url: str) -> None:
    """A37: other tenants unharmed"""
    with unstuck.App(store_url, tenant="acme") as acme, unstuck.App(store_url, tenant="beta") as beta:

        @acme.workflow
        def crawl() -> None: ...

        beta.workflow(name="crawl")(lambda: None)
        crawl.enqueue()
        assert acme.blacklist.add("crawl").tenant == "acme"
        with pytest.raises(unstuck.WorkflowBlacklisted):
            crawl.enqueue()
        assert [*beta.blacklist.list()] == []
        with pytest.raises(unstuck.NotBlacklisted):
            beta.blacklist.remove("crawl")


def test_runtime_settings_are_seen_by_every_app_on_the_database(app: unstuck.App, store_url: str) -> None:
    """A37"""
    assert app.settings.get("stuck_circuit_breaker_threshold").value == 5
    app.settings.set("stuck_circuit_breaker_threshold", 3, by="kim")
    with unstuck.App(store_url) as other:
        assert other.settings.get("stuck_circuit_breaker_threshold").value == 3
        assert [record.set_by for record in other.settings.list() if record.set_by] == ["kim"]
        other.settings.reset("stuck_circuit_breaker_threshold")
    assert app.settings.get("stuck_circuit_breaker_threshold").value == 5
    with pytest.raises(unstuck.UnknownSetting):
        app.settings.get("threshold")
    with pytest.raises(unstuck.InvalidInput):
        app.settings.set("stuck_circuit_breaker_window_minutes", "long")


def test_there_is_no_news_at_first(app: unstuck.App) -> None:
    assert ([*app.notifications.list()], [*app.audit.list()]) == ([], [])
    with pytest.raises(unstuck.UnknownNotification):
        app.notifications.ack(1)
