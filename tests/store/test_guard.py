"""The guard: the breaker that trips inside a settlement, the blacklist and its gates, settings, notifications."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    all_routes,
    begin,
    chance,
    claim_all,
    kinds,
    record,
    settle,
    submitted,
)
from unstuck.model.alerts import RULES
from unstuck.model.errors import UnknownNotification, UnknownTenant, WorkflowBlacklisted
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState, fold
from unstuck.model.settlement import Blame, ErrorInfo, Lost, Raised, Returned, Stuck
from unstuck.model.why.codes import Code
from unstuck.observe.why import why
from unstuck.store.port import EVERY, Report, Share
from unstuck.store.sql_store import SqlStore

BAD = "deploy"
STUCK = Stuck(ErrorInfo("ExecutionStuck", "did not stop", "stack"), pid=1)


@pytest.fixture
def ada(store: SqlStore) -> WorkerRecord:
    return a_worker(store, lease=1e9)


def take_blindly(store: SqlStore, worker: WorkerRecord, most: int = 100) -> list[ClaimedJob]:
    """As a claimer would whose look is older than the gate."""
    return store.claim(worker.number, chance.nonce(), [Share(route.number, most) for route in all_routes(store)])


def claimed(store: SqlStore, worker: WorkerRecord, **options: Any) -> ClaimedJob:
    """A fresh job that this worker holds; it must be the first of its route."""
    job = submitted(store, **options)
    store.ingest()
    mine = (job.tenant, job.queue, job.workflow)
    [route] = [r.number for r in all_routes(store) if (r.tenant, r.queue, r.workflow) == mine]
    [attempt] = store.claim(worker.number, chance.nonce(), [Share(route, 1)])
    assert attempt.id == job.id
    return attempt


def get_stuck(store: SqlStore, worker: WorkerRecord, times: int = 1, **options: Any) -> list[str]:
    jobs = []
    for _ in range(times):
        attempt = claimed(store, worker, **{"workflow": BAD, **options})
        settle(store, worker, attempt.ref, STUCK)
        jobs.append(attempt.id)
    return jobs


def lose(store: SqlStore, worker: WorkerRecord, blame: Blame, times: int = 1) -> None:
    for _ in range(times):
        attempt = claimed(store, worker, workflow=BAD, on_lost="fail")
        settle(store, worker, attempt.ref, Lost(ErrorInfo("ProcessDied", "exit 9"), blame))


def setting(store: SqlStore, name: str, value: Any) -> None:
    store.set_setting(name, json.dumps(value), "kim")


def blacklisted(store: SqlStore, workflow: str = BAD, tenant: str = TENANT) -> None:
    store.blacklist_add(tenant, workflow, "it eats the disk", "kim")


# --- the breaker --------------------------------------------------------------------------------------------------


def test_the_fifth_stuck_in_an_hour_makes_one_entry_and_one_notification(store: SqlStore, ada: WorkerRecord) -> None:
    """A33"""
    get_stuck(store, ada, 4)
    assert (store.blacklist(), store.notifications()) == ([], [])
    assert store.marks_against(TENANT, BAD) == 4

    get_stuck(store, ada)

    [entry] = store.blacklist()
    assert (entry.tenant, entry.workflow, entry.reason, entry.stuck_count) == (TENANT, BAD, "auto:stuck:5", 5)
    assert (entry.blacklisted_by, entry.removed_at, entry.removed_by) == ("system", None, None)
    [news] = store.notifications()
    assert (news.title, news.severity, news.link) == (
        "Workflow Auto-Blacklisted",
        "warning",
        "/platform/diagnostics?tab=blacklist",
    )
    assert (news.workflow, news.count) == (BAD, 5)
    assert BAD in news.message
    assert "5 stuck executions" in news.message
    [line] = store.audit(verb="blacklist.add")
    assert (line.by, line.subject, line.tenant, line.detail["reason"]) == ("system", BAD, TENANT, "auto:stuck:5")


def freeze(store: SqlStore, worker: WorkerRecord, times: int = 1) -> None:
    """Past its grace in a process that showed no sign of life, beside others that lost it."""
    unproven = Stuck(ErrorInfo("ExecutionStuck", "did not stop"), is_gone=True, is_proven=False)
    for _ in range(times):
        settle(store, worker, claimed(store, worker, workflow=BAD).ref, unproven)


def test_a_breaker_tells_what_counts_against_a_workflow_and_until_when(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    setting(store, "stuck_circuit_breaker_window_minutes", 30)
    [old] = get_stuck(store, ada)
    clock.advance(minutes=20)
    [young] = get_stuck(store, ada)
    freeze(store, ada)
    now = store.now()

    stand = store.breaker_stand(TENANT, BAD)

    assert (stand.number, stand.rules.threshold, stand.rules.window) == (2, 5, 1800.0)
    frozen, *stuck = stand.marks
    assert (frozen.harm, [mark.job for mark in stuck]) == ("freeze", [young, old]), "one freeze counts nothing yet"
    assert all(mark.until_at - mark.at == timedelta(minutes=30) for mark in stand.marks)
    assert 0 < (stuck[1].until_at - now).total_seconds() <= 600
    assert [mark.job for mark in store.breaker_stand(TENANT, BAD, 1).marks] == [frozen.job]
    clock.advance(minutes=11)
    assert [mark.job for mark in store.breaker_stand(TENANT, BAD).marks] == [frozen.job, young]
    assert store.breaker_stand("other", BAD).marks == ()
    blacklisted(store)
    store.blacklist_remove(TENANT, BAD, "kim")
    assert (store.breaker_stand(TENANT, BAD).number, store.breaker_stand(TENANT, BAD).marks) == (0, ())


def test_what_nobody_can_be_convicted_of_counts_from_the_second_time_on(store: SqlStore, ada: WorkerRecord) -> None:
    """Once may be another's doing. Who is there again was not only nearby."""
    freeze(store, ada)
    assert store.marks_against(TENANT, BAD) == 0
    get_stuck(store, ada, 4)
    assert (store.marks_against(TENANT, BAD), store.blacklist()) == (4, [])

    freeze(store, ada)

    [entry] = store.blacklist()
    assert (entry.reason, entry.stuck_count) == ("auto:stuck+freeze:6", 6)
    [news] = store.notifications()
    assert "after 4 stuck executions and 2 freezes of a shared process." in news.message


