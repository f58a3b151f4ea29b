"""What follows the ends of jobs: a job for each (job, run, follower), once, whoever makes it and whoever dies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, chance, claimed, settle
from tests.support.tables import ask
from tests.support.troubles import PATIENT, execute, holding, refuse, waiting_for_no_lock
from unstuck.assembly.janitor import jobs_of_ends
from unstuck.intake.ends import job_of
from unstuck.janitor.ends import HOLD, KEPT_TRYING, EndsDuty
from unstuck.model.ends import EndKind, Follows
from unstuck.model.errors import SignatureRefused, StoreBusy
from unstuck.model.job import ClaimedJob, JobRecord, WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Refused, Returned, Stuck
from unstuck.model.times import Times
from unstuck.operations import health
from unstuck.operations.table import Caller
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import EndsPage, FollowedEnd, JobFilter, Limit, Report, Store
from unstuck.store.sql_store import SqlStore

FAILED = Raised(ErrorInfo("ValueError", "no"), retry=False)
STUCK = Stuck(ErrorInfo("ExecutionStuck", "it hangs"), is_gone=True)


def follower(store: Store, name: str, on: EndKind, of: Sequence[str] | None = None, version: str = "v1") -> None:
    follows = Follows(on, None if of is None else tuple(of))
    store.register_workflows([WorkflowRecord(name, version, "default", Policy(), {}, follows=follows)], app="shop")


@pytest.fixture
def patient(store_url: str) -> Iterator[SqlStore]:
    with closing(SqlStore(open_database(store_url, store_call=PATIENT))) as opened:
        yield opened


def duty(store: Store, holder: str | None = None) -> EndsDuty:
    return EndsDuty(store, Times(), jobs_of_ends(store, Times(), lambda: NO_KEYS), holder or chance.nonce())


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
    keys = SigningKeys([a_key(purposes=("fire",))], required)
    bare = SigningKeys([a_key(purposes=("submit", "spawn"))], required)
    make = jobs_of_ends(store, Times(), lambda: keys)
    refuse = jobs_of_ends(store, Times(), lambda: bare)
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


# --- who begins while another stops -------------------------------------------------------------------------------


def test_who_follows_from_now_on_misses_nothing_although_another_just_found_nobody(
    store: SqlStore, worker: WorkerRecord
) -> None:
    """The janitor has seen that nobody follows; before it says so, a worker registers and a job ends."""
    follower(store, "cheer", "completed")
    store.register_workflows([WorkflowRecord("cheer", "v2", "default", Policy(), {})], app="shop")
    assert store.followers() == []
    follower(store, "mourn", "failed")
    store.stop_reading_ends()
    ended(store, worker, FAILED)
    assert turn(store) == 1
    assert len(made(store, "mourn")) == 1


def test_who_follows_again_by_a_rollback_misses_nothing(store: SqlStore, worker: WorkerRecord) -> None:
    """Its row is there already: what it writes is that its worker lives."""
    old = [WorkflowRecord("cheer", "v1", "default", Policy(), {}, follows=Follows("completed"))]
    new = [WorkflowRecord("cheer", "v2", "default", Policy(), {})]
    store.register_workflows(old, app="shop")
    store.register_workflows(new, worker=worker.number, queues=["default"], app="shop")
    assert turn(store) == 0
    store.register_workflows(old, worker=worker.number, queues=["default"], app="shop")
    ended(store, worker, Returned("1"))
    assert turn(store) == 1


only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


@only_postgres
def test_who_cannot_say_that_it_begins_is_told_so_and_comes_again(store: SqlStore, store_url: str) -> None:
    """Whoever has the row may be about to take it away."""
    cheer = [WorkflowRecord("cheer", "v1", "default", Policy(), {}, follows=Follows("completed"))]
    store.register_workflows(cheer, app="shop")
    with holding(store_url, "unstuck_ends_read", "one = 1"):
        assert store.register_workflows(cheer, app="shop") == {"cheer"}
    assert store.register_workflows(cheer, app="shop") == frozenset()


@only_postgres
def test_a_row_that_somebody_holds_keeps_the_sweeps_of_nobody(
    patient: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    store = patient
    follower(store, "cheer", "completed")
    ended(store, worker, Returned("1"))
    the_duty = duty(store)
    with holding(store_url, "unstuck_ends_read", "one = 1"), waiting_for_no_lock():
        assert the_duty.tick(0.0, endless()) == 0
        store.stop_reading_ends()
    assert the_duty.tick(0.0, endless()) == 1
    assert the_duty.tick(0.0, endless()) == 0
    page = store.read_ends("a", HOLD, ("completed",), 100, 86400.0)
    ended(store, worker, Returned("2"))
    page = store.read_ends("a", HOLD, ("completed",), 100, 86400.0)
    assert page is not None
    with holding(store_url, "unstuck_ends_read", "one = 1"), waiting_for_no_lock():
        assert store.ends_read("a", page) is False


# --- what is too much for one call, or can never be done ----------------------------------------------------------


class Frail:
    """A store for which so many ends are too many at once; and one is, by itself."""

    def __init__(self, store: SqlStore, most: int, poisoned: str = "") -> None:
        self._store = store
        self._most = most
        self._poisoned = poisoned
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def end_facts(self, ends: Sequence[tuple[str, int]], most: int) -> Any:
        self.asked.append(len(ends))
        if len(ends) > self._most or self._poisoned in {job for job, _ in ends}:
            raise StoreBusy("it was stopped")
        return self._store.end_facts(ends, most)


def test_a_page_that_is_too_much_for_one_call_is_read_in_smaller_ones(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    jobs = [ended(store, worker, Returned("1")).id for _ in range(40)]
    frail = Frail(store, most=10)
    assert duty(frail).tick(0.0, endless()) == 40  # type: ignore[arg-type]
    assert [each["id"] for each in made(store, "cheer")] == jobs
    assert max(frail.asked) > 10
    assert frail.asked[-1] <= 10


def test_one_end_that_can_never_be_followed_is_told_and_keeps_nothing_back(
    store: SqlStore, worker: WorkerRecord
) -> None:
    follower(store, "cheer", "completed")
    jobs = [ended(store, worker, Returned("1")).id for _ in range(20)]
    frail = Frail(store, most=1000, poisoned=jobs[7])
    assert duty(frail).tick(0.0, endless()) == 20  # type: ignore[arg-type]
    assert [each["id"] for each in made(store, "cheer")] == jobs[:7] + jobs[8:]
    [told] = [each for each in store.notifications() if each.title == "An end was not followed"]
    assert jobs[7] in told.message
    assert "it was stopped" in told.message


def test_an_end_of_which_not_even_a_refusal_can_be_written_keeps_nothing_back(
    store: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    follower(store, "cheer", "completed")
    jobs = [ended(store, worker, Returned("1")).id for _ in range(5)]
    refuse(store_url, "unstuck_ends_followed", f"NEW.job = '{jobs[2]}'")
    assert turn(store) == 4
    assert turn(store) == 0
    assert [each["id"] for each in made(store, "cheer")] == jobs[:2] + jobs[3:]
    [told] = [each for each in store.notifications() if each.title == "An end was not followed"]
    assert jobs[2] in told.message


# --- queues that are full -----------------------------------------------------------------------------------------


def full(store: SqlStore, waiting: int) -> None:
    """The queue in which followers' jobs wait takes so many."""
    store.set_limit(Limit("queue", "default", TENANT, "ada", max_queued=waiting))


