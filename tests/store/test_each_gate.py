"""A57, gate by gate: each one that can shut a job out does so alone, `why` names it and nothing else, and when it
opens the job can be claimed. Random systems (test_runnable.py) meet some of these gates rarely, or only beside other
ones, where a rule or a gate that is missing would not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.store.test_runnable import HOLDS, LEASE, PLAIN, POLICIES, QUEUES, WORKFLOWS, Runnable, System, open_system
from tests.support.builders import chance
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.keys import id_in
from unstuck.model.offers import remote_incarnation
from unstuck.model.settlement import ErrorInfo, Raised, Returned, Stopped
from unstuck.model.why import RULES, Why, explain
from unstuck.model.why.codes import Code
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.port import NewWorker, Share

__all__ = ["open_system"]

Step = Callable[["Scene"], None]
BOOM = Raised(ErrorInfo("ValueError", "boom"))
FATAL = Raised(ErrorInfo("ValueError", "boom"), retry=False)


class Scene(Runnable):
    """The machine, moved by hand."""

    def job(self, workflow: str = "w1", **options: Any) -> NewJob:
        options = {"tenant": "default", "queue": "q1", "policy": PLAIN, **options}
        job = NewJob(id=chance.job_id(), payload="{}", workflow=workflow, **options)
        self.store.submit([job])
        self.jobs.append(job)
        return job

    def why(self, job: NewJob) -> Why:
        """Its answer, after making sure that the claim agrees about every job there is."""
        self.why_and_the_claim_agree()
        facts = self.facts(job)
        return explain(facts, facts.at)

    def run(self, outcome: Any = None) -> None:
        """Claim what there is; with an outcome, it ends so."""
        self.claim(0, 3)
        assert self.attempts
        while outcome is not None and self.attempts:
            self.settle(-1, outcome)

    def limited(self, kind: Any, name: str, tenant: str = "*", **parts: Any) -> None:
        self.an_operator_limits((kind, name), tenant, parts.get("concurrency"), parts.get("rate"), False)

    def sweep(self) -> None:
        for duty in ("recover_lost", "lift_body_marks", "release_due", "ingest"):
            self.a_janitor_sweeps(duty)

    def is_claimed_by(self, job: NewJob, worker: int) -> bool:
        """Whatever `why` knows of the worker: it has looked, and tries."""
        facts = self.facts(job)
        share = Share(facts.route, 1, (facts.rank, facts.job.number), is_limited=True)
        with self.system.stage.rehearsal() as (store, _):
            return bool(store.claim(worker, chance.nonce(), [share]))


@pytest.fixture
def scene(open_system: Callable[[ExitStack], System]) -> Iterator[Scene]:
    class Here(Scene):
        pass

    Here.open_system = staticmethod(open_system)
    scene = Here()
    try:
        yield scene
    finally:
        scene.teardown()


# --- gates of QUEUED jobs: shut, then open ------------------------------------------------------------------------


def scheduled(s: Scene) -> NewJob:
    return s.job(delay=150.0)


def in_backoff(s: Scene) -> NewJob:
    job = s.job()
    s.run(BOOM)
    return job


def its_own_body(s: Scene) -> NewJob:
    job = s.job()
    s.claim_and_overrun(0, 1)
    s.a_person_asks(0, "resume")
    return job


def anothers_body(s: Scene) -> NewJob:
    s.job(target="acme", policy=POLICIES[1])
    job = s.job(target="acme")
    s.claim_and_overrun(0, 1)
    return job


def behind_a_blocker(s: Scene) -> NewJob:
    s.job(target="acme")
    s.run(FATAL)
    return s.job(target="acme")


def behind_a_paused_one(s: Scene) -> NewJob:
    s.job(target="acme")
    s.claim(0, 1)
    s.a_person_asks(0, "interrupt")
    s.settle(-1, Stopped())
    return s.job(target="acme")


def on_a_paused_target(s: Scene) -> NewJob:
    job = s.job(target="acme")
    s.store.ingest()
    s.pause("target", "acme", "default", None, False)
    return job


def newly_on_a_paused_target(s: Scene) -> NewJob:
    """Its entry in the inbox makes the next ingest look at the target, pause or not."""
    s.job(target="acme")
    s.run(Returned("1"))
    s.pause("target", "acme", "default", None, False)
    return s.job(target="acme")


def on_a_target_whose_pause_has_ended(s: Scene) -> NewJob:
    job = s.job(target="acme")
    s.store.ingest()
    s.pause("target", "acme", "default", 150.0, False)
    s.time_passes(400.0, False)
    return job


def behind_one_that_runs(s: Scene) -> NewJob:
    s.job(target="acme")
    s.claim(0, 1)
    return s.job(target="acme")


def behind_one_that_backs_off(s: Scene) -> NewJob:
    s.job(target="acme")
    s.run(BOOM)
    return s.job(target="acme", priority=5)


def behind_a_higher_priority(s: Scene) -> NewJob:
    job = s.job(target="acme")
    s.store.ingest()
    s.job(target="acme", priority=5)
    return job


def paused(kind: str, name: str, tenant: str) -> Callable[[Scene], NewJob]:
    def shut(s: Scene) -> NewJob:
        s.pause(kind, name, tenant, 150.0, False)
        return s.job()

    return shut


def blacklisted(tenant: str) -> Callable[[Scene], NewJob]:
    def shut(s: Scene) -> NewJob:
        job = s.job()
        s.bar("w1", tenant)
        return job

    return shut


def full(kind: str, name: str, **options: Any) -> Callable[[Scene], NewJob]:
    def shut(s: Scene) -> NewJob:
        s.limited(kind, name, "*" if kind in ("queue", "workflow", "workflow_key", "key") else name, concurrency=1)
        s.job(**options)
        s.claim(0, 1)
        return s.job(**options)

    return shut


def held_body_counts(s: Scene) -> NewJob:
    """An old body that may live takes a place of the limit."""
    s.limited("workflow", "w1", concurrency=1)
    s.job()
    s.claim_and_overrun(0, 1)
    return s.job()


def too_fast(kind: str, name: str, **options: Any) -> Callable[[Scene], NewJob]:
    def shut(s: Scene) -> NewJob:
        s.limited(kind, name, "*" if kind in ("queue", "workflow", "workflow_key", "key") else name, rate=1)
        s.job(**options)
        s.run(Returned("1"))
        return s.job(**options)

    return shut


def nobody_there(s: Scene) -> NewJob:
    job = s.job()
    s.time_passes(LEASE + 50.0, True)
    return job


def strangers_only(s: Scene) -> NewJob:
    s.time_passes(LEASE + 50.0, True)
    s.a_worker_comes(QUEUES, ("w2",))
    return s.job()


def on_another_queue(s: Scene) -> NewJob:
    s.time_passes(LEASE + 50.0, True)
    s.a_worker_comes(("q2",), WORKFLOWS)
    return s.job()


def only_far_ones(tenant: str | None = None, **grants: Any) -> Callable[[Scene], NewJob]:
    def shut(s: Scene) -> NewJob:
        s.time_passes(LEASE + 50.0, True)
        key = keys.create(Caller(s.store, "ada", tenant), "far", role="worker", **grants).key
        far = NewWorker(
            remote_incarnation(id_in(key), chance.nonce()), "far", "h", "b", "p", 1, 1, QUEUES, "v1", LEASE
        )
        number = s.store.register_remote_worker(far).number
        served = WorkflowRecord("w2", "v1", "q2", PLAIN, {})
        s.store.register_workflows([served], worker=number, queues=["q2"], tenant=tenant)
        s.workers[number] = (frozenset({"q2"}), frozenset({"w2"}))
        return s.job()

    return shut


def still_importing(s: Scene) -> NewJob:
    s.time_passes(LEASE + 50.0, True)
    s.a_worker_comes(QUEUES, ())
    return s.job()


def going_down(s: Scene) -> NewJob:
    job = s.job()
    s.a_worker_beats(0, "draining")
    return job


def time_and_a_sweep(s: Scene) -> None:
    s.time_passes(400.0, False)
    s.sweep()


def the_worker_dies(s: Scene) -> None:
    s.time_passes(LEASE + 50.0, True)
    s.sweep()
    s.a_worker_comes(QUEUES, WORKFLOWS)


def a_worker(s: Scene) -> None:
    s.a_worker_comes(QUEUES, WORKFLOWS)


def entry_lifted(s: Scene) -> None:
    s.bar("w1", None, lift=True)


def first_skipped(s: Scene) -> None:
    s.a_person_asks(0, "skip")


def first_resolved(s: Scene) -> None:
    s.a_person_asks(0, "resolve")


def target_unpaused(s: Scene) -> None:
    s.pause("target", "acme", "default", None, True)


def first_ends(s: Scene) -> None:
    s.settle(-1, Returned("1"))


def last_cancelled(s: Scene) -> None:
    s.a_person_asks(len(s.jobs) - 1, "cancel")


def first_cancelled(s: Scene) -> None:
    s.a_person_asks(0, "cancel")


def more_room(s: Scene) -> None:
    s.limited("workflow", "w1", concurrency=2)


def time(s: Scene) -> None:
    s.time_passes(400.0, False)


SHUT: list[tuple[Code, Callable[[Scene], NewJob], Step]] = [
    (Code.SCHEDULED, scheduled, time_and_a_sweep),
    (Code.RETRY_BACKOFF, in_backoff, time_and_a_sweep),
    (Code.BODY_MAY_LIVE, its_own_body, the_worker_dies),
    (Code.BODY_MAY_LIVE, anothers_body, the_worker_dies),
    (Code.TARGET_BLOCKED, behind_a_blocker, first_skipped),
    (Code.TARGET_BLOCKED, behind_a_paused_one, first_resolved),
    (Code.TARGET_PAUSED, on_a_paused_target, target_unpaused),
    (Code.TARGET_PAUSED, newly_on_a_paused_target, target_unpaused),
    (Code.TARGET_PAUSED, on_a_target_whose_pause_has_ended, time_and_a_sweep),
    (Code.TARGET_BUSY, behind_one_that_runs, first_ends),
    (Code.TARGET_BUSY, behind_one_that_backs_off, first_cancelled),
    (Code.TARGET_BUSY, behind_a_higher_priority, last_cancelled),
    (Code.QUEUE_PAUSED, paused("queue", "q1", "default"), time),
    (Code.QUEUE_PAUSED, paused("queue", "q1", "*"), time),
    (Code.WORKFLOW_PAUSED, paused("workflow", "w1", "default"), time),
    (Code.WORKFLOW_PAUSED, paused("workflow", "w1", "*"), time),
    (Code.TENANT_PAUSED, paused("tenant", "default", "default"), time),
    (Code.BLACKLISTED, blacklisted("default"), entry_lifted),
    (Code.BLACKLISTED, blacklisted("*"), entry_lifted),
    (Code.CONCURRENCY_LIMIT, full("queue", "q1"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("workflow", "w1"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("tenant", "default"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("tenant", "*"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("key", "key:1", limit_key="key:1"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("key", "key:*", limit_key="key:1"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("key", "*", limit_key="key:1"), first_ends),
    (Code.CONCURRENCY_LIMIT, full("workflow_key", "w1", limit_key="key:1"), first_ends),
    (Code.CONCURRENCY_LIMIT, held_body_counts, more_room),
    (Code.RATE_LIMITED, too_fast("queue", "q1"), time),
    (Code.RATE_LIMITED, too_fast("workflow", "w1"), time),
    (Code.RATE_LIMITED, too_fast("tenant", "default"), time),
    (Code.RATE_LIMITED, too_fast("key", "key:*", limit_key="key:1"), time),
    (Code.RATE_LIMITED, too_fast("workflow_key", "w1", limit_key="key:1"), time),
    (Code.NO_WORKER, nobody_there, a_worker),
    (Code.NO_WORKER, on_another_queue, a_worker),
    (Code.NOT_GRANTED, only_far_ones(workflows=["w2"]), a_worker),
    (Code.NOT_GRANTED, only_far_ones(queues=["q2"]), a_worker),
    (Code.NOT_GRANTED, only_far_ones(tenant="acme"), a_worker),
    (Code.NO_WORKER, only_far_ones(), a_worker),
    (Code.WORKER_LACKS_CODE, strangers_only, a_worker),
    (Code.APP_NOT_LOADED, still_importing, a_worker),
    (Code.WORKERS_DRAINING, going_down, a_worker),
]


@pytest.mark.parametrize(
    ("code", "shut", "open_"), SHUT, ids=[f"{code}-{number}" for number, (code, _, _) in enumerate(SHUT)]
)
def test_each_gate_shuts_a_job_out_alone_and_lets_it_go_when_it_opens_a57(
    scene: Scene, code: Code, shut: Callable[[Scene], NewJob], open_: Step
) -> None:
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    job = shut(scene)
    answer = scene.why(job)
    assert answer.codes == (code,), answer
    assert not answer.is_runnable

    open_(scene)
    scene.store.ingest()
    answer = scene.why(job)
    assert answer.is_runnable, answer


#: They never stand alone (a late timer is also a timer), or no verb leads there: nothing misplaces a job so far.
#: Their sentences are in tests/model/test_why.py.
NEVER_ALONE = {Code.ENGINE_STALLED, Code.UNPLACED}
#: Shut by what is no row of ours: another session (tests/store/test_why_locks.py), a row that refuses, a worker that
#: fails (tests/store/test_why.py). A rehearsal here would succeed.
ELSEWHERE = {Code.ROW_LOCKED, Code.QUARANTINED, Code.WORKER_FAILING}


def test_every_gate_of_a_queued_job_is_shut_here_once() -> None:
    gates = {code for code, rule in RULES.items() if rule.shuts and "QUEUED" in rule.states}
    assert {code for code, _, _ in SHUT} == gates - NEVER_ALONE - ELSEWHERE


# --- the worker's own gates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["draining", "silent"])
def test_a_worker_that_drains_or_has_lost_its_lease_claims_nothing_a57(scene: Scene, end: str) -> None:
    """Beside one that could: the job is runnable, but not by this one."""
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    job = scene.job()
    [leaving] = scene.workers
    assert scene.is_claimed_by(job, leaving)
    if end == "draining":
        scene.a_worker_beats(0, "draining")
    else:
        scene.time_passes(LEASE + 50.0, True)
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    assert scene.why(job).is_runnable
    assert not scene.is_claimed_by(job, leaving)


@pytest.mark.parametrize("limit", [{"concurrency": 2}, {"rate": 1}])
def test_a_claim_that_did_not_count_takes_nothing_of_a_limited_route_a57(scene: Scene, limit: dict[str, Any]) -> None:
    """The limit was set between its look and its claim; the next look counts."""
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    job = scene.job()
    scene.limited("workflow", "w1", **limit)
    facts = scene.facts(job)
    [worker] = scene.workers
    assert scene.store.claim(worker, chance.nonce(), [Share(facts.route, 1)]) == []
    assert [a.id for a in scene.store.claim(worker, chance.nonce(), [Share(facts.route, 1, is_limited=True)])] == [
        job.id
    ]


# --- the other states ---------------------------------------------------------------------------------------------


def pending_on_hold(s: Scene) -> NewJob:
    return s.job(on_hold=True)


def pending_after(s: Scene) -> NewJob:
    first = s.job()
    return s.job(after=(first.id,))


def held_for_an_entry(s: Scene) -> NewJob:
    job = s.job(policy=HOLDS)
    s.bar("w1", "default")
    s.a_janitor_sweeps("tend_guard")
    return job


def interrupted(s: Scene) -> NewJob:
    job = s.job()
    s.a_person_asks(0, "interrupt")
    return job


def running(s: Scene) -> NewJob:
    job = s.job()
    s.claim(0, 1)
    return job


def cancelling(s: Scene) -> NewJob:
    job = running(s)
    s.a_person_asks(0, "cancel")
    return job


def silent(s: Scene) -> NewJob:
    job = running(s)
    s.time_passes(LEASE + 10.0, True)
    return job


def ended(s: Scene) -> NewJob:
    job = s.job()
    s.run(FATAL)
    return job


def ended_with_a_body(s: Scene) -> NewJob:
    """FAILED, and its handler runs on."""
    job = s.job()
    s.claim_and_overrun(0, 1)
    return job


@pytest.mark.parametrize(
    ("codes", "shut"),
    [
        ({Code.HELD}, pending_on_hold),
        ({Code.WAITING_DEPENDENCIES}, pending_after),
        ({Code.BLACKLISTED}, held_for_an_entry),
        ({Code.PAUSED}, interrupted),
        ({Code.RUNNING}, running),
        ({Code.CANCELLING}, cancelling),
        ({Code.LEASE_EXPIRED}, silent),
        ({Code.ENDED}, ended),
    ],
    ids=lambda value: "-".join(sorted(value)) if isinstance(value, set) else "",
)
def test_a_job_in_any_other_state_says_what_that_state_is_a57(
    scene: Scene, codes: set[Code], shut: Callable[[Scene], NewJob]
) -> None:
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    assert set(scene.why(shut(scene)).codes) == codes


def test_a_job_that_was_held_for_an_entry_is_runnable_when_it_is_lifted_a57(scene: Scene) -> None:
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    job = held_for_an_entry(scene)
    assert not scene.why(job).is_runnable
    entry_lifted(scene)
    assert scene.why(job).is_runnable


def test_an_ended_job_whose_body_may_live_says_both_a57(scene: Scene) -> None:
    scene.a_worker_comes(QUEUES, WORKFLOWS)
    assert Code.ENDED in scene.why(ended_with_a_body(scene)).codes
