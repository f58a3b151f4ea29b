"""What a session of PostgreSQL holds for long: `why` names the session, and no claim takes the job (A57)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from time import monotonic

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.store.test_why import codes, only, serve, take
from tests.support.builders import TENANT, a_worker, chance, submitted
from tests.support.eventually import eventually
from tests.support.lending import Lender
from unstuck.model.errors import StoreBusy
from unstuck.model.job import NewJob, WorkerRecord
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import HELD_TOO_LONG
from unstuck.observe.why import why
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Limit, Share
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """SQLite has one lock, on the file: these are PostgreSQL's own troubles."""
    return postgres_url


@pytest.fixture
def worker(store: SqlStore) -> WorkerRecord:
    ada = a_worker(store, "ada", info={"slots": 2}, lease=3600.0)
    serve(store, ada, "greet")
    return ada


@contextmanager
def person(url: str, *statements: str) -> Iterator[psycopg.Connection]:
    """Somebody in psql who does this and then goes for lunch."""
    with psycopg.connect(url, application_name="lunch") as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection
        if not connection.closed:
            connection.rollback()


def is_taken(store: SqlStore, worker: WorkerRecord, job: NewJob) -> bool:
    """By a claim that looks at this job first."""
    facts = store.gate_facts(job.tenant, job.id)
    assert facts is not None
    share = Share(facts.route, 1, (facts.rank, facts.job.number), is_limited=True)
    with suppress(StoreBusy):  # of one target, and no reason not to claim
        store.ingest()
    try:
        return [each.id for each in store.claim(worker.number, chance.nonce(), [share])] == [job.id]
    except StoreBusy:
        return False


def plain(store: SqlStore) -> NewJob:
    return submitted(store)


def keyed(store: SqlStore) -> NewJob:
    store.set_limit(Limit("workflow_key", "greet", TENANT, "dana", concurrency=5))
    return submitted(store, limit_key="host:a")


def limited(store: SqlStore) -> NewJob:
    store.set_limit(Limit("workflow", "greet", TENANT, "dana", concurrency=5))
    return submitted(store)


def in_line(store: SqlStore) -> NewJob:
    return submitted(store, target="acme")


HOLDS: list[tuple[str, Callable[[SqlStore], NewJob], str]] = [
    ("SELECT 1 FROM unstuck_ready FOR UPDATE", plain, "its row in unstuck_ready is held by"),
    ("SELECT 1 FROM unstuck_ready FOR SHARE", plain, "its row in unstuck_ready is held by"),
    ("SELECT 1 FROM unstuck_ready FOR KEY SHARE", plain, "its row in unstuck_ready is held by"),
    ("UPDATE unstuck_ready SET rank = rank + 0", plain, "its row in unstuck_ready is held by"),
    ("DELETE FROM unstuck_ready", plain, "its row in unstuck_ready is held by"),
    ("SELECT 1 FROM unstuck_limits FOR UPDATE", limited, "the limit of workflow greet is held by"),
    ("SELECT 1 FROM unstuck_limits FOR UPDATE", keyed, "the limit of each key of workflow greet is held by"),
    ("SELECT 1 FROM unstuck_targets FOR UPDATE", in_line, "target acme is held by"),
    ("LOCK TABLE unstuck_ready IN EXCLUSIVE MODE", plain, "table unstuck_ready is held by"),
    ("LOCK TABLE unstuck_events IN ACCESS EXCLUSIVE MODE", plain, "table unstuck_events is held by"),
    ("SELECT pg_advisory_xact_lock(1970173813)", plain, "the guard of the blacklist is held by"),
]


@contextmanager
def held(
    databases: Lender, statement: str, make: Callable[[SqlStore], NewJob]
) -> Iterator[tuple[SqlStore, WorkerRecord, NewJob, psycopg.Connection]]:
    """A job in a database of its own, and somebody who has just taken what its start needs."""
    url = databases.lend()
    with closing(SqlStore(open_database(url, application="unstuck-test"))) as store:
        ada = a_worker(store, "ada", info={"slots": 2}, lease=3600.0)
        serve(store, ada, "greet")
        job = make(store)
        began = monotonic()
        with person(url, statement) as holder:
            found = codes(store, job)
            if monotonic() < began + HELD_TOO_LONG:
                assert found == (Code.CLAIMABLE,), "our own sessions hold rows for a moment, too"
            yield store, ada, job, holder
    databases.take_back(url)


