"""A hundred thousand of everything that alert rules look at: a turn stays short, and hides nobody's trouble."""

from __future__ import annotations

import time

from tests.support.alerts import TIMES, the_duty
from tests.support.builders import a_job, submitted
from tests.support.tables import ask
from tests.support.troubles import execute
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.store.sql_store import SqlStore

MANY = 100_000
#: Seconds of one duty's turn, and what the last batch of it may take on a busy machine.
TURN = TIMES.sweep / 5
PATIENCE = 3.0
LONG_AGO = 3 * 86400 * 1_000_000


def numbers(url: str) -> str:
    if url.startswith("sqlite"):
        counted = f"SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {MANY}"
        return f"(WITH RECURSIVE n (n) AS ({counted}) SELECT n FROM n) AS n"
    return f"generate_series(1, {MANY}) AS n (n)"


def fill(store: SqlStore, url: str) -> None:
    """Of the tenant default: PAUSED jobs, dead letters, blocked targets and routes on which a job waits."""
    submitted(store, workflow="seed", limit_key="seed")
    [(route, policy, now)] = ask(url, "SELECT route, policy, created_at FROM unstuck_jobs")
    old, some = now - LONG_AGO, numbers(url)
    job = (
        "INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,"
        " available_at, state)"
    )
    execute(
        url,
        f"{job} SELECT 'paused-' || n, 'default', 'default', 'w', {route}, 0, n, '{{}}', {policy}, {old}, {old},"
        f" 'PAUSED' FROM {some};"
        f"INSERT INTO unstuck_events (job, number, at, kind, run, token, data)"
        f" SELECT id, 1, {old}, 'interrupted', 1, 1, '{{}}' FROM unstuck_jobs WHERE state = 'PAUSED';"
        "INSERT INTO unstuck_dead_letters (job, run, tenant, queue, workflow, reason, message, created_at)"
        f" SELECT n, 1, 'default', 'default', 'w', 'exhausted', 'boom', {old} FROM {some};"
        "INSERT INTO unstuck_targets (tenant, name, blocked_by, blocked_at, named_at)"
        f" SELECT 'default', 't' || n, n, {old}, {old} FROM {some};"
        "INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key, named_at)"
        f" SELECT 'default', 'default', 'w', 'k' || n, {old} FROM {some};"
        f"{job} SELECT 'ready-' || id, 'default', 'default', 'w', id, 0, id, '{{}}', {policy}, {old}, {old}, 'QUEUED'"
        f" FROM unstuck_routes WHERE limit_key LIKE 'k%';"
        "INSERT INTO unstuck_ready (route, rank, job)"
        " SELECT route, rank, id FROM unstuck_jobs WHERE uid LIKE 'ready-%';"
        # The last tenant's, behind all of it.
        f"{job} SELECT 'zoe', 'zoe', 'default', 'w', {route}, 0, 1, '{{}}', {policy}, {old}, {old}, 'PAUSED';"
        "INSERT INTO unstuck_events (job, number, at, kind, run, token, data)"
        f" SELECT id, 1, {old}, 'interrupted', 1, 1, '{{}}' FROM unstuck_jobs WHERE uid = 'zoe';"
        "INSERT INTO unstuck_dead_letters (job, run, tenant, queue, workflow, reason, message, created_at)"
        f" SELECT id, 1, 'zoe', 'default', 'w', 'exhausted', 'boom', {old} FROM unstuck_jobs WHERE uid = 'zoe';"
        "INSERT INTO unstuck_targets (tenant, name, blocked_by, blocked_at, named_at)"
        f" SELECT 'zoe', 'site', id, {old}, {old} FROM unstuck_jobs WHERE uid = 'zoe';",
    )


def test_a_turn_stays_short_and_hides_nobodys_trouble(store: SqlStore, store_url: str) -> None:
    fill(store, store_url)
    store.submit([a_job(tenant="zoe", workflow="w")])
    execute(store_url, f"UPDATE unstuck_jobs SET available_at = available_at - {LONG_AGO} WHERE tenant = 'zoe'")
    if not store_url.startswith("sqlite"):
        execute(store_url, "ANALYZE")
    duty, clock = the_duty(store), MachineClock()
    longest, ticks = 0.0, 0
    wanted = {
        (rule, tenant) for rule in ("job_paused", "dead_letters", "target_blocked") for tenant in ("default", "zoe")
    }
    wanted |= {("job_queued", "default"), ("job_queued", "zoe")}
    while ticks < 60 and not wanted <= {(alert.rule, alert.tenant) for alert in store.alerts(limit=1000)}:
        execute(store_url, "UPDATE unstuck_alert_rules SET turn_at = turn_at - 60000000")  # their time has come
        began = time.monotonic()
        duty.tick(0.0, Budget(clock, TURN))
        longest, ticks = max(longest, time.monotonic() - began), ticks + 1

    found = {(alert.rule, alert.tenant): alert for alert in store.alerts(limit=1000)}
    assert wanted <= set(found), f"after {ticks} turns: {sorted(found)}"
    assert longest < TURN + PATIENCE, f"the longest of {ticks} turns took {longest:.2f} s"
    assert found["job_paused", "default"].count == 1000, "of so many it is told that there are at least so many"
    assert len(store.alerts(limit=1000)) == len(found), "one for each, however many things there are"
    assert not [stand for stand in store.alert_rules() if stand.failing_at is not None]
    print(f"{store_url[:8]}: {ticks} turns, the longest {longest:.2f} s")