def test_a_workflow_that_freezes_its_processes_is_shut_out(store: SqlStore, ada: WorkerRecord) -> None:
    freeze(store, ada, 5)
    [entry] = store.blacklist()
    assert entry.reason == "auto:freeze:5"
    with pytest.raises(WorkflowBlacklisted, match="due to repeated freezes of its process"):
        submitted(store, workflow=BAD)


def test_a_workflow_stuck_across_tenants_is_shut_for_all_of_them(store: SqlStore, ada: WorkerRecord) -> None:
    """The code is the same, and so are the processes: five tenants with one stuck job each are five stuck jobs."""
    tenants = [f"tenant-{n}" for n in range(5)]
    for tenant in tenants[:4]:
        get_stuck(store, ada, tenant=tenant)
    assert store.blacklist() == []

    get_stuck(store, ada, tenant=tenants[4])

    [entry] = store.blacklist()
    assert (entry.tenant, entry.workflow, entry.reason, entry.stuck_count) == (EVERY, BAD, "auto:stuck:5", 5)
    [news] = store.notifications()
    assert "for every tenant, after those of 5 tenants" in news.message
    assert "unstuck blacklist remove deploy --all-tenants" in news.message
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, tenant="another", workflow=BAD)

    assert [gone.tenant for gone in store.blacklist_remove(EVERY, BAD, "kim")] == [EVERY]
    get_stuck(store, ada, 4, tenant=tenants[0])
    assert store.blacklist() == []


def test_one_tenant_or_two_shut_nobody_else_out(store: SqlStore, ada: WorkerRecord) -> None:
    get_stuck(store, ada, 4, tenant="one")
    get_stuck(store, ada, 4, tenant="two")
    assert store.blacklist() == []
    get_stuck(store, ada, tenant="one")
    assert [entry.tenant for entry in store.blacklist()] == ["one"]

    setting(store, "breaker_tenants", 2)
    get_stuck(store, ada, tenant="two")
    assert sorted(entry.tenant for entry in store.blacklist()) == [EVERY, "one", "two"]