def test_who_holds_what_a_start_needs_is_named_and_no_claim_takes_it_a57(databases: Lender) -> None:
    """All at once, each in a database of its own: what takes long is that each must be held for long."""
    with ExitStack() as stack:
        scenes = [
            (statement, said, stack.enter_context(held(databases, statement, make)))
            for statement, make, said in HOLDS
        ]
        for statement, said, (store, worker, job, holder) in scenes:
            eventually(lambda store=store, job=job: codes(store, job) == (Code.ROW_LOCKED,))  # type: ignore[misc]
            found, reason = why(store, TENANT, job.id), only(store, job)
            assert not found.is_runnable, statement
            assert found.verdict.startswith(f"not runnable: {said} session {holder.info.backend_pid} (lunch, user ")
            assert "idle in transaction)" in reason.sentence
            assert "(more than 1s, and ours take milliseconds)" in reason.sentence
            assert reason.remedy == f"SELECT pg_terminate_backend({holder.info.backend_pid})"
            assert reason.since is not None
            assert 1 <= (store.now() - reason.since).total_seconds() < 60
            assert not is_taken(store, worker, job), statement
            holder.rollback()
            assert codes(store, job) == (Code.CLAIMABLE,), statement
            assert is_taken(store, worker, job), statement


def test_its_remedy_lets_the_job_go(store: SqlStore, store_url: str, worker: WorkerRecord) -> None:
    job = submitted(store)
    with person(store_url, "SELECT 1 FROM unstuck_ready FOR UPDATE") as holder:
        eventually(lambda: codes(store, job) == (Code.ROW_LOCKED,))
        with psycopg.connect(store_url, autocommit=True) as console:
            console.execute((only(store, job).remedy or "").encode())
        eventually(lambda: codes(store, job) == (Code.CLAIMABLE,))
        assert is_taken(store, worker, job)
        holder.close()


def test_several_who_share_a_row_are_all_named(store: SqlStore, store_url: str, worker: WorkerRecord) -> None:
    """Then xmax is no transaction but a list of them."""
    job = submitted(store)
    share = "SELECT 1 FROM unstuck_ready FOR KEY SHARE"
    with person(store_url, share) as first, person(store_url, share) as second:
        eventually(lambda: codes(store, job) == (Code.ROW_LOCKED, Code.ROW_LOCKED))
        pids = {reason.details["pid"] for reason in why(store, TENANT, job.id).reasons}
        assert pids == {first.info.backend_pid, second.info.backend_pid}
        assert not is_taken(store, worker, job)
    assert is_taken(store, worker, job)


def test_who_held_it_and_let_go_is_not_named(store: SqlStore, store_url: str, worker: WorkerRecord) -> None:
    """The marks of both stay in the row: of one, and of several."""
    job = submitted(store)
    share = "SELECT 1 FROM unstuck_ready FOR KEY SHARE"
    with person(store_url, "SELECT 1 FROM unstuck_ready FOR UPDATE"):
        pass
    with person(store_url, "SELECT 1 FROM unstuck_workflows FOR UPDATE", "SELECT pg_sleep(1.1)"):
        assert codes(store, job) == (Code.CLAIMABLE,)
        with person(store_url, share), person(store_url, share):
            pass
        assert codes(store, job) == (Code.CLAIMABLE,)
        assert is_taken(store, worker, job)


@pytest.mark.parametrize("released", [False, True])
def test_a_row_that_was_locked_under_a_savepoint_names_its_session(
    store: SqlStore, store_url: str, worker: WorkerRecord, released: bool
) -> None:
    """A savepoint has a number of its own, and once it is released nothing leads from there to the session."""
    job = submitted(store)
    end = ["RELEASE SAVEPOINT here"] if released else []
    lock = ["SAVEPOINT here", "SELECT 1 FROM unstuck_ready FOR UPDATE", *end]
    with person(store_url, *lock) as holder:
        submitted(store, workflow="other")  # a later transaction ends: before that, none is known to be later
        eventually(lambda: codes(store, job) == (Code.ROW_LOCKED,))
        assert only(store, job).details["pid"] == holder.info.backend_pid
    assert codes(store, job) == (Code.CLAIMABLE,)


