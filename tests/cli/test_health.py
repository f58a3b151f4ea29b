"""unstuck health: "ok" is true, and what is in trouble is told while everything else goes on; on both databases."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.cli.command import Answer, Command
from tests.conftest import Leap
from tests.store.test_why import by_hand, serve
from tests.support.builders import TENANT, a_worker, claimed, record, submitted
from tests.support.eventually import eventually
from tests.support.troubles import execute
from unstuck.model.job import WorkerRecord
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.drivers.leaps import Witness
from unstuck.store.port import Pause
from unstuck.store.sql_store import SqlStore
from unstuck.views.workers import roles

MINUTE = 60_000_000
SETTLE = {"name": "settle", "failing_for": 40.0, "failures": 12, "error": "RuntimeError: column gone"}


def beats(store: SqlStore, worker: WorkerRecord, **info: Any) -> None:
    assert store.beat(worker.number, 600.0, [], info={"ready": True, "slots": 2, "executors": [], **info}).alive


@pytest.fixture
def w1(store: SqlStore) -> WorkerRecord:
    """One that is well."""
    worker = a_worker(store, "w1", lease=600.0)
    serve(store, worker, "greet")
    beats(store, worker)
    return worker


def told(answer: Answer) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in answer.object["checks"]}


def asked(unstuck: Command, *words: str) -> dict[str, dict[str, Any]]:
    return told(unstuck("health", "--json", *words))


def number_of(store: SqlStore, job: str) -> int:
    return record(store, job).number


def test_nothing_is_said_of_what_is_well(unstuck: Command, store: SqlStore, w1: WorkerRecord) -> None:
    submitted(store, delay=3600.0)
    claimed(store, w1)
    answer = unstuck("health", "--json")
    assert (answer.code, answer.object["healthy"]) == (0, True)
    assert list(told(answer)) == ["database", "schema", "workers", "queue"]
    assert all(check["ok"] for check in told(answer).values())


# --- roles --------------------------------------------------------------------------------------------------------


def test_a_role_that_fails_on_one_worker_of_two_is_a_warning_and_on_all_of_them_unhealthy(
    unstuck: Command, store: SqlStore, w1: WorkerRecord
) -> None:
    w2 = a_worker(store, "w2", lease=600.0)
    beats(store, w2)
    beats(store, w1, roles=[SETTLE])
    answer = unstuck("health", "--json")
    assert answer.code == 0
    assert told(answer)["roles"]["detail"].startswith("settle has failed on worker w1 for ")
    assert told(answer)["roles"]["detail"].endswith("RuntimeError: column gone: unstuck workers")
    beats(store, w2, roles=[SETTLE])
    answer = unstuck("health", "--json")
    assert (answer.code, answer.object["healthy"]) == (10, False)
    assert "settle has failed on every worker for" in told(answer)["roles"]["detail"]


@pytest.mark.parametrize("name", ["janitor/alerts", "janitor/retention of jobs", "settle/job 17", "claim/weights"])
def test_a_role_without_which_every_other_job_ends_is_a_warning_even_if_it_fails_everywhere(
    unstuck: Command, store: SqlStore, w1: WorkerRecord, name: str
) -> None:
    beats(store, w1, roles=[{**SETTLE, "name": name}])
    answer = unstuck("health", "--json")
    assert (answer.code, told(answer)["roles"]["fatal"]) == (0, False)
    assert told(answer)["roles"]["detail"].startswith(f"{name} has failed on worker w1 for ")


@pytest.mark.parametrize("name", ["janitor/zombies", "janitor/timers", "claim/inbox", "claim"])
def test_a_role_without_which_jobs_do_not_move_is_unhealthy_if_it_fails_everywhere(
    unstuck: Command, store: SqlStore, w1: WorkerRecord, name: str
) -> None:
    beats(store, w1, roles=[{**SETTLE, "name": name}])
    assert unstuck("health", "--json").code == 10


def test_a_worker_without_a_beat_is_a_warning_although_its_lease_holds(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    """It is frozen or cut off, and cannot say what fails."""
    assert "silent" not in asked(unstuck)
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = beat_at + 18000000, beat_at = beat_at - 12000000")
    assert asked(unstuck)["silent"]["detail"] == "w1: no beat for too long: unstuck workers"


def test_a_worker_that_beats_as_seldom_as_its_lease_allows_is_not_silent(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    """As one at a distance does: a lease of 60 s, and a beat every 15."""
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = beat_at + 45000000, beat_at = beat_at - 15000000")
    assert "silent" not in asked(unstuck)


def test_a_lost_worker_is_no_news_once_another_of_its_name_lives(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    """A worker was killed and started again: nobody has to do anything about the one before."""
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = beat_at - 1, beat_at = beat_at - %s", MINUTE)
    assert asked(unstuck)["silent"]["detail"].startswith("w1: ")
    beats(store, a_worker(store, "w1", lease=600.0))
    assert "silent" not in asked(unstuck)


def test_a_role_that_has_failed_for_a_moment_only_is_a_warning(
    unstuck: Command, store: SqlStore, w1: WorkerRecord
) -> None:
    beats(store, w1, roles=[{**SETTLE, "failing_for": 0.5}])
    answer = unstuck("health", "--json")
    assert (answer.code, told(answer)["roles"]["fatal"]) == (0, False)


@pytest.mark.parametrize("said", [None, "all", {"name": "settle"}, [None, 7, "x"]])
def test_what_a_worker_says_in_another_way_is_no_failure(
    unstuck: Command, store: SqlStore, w1: WorkerRecord, said: Any
) -> None:
    beats(store, w1, roles=said)
    assert "roles" not in asked(unstuck)


def test_nonsense_in_a_role_breaks_nothing() -> None:
    said = [{"name": None, "failing_for": "long", "failures": True, "error": "a\n" * 5000}, {"failing_for": -1}] * 30
    info = {"roles": said}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    worker = WorkerRecord(1, "i", "w", "h", "b", "n", 1, 1, "active", (), "1", now, now, now, info=info)
    found = roles(worker, now)
    assert len(found) == 20
    assert {(role.name, role.failing_ms, role.failures) for role in found} == {("?", 0, 0)}
    assert all("\n" not in role.error and len(role.error) <= 300 for role in found)


# --- the clock ----------------------------------------------------------------------------------------------------


def test_a_leap_of_the_clock_is_told_by_health_and_why(
    unstuck: Command, store_url: str, store: SqlStore, w1: WorkerRecord, leap: Leap
) -> None:
    job = submitted(store, delay=630.0)
    with closing(SqlStore(open_database(store_url, witness=Witness()))) as watched:
        a_worker(watched, "w2", lease=600.0)
        leap(-3600.0)
        watched.now()
        watched.release_due()
        check = asked(unstuck)["clock"]
        assert (check["ok"], check["fatal"]) == (False, False)
        assert check["detail"].startswith("the database's clock leapt 1h back ")
        assert check["detail"].endswith("times shown here are 1h ahead of that clock")
        why = unstuck("why", job.id)
        assert "the database's clock leapt 1h back" in why.err
        assert "it starts in 10m" in why.out
        leap(3600.0)
        watched.now()
        watched.release_due()
        detail = asked(unstuck)["clock"]["detail"]
        assert "leapt 1h forward " in detail
        assert "the last of 2 leaps" in detail
        assert "that clock" not in detail


def test_a_clock_that_leaps_by_a_second_again_and_again_is_said_to_run_fast_or_slow(
    unstuck: Command, store_url: str, store: SqlStore, leap: Leap
) -> None:
    with closing(SqlStore(open_database(store_url, witness=Witness()))) as watched:
        a_worker(watched, "w2", lease=600.0)
        for _ in range(2):
            assert "runs" not in asked(unstuck).get("clock", {"detail": ""})["detail"]
            leap(1.5)
            watched.now()
            watched.release_due()
    assert "; leaps as small as that, again and again: it runs too fast" in asked(unstuck)["clock"]["detail"]


# --- sweeps and the inbox -----------------------------------------------------------------------------------------


def test_a_rescue_that_nobody_carries_out_is_unhealthy(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    lost = a_worker(store, "lost", lease=600.0)
    job = claimed(store, lost)
    assert "sweeps" not in asked(unstuck)
    by_hand(store_url, "UPDATE unstuck_workers SET lease_until = lease_until - %s WHERE name = 'lost'", 11 * MINUTE)
    answer = unstuck("health", "--json")
    assert answer.code == 10
    detail = told(answer)["sweeps"]["detail"]
    assert detail.startswith(f"job {job.id} of worker lost, whose lease ended 1m")
    store.recover_lost(0)
    assert "sweeps" not in asked(unstuck)


def test_a_timer_that_no_sweep_sees_is_unhealthy_and_names_no_other_tenants_job(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    job = submitted(store, delay=60.0, tenant="acme")
    by_hand(store_url, "UPDATE unstuck_timers SET due_at = due_at - %s", 2 * MINUTE)
    assert asked(unstuck)["sweeps"]["detail"].startswith(f"job {job.id} was due 1m")
    other = asked(unstuck, "--tenant", "beta")["sweeps"]["detail"]
    assert job.id not in other
    assert other.startswith("job of another tenant was due 1m")


def test_without_any_worker_nobody_is_blamed_for_not_sweeping(
    unstuck: Command, store: SqlStore, store_url: str
) -> None:
    submitted(store, delay=60.0)
    by_hand(store_url, "UPDATE unstuck_timers SET due_at = due_at - %s", 2 * MINUTE)
    found = asked(unstuck)
    assert "sweeps" not in found
    assert not found["workers"]["ok"]


def test_an_entry_of_the_inbox_that_nobody_works_off_is_a_warning(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    submitted(store, target="ada")
    assert "inbox" not in asked(unstuck)
    by_hand(store_url, "UPDATE unstuck_inbox SET at = at - %s", 2 * MINUTE)
    answer = unstuck("health", "--json")
    assert answer.code == 0
    assert told(answer)["inbox"]["detail"].startswith("1 entry, the oldest 2m")
    store.ingest()
    assert "inbox" not in asked(unstuck)


# --- single things ------------------------------------------------------------------------------------------------


def test_what_is_set_aside_is_a_warning_with_its_error_and_only_ones_own(
    unstuck: Command, store: SqlStore, w1: WorkerRecord
) -> None:
    job, other = submitted(store), submitted(store, tenant="acme")
    store.quarantine("settle", {number_of(store, job.id): "check\nviolated"}, by="w1")
    found = store.get("acme", other.id)
    assert found is not None
    store.quarantine("start", {found.number: "no"}, by="w1")
    answer = unstuck("health", "--json")
    assert answer.code == 0
    detail = told(answer)["quarantine"]["detail"]
    assert detail.startswith("2 set aside, first ")
    assert detail.endswith("check violated: unstuck quarantine")
    own = asked(unstuck, "--tenant", TENANT)["quarantine"]["detail"]
    assert own.startswith(f"1 set aside, first job {job.id} (settle) ")
    assert "quarantine" not in asked(unstuck, "--tenant", "beta")


def test_news_that_nobody_took_note_of_is_a_warning(unstuck: Command, store: SqlStore, w1: WorkerRecord) -> None:
    job = submitted(store)
    store.quarantine("settle", {number_of(store, job.id): "no"}, by="w1")
    answer = unstuck("health", "--json")
    assert answer.code == 0
    assert told(answer)["notifications"]["detail"].startswith(
        "1 that nobody took note of, the newest: Set aside: settle "
    )
    assert "notifications" not in asked(unstuck, "--tenant", "beta")
    [news] = store.notifications()
    store.ack_notification(news.number, "me")
    assert "notifications" not in asked(unstuck)


# --- the queue ----------------------------------------------------------------------------------------------------


def test_a_due_job_that_nobody_takes_although_a_slot_is_free_says_why(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    """The first of all that wait is paused on purpose, and must not hide the other."""
    submitted(store, workflow="paused")
    store.pause(Pause("workflow", "paused", TENANT, "dana"))
    job = submitted(store)
    by_hand(store_url, "UPDATE unstuck_jobs SET available_at = available_at - %s", MINUTE)
    answer = unstuck("health", "--json")
    assert answer.code == 0
    detail = told(answer)["queue"]["detail"]
    assert detail.startswith("due for 1m")
    assert f"nobody took it: greet {job.id}: runnable: nothing keeps it" in detail
    beats(store, w1, slots=0)
    assert asked(unstuck)["queue"]["ok"], "they are busy: it is nobody's fault"


# --- what cannot be written, or not even read ---------------------------------------------------------------------


def test_a_sqlite_file_that_somebody_has_locked_is_told_and_why_answers(
    sqlite_template: Path, tmp_path: Path
) -> None:
    file = tmp_path / "unstuck.db"
    file.write_bytes(sqlite_template.read_bytes())
    unstuck = Command(f"sqlite:///{file}", tmp_path)
    job = unstuck.enqueue("add", "1")
    with closing(sqlite3.connect(sqlite_path(f"sqlite:///{file}"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = unstuck("health", "--json", "--no-workers")
        assert answer.code == 10
        assert told(answer)["writes"]["detail"].startswith("nothing could be written for ")
        assert "queue" in told(answer)
        assert unstuck("why", job, "--json").object["state"] == "QUEUED"
        other.execute("ROLLBACK")
    assert unstuck("health", "--no-workers").code == 0


@pytest.mark.parametrize(("alert", "is_ok"), [("30", False), ("90", True), ("0", True)])
def test_a_job_that_waits_as_long_as_a_worker_would_report_is_a_warning(
    unstuck: Command, store: SqlStore, store_url: str, alert: str, is_ok: bool
) -> None:
    submitted(store)
    by_hand(store_url, "UPDATE unstuck_jobs SET available_at = available_at - %s", MINUTE)
    unstuck("settings", "set", "alert_queued_after", alert)
    found = told(unstuck("health", "--json"))["queue"]
    assert found["detail"].startswith("the oldest due job waits 1m")
    assert found["ok"] is is_ok


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_while_nothing_can_be_written_nobody_is_said_to_take_a_job_soon(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord
) -> None:
    submitted(store)
    by_hand(store_url, "UPDATE unstuck_jobs SET available_at = available_at - %s", MINUTE)
    with closing(sqlite3.connect(sqlite_path(store_url), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = asked(unstuck)
    assert not found["writes"]["ok"]
    assert found["queue"]["detail"].startswith("the oldest due job waits 1m")


@pytest.fixture
def server_url(postgres_url: str) -> str:
    return postgres_url


def test_a_session_that_holds_rows_is_a_warning_and_one_that_lets_nobody_read_is_unhealthy(
    server_url: str, tmp_path: Path
) -> None:
    unstuck = Command(server_url, tmp_path)
    opened = SqlStore(open_database(server_url))
    worker = a_worker(opened, "w1", lease=600.0)
    serve(opened, worker, "greet")
    beats(opened, worker)
    submitted(opened)
    opened.close()
    with psycopg.connect(server_url, application_name="lunch") as person:
        person.execute("SELECT 1 FROM unstuck_ready FOR UPDATE")
        answer = _once_locks_are_told(unstuck)
        assert answer.code == 0
        detail = told(answer)["locks"]["detail"]
        assert detail.startswith(f"session {person.info.backend_pid} (lunch, user ")
        assert "has held unstuck_ready for " in detail
        assert detail.endswith(f"as the last resort: SELECT pg_terminate_backend({person.info.backend_pid})")
        by_hand(server_url, "UPDATE unstuck_jobs SET available_at = available_at - %s", MINUTE)
        assert "not runnable: its row in unstuck_ready is held by session" in asked(unstuck)["queue"]["detail"]
        person.rollback()
        person.execute("LOCK TABLE unstuck_jobs")
        answer = _once_locks_are_told(unstuck)
        assert answer.code == 10
        assert "has held unstuck_jobs for" in told(answer)["locks"]["detail"]
        assert "lock timeout" in told(answer)["database"]["detail"]
        person.rollback()
        # The first that health asks of the database: nothing was told before it.
        person.execute("LOCK TABLE unstuck_migrations")
        assert "has held unstuck_migrations for" in asked(unstuck)["database"]["detail"]
    assert unstuck("health").code == 0


def _once_locks_are_told(unstuck: Command) -> Answer:
    def look() -> Answer | None:
        answer = unstuck("health", "--json")
        assert "locks" in told(answer)
        return answer

    found = eventually(look, timeout=30)
    assert found is not None
    return found


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("table", "name"),
    [("unstuck_alerts", "alerts"), ("unstuck_dead_letters", "dead_letters"), ("unstuck_inbox", "inbox")],
)
def test_a_table_that_the_user_may_not_read_hides_nothing_else(
    unstuck: Command, store: SqlStore, store_url: str, w1: WorkerRecord, table: str, name: str
) -> None:
    submitted(store, delay=3600.0)
    stranger = f"stranger_{uuid4().hex[:8]}"
    execute(
        store_url,
        f"CREATE ROLE {stranger} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {stranger};"
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {stranger}; REVOKE ALL ON {table} FROM {stranger}",
    )
    try:
        answer = unstuck("health", "--json", "--database", re.sub("//[^@]*@", f"//{stranger}@", store_url))
    finally:
        execute(store_url, f"DROP OWNED BY {stranger}; DROP ROLE {stranger}")

    assert (answer.code, answer.object["healthy"]) == (10, False)
    assert {"database", "workers", "queue"} <= told(answer).keys()
    assert f"permission denied for table {table}" in told(answer)[name]["detail"]