def test_tenants_together_can_be_left_out(store: SqlStore, ada: WorkerRecord) -> None:
    setting(store, "breaker_tenants", 0)
    for n in range(8):
        get_stuck(store, ada, tenant=f"tenant-{n}")
    assert store.blacklist() == []


def test_stucks_that_left_the_window_count_no_more(store: SqlStore, ada: WorkerRecord, clock: StoreClock) -> None:
    """A34"""
    get_stuck(store, ada, 4)
    clock.advance(minutes=61)

    get_stuck(store, ada)

    assert store.blacklist() == []
    assert store.marks_against(TENANT, BAD) == 1


def test_five_at_once_in_one_settlement_make_one_entry(store: SqlStore, ada: WorkerRecord) -> None:
    attempts = [claimed(store, ada, workflow=BAD) for _ in range(5)]
    store.settle(ada.number, [Report(attempt.ref, STUCK) for attempt in attempts])
    assert [entry.reason for entry in store.blacklist()] == ["auto:stuck:5"]
    assert len(store.notifications()) == 1


def test_what_runs_on_and_gets_stuck_after_the_trip_makes_no_second_entry(store: SqlStore, ada: WorkerRecord) -> None:
    late = [claimed(store, ada, workflow=BAD) for _ in range(3)]
    get_stuck(store, ada, 5)
    for attempt in late:
        settle(store, ada, attempt.ref, STUCK)
    assert (len(store.blacklist()), len(store.notifications()), len(store.blacklist_history())) == (1, 1, 1)