def waiting_ends(url: str) -> int:
    return int(ask(url, "SELECT COUNT(*) FROM unstuck_ends_followed WHERE again_at IS NOT NULL")[0][0])


def test_what_a_full_queue_refuses_is_made_once_there_is_room(
    store: SqlStore, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    follower(store, "cheer", "completed")
    jobs = [ended(store, worker, Returned(json.dumps(n))).id for n in range(20)]
    full(store, 3)
    assert turn(store) == 3, "as many as there is room for"
    assert waiting_ends(store_url) == 17
    assert turn(store) == 0
    assert [each for each in store.notifications() if each.title == "An end was not followed"] == []
    assert "ends" not in store.idle_duties()
    [told] = [each for each in health.check(Caller(store, "ada")).checks if each.name == "ends"]
    assert told.detail.startswith("17 not followed yet, first cheer after job ")
    assert "TooManyQueued" in told.detail
    clock.advance(60)
    assert turn(store) == 0, "it is as full as before"
    full(store, 1000)
    clock.advance(300)
    assert turn(store) == 17
    assert turn(store) == 0
    assert waiting_ends(store_url) == 0
    assert {each["id"] for each in made(store, "cheer")} == set(jobs)
    assert sorted(each["result"] for each in made(store, "cheer")) == list(range(20))


def test_a_full_queue_keeps_no_other_tenants_ends_back(store: SqlStore, worker: WorkerRecord) -> None:
    follower(store, "cheer", "completed")
    for _ in range(5):
        ended(store, worker, Returned("1"))
    theirs = [ended(store, worker, Returned("1"), tenant="acme").id for _ in range(5)]
    full(store, 0)
    assert turn(store) == 5
    assert made(store, "cheer") == []
    found = store.jobs("acme", JobFilter(workflow="cheer"), 100).jobs
    assert {json.loads(job.payload)["args"][0]["id"] for job in found} == set(theirs)


def test_what_a_full_queue_refuses_for_a_day_is_told_and_tried_no_more(
    store: SqlStore, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    follower(store, "cheer", "completed")
    attempt = ended(store, worker, Returned("1"))
    full(store, 0)
    assert turn(store) == 0
    clock.advance(KEPT_TRYING + 1)
    turn(store)
    assert waiting_ends(store_url) == 0
    [told] = [each for each in store.notifications() if each.title == "An end was not followed"]
    assert attempt.id in told.message
    assert "TooManyQueued" in told.message
    [(reason, kept)] = ask(store_url, "SELECT reason, ended FROM unstuck_ends_followed")
    assert "TooManyQueued" in reason
    assert kept is None
    full(store, 100)
    clock.advance(KEPT_TRYING + 1)
    assert turn(store) == 0


def test_two_that_try_again_at_once_make_one_job(
    store: SqlStore, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    follower(store, "cheer", "completed")
    ended(store, worker, Returned("1"))
    full(store, 0)
    turn(store)
    full(store, 100)
    clock.advance(60)
    [late] = store.late_ends(10)
    assert store.late_ends(10) == [], "another has it"
    clock.advance(600)
    assert [each.job for each in store.late_ends(10)] == [late.job], "it died"
    again = [
        FollowedEnd(late.job, late.run, late.follower, job_of(store, "cheer", late.known), is_late=True)
        for _ in range(2)
    ]
    assert [store.follow_ends([each]) for each in again] == [1, 0]
    assert len(made(store, "cheer")) == 1


@only_postgres
def test_a_follower_whose_rows_are_held_keeps_no_other_back(
    patient: SqlStore, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    """The row of the one end that waits for room: others are tried again."""
    store = patient
    follower(store, "cheer", "completed")
    jobs = [ended(store, worker, Returned("1")).id for _ in range(5)]
    full(store, 0)
    turn(store)
    full(store, 100)
    clock.advance(60)
    with holding(store_url, "unstuck_ends_followed", f"job = '{jobs[1]}'"), waiting_for_no_lock():
        assert turn(store) == 4
    clock.advance(60)
    assert turn(store) == 1


@only_postgres
def test_a_follower_that_somebody_holds_keeps_no_retention_waiting(patient: SqlStore, store_url: str) -> None:
    store = patient
    follower(store, "cheer", "completed")
    follower(store, "mourn", "failed")
    execute(store_url, "DELETE FROM unstuck_workflows")
    with holding(store_url, "unstuck_followers", "workflow = 'cheer'"), waiting_for_no_lock():
        store.forget_followed_ends(86400.0)
    assert ask(store_url, "SELECT workflow FROM unstuck_followers") == [("cheer",)]
    store.forget_followed_ends(86400.0)
    assert ask(store_url, "SELECT workflow FROM unstuck_followers") == []