def test_what_a_start_does_not_need_keeps_nobody(store: SqlStore, store_url: str, worker: WorkerRecord) -> None:
    job = submitted(store)
    unrelated = [
        "SELECT 1 FROM unstuck_jobs FOR UPDATE",
        "SELECT 1 FROM unstuck_workers FOR UPDATE",
        "SELECT 1 FROM unstuck_workflows FOR UPDATE",
        "LOCK TABLE unstuck_timers IN EXCLUSIVE MODE",
        "LOCK TABLE unstuck_ready IN SHARE UPDATE EXCLUSIVE MODE",
        "SELECT pg_sleep(1.1)",
    ]
    with person(store_url, *unrelated):
        assert codes(store, job) == (Code.CLAIMABLE,)
        assert is_taken(store, worker, job)


def test_the_head_of_a_held_target_is_runnable_whoever_stands_behind_it(
    store: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    """It has its turn, and a newcomer with a higher priority cannot take it away."""
    head = submitted(store, target="acme")
    store.ingest()
    high = submitted(store, target="acme", priority=5)
    assert codes(store, head) == (Code.TARGET_BUSY,)
    with person(store_url, "SELECT 1 FROM unstuck_targets FOR UPDATE"):
        eventually(lambda: codes(store, high) == (Code.ROW_LOCKED,))
        assert codes(store, head) == (Code.CLAIMABLE,)
        assert is_taken(store, worker, head)


def test_a_due_timer_that_is_held_says_so_and_not_that_nobody_sweeps(
    store: SqlStore, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, delay=10.0)
    with person(store_url, "SELECT 1 FROM unstuck_timers FOR UPDATE", "SELECT pg_sleep(1.1)"):
        assert codes(store, job) == (Code.SCHEDULED,), "it is not the lock that it waits for"
        clock.advance(60)
        assert codes(store, job) == (Code.ROW_LOCKED, Code.SCHEDULED)
        assert store.release_due() == 0
    assert store.release_due() == 1


def test_a_running_job_says_who_keeps_its_end_from_being_written(
    store: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    job = submitted(store)
    take(store, worker, job)
    with person(store_url, "SELECT 1 FROM unstuck_running FOR UPDATE", "SELECT pg_sleep(1.1)"):
        found = why(store, TENANT, job.id)
        assert found.codes == (Code.ROW_LOCKED, Code.RUNNING)
        assert found.verdict.startswith("running: its row in unstuck_running is held by session ")
    with person(store_url, "SELECT 1 FROM unstuck_workers FOR UPDATE", "SELECT pg_sleep(1.1)"):
        sentence = why(store, TENANT, job.id).verdict
        assert "the row of its worker ada is held by" in sentence
        assert "lease cannot be renewed" in sentence


def test_a_table_that_nobody_can_read_names_its_holder_instead_of_the_facts(
    store: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    job = submitted(store)
    with person(store_url, "LOCK TABLE unstuck_jobs") as holder:
        with pytest.raises(StoreBusy) as caught:
            why(store, TENANT, job.id)
        assert f"session {holder.info.backend_pid} (lunch, user " in str(caught.value)
        assert f"SELECT pg_terminate_backend({holder.info.backend_pid})" in str(caught.value)


def test_a_user_who_may_see_little_of_other_sessions_learns_their_number(
    store: SqlStore, store_url: str, worker: WorkerRecord
) -> None:
    """PostgreSQL hides what sessions of other users do; who holds which lock it tells everybody."""
    job = submitted(store)
    user = f"plain_{chance.nonce()[:8]}"
    with psycopg.connect(store_url, autocommit=True) as console:
        console.execute(f"CREATE ROLE {user} LOGIN".encode())
        console.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}".encode())
        plain = SqlStore(open_database(f"{store_url}&user={user}"))
        try:
            with person(store_url, "SELECT 1 FROM unstuck_ready FOR UPDATE") as holder:
                [reason] = why(plain, TENANT, job.id).reasons
                assert reason.code is Code.ROW_LOCKED
                assert f"held by session {holder.info.backend_pid} (lunch, user " in reason.sentence
                assert "(for how long, the database does not tell this user)" in reason.sentence
                assert reason.since is None
                assert plain.lock_holders(0.0) == [], "nobody waits for it, and its age is not known"
            assert why(plain, TENANT, job.id).codes == (Code.CLAIMABLE,)
        finally:
            plain.close()
            console.execute(f"DROP OWNED BY {user}".encode())
            console.execute(f"DROP ROLE {user}".encode())