def test_the_backstops_verdicts_count_as_the_supervisors_do(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    attempts = [claimed(store, ada, workflow=BAD, timeout=10.0) for _ in range(5)]
    begin(store, ada, *attempts, lease=1e9)
    clock.advance(minutes=5)

    assert len(store.convict_overdue(5, 30)) == 5

    assert [entry.reason for entry in store.blacklist()] == ["auto:stuck:5"]


def test_a_repeated_report_counts_once(store: SqlStore, ada: WorkerRecord) -> None:
    attempt = claimed(store, ada, workflow=BAD)
    for _ in range(6):
        settle(store, ada, attempt.ref, STUCK)
    assert store.marks_against(TENANT, BAD) == 1


def test_ordinary_failures_and_other_tenants_and_workflows_count_for_themselves(
    store: SqlStore, ada: WorkerRecord
) -> None:
    """A37: other tenants unharmed"""
    get_stuck(store, ada, 4)
    get_stuck(store, ada, 4, tenant="acme")
    get_stuck(store, ada, 4, workflow="other")
    for _ in range(9):
        settle(store, ada, claimed(store, ada, workflow=BAD).ref, Raised(ErrorInfo("ValueError", "x"), retry=False))
    assert store.blacklist() == []

    get_stuck(store, ada, tenant="acme")

    assert [(entry.tenant, entry.workflow) for entry in store.blacklist()] == [("acme", BAD)]
    ours = submitted(store, workflow=BAD)
    assert [job.id for job in claim_all(store, ada)] == [ours.id]


@pytest.mark.parametrize("blame", ["neighbour", "bystander", "suspect", "uncharged"])
def test_neighbours_never_count(store: SqlStore, ada: WorkerRecord, blame: Blame) -> None:
    """A29"""
    setting(store, "breaker_counts_crashes", True)
    setting(store, "breaker_counts_losses", True)
    lose(store, ada, blame, 9)
    assert (store.blacklist(), store.marks_against(TENANT, BAD)) == ([], 0)


@pytest.mark.parametrize(
    ("name", "blame", "reason"),
    [
        ("breaker_counts_crashes", "own", "auto:crash:5"),
        ("breaker_counts_losses", "worker", "auto:loss:5"),
    ],
)
def test_crashes_and_losses_count_by_their_own_setting(
    store: SqlStore, ada: WorkerRecord, name: str, blame: Blame, reason: str
) -> None:
    lose(store, ada, blame, 9)
    assert store.blacklist() == []
    setting(store, name, True)
    lose(store, ada, blame, 5)
    assert [entry.reason for entry in store.blacklist()] == [reason]


def test_a_lost_worker_counts_through_recovery_too(store: SqlStore, clock: StoreClock) -> None:
    setting(store, "breaker_counts_losses", True)
    setting(store, "stuck_circuit_breaker_threshold", 3)
    for name in ("a", "b", "c"):
        claimed(store, a_worker(store, name, lease=10), workflow=BAD)
    clock.advance(60)
    assert len(store.recover_lost(0)) == 3
    assert [entry.reason for entry in store.blacklist()] == ["auto:loss:3"]


# --- the settings -------------------------------------------------------------------------------------------------


def test_threshold_and_window_hold_from_the_moment_they_are_set(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    """A37: read in the settlement's own transaction, so on every worker at once"""
    get_stuck(store, ada, 2)
    setting(store, "stuck_circuit_breaker_threshold", 3)
    setting(store, "stuck_circuit_breaker_window_minutes", 5)
    clock.advance(minutes=6)
    get_stuck(store, ada, 2)
    assert store.blacklist() == []
    get_stuck(store, ada)
    assert [entry.reason for entry in store.blacklist()] == ["auto:stuck:3"]


def test_a_threshold_of_zero_never_trips(store: SqlStore, ada: WorkerRecord) -> None:
    setting(store, "stuck_circuit_breaker_threshold", 0)
    get_stuck(store, ada, 9)
    assert store.blacklist() == []


def test_a_setting_says_who_set_it_and_when_and_the_audit_what_it_was(store: SqlStore, clock: StoreClock) -> None:
    before = {record.name: record.value for record in store.settings()}
    assert before == {
        "stuck_circuit_breaker_threshold": 5,
        "stuck_circuit_breaker_window_minutes": 60,
        "breaker_counts_crashes": False,
        "breaker_counts_losses": False,
        "breaker_tenants": 3,
        "breaker_probe_after": None,
        "schedules_per_tenant": 1000,
        "schedule_min_interval": 1.0,
        "schedule_missed_after": 30.0,
        "webhooks_per_tenant": 20,
        "webhook_most_waiting": 100_000,
        "webhook_first_retry": 5.0,
        "webhook_longest_retry": 43200.0,
        "webhook_give_up_after": 345600.0,
        "webhook_timeout": 10.0,
        "webhook_allow": [],
        "hooks_per_tenant": 100,
        "hook_replay_window": 300.0,
        "hook_deliveries_kept": 604800.0,
        **{rule.setting: rule.default for rule in RULES.values()},
        "alert_close_after": 120.0,
    }

    changed = store.set_setting("stuck_circuit_breaker_threshold", "7", "kim")

    assert (changed.value, changed.set_by, changed.default) == (7, "kim", 5)
    assert changed.set_at is not None
    assert abs((changed.set_at - clock.now()).total_seconds()) < 5
    back = store.set_setting("stuck_circuit_breaker_threshold", None, "lee")
    assert (back.value, back.set_by) == (5, None)
    assert [(line.by, line.detail["before"], line.detail["after"]) for line in store.audit(verb="settings")] == [
        ("lee", 7, 5),
        ("kim", 5, 7),
    ]


def test_a_stored_setting_that_makes_no_sense_does_not_stop_a_settlement(store: SqlStore, ada: WorkerRecord) -> None:
    store.set_setting("stuck_circuit_breaker_threshold", '"many"', "somebody in SQL")
    get_stuck(store, ada, 5)
    assert len(store.blacklist()) == 1


# --- the doors ----------------------------------------------------------------------------------------------------


def test_nothing_of_a_blacklisted_workflow_is_accepted(store: SqlStore, ada: WorkerRecord) -> None:
    """A35: submit, resume, retry, release; what is refused leaves nothing behind"""
    failed = claimed(store, ada, workflow=BAD)
    settle(store, ada, failed.ref, Raised(ErrorInfo("ValueError", "x"), retry=False))
    held = submitted(store, workflow=BAD, on_hold=True)
    later = submitted(store, workflow=BAD, delay=600.0)
    get_stuck(store, ada, 5)
    jobs = store.counts()

    good = a_job()
    for verb in (
        lambda: store.submit([a_job(workflow=BAD)]),
        lambda: store.submit([good, a_job(workflow=BAD)]),
        lambda: store.submit([a_job(workflow=BAD, on_hold=True)]),
        lambda: store.submit([a_job(workflow=BAD, queue="new", target="new")]),
        lambda: store.submit([a_job(workflow=BAD, after=(held.id,))]),
        lambda: store.resume(TENANT, failed.id, "kim"),
        lambda: store.resume(TENANT, failed.id, "kim", from_start=True),
        lambda: store.release(TENANT, held.id, "kim"),
        lambda: store.run_now(TENANT, later.id, "kim"),
    ):
        with pytest.raises(WorkflowBlacklisted) as refused:
            verb()
        text = str(refused.value)
        assert text.startswith("Workflow is blacklisted due to repeated stuck executions.")
        assert "by system at " in text
        assert "(auto:stuck:5)" in text
        assert "unstuck blacklist remove deploy" in text

    assert store.counts() == jobs
    assert store.get(TENANT, good.id) is None
    assert not [route for route in all_routes(store) if route.queue == "new"]
    assert kinds(store, failed.id)[-1] == "failed"


def test_a_manual_entry_says_who_and_why(store: SqlStore) -> None:
    entry, is_new = store.blacklist_add(TENANT, BAD, "it eats the disk", "kim")
    assert (entry.reason, entry.blacklisted_by, entry.stuck_count, is_new) == (
        "manual:it eats the disk",
        "kim",
        None,
        True,
    )
    with pytest.raises(WorkflowBlacklisted, match=r"^Workflow is blacklisted\. deploy .* by kim .*eats the disk"):
        submitted(store, workflow=BAD)
    assert store.notifications() == []
    again, is_new = store.blacklist_add(TENANT, BAD, "something else", "lee")
    assert (again, is_new) == (entry, False)


def test_what_may_be_cancelled_resolved_or_skipped_still_is(store: SqlStore, ada: WorkerRecord) -> None:
    [blocker] = get_stuck(store, ada, 1, workflow=BAD)
    waits = submitted(store, workflow=BAD, delay=60.0)
    blacklisted(store)
    assert store.cancel(TENANT, waits.id, "kim").state is JobState.CANCELLED
    assert store.resolve(TENANT, blocker, "kim", "1").state is JobState.COMPLETED


def test_a_repeat_of_what_was_accepted_before_is_not_refused(store: SqlStore) -> None:
    job = a_job(workflow=BAD, key="k", fingerprint="f")
    store.submit([job])
    blacklisted(store)
    twin = a_job(workflow=BAD, key="k", fingerprint="f")
    assert [(answer.id, answer.created) for answer in store.submit([job, twin])] == [(job.id, False)] * 2


def test_an_entry_of_all_tenants_bars_everybody_and_one_of_a_tenant_only_that(
    store: SqlStore, ada: WorkerRecord
) -> None:
    submitted(store, tenant="acme")
    blacklisted(store, tenant="acme")
    submitted(store, workflow=BAD)
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD, tenant="acme")
    blacklisted(store, tenant=EVERY)
    with pytest.raises(WorkflowBlacklisted, match="for every tenant"):
        submitted(store, workflow=BAD, tenant="unheard of")
    assert [job.workflow for job in take_blindly(store, ada)] == ["greet"]
    assert [entry.tenant for entry in store.blacklist(TENANT)] == [EVERY]
    assert [entry.tenant for entry in store.blacklist("acme")] == ["acme", EVERY]


def test_an_entry_of_a_tenant_nobody_ever_heard_of_is_an_error(store: SqlStore) -> None:
    with pytest.raises(UnknownTenant):
        blacklisted(store, tenant="acmee")
    assert store.blacklist_history() == []


# --- the gate of the claim ----------------------------------------------------------------------------------------


def test_no_claim_returns_a_barred_job_and_the_look_leaves_its_route_out(store: SqlStore, ada: WorkerRecord) -> None:
    """A35, S11"""
    barred = submitted(store, workflow=BAD)
    other = submitted(store)
    blacklisted(store)
    assert [job.id for job in take_blindly(store, ada)] == [other.id]
    assert store.open_routes() == []
    found = why(store, TENANT, barred.id)
    assert (found.is_runnable, found.codes[0]) == (False, Code.BLACKLISTED)
    assert found.reasons[0].remedy == "unstuck blacklist remove deploy --tenant default"


def test_barred_jobs_fail_and_their_targets_move_on(store: SqlStore, ada: WorkerRecord) -> None:
    """A35: queued and retried ones; never counted"""
    retried = claimed(store, ada, workflow=BAD, retries=9, backoff_base=0.0, target="line")
    settle(store, ada, retried.ref, Raised(ErrorInfo("ValueError", "x")))
    second = submitted(store, workflow=BAD, target="line")
    innocent = submitted(store, workflow="good", target="line")
    store.ingest()
    free = submitted(store, workflow=BAD)
    blacklisted(store)

    assert store.tend_guard() == 3

    for job in (retried.id, second.id, free.id):
        found = record(store, job)
        assert (found.state, found.error_type) == (JobState.FAILED, "WorkflowBlacklisted")
        assert (found.error_message or "").startswith("Workflow is blacklisted")
        assert fold(event.kind for event in store.history(TENANT, job)) is JobState.FAILED
    assert [job.id for job in take_blindly(store, ada)] == [innocent.id]
    assert (store.marks_against(TENANT, BAD), store.tend_guard()) == (0, 0)


def test_a_timer_that_comes_due_brings_its_job_to_the_gate(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, workflow=BAD, delay=60.0)
    blacklisted(store)
    assert store.tend_guard() == 0
    clock.advance(61)
    store.release_due()
    assert take_blindly(store, ada) == []
    assert store.tend_guard() == 1
    assert record(store, job.id).error_type == "WorkflowBlacklisted"


def test_many_barred_jobs_leave_in_bounded_batches_within_one_sweep(store: SqlStore) -> None:
    store.submit([a_job(workflow=BAD, target=f"t{n % 3}" if n % 2 else None) for n in range(120)])
    store.ingest()
    blacklisted(store)
    assert store.tend_guard(batch=10) == 120
    assert store.counts()[JobState.FAILED] == 120


def test_held_ones_wait_pending_and_go_on_when_the_entry_is_lifted(store: SqlStore, ada: WorkerRecord) -> None:
    """A35, A36: on_blacklist="hold" """
    head = submitted(store, workflow=BAD, on_blacklist="hold", target="line")
    innocent = submitted(store, workflow="good", target="line")
    free = submitted(store, workflow=BAD, on_blacklist="hold", expires_after=60.0)
    store.ingest()
    blacklisted(store)

    assert store.tend_guard() == 2

    assert [record(store, job.id).state for job in (head, free)] == [JobState.PENDING] * 2
    assert why(store, TENANT, free.id).codes == (Code.BLACKLISTED,)
    with pytest.raises(WorkflowBlacklisted):
        store.release(TENANT, free.id, "kim")
    [passed] = take_blindly(store, ada)
    assert passed.id == innocent.id
    settle(store, ada, passed.ref)

    [gone] = store.blacklist_remove(None, BAD, "lee")

    assert (gone.removed_by, gone.is_active) == ("lee", False)
    store.ingest()
    assert sorted(job.id for job in take_blindly(store, ada)) == sorted([head.id, free.id])
    for job in (head, free):
        assert kinds(store, job.id) == ["submitted", "held", "released", "claimed"]
        assert store.history(TENANT, job.id)[2].data["by"] == "blacklist lifted by lee"
        assert not record(store, job.id).on_hold


def test_what_a_person_did_to_a_held_job_stays_done_when_the_entry_is_lifted(store: SqlStore) -> None:
    jobs = [submitted(store, workflow=BAD, on_blacklist="hold") for _ in range(3)]
    blacklisted(store)
    store.tend_guard()
    store.cancel(TENANT, jobs[0].id, "kim")
    store.interrupt(TENANT, jobs[1].id, "kim")

    store.blacklist_remove(TENANT, BAD, "kim")

    states = [record(store, job.id).state for job in jobs]
    assert states == [JobState.CANCELLED, JobState.PAUSED, JobState.QUEUED]
    assert store.tend_guard() == 0


# --- removal ------------------------------------------------------------------------------------------------------


def test_removal_begins_the_window_anew_and_the_history_stays(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    """A36"""
    get_stuck(store, ada, 5)
    clock.advance(1)

    [first] = store.blacklist_remove(TENANT, BAD, "kim")

    assert store.blacklist() == []
    assert store.marks_against(TENANT, BAD) == 0
    assert settle(store, ada, claimed(store, ada, workflow=BAD).ref).state is JobState.COMPLETED
    [line] = store.audit(verb="blacklist.remove")
    assert (line.by, line.subject, line.detail["reason"]) == ("kim", BAD, "auto:stuck:5")
    assert store.blacklist_remove(TENANT, BAD, "kim") == []

    get_stuck(store, ada, 4)
    assert store.blacklist() == []
    get_stuck(store, ada)

    again, before = store.blacklist_history(workflow=BAD)
    assert (again.is_active, again.reason) == (True, "auto:stuck:5")
    assert (before.number, before.removed_by) == (first.number, "kim")
    assert before.removed_at == first.removed_at
    assert len(store.notifications()) == 2


def test_one_removal_may_lift_every_entry_of_a_workflow_or_that_of_one_tenant(
    store: SqlStore, ada: WorkerRecord
) -> None:
    submitted(store, tenant="acme")
    for tenant in (TENANT, "acme", EVERY):
        blacklisted(store, tenant=tenant)
    assert [entry.tenant for entry in store.blacklist_remove("acme", BAD, "kim")] == ["acme"]
    assert [entry.tenant for entry in store.blacklist_remove(EVERY, BAD, "kim")] == [EVERY]
    blacklisted(store, tenant=EVERY)
    assert {entry.tenant for entry in store.blacklist_remove(None, BAD, "kim")} == {TENANT, EVERY}
    submitted(store, workflow=BAD)


# --- the probe ----------------------------------------------------------------------------------------------------


def half_open(store: SqlStore, ada: WorkerRecord, clock: StoreClock) -> None:
    setting(store, "breaker_probe_after", 30)
    get_stuck(store, ada, 5)
    clock.advance(31)


def test_without_its_setting_no_job_is_ever_let_through(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    get_stuck(store, ada, 5)
    clock.advance(days=1)
    store.tend_guard()
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD)


def test_after_a_while_one_job_is_let_through_and_lifts_the_entry_by_completing(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    half_open(store, ada, clock)
    clock.advance(-20)
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD)
    clock.advance(20)
    with pytest.raises(WorkflowBlacklisted):
        store.submit([a_job(workflow=BAD), a_job(workflow=BAD)])
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD, delay=10.0)

    probe = submitted(store, workflow=BAD)

    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD)
    assert store.tend_guard() == 0
    assert why(store, TENANT, probe.id).codes[0] is not Code.BLACKLISTED
    [attempt] = claim_all(store, ada)
    assert attempt.id == probe.id
    settle(store, ada, attempt.ref, Returned("1"))
    store.tend_guard()
    assert store.blacklist() == []
    assert store.blacklist_history()[0].removed_by == "system"
    submitted(store, workflow=BAD)


