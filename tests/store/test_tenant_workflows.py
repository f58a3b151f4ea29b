"""Rows of workflows know whose jobs go by them: those of all tenants, or those of one whose own worker registered."""

from __future__ import annotations

from dataclasses import replace

from tests.support.builders import a_worker, record, submitted
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.sql_store import SqlStore

GREET = WorkflowRecord("greet", "v1", "default", Policy(retries=3), {})
OWN = replace(GREET, policy=Policy(retries=1), redact=("card",), concurrency=2)


def retries(store: SqlStore, tenant: str) -> int:
    job = submitted(store, tenant=tenant, said="{}")
    return record(store, job.id, tenant).policy.retries


def registered(store: SqlStore, *workflows: WorkflowRecord, tenant: str | None = None, name: str = "far") -> int:
    worker = a_worker(store, name)
    assert not store.register_workflows(workflows, worker=worker.number, queues=["default"], tenant=tenant)
    return worker.number


def test_jobs_go_by_the_row_of_their_tenant_while_its_worker_lives(store: SqlStore) -> None:
    registered(store, GREET, name="platform")
    assert (retries(store, "acme"), retries(store, "beta")) == (3, 3)  # looked up once, for all
    own = registered(store, OWN, tenant="acme")
    assert (retries(store, "acme"), retries(store, "beta")) == (1, 3)
    registered(store, replace(GREET, policy=Policy(retries=5)), name="newer")
    assert (retries(store, "acme"), retries(store, "beta")) == (1, 5)
    store.unregister_worker(own)
    store.register_workflows([replace(GREET, name="other")])  # whatever is registered, rows are looked up anew
    assert (retries(store, "acme"), retries(store, "beta")) == (5, 5)


def test_one_version_may_have_a_row_of_all_and_one_of_a_tenant(store: SqlStore) -> None:
    registered(store, GREET, name="platform")
    registered(store, OWN, tenant="acme")
    for tenant, found, whose in (("acme", 1, "acme"), ("beta", 3, "*")):
        row = store.workflow("greet", tenant)
        assert row is not None
        assert (row.policy.retries, row.tenant) == (found, whose)
        assert [each.tenant for each in store.workflows(tenant)] == [whose]


def test_what_one_tenant_hides_and_limits_is_its_own(store: SqlStore) -> None:
    registered(store, GREET, name="platform")
    registered(store, OWN, tenant="acme")
    assert [(limit.tenant, limit.concurrency) for limit in store.limits()] == [("acme", 2)]
    everybody = store.redactions()
    assert everybody["greet"].names == {"card"}
    assert everybody.of("acme")["greet"].names == store.redactions("acme")["greet"].names == {"card"}
    assert not everybody.of("beta")["greet"]
    assert not store.redactions("beta")["greet"]
    jobs = {tenant: submitted(store, tenant=tenant).id for tenant in ("acme", "beta")}
    seen = store.get_many(list(jobs.values()))
    assert {tenant: seen[job].is_redacted for tenant, job in jobs.items()} == {"acme": True, "beta": False}


def test_what_was_left_open_is_closed_by_a_row_of_its_own_tenant(store: SqlStore) -> None:
    acme, beta = (submitted(store, tenant=tenant, said="{}").id for tenant in ("acme", "beta"))
    store.register_workflows([OWN], tenant="acme")
    assert record(store, acme, "acme").policy.retries == 1
    store.register_workflows([GREET])
    assert record(store, acme, "acme").policy.retries == 1
    assert record(store, beta, "beta").policy.retries == 3


def test_a_tenants_worker_keeps_nobody_elses_job_from_being_an_orphan(store: SqlStore) -> None:
    registered(store, OWN, tenant="acme")
    routes = {}
    for tenant in ("acme", "beta"):
        submitted(store, tenant=tenant)
    for waiting in store.waits():
        routes[waiting.tenant] = waiting.route
    assert store.fail_orphans(routes["acme"], 0.0, 10) == 0
    assert store.fail_orphans(routes["beta"], 0.0, 10) == 1
