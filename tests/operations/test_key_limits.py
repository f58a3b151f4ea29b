"""A key that names queues or workflows touches no others: what is outside looks as if it were not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import pytest

from tests.operations.conftest import Ask
from tests.support.builders import a_job, a_worker, claim_all
from unstuck.model.errors import AmbiguousJob, NotPermitted, UnknownJob, UnknownNotification, UnknownWorkflowName
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.policy import Policy
from unstuck.model.settlement import Parked
from unstuck.model.waits import Wait, WaitKind
from unstuck.observe.stream import Stream
from unstuck.operations import approvals, audit, events, jobs, keys, notifications, quarantine, queues, settings
from unstuck.operations import workflows as workflow_noun
from unstuck.operations.keyring import Keyring
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import Caller, Operation
from unstuck.store.port import JobFilter, NewChild, Report
from unstuck.store.sql_store import SqlStore

LIMITS: dict[str, dict[str, Any]] = {
    "queues": {"queues": ["io"]},
    "workflows": {"workflows": ["mail"]},
    "both": {"queues": ["io"], "workflows": ["mail"]},
}


@pytest.fixture(params=LIMITS)
def limits(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LIMITS[request.param]


@pytest.fixture
def limited(store: SqlStore, ask: Ask) -> Iterator[Any]:
    ring = Keyring(store)

    def caller(role: str = "operator", **facts: Any) -> Caller:
        made = keys.create(ask(tenant="acme"), "ci", role=role, **facts)
        return ring.authenticate(made.key).caller(ask())

    yield caller
    ring.close()


def a_workflow(name: str, queue: str) -> WorkflowRecord:
    return WorkflowRecord(name, "v1", queue, Policy(), {})


def inside(**facts: Any) -> NewJob:
    return a_job(**{"tenant": "acme", "queue": "io", "workflow": "mail", **facts})


def outside(**facts: Any) -> NewJob:
    return a_job(**{"tenant": "acme", "queue": "cpu", "workflow": "crawl", **facts})


def test_a_job_outside_looks_like_one_that_is_not_there(
    store: SqlStore, limited: Any, ask: Ask, limits: dict[str, Any]
) -> None:
    """Check 1: whatever is asked of it, whole id or the beginning of one."""
    ours, theirs, foreign = inside(), outside(), inside(tenant="other")
    store.submit([ours, theirs, foreign])
    caller = limited(**limits)
    nobody = "01890000-0000-7000-8000-000000000000"
    by_id = [
        jobs.get, jobs.history, jobs.attempts, jobs.logs, jobs.follow_logs, jobs.steps, jobs.partials,
        jobs.follow_partials, jobs.waits, jobs.usage, jobs.children, jobs.why, jobs.stack, jobs.cancel,
        jobs.interrupt, jobs.resume, jobs.release, jobs.skip, jobs.retry, jobs.run_now, jobs.replay,
        lambda c, job: jobs.reprioritise(c, job, 5), lambda c, job: jobs.resolve(c, job, 1),
        lambda c, job: events.send(c, "paid", job=job), lambda c, job: events.list_(c, job=job),
        lambda c, job: events.publish(c, "seen", job=job),
        lambda c, job: events.follow(c, job=job), approvals.approve, approvals.reject,
    ]  # fmt: skip
    for ask_about in by_id:
        said = set()
        for job in (theirs.id, foreign.id, nobody, theirs.id[:30]):
            with pytest.raises(UnknownJob) as caught:
                ask_about(caller, job)  # type: ignore[operator]
            said.add(str(caught.value).replace(job, "ID"))
        assert len(said) == 1, ask_about
    assert jobs.get(caller, ours.id).id == ours.id
    assert jobs.get(ask(tenant="acme"), theirs.id).state == "QUEUED", "nothing was done to it"
    assert jobs.cancel(caller, ours.id).state == "CANCELLED"


def test_a_key_of_the_platform_is_kept_to_them_in_every_tenant(store: SqlStore, ask: Ask) -> None:
    ours, others, outer = inside(), inside(tenant="other"), outside(tenant="other")
    store.submit([ours, others, outer])
    made = keys.create(ask(), "ci", role="reader", queues=["io"])
    with closing(Keyring(store)) as ring:
        everywhere = ring.authenticate(made.key).caller(ask()).about("*")
    assert {job.id for job in jobs.list_(everywhere)} == {ours.id, others.id}
    assert {event.job for event in events.list_(everywhere)} == {ours.id, others.id}
    for job in (ours, others):
        assert jobs.get(everywhere, job.id).tenant == job.tenant
        assert jobs.why(everywhere, job.id).job == job.id
    said = set()
    for ident in (outer.id, "01890000-0000-7000-8000-000000000000"):
        with pytest.raises(UnknownJob) as caught:
            jobs.get(everywhere, ident)
        said.add(str(caught.value).replace(ident, "ID"))
    assert len(said) == 1


def test_the_beginning_of_an_id_names_no_job_outside(store: SqlStore, limited: Any, limits: dict[str, Any]) -> None:
    base = "01890000-0000-7000-8000-00000000000"
    store.submit([inside(id=f"{base}1"), outside(id=f"{base}2")])
    assert jobs.get(limited(**limits), base[:20]).id == f"{base}1"
    store.submit([inside(id=f"{base}3")])
    with pytest.raises(AmbiguousJob) as caught:
        jobs.get(limited(**limits), base[:20])
    assert caught.value.candidates == (f"{base}1", f"{base}3")


def test_lists_hold_what_is_inside_alone_page_by_page(store: SqlStore, limited: Any, limits: dict[str, Any]) -> None:
    """Check 2: filtered in the query, so pages stay full."""
    made = [job for _ in range(10) for job in (inside(tags=("x",)), outside(tags=("x",)))]
    store.submit(made)
    wanted = {job.id for job in made if job.queue == "io"}
    caller = limited("reader", **limits)
    for asked in ({}, {"state": "QUEUED"}, {"tag": "x"}, {"queue": "io"}, {"workflow": "mail"}):
        first = jobs.list_(caller, limit=6, **asked)  # type: ignore[arg-type]
        assert len(first) == 6, asked
        second = jobs.list_(caller, limit=6, after=first.next, **asked)  # type: ignore[arg-type]
        assert {job.id for job in (*first, *second)} == wanted
    for asked in ({"queue": "cpu"}, {"workflow": "crawl"}):
        assert [*jobs.list_(caller, **asked)] == []  # type: ignore[arg-type]
    assert {event.job for event in events.list_(caller)} == wanted
    followed = islice(Stream(events.follow(caller, after="start"), follow=False), 100)
    assert {event.job for event in followed} == wanted


def test_a_list_of_few_reads_few_however_many_others_there_are(store: SqlStore) -> None:
    """By their routes, not through all that the tenant has."""
    store.submit([outside() for _ in range(300)] + [inside()])
    page = store.jobs("acme", JobFilter(within=Within(queues=frozenset({"io"}))), limit=5)
    assert [job.queue for job in page.jobs] == ["io"]
    assert page.is_complete


def test_approvals_are_listed_of_jobs_inside_alone(store: SqlStore, limited: Any, limits: dict[str, Any]) -> None:
    ours, theirs = inside(), outside()
    store.submit([ours, theirs])
    worker = a_worker(store, queues=("io", "cpu"))
    for found in claim_all(store, worker):
        asked = Parked(Wait(WaitKind.APPROVAL, "approval#1", "Push?"))
        store.settle(worker.number, [Report(found.ref, asked)])
    caller = limited(**limits)
    assert [found.job for found in approvals.list_(caller)] == [ours.id]
    assert [found.job for found in approvals.list_(caller, limit=1)] == [ours.id]
    assert approvals.approve(caller, ours.id).answered_by == "ci"


def test_children_outside_are_left_out(store: SqlStore, limited: Any, limits: dict[str, Any]) -> None:
    parent = inside()
    store.submit([parent])
    worker = a_worker(store, queues=("io",))
    [found] = claim_all(store, worker)
    for job in (inside(), outside()):
        assert store.spawn(NewChild(found.ref, job.workflow, 1, job)) is not None
    caller = limited(**limits)
    assert [child.workflow for child in jobs.children(caller, parent.id)] == ["mail"]
    assert [child.workflow for child in jobs.get(caller, parent.id).children] == ["mail"]


def test_nothing_is_enqueued_outside(store: SqlStore, limited: Any, ask: Ask, limits: dict[str, Any]) -> None:
    store.register_workflows([a_workflow("mail", "io"), a_workflow("crawl", "cpu")])
    caller = limited("submitter", **limits)
    made = jobs.enqueue(caller, "mail")
    assert (made.queue, made.workflow, made.tenant) == ("io", "mail", "acme")
    refused: list[dict[str, Any]] = [{"workflow": "crawl"}]
    refused += [{"workflow": "mail", "queue": "cpu"}] if caller.queues else []
    refused += [{"workflow": "none"}] if caller.workflows else []
    for asked in refused:
        with pytest.raises(NotPermitted, match="none of those that the key of ci names"):
            jobs.enqueue(caller, **asked)
    if not caller.workflows:
        with pytest.raises(UnknownWorkflowName):
            jobs.enqueue(caller, "none")
    theirs = outside()
    store.submit([theirs])
    with pytest.raises(UnknownJob):
        jobs.enqueue(caller, "mail", after=[theirs.id])
    assert len(jobs.list_(ask(tenant="acme"))) == 2


def test_queues_and_workflows_are_paused_by_whoever_names_them(store: SqlStore, limited: Any, ask: Ask) -> None:
    store.submit([inside(), outside()])
    by_queue, by_workflow, both = (limited(**facts) for facts in LIMITS.values())
    assert queues.pause(by_queue, "io").name == "io"
    assert queues.limit(by_queue, queue="io", concurrency=1).name == "io"
    assert workflow_noun.pause(by_workflow, "mail").name == "mail"
    for caller, pause, name in (
        (by_queue, queues.pause, "cpu"), (by_queue, workflow_noun.pause, "mail"),
        (by_workflow, workflow_noun.pause, "crawl"), (by_workflow, queues.pause, "io"),
        (both, queues.pause, "io"), (both, workflow_noun.pause, "mail"),
    ):  # fmt: skip
        with pytest.raises(NotPermitted, match="the key of ci names"):
            pause(caller, name)
    assert len(queues.list_(ask(tenant="acme"))) == 2


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_what_cannot_be_kept_to_some_is_refused_with_a_sentence(limited: Any, limits: dict[str, Any]) -> None:
    """Deny by default: an operation that does not say how is refused."""
    caller = limited("tenant-admin", **limits)
    said = {name: why for name, operation in OPERATIONS.items() if (why := refusal(operation, caller))}
    refused = set(said)
    assert all("ask with a key that names none" in why or "needs the role" in why for why in said.values())
    allowed = set(OPERATIONS) - refused
    assert {name.partition(".")[0] for name in allowed} <= {
        "jobs",
        "events",
        "approvals",
        "queues",
        "workflows",
        "settings",
        "dead_letters",
    }
    assert {
        "keys.create",
        "keys.list",
        "bulks.start",
        "bulks.count",
        "dead_letters.redrive_all",
        "jobs.tree",
        "queues.list",
        "stats.get",
    } <= refused
    assert {"jobs.list", "jobs.enqueue", "events.list", "approvals.approve", "workflows.list"} <= allowed
    assert settings.list_(caller).items
    with pytest.raises(NotPermitted, match="send it to a job"):
        events.send(caller, "paid", topic="orders")
    with pytest.raises(NotPermitted, match="name the job that it is about"):
        events.publish(caller, "paid", topic="orders")


def refusal(operation: Operation[Any, Any], caller: Caller) -> str | None:
    try:
        operation.admitted(caller)
    except NotPermitted as error:
        return str(error)
    return None


def test_workflows_outside_are_not_told(store: SqlStore, limited: Any) -> None:
    store.register_workflows([a_workflow("mail", "io"), a_workflow("crawl", "io")])
    caller = limited("reader", workflows=["mail"])
    assert [found.name for found in workflow_noun.list_(caller)] == ["mail"]
    assert workflow_noun.get(caller, "mail").name == "mail"
    for name in ("crawl", "none"):
        with pytest.raises(UnknownWorkflowName) as caught:
            workflow_noun.get(caller, name)
        assert "known here: mail" in str(caught.value)


# --- what is everybody's, to a key of one tenant ------------------------------------------------------------------


def test_a_tenant_takes_note_of_its_own_notifications_alone(store: SqlStore, limited: Any, ask: Ask) -> None:
    """Check 1: it read the text of any notification by its number, and hid it from those it was for."""
    for tenant in ("acme", "other", "*"):
        notice(store, tenant)
    ours, theirs, platform = (found.number for found in reversed([*notifications.list_(ask())]))
    caller = limited()
    said = set()
    for number in (theirs, platform, 999):
        with pytest.raises(UnknownNotification) as caught:
            notifications.ack(caller, number)
        said.add(str(caught.value).replace(str(number), "N"))
    assert len(said) == 1
    assert notifications.ack(caller, ours).acked_by == "ci"
    assert [found.number for found in notifications.list_(ask())] == [platform, theirs]


def notice(store: SqlStore, tenant: str) -> None:
    from unstuck.store.guard import audit as news

    store._database.write(lambda t: news.notify(t, f"about {tenant}", "text", "link", "warning", tenant, "mail"))


def test_a_tenant_does_not_read_what_was_done_to_the_platform(limited: Any, ask: Ask) -> None:
    """Check 3: names of the platform's keys and people among it."""
    keys.create(ask(by="root"), "platform key", role="reader")
    settings.set_(ask(by="root"), "breaker_tenants", 7)
    caller = limited("tenant-admin")
    assert [line.tenant for line in audit.list_(caller)] == ["acme"]
    assert {line.tenant for line in audit.list_(ask())} == {"acme", "*"}


def test_a_tenant_tries_again_what_was_set_aside_of_its_own_alone(store: SqlStore, limited: Any, ask: Ask) -> None:
    ours, theirs = inside(), inside(tenant="other")
    store.submit([ours, theirs])
    numbers = [store.get(job.tenant, job.id).number for job in (ours, theirs)]  # type: ignore[union-attr]
    store.quarantine("expire", dict.fromkeys(numbers, "boom"), "w1")
    assert len(quarantine.list_(ask())) == 2
    assert quarantine.retry(limited()).tried == 1
    assert quarantine.retry(ask()).tried == 2
    assert [line.tenant for line in audit.list_(ask(), verb="quarantine")] == ["*", "acme"]