def test_a_probe_that_gets_stuck_renews_the_entry(store: SqlStore, ada: WorkerRecord, clock: StoreClock) -> None:
    half_open(store, ada, clock)
    submitted(store, workflow=BAD)
    [attempt] = claim_all(store, ada)
    settle(store, ada, attempt.ref, STUCK)

    [entry] = store.blacklist()

    assert (entry.renewed_at is not None, entry.probe) == (True, None)
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD)
    clock.advance(31)
    submitted(store, workflow=BAD)
    assert len(store.notifications()) == 1


def test_a_probe_that_ends_otherwise_makes_room_for_the_next(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    half_open(store, ada, clock)
    probe = submitted(store, workflow=BAD)
    store.cancel(TENANT, probe.id, "kim")
    assert store.tend_guard() == 1
    submitted(store, workflow=BAD)


def test_a_held_job_is_the_probe_where_there_is_one(store: SqlStore, ada: WorkerRecord, clock: StoreClock) -> None:
    setting(store, "breaker_probe_after", 30)
    queued = [submitted(store, workflow=BAD, on_blacklist="hold", queue="slow") for _ in range(3)]
    get_stuck(store, ada, 5)
    store.tend_guard()
    assert [record(store, job.id).state for job in queued] == [JobState.PENDING] * 3
    clock.advance(31)

    store.tend_guard()

    assert [job.id for job in take_blindly(store, ada)] == [queued[0].id]
    assert [record(store, job.id).state for job in queued[1:]] == [JobState.PENDING] * 2


def test_one_of_those_at_the_gate_is_spared_as_the_probe(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    setting(store, "breaker_probe_after", 30)
    queued = [submitted(store, workflow=BAD, delay=60.0, queue="slow") for _ in range(3)]
    get_stuck(store, ada, 5)
    clock.advance(61)
    store.release_due()

    store.tend_guard()

    states = sorted(record(store, job.id).state for job in queued)
    assert states == [JobState.FAILED, JobState.FAILED, JobState.QUEUED]
    assert len(take_blindly(store, ada)) == 1
    assert take_blindly(store, ada) == []


def test_a_manual_entry_lets_nobody_through(store: SqlStore, ada: WorkerRecord, clock: StoreClock) -> None:
    setting(store, "breaker_probe_after", 30)
    blacklisted(store)
    clock.advance(days=1)
    with pytest.raises(WorkflowBlacklisted):
        submitted(store, workflow=BAD)


# --- notifications, audit -----------------------------------------------------------------------------------------


def test_a_notification_is_there_until_somebody_takes_note(store: SqlStore, ada: WorkerRecord) -> None:
    get_stuck(store, ada, 5)
    [news] = store.notifications(TENANT)
    assert store.notifications("acme") == []

    noted = store.ack_notification(news.number, "kim")
    again = store.ack_notification(news.number, "lee")

    assert (noted.acked_by, again) == ("kim", noted)
    assert store.notifications() == []
    assert store.notifications(acked=True) == [noted]
    assert [line.by for line in store.audit(verb="notifications.ack")] == ["kim"]
    with pytest.raises(UnknownNotification):
        store.ack_notification(news.number + 1, "kim")


def test_marks_are_forgotten_when_they_count_no_more_and_not_before(
    store: SqlStore, ada: WorkerRecord, clock: StoreClock
) -> None:
    setting(store, "stuck_circuit_breaker_window_minutes", 120)
    get_stuck(store, ada, 3)
    clock.advance(minutes=90)
    assert store.forget_stucks(60) == 0
    clock.advance(minutes=31)
    assert store.forget_stucks(60) == 3


def test_the_verbs_of_operators_leave_a_line_each_and_what_was_refused_none(
    store: SqlStore, ada: WorkerRecord
) -> None:
    from unstuck.store.port import Limit, Pause

    job = submitted(store)
    store.pause(Pause("queue", "mail", TENANT, "kim", reason="outage"))
    store.unpause("queue", "mail", TENANT, by="kim")
    assert not store.unpause("queue", "mail", TENANT, by="kim")
    store.set_limit(Limit("workflow", "greet", TENANT, "kim", concurrency=3))
    store.set_tenant("acme", 4, "kim")
    store.give_order(ada.number, "drain", "", "kim")
    store.cancel(TENANT, job.id, "kim", "not wanted")
    with pytest.raises(Exception, match="cannot be cancelled"):
        store.cancel(TENANT, job.id, "kim")

    found = [(line.verb, line.subject, line.by) for line in reversed(store.audit())]

    assert found == [
        ("queues.pause", "mail", "kim"),
        ("queues.unpause", "mail", "kim"),
        ("workflows.limit", "greet", "kim"),
        ("tenants.weight", "acme", "kim"),
        ("workers.drain", str(ada.number), "kim"),
        ("jobs.cancel", job.id, "kim"),
    ]
    assert store.audit(verb="jobs")[0].detail == {"reason": "not wanted"}
    assert store.audit(subject="mail", verb="queues.pause")[0].detail == {"reason": "outage"}
