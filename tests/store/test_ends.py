"""What follows the ends of jobs: a job for each (job, run, follower), once, whoever makes it and whoever dies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, chance, claimed, settle
from unstuck.assembly import _jobs_of_ends
from unstuck.intake.ends import job_of
from unstuck.janitor.ends import HOLD, EndsDuty
from unstuck.model.ends import EndKind, Follows
from unstuck.model.errors import SignatureRefused
from unstuck.model.job import ClaimedJob, JobRecord, WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Refused, Returned, Stuck
from unstuck.model.times import Times
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.port import EndsPage, FollowedEnd, JobFilter, Limit, Report, Store
from unstuck.store.sql_store import SqlStore

FAILED = Raised(ErrorInfo("ValueError", "no"), retry=False)
STUCK = Stuck(ErrorInfo("ExecutionStuck", "it hangs"), is_gone=True)


def follower(store: Store, name: str, on: EndKind, of: Sequence[str] | None = None, version: str = "v1") -> None:
    follows = Follows(on, None if of is None else tuple(of))
    store.register_workflows([WorkflowRecord(name, version, "default", Policy(), {}, follows=follows)], app="shop")


def duty(store: Store, holder: str | None = None) -> EndsDuty:
    return EndsDuty(store, Times(), _jobs_of_ends(store, Times(), lambda: NO_KEYS), holder or chance.nonce())


def turn(store: Store) -> int:
    return duty(store).tick(0.0, endless())


def made(store: Store, follower: str) -> list[dict[str, Any]]:
    """What it was given, the oldest first."""
    found = store.jobs(TENANT, JobFilter(workflow=follower, newest_first=False), 1000).jobs
    return [json.loads(job.payload)["args"][0] for job in found]


def ended(store: Store, worker: WorkerRecord, outcome: Outcome, **options: Any) -> ClaimedJob:
    attempt = claimed(store, worker, **options)
    settle(store, worker, attempt.ref, outcome)
    return attempt


@pytest.fixture
def worker(store: SqlStore) -> WorkerRecord:
    return a_worker(store)


def test_each_kind_of_end_is_followed_by_those_that_asked_for_it(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    follower(store, "mourn", "failed")
    follower(store, "alarm", "stuck")
    follower(store, "narrow", "failed", ["pay"])
    good = ended(store, worker, Returned('{"n": 1}'), workflow="pay")
    bad = ended(store, worker, FAILED, workflow="pay")
    stuck = ended(store, worker, STUCK)
    dead = ended(store, worker, Refused(ErrorInfo("SignatureRefused", "altered"), "altered"))
    store.cancel(TENANT, claimed(store, worker).id, by="ada")

    assert turn(store) == 6
    assert turn(store) == 0

    [cheered] = made(store, "cheer")
    assert (cheered["id"], cheered["workflow"], cheered["state"], cheered["run"]) == (good.id, "pay", "COMPLETED", 1)
    assert (cheered["result"], cheered["error_type"], cheered["tenant"]) == ({"n": 1}, None, TENANT)
    mourned = made(store, "mourn")
    assert [(each["id"], each["state"]) for each in mourned] == [
        (bad.id, "FAILED"),
        (stuck.id, "FAILED"),
        (dead.id, "DEAD"),
    ]
    assert (mourned[0]["error_type"], mourned[0]["error"], mourned[0]["result"]) == ("ValueError", "no", None)
    assert [each["id"] for each in made(store, "alarm")] == [stuck.id]
    assert [each["id"] for each in made(store, "narrow")] == [bad.id]


def test_what_follows_is_followed_by_nothing_nor_what_it_spawns(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    ended(store, worker, Returned("1"))
    assert turn(store) == 1
    [job] = list(store.jobs(TENANT, JobFilter(workflow="cheer"), 10).jobs)
    for attempt in claim(store, worker):
        settle(store, worker, attempt.ref)
    assert store.get(TENANT, job.id).state == "COMPLETED"  # type: ignore[union-attr]
    assert turn(store) == 0
    assert len(made(store, "cheer")) == 1


def claim(store: SqlStore, worker: WorkerRecord) -> list[ClaimedJob]:
    from tests.support.builders import claim_all

    return list(claim_all(store, worker))


def test_what_ended_before_anybody_followed_is_followed_by_nothing(store: SqlStore, worker: WorkerRecord) -> None:
    for _ in range(3):
        ended(store, worker, Returned("1"))
    assert turn(store) == 0
    follower(store, "cheer", "completed")
    assert turn(store) == 0
    ended(store, worker, Returned("2"))
    assert turn(store) == 1


def test_a_run_is_followed_once_and_the_next_run_once_more(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "mourn", "failed")
    attempt = ended(store, worker, FAILED)
    assert turn(store) == 1
    store.resume(TENANT, attempt.id, by="ada")
    [again] = claim_one(store, worker, attempt.id)
    settle(store, worker, again.ref, FAILED)
    assert turn(store) == 1
    assert [each["run"] for each in made(store, "mourn")] == [1, 2]


def claim_one(store: SqlStore, worker: WorkerRecord, job: str) -> list[ClaimedJob]:
    return [each for each in claim(store, worker) if each.id == job]


class Dying:
    """A store whose owner dies before it says how far it came."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def ends_read(self, holder: str, page: EndsPage) -> bool:
        raise KeyboardInterrupt


