"""Every gate has its code, its sentence, who must act and what to type; a job that no gate shuts out is runnable."""

from __future__ import annotations

import runpy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.policy import Policy
from unstuck.model.target import FIRST
from unstuck.model.times import Times
from unstuck.model.waits import Answer, Wait, WaitKind, WaitRecord
from unstuck.model.why import RULES, Actor, Reason, Why, explain, lasting
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import (
    AwaitedJob,
    BodyMark,
    Facts,
    FailingRole,
    GrantFacts,
    LetterFacts,
    Lock,
    Locker,
    SetAside,
    Shut,
    TargetFacts,
    WorkerFacts,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(seconds=38), NOW - timedelta(seconds=38)
ADA = WorkerFacts("ada", "active", True, NOW, NOW + timedelta(seconds=Times().lease), "v1", running=1, slots=4)


def a_record(**changes: Any) -> JobRecord:
    base = JobRecord(
        number=7, id="job-7", tenant="default", queue="io", workflow="crawl", target=None, priority=0,
        state=JobState.QUEUED, run=1, token=2, payload="{}", policy=Policy(), created_at=EARLIER,
        available_at=EARLIER, events=1,
    )  # fmt: skip
    return replace(base, **changes)


def facts(job: JobRecord | None = None, **changes: Any) -> Facts:
    return Facts(at=NOW, job=job or a_record(), **{"is_ready": True, "workers": (ADA,), "sweepers": 1, **changes})


def on_target(**changes: Any) -> Facts:
    """Second in the line of a target on which another job runs."""
    target = TargetFacts(
        "acme", head="job-1", head_state=JobState.RUNNING, head_since=EARLIER, head_place=0, first="job-7",
        first_place=0, waiting=3,
    )  # fmt: skip
    return facts(a_record(target="acme"), is_ready=False, place=0, target=replace(target, **changes))


def running(**changes: Any) -> JobRecord:
    base = {"worker": "ada", "claimed_at": EARLIER, "started_at": EARLIER, "heartbeat_at": EARLIER}
    return a_record(state=JobState.RUNNING, **{**base, "lease_until": LATER, **changes})


def shut(code: Code, kind: str, name: str, **changes: Any) -> Shut:
    return Shut(code, kind, name, **{"tenant": "default", "since_at": EARLIER, "by": "dana", **changes})


def parked(kind: WaitKind, name: str = "", *, answer: Answer | None = None, **changes: Any) -> Facts:
    """It waits, and 38 seconds are left. Options of Wait and of Facts, mixed."""
    known = {field: changes.pop(field) for field in tuple(changes) if field in Facts.__dataclass_fields__}
    record = WaitRecord("job-7", 1, Wait(kind, "ask#1", name, **changes), EARLIER, LATER, answer, by="kim")
    return facts(a_record(state=JobState.WAITING), **{"is_ready": False, "wait": record, **known})


def ask(found: Facts) -> Why:
    return explain(found, NOW)


def only(found: Facts) -> Reason:
    [reason] = ask(found).reasons
    return reason


LUNCH = Locker(4711, "psql", "kim", "idle in transaction", EARLIER)
MARK = BodyMark("job-7", "ada", EARLIER, pid=4121, lease_until=LATER)
EXAMPLES: dict[Code, Facts] = {
    Code.SCHEDULED: facts(is_ready=False, due_at=LATER),
    Code.RETRY_BACKOFF: facts(a_record(failures=2, error_type="Timeout"), is_ready=False, due_at=LATER),
    Code.HELD: facts(a_record(state=JobState.PENDING, on_hold=True)),
    Code.WAITING_DEPENDENCIES: facts(
        a_record(state=JobState.PENDING),
        dependencies=(AwaitedJob("job-1", JobState.RUNNING), AwaitedJob("job-2", JobState.COMPLETED)),
    ),
    Code.WAITING: parked(WaitKind.EVENT, "paid", answer=Answer.EVENT),
    Code.WAITING_EVENT: parked(WaitKind.EVENT, "paid"),
    Code.WAITING_APPROVAL: parked(WaitKind.APPROVAL, "Deploy?\nreally", who=("kim", "lee"), on_timeout="reject"),
    Code.WAITING_CHILDREN: parked(
        WaitKind.CHILDREN,
        children=("job-1", "job-2"),
        children_open=1,
        dependencies=(AwaitedJob("job-1", JobState.RUNNING), AwaitedJob("job-2", JobState.COMPLETED)),
    ),
    Code.WAITING_TIME: parked(WaitKind.TIME),
    Code.PAUSED: facts(a_record(state=JobState.PAUSED)),
    Code.BODY_MAY_LIVE: facts(body_mark=MARK),
    Code.TARGET_BLOCKED: on_target(
        head_state=JobState.FAILED, blocked_by="job-1", blocked_at=EARLIER, blocker_error="ValueError"
    ),
    Code.TARGET_PAUSED: on_target(head=None, pause=shut(Code.TARGET_PAUSED, "target", "acme", reason="move")),
    Code.TARGET_BUSY: on_target(ahead=2),
    Code.QUEUE_PAUSED: facts(gates=(shut(Code.QUEUE_PAUSED, "queue", "io", reason="vendor outage"),)),
    Code.TENANT_PAUSED: facts(gates=(shut(Code.TENANT_PAUSED, "tenant", "default", until_at=LATER),)),
    Code.WORKFLOW_PAUSED: facts(gates=(shut(Code.WORKFLOW_PAUSED, "workflow", "crawl", tenant="*"),)),
    Code.BLACKLISTED: facts(gates=(shut(Code.BLACKLISTED, "workflow", "crawl", tenant="*", reason="auto:stuck:5"),)),
    Code.CONCURRENCY_LIMIT: facts(gates=(shut(Code.CONCURRENCY_LIMIT, "key", "tenant:7", used=4, most=4),)),
    Code.RATE_LIMITED: facts(gates=(shut(Code.RATE_LIMITED, "queue", "io", used=100, most=100, free_at=LATER),)),
    Code.NO_WORKER: facts(workers=(replace(ADA, is_live=False, beat_at=EARLIER),)),
    Code.NOT_GRANTED: facts(workers=(), grants=(GrantFacts(True, False, True),)),
    Code.WORKER_LACKS_CODE: facts(
        workers=(replace(ADA, knows_workflow=False),), known_version="v0", known_at=EARLIER
    ),
    Code.APP_NOT_LOADED: facts(
        workers=(replace(ADA, is_loaded=False, knows_workflow=False, problem="Traceback\nNo module named shop"),)
    ),
    Code.WORKERS_DRAINING: facts(workers=(replace(ADA, state="draining"),)),
    Code.ENGINE_STALLED: facts(is_ready=False, due_at=NOW - timedelta(minutes=5), sweepers=0),
    Code.UNPLACED: facts(is_ready=False),
    Code.ROW_LOCKED: facts(locks=(Lock("ready", LUNCH, table="unstuck_ready"),)),
    Code.QUARANTINED: facts(is_ready=False, due_at=EARLIER, quarantine=(SetAside("start", EARLIER, 3, "no\nway"),)),
    Code.WORKER_FAILING: facts(workers=(replace(ADA, roles=(FailingRole("claim", 40.0, 12, "no column x"),)),)),
    Code.WORKERS_FULL: facts(workers=(replace(ADA, running=4),)),
    Code.LOWER_PRIORITY: facts(before=3, before_by_priority=2),
    Code.OTHERS_FIRST: facts(before=1000),
    Code.CLAIMABLE: facts(),
    Code.RUNS_ALONE: facts(a_record(suspects=1, alone=True)),
    Code.RUNNING: facts(running()),
    Code.CANCELLING: facts(
        running(request=RequestKind.CANCEL, requested_at=NOW, request_reason="not wanted"), request_by="kim"
    ),
    Code.LEASE_EXPIRED: facts(running(lease_until=NOW - timedelta(seconds=2))),
    Code.STUCK: facts(
        a_record(state=JobState.FAILED, error_type="ExecutionStuck", error_message="x", finished_at=EARLIER),
        body_mark=MARK,
    ),
    Code.ENDED: facts(
        a_record(state=JobState.FAILED, error_type="ValueError", error_message="no\nmore", finished_at=EARLIER)
    ),
    Code.DEAD: facts(
        a_record(state=JobState.DEAD, error_type="SignatureRefused"),
        letter=LetterFacts("revoked", "its key is revoked", EARLIER, "k3"),
    ),
}
RUNNABLE = {Code.WORKERS_FULL, Code.LOWER_PRIORITY, Code.OTHERS_FIRST, Code.CLAIMABLE, Code.RUNS_ALONE}
#: A part of each sentence, and of its remedy.
SAID: dict[Code, tuple[str, str | None]] = {
    Code.SCHEDULED: ("it starts in 38s, at 2026-03-01 12:00:38 UTC", "unstuck jobs retry job-7"),
    Code.RETRY_BACKOFF: (
        "failed with Timeout (2 of 4 tries used); the next try is in 38s",
        "unstuck jobs retry job-7",
    ),
    Code.HELD: ("held until somebody releases it", "unstuck jobs release job-7"),
    Code.WAITING_DEPENDENCIES: (
        "1 of 2 jobs that it comes after has not ended: job-1 (RUNNING)",
        "unstuck jobs release job-7 --force",
    ),
    Code.WAITING: ("event paid was sent by kim; the next look wakes it", None),
    Code.WAITING_EVENT: ("it waits for event paid; if not in 38s, it fails", "unstuck events send job-7 paid"),
    Code.WAITING_APPROVAL: (
        'it waits for kim, lee to decide "Deploy?"; if not in 38s, it counts as rejected',
        "unstuck approvals approve job-7 --key 'ask#1'",
    ),
    Code.WAITING_CHILDREN: (
        "1 of 2 child jobs has not ended: job-1 (RUNNING); if not in 38s, it fails",
        "unstuck jobs tree job-7",
    ),
    Code.WAITING_TIME: ("it parked itself and goes on in 38s, at 2026-03-01 12:00:38 UTC", None),
    Code.PAUSED: ("interrupted", "unstuck jobs resume job-7"),
    Code.BODY_MAY_LIVE: ("its last attempt did not stop when asked; worker ada (process 4121)", None),
    Code.TARGET_BLOCKED: (
        "target acme is blocked by FAILED job job-1 (ValueError) since 2026-03-01 11:59:22 UTC; 3 jobs behind it",
        "unstuck jobs resume job-1",
    ),
    Code.TARGET_PAUSED: (
        'target acme is paused by dana since 2026-03-01 11:59:22 UTC ("move")',
        "unstuck targets unpause acme",
    ),
    Code.TARGET_BUSY: ("job job-1 is running, begun 38s ago, 2 other jobs before this one", "unstuck why job-1"),
    Code.QUEUE_PAUSED: (
        'queue io is paused by dana since 2026-03-01 11:59:22 UTC ("vendor outage"), until somebody',
        "unstuck queues unpause io",
    ),
    Code.TENANT_PAUSED: ("tenant default is paused", "unstuck tenants unpause default"),
    Code.WORKFLOW_PAUSED: (
        "workflow crawl is paused for every tenant",
        "unstuck workflows unpause crawl --all-tenants",
    ),
    Code.BLACKLISTED: (
        "workflow crawl is blacklisted for every tenant by dana",
        "unstuck blacklist remove crawl --all-tenants",
    ),
    Code.CONCURRENCY_LIMIT: (
        "key tenant:7 has 4 of 4 running",
        "unstuck limits key tenant:7 --concurrency N",
    ),
    Code.RATE_LIMITED: (
        "used 100 of the 100 starts that its rate allows; the next may start in 38s",
        "unstuck queues limit io --rate N/PERIOD",
    ),
    Code.NO_WORKER: (
        "no live worker serves queue io; the last one was seen 38s ago",
        "unstuck worker MODULE:APP --queues io",
    ),
    Code.NOT_GRANTED: (
        "only workers at a distance live, and no key of theirs grants queue io",
        "unstuck keys create NAME --role worker --queue io --workflow crawl",
    ),
    Code.WORKER_LACKS_CODE: (
        "1 live worker on queue io, none has workflow crawl (code v1); code v0 had it",
        "unstuck workers",
    ),
    Code.APP_NOT_LOADED: (
        "worker ada cannot import its app, and tries again: No module named shop",
        "unstuck workers",
    ),
    Code.WORKERS_DRAINING: ("the worker that serves it is shutting down (ada)", "unstuck workers"),
    Code.ENGINE_STALLED: ("no worker is alive", "unstuck worker MODULE:APP"),
    Code.ROW_LOCKED: (
        "its row in unstuck_ready is held by session 4711 (psql, user kim, idle in transaction) for 38s "
        "(more than 1s, and ours take milliseconds); until its transaction ends every claim passes over it",
        "SELECT pg_terminate_backend(4711)",
    ),
    Code.UNPLACED: ("neither ready, nor in a line, nor on a timer", "unstuck jobs show job-7"),
    Code.QUARANTINED: (
        "its time has come, and it cannot be brought into the queue since 2026-03-01 11:59:22 UTC (tried 3 times): no"
        "; every sweep tries it again, alone",
        "unstuck quarantine retry job-7",
    ),
    Code.WORKER_FAILING: (
        "the worker that serves it cannot take it: claim has failed there for 40s (12 times): no column x",
        "unstuck workers",
    ),
    Code.WORKERS_FULL: ("all 4 slots of the worker that serves it are busy", None),
    Code.LOWER_PRIORITY: ("2 jobs of its workflow with a higher priority go first", None),
    Code.OTHERS_FIRST: ("1000 or more jobs of its workflow that waited longer go first", None),
    Code.CLAIMABLE: ("nothing keeps it; the worker that serves it takes it within 1s", None),
    Code.RUNS_ALONE: ("runs alone in a process: it was one of several in a process that died, once so far", None),
    Code.RUNNING: ("attempt 2 runs on worker ada, begun 38s ago; last beat 38s ago", None),
    Code.CANCELLING: (
        'asked to stop (cancel) by kim 0s ago ("not wanted"), and has not yet; 10s of its grace left, then it is',
        None,
    ),
    Code.LEASE_EXPIRED: (
        "worker ada has been silent since its beat 38s ago, and its lease ended 2s ago; any other recovers the job "
        "in 6s at the latest",
        None,
    ),
    Code.STUCK: ("it ignored its request to stop for 10 s; process 4121 on worker ada drains", "unstuck stack job-7"),
    Code.ENDED: ("FAILED with ValueError: no 38s ago", "unstuck jobs resume job-7"),
    Code.DEAD: ("a dead letter and was never run: its key is revoked (key k3)", "unstuck dead-letters resign job-7"),
}


def test_workers_without_a_beat_are_not_said_to_take_it_soon() -> None:
    """Frozen, or cut off from the database: their lease holds still, and what fails there cannot be told."""
    times = Times()
    silent = beaten(times.silent_after + 1, times.lease)
    [reason] = explain(facts(workers=(silent, silent)), NOW, times).reasons
    assert reason.code is Code.CLAIMABLE
    assert reason.sentence == (
        "no gate keeps it, but the 2 workers that serve it may be frozen or cut off from the database: the last beat "
        "came 12s ago"
    )
    assert "takes it within 1s" in explain(facts(workers=(silent, ADA)), NOW, times).reasons[0].sentence


def test_a_worker_with_a_longer_lease_beats_less_often_and_is_not_said_to_be_silent() -> None:
    """As one at a distance: every 15 s, with a lease of 60 s."""
    at_a_distance = beaten(15, lease=60)
    assert "takes it within 1s" in explain(facts(workers=(at_a_distance,)), NOW, Times()).reasons[0].sentence
    gone = beaten(23, lease=60)
    assert "may be frozen" in explain(facts(workers=(gone,)), NOW, Times()).reasons[0].sentence


def beaten(ago: float, lease: float) -> WorkerFacts:
    beat_at = NOW - timedelta(seconds=ago)
    return replace(ADA, beat_at=beat_at, lease_until=beat_at + timedelta(seconds=lease))


def test_every_code_has_a_rule_an_example_and_a_sentence() -> None:
    assert set(RULES) == set(Code) == set(EXAMPLES) == set(SAID)


@pytest.mark.parametrize("code", list(Code))
def test_each_gate_is_found_and_said(code: Code) -> None:
    """A57"""
    found = ask(EXAMPLES[code])

    [reason] = [reason for reason in found.reasons if reason.code is code]
    sentence, remedy = SAID[code]
    assert sentence in reason.sentence
    assert reason.remedy == remedy
    assert found.is_runnable == (code in RUNNABLE)


@pytest.mark.parametrize(
    "code", [code for code in Code if RULES[code].shuts and JobState.QUEUED in RULES[code].states]
)
def test_every_gate_says_who_must_act(code: Code) -> None:
    """A57"""
    found = ask(EXAMPLES[code])

    assert found.verdict.startswith("not runnable: ")
    assert all(reason.actor is not Actor.NOBODY for reason in found.reasons)


def test_what_a_person_must_do_is_said_before_what_passes_by_itself() -> None:
    both = facts(is_ready=False, due_at=LATER, gates=EXAMPLES[Code.QUEUE_PAUSED].gates)

    found = ask(both)

    assert found.codes == (Code.QUEUE_PAUSED, Code.SCHEDULED)
    assert found.verdict.startswith("not runnable: queue io is paused")
    assert found.verdict.endswith("(and 1 more reason)")


def test_the_remedy_of_another_tenants_job_names_the_tenant() -> None:
    held = facts(a_record(state=JobState.PENDING, on_hold=True, tenant="o'neil"))

    assert only(held).remedy == """unstuck jobs release job-7 --tenant 'o'"'"'neil'"""


def test_whoever_must_answer_a_parked_job_gets_a_command_to_paste() -> None:
    elsewhere = replace(parked(WaitKind.EVENT, "-x y", topic="new orders"), job=a_record(tenant="acme"))
    elsewhere = replace(elsewhere, job=replace(elsewhere.job, state=JobState.WAITING))
    assert "it waits for event -x y on topic new orders" in only(elsewhere).sentence
    assert only(elsewhere).remedy == "unstuck events send --topic 'new orders' --tenant acme -- '-x y'"
    question = only(EXAMPLES[Code.WAITING_APPROVAL])
    assert question.actor is Actor.APPROVER
    assert question.details["other_remedies"] == ["unstuck approvals reject job-7 --key 'ask#1'"]
    assert ask(EXAMPLES[Code.WAITING_EVENT]).verdict == "parked: it waits for event paid; if not in 38s, it fails"


@pytest.mark.parametrize(
    ("on_timeout", "then"),
    [
        ("fail", "it fails"),
        ("reject", "it counts as rejected"),
        ("approve", "it counts as approved"),
        ("default", "it goes on with the default that it named"),
    ],
)
def test_a_wait_says_what_its_deadline_does(on_timeout: str, then: str) -> None:
    """A48: every wait has an end"""
    asked = parked(WaitKind.APPROVAL, "Deploy?", on_timeout=on_timeout)
    assert only(asked).sentence.endswith(f"if not in 38s, {then}")
    assert asked.wait is not None
    due = replace(asked, wait=replace(asked.wait, until_at=NOW - timedelta(seconds=1)))
    assert only(due).sentence.endswith(f"its time came 1s ago: with the next sweep {then}")


def test_a_parked_job_that_nobody_wakes_needs_a_worker() -> None:
    asked = parked(WaitKind.EVENT, "paid", sweepers=0)
    assert asked.wait is not None
    assert ask(asked).codes == (Code.WAITING_EVENT,)
    late = NOW - timedelta(minutes=5)
    overdue = replace(asked, wait=replace(asked.wait, until_at=late))
    assert set(ask(overdue).codes) == {Code.ENGINE_STALLED, Code.WAITING_EVENT}
    answered = replace(asked, wait=replace(asked.wait, answer=Answer.EVENT, answered_at=late))
    assert ask(answered).codes == (Code.ENGINE_STALLED, Code.WAITING)


def test_a_parked_job_whose_wait_was_not_seen_is_parked_all_the_same() -> None:
    assert only(facts(a_record(state=JobState.WAITING))).code is Code.WAITING


def test_a_timer_that_came_due_waits_for_the_sweep_and_a_late_one_for_a_worker() -> None:
    due = facts(is_ready=False, due_at=NOW - timedelta(seconds=1))
    assert ask(due).codes == (Code.SCHEDULED,)
    assert "its time came 1s ago; the next sweep" in only(due).sentence
    late = explain(replace(due, due_at=NOW - timedelta(seconds=61)), NOW, Times(sweep=20.0))
    assert late.codes == (Code.ENGINE_STALLED, Code.SCHEDULED)


def test_the_first_in_line_is_runnable_once_nobody_has_the_turn() -> None:
    """After the next ingest, that is: it has the turn then."""
    assert ask(on_target(head=None, head_state=None)).is_runnable
    assert ask(on_target(head="job-7", head_state=JobState.QUEUED, first_place=FIRST)).is_runnable
    assert not ask(on_target(head=None, head_state=None, first="job-3")).is_runnable


def test_an_unclaimed_head_yields_to_a_higher_priority_and_a_started_one_does_not() -> None:
    newcomer = on_target(head_state=JobState.QUEUED, head_is_ready=True, first_place=-5)
    assert ask(newcomer).is_runnable
    assert not ask(on_target(head_state=JobState.QUEUED, head_is_ready=True, head_place=FIRST)).is_runnable
    assert newcomer.target is not None
    head = replace(
        newcomer,
        job=a_record(target="acme", id="job-1"),
        is_ready=True,
        place=None,
        target=replace(newcomer.target, first="job-7"),
    )
    assert ask(head).codes == (Code.TARGET_BUSY,)
    assert "job job-7 is next" in only(head).sentence


def test_a_head_in_backoff_keeps_its_turn_and_says_until_when() -> None:
    waiting = on_target(head_state=JobState.QUEUED, head_due_at=LATER, first="job-7")

    assert "job-1 keeps its turn until its next try in 38s" in only(waiting).sentence


def test_a_pause_of_a_target_that_ended_unnoticed_is_the_engines_to_end() -> None:
    over = shut(Code.TARGET_PAUSED, "target", "acme", until_at=EARLIER)
    unnoticed = on_target(head=None, head_state=None, pause=over)
    assert (only(unnoticed).code, only(unnoticed).actor) == (Code.TARGET_PAUSED, Actor.ENGINE)
    assert ask(on_target(head=None, head_state=None, pause=over, is_expected=True)).is_runnable


@pytest.mark.parametrize(
    ("by", "said", "remedy"),
    [
        (Locker(4711), "held by session 4711 (for how long, the", "SELECT pg_terminate_backend(4711)"),
        (Locker(None), "held by a prepared transaction (for how long, the", "SELECT * FROM pg_prepared_xacts"),
    ],
)
def test_a_holder_that_may_not_be_seen_is_told_as_far_as_it_is_known(by: Locker, said: str, remedy: str) -> None:
    found = only(facts(locks=(Lock("ready", by),)))
    assert said in found.sentence
    assert (found.remedy, found.since) == (remedy, None)


def test_an_old_body_on_the_target_shuts_out_who_is_next() -> None:
    behind = on_target(head=None, head_state=None)
    found = only(replace(behind, body_mark=replace(MARK, job="job-3")))

    assert found.code is Code.BODY_MAY_LIVE
    assert "job job-3 on the same target" in found.sentence


def test_a_stuck_job_says_that_it_ended_and_that_its_body_may_live() -> None:
    stuck = facts(a_record(state=JobState.FAILED, error_type="ExecutionStuck", error_message="x"), body_mark=MARK)

    assert set(ask(stuck).codes) == {Code.ENDED, Code.STUCK}
    assert ask(replace(stuck, body_mark=replace(MARK, job="job-3"))).codes == (Code.ENDED,)
    [unknown] = [r for r in ask(replace(stuck, body_mark=replace(MARK, pid=None))).reasons if r.code is Code.STUCK]
    assert "its process on worker ada drains" in unknown.sentence
    assert unknown.until is None, "only the worker that sees the process die lifts it"


def test_a_stuck_job_whose_worker_was_lost_says_until_when_it_is_held() -> None:
    lost = replace(MARK, lease_until=NOW - timedelta(seconds=1))
    stuck = facts(a_record(state=JobState.FAILED, error_type="ExecutionStuck", error_message="x"), body_mark=lost)

    [reason] = [r for r in ask(stuck).reasons if r.code is Code.STUCK]

    assert "worker ada fell silent before process 4121 was seen to be gone; any other lifts this" in reason.sentence
    assert reason.until == NOW + timedelta(seconds=-1 + 8 + 5)


def test_a_job_whose_worker_is_frozen_says_when_others_take_it() -> None:
    """Its lease holds still: it counts as running, and yet no beat came."""
    frozen = facts(running(heartbeat_at=NOW - timedelta(seconds=20), lease_until=NOW + timedelta(seconds=10)))
    said = "; if worker ada stays silent, any other recovers the job in 18s at the latest"
    assert only(frozen).sentence.endswith("last beat 20s ago" + said)

    asked = running(
        heartbeat_at=NOW - timedelta(seconds=20),
        lease_until=NOW + timedelta(seconds=10),
        request=RequestKind.TIMEOUT,
        requested_at=NOW - timedelta(seconds=12),
    )
    assert only(facts(asked)).sentence == (
        "its handler was asked to stop (timeout) 12s ago, and has not yet; its grace is over, and its worker ends it "
        "now, or any other in 38s at the latest" + said
    )
    healthy = facts(running(heartbeat_at=NOW - timedelta(seconds=6)))
    assert only(healthy).sentence.endswith("last beat 6s ago")


def test_a_lost_job_that_nobody_can_recover_says_so() -> None:
    alone = facts(running(lease_until=NOW - timedelta(seconds=2)), sweepers=0)

    assert only(alone).sentence.endswith("a worker must live to recover the job, and none does")
    late = facts(running(lease_until=NOW - timedelta(seconds=9)))
    assert only(late).sentence.endswith("any other recovers the job with its next sweep")


def test_a_job_whose_process_died_under_it_runs_alone_next_and_stays_runnable() -> None:
    found = ask(facts(a_record(losses=1, alone=True)))

    assert (found.is_runnable, found.codes) == (True, (Code.CLAIMABLE, Code.RUNS_ALONE))
    assert "it was in a process that died" in found.reasons[1].sentence


def test_a_job_that_blocks_its_target_says_who_waits_behind_it() -> None:
    blocker = a_record(state=JobState.FAILED, target="acme", is_blocker=True, error_type="ValueError")
    found = only(facts(blocker, target=TargetFacts("acme", waiting=11)))

    assert "target acme is blocked, 11 jobs behind it" in found.sentence
    assert found.details["blocks"] == "acme"


def test_a_worker_that_still_imports_is_the_engines_matter() -> None:
    found = only(facts(workers=(replace(ADA, is_loaded=False, knows_workflow=False),)))

    assert (found.code, found.actor) == (Code.APP_NOT_LOADED, Actor.ENGINE)


SETTLE = FailingRole("settle", 40.0, 12, "no column x")
SWEEP = FailingRole("janitor/timers", 40.0, 12, "no column x")


def test_a_role_that_claims_do_not_need_keeps_nobody_and_one_worker_that_claims_is_enough() -> None:
    sweepless, unfit = replace(ADA, roles=(SWEEP,)), replace(ADA, roles=(SWEEP, SETTLE))
    assert ask(facts(workers=(sweepless,))).is_runnable
    assert ask(facts(workers=(unfit, ADA))).is_runnable
    assert ask(facts(workers=(unfit, unfit))).codes == (Code.WORKER_FAILING,)


def test_a_running_job_whose_worker_cannot_write_results_says_so() -> None:
    found = ask(facts(running(), worker_roles=(SWEEP, SETTLE)))
    assert found.codes == (Code.WORKER_FAILING, Code.RUNNING)
    assert "worker ada cannot write what becomes of its jobs: settle has failed there for 40s" in found.verdict
    lost = facts(running(lease_until=NOW - timedelta(seconds=2)), worker_roles=(SETTLE,))
    assert ask(lost).codes == (Code.LEASE_EXPIRED,)


def aside(duty: str) -> tuple[SetAside, ...]:
    return (SetAside(duty, EARLIER, 1, "check violated"),)


def test_a_running_job_whose_result_cannot_be_written_runs_no_more() -> None:
    for record in (running(), running(request=RequestKind.CANCEL, requested_at=NOW)):
        found = only(facts(record, quarantine=aside("settle")))
        assert found.code is Code.QUARANTINED
        assert found.sentence == (
            "its attempt has ended, and its end cannot be written since 2026-03-01 11:59:22 UTC (tried once): "
            "check violated; its worker tries again"
        )


@pytest.mark.parametrize("duty", ["recover", "overdue"])
def test_a_lost_job_that_cannot_be_recovered_blames_no_sweeper(duty: str) -> None:
    lost = running(lease_until=NOW - timedelta(minutes=5))
    assert Code.ENGINE_STALLED in ask(facts(lost)).codes
    found = ask(facts(lost, quarantine=aside(duty)))
    assert found.codes == (Code.QUARANTINED, Code.LEASE_EXPIRED)
    assert found.reasons[1].sentence.endswith("; it has not been recovered")


@pytest.mark.parametrize(
    ("duty", "found"),
    [
        ("wait", parked(WaitKind.TIME)),
        ("dependants", facts(a_record(state=JobState.PENDING, on_hold=True))),
        ("children", facts(a_record(state=JobState.PENDING, on_hold=True))),
        ("expire", facts(a_record(state=JobState.PENDING, on_hold=True))),
    ],
)
def test_what_is_set_aside_stands_before_what_the_job_waits_for(duty: str, found: Facts) -> None:
    answer = ask(replace(found, quarantine=aside(duty)))
    assert (answer.codes[0], answer.reasons[0].remedy) == (Code.QUARANTINED, "unstuck quarantine retry job-7")


def test_a_target_that_is_set_aside_keeps_who_needs_its_turn_and_not_who_has_it() -> None:
    behind = replace(on_target(head=None, head_state=None), quarantine=aside("target"))
    assert ask(behind).codes == (Code.QUARANTINED,)
    assert not ask(behind).is_runnable
    head = replace(behind, is_ready=True, place=None, target=replace(TargetFacts("acme"), head="job-7"))
    assert ask(head).is_runnable


def test_what_a_start_does_not_need_is_told_of_a_runnable_job_and_what_is_over_is_not() -> None:
    """A57"""
    found = ask(facts(quarantine=aside("expire")))
    assert (found.is_runnable, found.codes) == (True, (Code.QUARANTINED, Code.CLAIMABLE))
    assert ask(facts(quarantine=aside("settle"))).codes == (Code.CLAIMABLE,), "of an attempt that is over"
    assert ask(facts(running(), quarantine=aside("start"))).codes == (Code.RUNNING,)
    assert ask(facts(quarantine=aside("unheard-of"))).codes == (Code.CLAIMABLE,)


def test_one_worker_that_serves_it_is_enough() -> None:
    others = (
        replace(ADA, knows_workflow=False), replace(ADA, state="draining"), replace(ADA, is_loaded=False), ADA,
    )  # fmt: skip
    assert ask(facts(workers=others)).codes == (Code.CLAIMABLE,)
    assert set(ask(facts(workers=others[:3])).codes) == {
        Code.WORKER_LACKS_CODE,
        Code.WORKERS_DRAINING,
        Code.APP_NOT_LOADED,
    }


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "0s"), (38, "38s"), (250, "4m 10s"), (240, "4m"), (7500, "2h 5m"), (7200, "2h"), (273_600, "3d 4h")],
)
def test_spans_are_short_and_honest(seconds: int, said: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == said


def test_the_table_in_the_docs_is_drawn_from_the_rules() -> None:
    docs = Path(__file__).parents[2] / "docs"
    draw = runpy.run_path(str(docs / "draw_why.py"))["draw"]

    assert (docs / "why.md").read_text() == draw(), "run: python docs/draw_why.py"
