"""Alerts with real workers: what goes wrong is told, and is over by itself."""

from __future__ import annotations

from collections.abc import Callable

from tests.journeys.conftest import Jobs
from tests.support.eventually import eventually
from tests.support.workers import Worker
from unstuck.model.alerts import AlertRecord
from unstuck.model.lifecycle import JobState
from unstuck.operations import health
from unstuck.operations.table import Caller
from unstuck.store.port import FeedFilter, Pause, Store

Start = Callable[..., Worker]


def test_what_goes_wrong_is_one_alert_and_over_by_itself(start: Start, db: Store, jobs: Jobs) -> None:
    """A paused queue, then a worker that dies: whoever lives looks; nobody but those it concerns is held up."""
    for name, value in (("alert_queued_after", "1"), ("alert_worker_silent_after", "3"), ("alert_close_after", "1")):
        db.set_setting(name, value, "dana")
    start("w1")
    lost = start("w2")
    eventually(lambda: [worker.info.get("ready") for worker in db.workers()] == [True, True], timeout=60)
    db.sequence()
    begin = db.feed_bounds().newest
    db.pause(Pause("queue", "default", "default", by="dana", reason="we move"))
    [job] = jobs.submit("add", 1, 2)

    def one(rule: str) -> AlertRecord:
        found = db.alerts(rule=rule)
        assert len(found) == 1, [(stand.rule, stand.error) for stand in db.alert_rules() if stand.error]
        return found[0]

    waits = eventually(lambda: one("job_queued"), timeout=60)
    assert (waits.subject, waits.severity, waits.tenant) == (job, "info", "default")
    assert "we move" in waits.message
    [notice] = [notice for notice in db.notifications() if notice.number == waits.notification]
    assert notice.message == waits.message

    lost.kill_all()
    gone = eventually(lambda: one("worker_silent"), timeout=60)
    assert (gone.subject, gone.tenant) == ("w2", "*")
    checks = {check.name: check.detail for check in health.check(Caller(db, "dana")).checks if not check.ok}
    assert "2 open, the worst warning: A worker fell silent" in checks["alerts"]

    db.unpause("queue", "default", "default", "dana")
    start("w2")
    jobs.until(job, JobState.COMPLETED, within=60)

    def is_over() -> None:
        assert db.alerts() == []
        assert {alert.number for alert in db.alerts(closed=True)} == {waits.number, gone.number}, "none opened twice"

    eventually(is_over, timeout=60)
    assert not {waits.notification, gone.notification} & {notice.number for notice in db.notifications()}
    db.sequence()
    told = db.feed(begin, FeedFilter(kinds=("alert.opened", "alert.closed"))).events
    assert sorted((event.kind, event.data["number"]) for event in told) == sorted(
        (kind, number) for kind in ("alert.opened", "alert.closed") for number in (waits.number, gone.number)
    )