def test_whoever_dies_between_leaves_it_to_the_next_which_makes_nothing_twice(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    follower(store, "cheer", "completed")
    first = ended(store, worker, Returned("1"))
    with pytest.raises(KeyboardInterrupt):
        duty(Dying(store)).tick(0.0, endless())
    second = ended(store, worker, Returned("2"))
    assert turn(store) == 0, "it holds its page for a while"
    clock.advance(HOLD + 1)
    assert turn(store) == 1
    assert [each["id"] for each in made(store, "cheer")] == [first.id, second.id]


def test_two_that_make_the_same_at_once_make_it_once(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    attempt = ended(store, worker, Returned("1"))
    store.sequence()
    page = store.read_ends("one", 10.0, ("completed",), 100, 86400.0)
    assert page is not None
    assert store.read_ends("two", 10.0, ("completed",), 100, 86400.0) is None
    [event] = page.events
    ends = [
        FollowedEnd(str(event.job), int(event.run or 0), "cheer", job_of(store, "cheer", _facts(store, attempt)))
        for _ in range(2)
    ]
    assert [store.follow_ends([each]) for each in ends] == [1, 0]
    assert store.ends_read("two", page) is False
    assert store.ends_read("one", page) is True
    assert len(made(store, "cheer")) == 1


def _facts(store: SqlStore, attempt: ClaimedJob) -> Any:
    from unstuck.model.ends import EndedJob

    return EndedJob(
        id=attempt.id,
        workflow=attempt.workflow,
        tenant=TENANT,
        queue="default",
        state="COMPLETED",
        run=1,
        ended_at=store.now(),
    )


def test_a35_what_is_refused_is_written_down_and_keeps_nothing_back(store: SqlStore, worker: WorkerRecord) -> None:
    """A35: the blacklist; and caps"""
    follower(store, "barred", "completed")
    follower(store, "cheer", "completed")
    store.blacklist_add(TENANT, "barred", "it loops", "ada")
    for _ in range(3):
        ended(store, worker, Returned("1"))
    assert turn(store) == 6
    assert len(made(store, "cheer")) == 3
    assert made(store, "barred") == []
    told = [each.message for each in store.notifications() if each.title == "An end was not followed"]
    assert told
    assert all("WorkflowBlacklisted" in each for each in told)
    store.set_limit(Limit("queue", "default", TENANT, "ada", max_queued=1))
    assert turn(store) == 0


def test_where_a_signature_is_required_it_is_signed_or_refused(store: SqlStore, worker: WorkerRecord) -> None:
    from tests.support.signing import a_key

    follower(store, "cheer", "completed")
    required = SigningKeys.of(None, ["workflow:cheer"], may_lack_keys=True).required
    keys = SigningKeys([a_key(purposes=("spawn",))], required)
    bare = SigningKeys([a_key(purposes=("submit",))], required)
    make = _jobs_of_ends(store, Times(), lambda: keys)
    refuse = _jobs_of_ends(store, Times(), lambda: bare)
    ended(store, worker, Returned("1"))
    assert EndsDuty(store, Times(), refuse, "a").tick(0.0, endless()) == 1
    assert made(store, "cheer") == []
    assert SignatureRefused.__name__ in store.notifications()[0].message
    ended(store, worker, Returned("2"))
    assert EndsDuty(store, Times(), make, "a").tick(0.0, endless()) == 1
    [job] = store.jobs(TENANT, JobFilter(workflow="cheer"), 10).jobs
    assert job.signature is not None


def test_results_that_are_redacted_or_large_are_left_out(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    store.register_workflows([WorkflowRecord("secret", "v1", "default", Policy(), {}, redact=("iban",))])
    ended(store, worker, Returned('{"iban": "DE1"}'), workflow="secret")
    ended(store, worker, Returned(json.dumps("x" * 70_000)), workflow="large")
    assert turn(store) == 2
    assert [(each["result"], each["result_left_out"]) for each in made(store, "cheer")] == [
        (None, "redacted"),
        (None, "too large"),
    ]


def test_a_follower_that_the_code_has_no_more_follows_nothing_while_its_app_lives(store: SqlStore) -> None:
    follower(store, "cheer", "completed")
    first = a_worker(store)
    assert [each.workflow for each in store.followers()] == ["cheer"], "no worker of its app lives: it is as it was"
    new = [WorkflowRecord("pay", "v2", "default", Policy(), {})]
    store.register_workflows(new, worker=first.number, queues=["default"], app="shop")
    assert store.followers() == []
    old = [WorkflowRecord("cheer", "v1", "default", Policy(), {}, follows=Follows("completed"))]
    other = a_worker(store, "bob")
    store.register_workflows(old, worker=other.number, queues=["default"], app="shop")
    assert [each.workflow for each in store.followers()] == ["cheer"], "a rollback brings it back"
    plain = [WorkflowRecord("cheer", "v3", "default", Policy(), {})]
    store.register_workflows(plain, worker=other.number, queues=["default"], app="shop")
    assert store.followers() == [], "its newest version is an ordinary workflow"


def test_where_nothing_follows_a_settle_writes_nothing_more(store: SqlStore, worker: WorkerRecord) -> None:
    attempts = [claimed(store, worker) for _ in range(3)]
    store.settle(worker.number, [Report(each.ref, Returned("1"), duration_ms=1) for each in attempts])
    the_duty = duty(store)
    assert the_duty.tick(0.0, endless()) == 0
    assert the_duty.every == Times().sweep
    assert store.read_ends("a", 1.0, ("completed",), 10, 60.0) is None
    record: JobRecord | None = store.get(TENANT, attempts[0].id)
    assert record is not None


def test_what_was_followed_is_forgotten_in_time(store: SqlStore, worker: WorkerRecord, clock: StoreClock) -> None:
    follower(store, "cheer", "completed")
    ended(store, worker, Returned("1"))
    assert turn(store) == 1
    assert store.forget_followed_ends(86400.0) == 0
    clock.advance(86401)
    assert store.forget_followed_ends(86400.0) == 1


def test_what_a_tenants_own_worker_follows_are_that_tenants_ends(store: SqlStore, worker: WorkerRecord) -> None:
    follows = [WorkflowRecord("cheer", "v1", "default", Policy(), {}, follows=Follows("completed"))]
    store.register_workflows(follows, app="shop", tenant="acme")
    ended(store, worker, Returned("1"))
    theirs = ended(store, worker, Returned("2"), tenant="acme")

    assert turn(store) == 1
    [job] = store.jobs("acme", JobFilter(workflow="cheer"), 10).jobs
    assert theirs.id in job.payload
    assert job.made_by == "end"
    assert made(store, "cheer") == []


def test_a_worker_at_a_distance_follows_only_what_its_key_grants(store: SqlStore) -> None:
    """It would be told the results of others."""
    from unstuck.model.errors import NotPermitted
    from unstuck.operations.table import Caller, Role
    from unstuck.server.remote_checks import check_workflow

    def record(of: tuple[str, ...] | None) -> WorkflowRecord:
        return WorkflowRecord("cheer", "v1", "default", Policy(), {}, follows=Follows("completed", of))

    limited = Caller(store, "w", role=Role.WORKER, bound="acme", workflows=frozenset({"cheer", "pay"}))
    check_workflow(limited, record(("pay",)))
    check_workflow(Caller(store, "w", role=Role.WORKER, bound="acme"), record(None))
    for of in (None, ("pay", "secret")):
        with pytest.raises(NotPermitted, match="does not grant"):
            check_workflow(limited, record(of))


def test_an_end_whose_result_cannot_be_read_is_told_and_keeps_nothing_back(
    store: SqlStore, worker: WorkerRecord
) -> None:
    follower(store, "cheer", "completed")
    ended(store, worker, Returned("{damaged"))
    good = ended(store, worker, Returned("1"))

    assert turn(store) == 2
    assert [each["id"] for each in made(store, "cheer")] == [good.id]
    [told] = [each for each in store.notifications() if each.title == "An end was not followed"]
    assert "JSONDecodeError" in told.message
