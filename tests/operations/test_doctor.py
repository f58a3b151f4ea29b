"""The doctor: each trouble is made for real, found, told with its remedy, and mended where that is safe."""

from __future__ import annotations

import re
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import Leap, StoreClock
from tests.operations.conftest import Ask
from tests.store.test_why import by_hand, serve
from tests.support import hooks, webhooks
from tests.support.builders import a_worker, blocked, claimed, give_up, submitted
from tests.support.commands import understand
from tests.support.pooler import Pooler
from tests.support.schedules import come, made, verbs
from unstuck.intake.secrets import reseal
from unstuck.model.errors import InvalidInput, NotPermitted
from unstuck.model.job import WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.operations import audit, doctor, keys
from unstuck.operations.examinations import CHECKS, postgres, sqlite
from unstuck.operations.examinations.exam import DoctorCheck, Exam
from unstuck.operations.examinations.running import each_within
from unstuck.operations.table import Caller, Role
from unstuck.sealing import Sealer
from unstuck.signing import SigningKey, SigningKeys
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.sql_store import SqlStore
from unstuck.version import __version__
from unstuck.views.doctor import DoctorView, FindingView

ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
HOUR = 3600.0


def beats(store: SqlStore, worker: WorkerRecord, **info: Any) -> None:
    said = {"ready": True, "slots": 2, "executors": [], "version": __version__, "mode": "fork", **info}
    assert store.beat(worker.number, 10 * HOUR, [], info=said).alive


@pytest.fixture
def w1(store: SqlStore) -> WorkerRecord:
    """One that is well."""
    worker = a_worker(store, "w1", lease=10 * HOUR)
    serve(store, worker, "greet")
    beats(store, worker)
    return worker


def found(caller: Caller, *only: str) -> list[FindingView]:
    return list(doctor.check(caller, only=only).findings)


def the(caller: Caller, *only: str) -> FindingView:
    [one] = found(caller, *only)
    assert one.why
    return one


@contextmanager
def another(url: str, **how: Any) -> Iterator[Caller]:
    """A caller over connections of its own, as settings of the server are now."""
    opened = open_database(url, **how)
    try:
        yield Caller(SqlStore(opened), "ada")
    finally:
        opened.close()


# --- the whole ----------------------------------------------------------------------------------------------------


def test_of_what_is_well_nothing_is_said(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    submitted(store, delay=HOUR)
    claimed(store, w1, workflow="greet")
    # What the test's own databases are like: in memory, and fast.
    known = {"postgres_settings", "sqlite_version", "sqlite_place"}
    seen = doctor.check(ask())
    assert [each for each in seen.findings if each.check not in known] == []
    assert [each.name for each in seen.examined] == [check.name for check in CHECKS]
    assert seen.fixed == ()


def test_every_check_says_what_it_looks_at_and_has_a_name_of_its_own() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.looks_at and len(check.looks_at) < 80 for check in CHECKS)


@ON_SQLITE
def test_only_the_checks_that_are_named_are_made_and_an_unknown_one_is_refused(ask: Ask) -> None:
    assert [each.name for each in doctor.check(ask(), only=["clock", "schema"]).examined] == ["schema", "clock"]
    with pytest.raises(InvalidInput, match="there is no check clocks"):
        doctor.check(ask(), only=["clocks"])


@ON_SQLITE
def test_only_who_administers_the_platform_is_examined_for(ask: Ask) -> None:
    for role in (Role.OPERATOR, Role.TENANT_ADMIN):
        with pytest.raises(NotPermitted):
            doctor.check(ask(role=role))


def test_one_check_that_fails_says_so_and_stops_no_other(ask: Ask, store_url: str, w1: WorkerRecord) -> None:
    by_hand(store_url, "DROP TABLE unstuck_quarantine")
    seen = doctor.check(ask(), only=["quarantine", "dead_letters", "code", "notifications", "leases"])
    assert {each.check for each in seen.findings if each.severity == "unchecked"} >= {"quarantine", "leases"}
    assert not seen.ok
    assert {each.name for each in seen.examined if each.ok} >= {"code", "notifications"}


@ON_POSTGRES
def test_a_table_that_somebody_has_locked_is_named_and_hangs_nothing(store_url: str, w1: WorkerRecord) -> None:
    with psycopg.connect(store_url) as person, another(store_url, store_call=1.0) as caller:
        person.execute("LOCK TABLE unstuck_notifications")
        began = time.monotonic()
        seen = doctor.check(caller)
        assert time.monotonic() - began < 15
    told = {each.check: each for each in seen.findings}
    assert told["notifications"].severity == "unchecked"
    assert "could not be checked" in told["notifications"].what
    assert {each.name for each in seen.examined if each.ok} >= {
        "workers",
        "schema",
        "clock",
        "quarantine",
        "api_keys",
    }


@ON_SQLITE
def test_a_check_that_hangs_is_given_up_after_its_time(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs() -> str:
        time.sleep(3)
        return "late"

    began = time.monotonic()
    outcomes = each_within([hangs, lambda: "here", hangs, lambda: "too"], within=0.2, at_once=1)
    assert time.monotonic() - began < 2
    assert [each.value for each in outcomes] == [None, "here", None, "too"]
    assert isinstance(outcomes[0].error, TimeoutError)


@ON_SQLITE
def test_of_many_alike_some_are_told_and_the_number_of_the_others(ask: Ask) -> None:
    for number in range(30):
        keys.create(ask(), f"k{number}", role="reader", expires="1d" if number == 7 else "10d")
    told = found(ask(), "api_keys")
    assert (len(told), told[0].severity, told[-1].what) == (21, "warning", "10 more like these")


@ON_SQLITE
def test_a_mistake_of_ours_is_a_finding_too(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(exam: Exam) -> list[FindingView]:
        raise KeyError("lost")

    monkeypatch.setattr(doctor, "CHECKS", (DoctorCheck("wrong", "something", wrong), *CHECKS))
    told = the(ask(), "wrong")
    assert (told.severity, told.check) == ("unchecked", "wrong")
    assert "KeyError" in told.what


def test_a_database_that_is_away_is_the_one_finding(tmp_path: Path, store_url: str) -> None:
    if store_url.startswith("sqlite"):
        file = sqlite_path(store_url)
        with another(store_url) as caller:
            caller.store.now()
            file.rename(file.with_suffix(".away"))
            seen = doctor.check(caller)
            file.with_suffix(".away").rename(file)
    else:
        with another(f"postgresql:///?host={tmp_path}", store_call=0.5) as caller:
            seen = doctor.check(caller)
    assert [(each.check, each.severity) for each in seen.findings] == [("database", "error")]
    assert seen.examined == ()


# --- the database -------------------------------------------------------------------------------------------------


def test_a_schema_that_is_behind_is_an_error_with_its_command(ask: Ask, store: SqlStore, store_url: str) -> None:
    assert found(ask(), "schema") == []
    newest = store.shipped_version()
    by_hand(store_url, "DELETE FROM unstuck_migrations WHERE number = %s", newest)
    told = the(ask(repeats=" --database x"), "schema")
    assert told.severity == "error"
    assert f"version {newest - 1} is behind this code, which needs {newest}" in told.what
    assert told.remedy == "unstuck db migrate --database x"


def test_views_of_another_version_are_told(ask: Ask, store_url: str) -> None:
    by_hand(store_url, "UPDATE unstuck_repeatables SET checksum = 'old'")
    told = the(ask(), "schema")
    assert (told.severity, told.what) == ("warning", "its views or functions are not those of this version")


def test_an_empty_database_is_told_what_it_lacks(tmp_path: Path) -> None:
    with another(f"sqlite:///{tmp_path}/new.db") as caller:
        seen = doctor.check(caller)
    assert [each.what for each in seen.findings if each.severity == "error"] == ["there are no tables yet; make them"]
    assert {"sqlite_version", "sqlite_place"} <= {each.name for each in seen.examined}
    assert "workers" not in {each.name for each in seen.examined}


@ON_POSTGRES
def test_a_clock_that_differs_from_this_hosts_is_told(ask: Ask, clock: StoreClock) -> None:
    assert found(ask(), "clock") == []
    clock.advance(90)
    told = the(ask(), "clock")
    assert told.severity == "warning"
    assert re.match(r"the database's clock is 1m (29|30)s ahead of this host's", told.what)


@ON_SQLITE
def test_a_hosts_clock_that_leapt_is_told(ask: Ask, store: SqlStore, leap: Leap) -> None:
    store.now()
    leap(-3600)
    store.release_due()  # as every sweep does, which looks at the clock
    told = the(ask(), "clock")
    assert told.what.startswith("the database's clock leapt 1h back")


@ON_POSTGRES
def test_a_session_that_holds_our_rows_is_named_with_the_last_resort(store_url: str, w1: WorkerRecord) -> None:
    with psycopg.connect(store_url) as person, another(store_url) as caller:
        person.execute("SELECT * FROM unstuck_workers FOR UPDATE")
        time.sleep(2.1)
        told = the(caller, "locks")
        assert told.remedy is not None
        assert f"pg_terminate_backend({person.info.backend_pid})" in told.remedy


@ON_SQLITE
def test_a_file_that_cannot_be_written_is_an_error(store_url: str, w1: WorkerRecord) -> None:
    with another(store_url, store_call=0.5) as caller:
        caller.store.now()
        with closing(sqlite3.connect(sqlite_path(store_url), isolation_level=None)) as person:
            person.execute("BEGIN IMMEDIATE")
            told = the(caller, "writes")
            person.execute("ROLLBACK")
    assert told.severity == "error"
    assert "nothing could be written" in told.what


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


@ON_POSTGRES
def test_settings_on_which_durability_and_cleaning_depend(store_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(store_url)["dbname"]
    with psycopg.connect(store_url, autocommit=True) as person:
        person.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        person.execute(f'ALTER DATABASE "{name}" SET idle_in_transaction_session_timeout = 5000')
        [is_safe] = person.execute("SHOW fsync").fetchone() or ()
    with another(store_url) as caller:
        seen = {each.about: each for each in found(caller, "postgres_settings")}
    assert seen["setting synchronous_commit"].severity == "warning"
    assert "ALTER DATABASE" in (seen["setting synchronous_commit"].remedy or "")
    assert "setting idle_in_transaction_session_timeout" not in seen
    # The test's own server is started without: nothing that it has is to stay.
    assert (is_safe == "on") == ("setting fsync" not in seen)
    assert is_safe == "on" or seen["setting fsync"].severity == "error"


@ON_POSTGRES
def test_more_workers_than_the_server_has_sessions_for(ask: Ask, store: SqlStore) -> None:
    a_worker(store, "w0", lease=HOUR)
    assert found(ask(), "connections") == []
    for number in range(12):
        a_worker(store, f"w{number}", lease=HOUR)
    told = the(ask(), "connections")
    assert "13 workers may want 273 sessions" in told.what


@ON_POSTGRES
@pytest.mark.parametrize("prepare", ["", "prepare=off"])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_and_its_mode_are_seen(ask: Ask, store_url: str, mode: Any, prepare: str, tmp_path: Path) -> None:
    assert found(ask(), "pooler") == []
    with Pooler(store_url, tmp_path, mode) as pooler, another(f"{pooler.url}&{prepare}") as caller:
        told = the(caller, "pooler")
    assert f"a pooler in {mode} mode" in told.what
    is_wrong = mode == "transaction" and not prepare
    assert (told.severity, told.remedy is not None) == (("error", True) if is_wrong else ("note", False))


@ON_POSTGRES
def test_dead_rows_that_nobody_cleans_and_a_planner_that_knows_nothing(ask: Ask, store_url: str) -> None:
    assert found(ask(), "tables") == []
    with psycopg.connect(store_url, autocommit=True) as person:
        person.execute("ALTER TABLE unstuck_settings SET (autovacuum_enabled = off)")
        columns = "(name, value, set_at, set_by)"
        person.execute(
            f"INSERT INTO unstuck_settings {columns} SELECT 's' || n, '1', 1, 'x' FROM generate_series(1, 60000) n"
        )
        person.execute("DELETE FROM unstuck_settings")
        person.execute("SELECT pg_stat_force_next_flush()")
    told = found(ask(), "tables")
    assert {each.about for each in told} == {"table unstuck_settings"}
    assert [each.severity for each in told] == ["warning", "warning", "note"]
    assert told[0].what.startswith("60,000 dead rows beside 0 live ones")
    assert told[0].remedy == "VACUUM (ANALYZE) unstuck_settings"
    assert "autovacuum is switched off" in told[1].what
    assert told[2].fixable


@ON_POSTGRES
def test_the_planner_looks_at_our_tables_when_it_is_asked_to(ask: Ask, store_url: str) -> None:
    with psycopg.connect(store_url, autocommit=True) as person:
        person.execute("ALTER TABLE unstuck_tags SET (autovacuum_enabled = off)")
        person.execute(
            "INSERT INTO unstuck_tags SELECT (jsonb_populate_record(NULL::unstuck_tags, "
            "jsonb_build_object('job', n, 'tag', 't', 'tenant', 'x', 'route', 1))).* FROM generate_series(1, 60000) n"
        )
        person.execute("SELECT pg_stat_force_next_flush()")
    seen = doctor.fix(ask(), only=["tables"])
    assert [(each.check, each.ok) for each in seen.fixed] == [("tables", True)]
    assert "ANALYZE" in seen.fixed[0].did
    assert not any(each.fixable for each in seen.findings)


@ON_POSTGRES
def test_transactions_that_stay_open_are_named(ask: Ask, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "TOO_LONG", 0.2)
    with psycopg.connect(store_url, application_name="psql of kim") as person:
        person.execute("SELECT 1")
        time.sleep(0.3)
        told = the(ask(), "transactions")
        assert told.about == f"session {person.info.backend_pid}"
        assert "psql of kim" in told.what
        assert told.remedy == f"SELECT pg_terminate_backend({person.info.backend_pid})"
    assert found(ask(), "transactions") == []


# --- SQLite -------------------------------------------------------------------------------------------------------


@ON_SQLITE
def test_a_sqlite_with_the_race_of_the_log_is_a_note(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.51.2")
    assert the(ask(), "sqlite_version").severity == "note"
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.51.3")
    assert found(ask(), "sqlite_version") == []


@ON_SQLITE
def test_a_long_log_is_told_and_cut_while_others_work(ask: Ask, store: SqlStore, store_url: str) -> None:
    file = sqlite_path(store_url)
    log = file.with_name(f"{file.name}-wal")
    with closing(sqlite3.connect(file, isolation_level=None)) as person:
        person.execute("PRAGMA wal_autocheckpoint = 0")
        person.execute("CREATE TABLE mine (text BLOB)")
        for _ in range(70):
            person.execute("INSERT INTO mine VALUES (zeroblob(1048576))")
        told = the(ask(), "sqlite_log")
        assert (told.severity, told.fixable, told.about) == ("warning", True, str(log))
        # Somebody reads an old state: it cannot be cut, and that is said.
        person.execute("BEGIN")
        person.execute("SELECT COUNT(*) FROM mine").fetchone()
        submitted(store)
        tried = doctor.fix(ask(), only=["sqlite_log"])
        assert [each.ok for each in tried.fixed] == [False]
        assert "reads an old state" in tried.fixed[0].did
        assert tried.fixed[0].did.endswith(f"fuser -v {sqlite_path(store_url)}")
        person.execute("ROLLBACK")
        seen = doctor.fix(ask(by="kim"), only=["sqlite_log"])
        assert seen.findings == ()
        assert log.stat().st_size < 1 << 20
    # The engine's own checkpoint may have come first: then there was nothing left to mend.
    mended = [("kim", "sqlite_log")] * len(seen.fixed)
    assert all(each.ok for each in seen.fixed)
    assert [(line.by, line.subject) for line in audit.list_(ask(), verb="doctor.fix").items] == mended


@ON_SQLITE
@pytest.mark.parametrize(("kind", "told"), [("tmpfs", "a reboot"), ("overlay", "the container"), ("ext4", None)])
def test_where_the_file_lies(
    ask: Ask, store_url: str, kind: str, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the kernel says of the place: this machine has but one of them."""
    monkeypatch.setattr("unstuck.store.drivers.sqlite.filesystem", lambda path: kind)
    monkeypatch.setattr(sqlite, "LITTLE_SHARE", 0.0)
    monkeypatch.setattr(sqlite, "LITTLE", 0)
    seen = found(ask(), "sqlite_place")
    if told is None:
        assert seen == []
    else:
        assert told in seen[0].why


@ON_SQLITE
def test_a_disk_that_is_nearly_full(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstuck.store.drivers.sqlite.filesystem", lambda path: "ext4")
    monkeypatch.setattr(sqlite, "LITTLE_SHARE", 1.0)
    assert "are free on its disk" in the(ask(), "sqlite_place").what


# --- workers ------------------------------------------------------------------------------------------------------


def test_no_worker_is_an_error(ask: Ask) -> None:
    told = the(ask(), "workers")
    assert (told.severity, told.what, told.remedy) == ("error", "none alive", "unstuck worker")


def test_two_versions_of_the_code_are_a_deploy_and_later_a_warning(
    ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock
) -> None:
    w2 = a_worker(store, "w2", lease=10 * HOUR, code_version="v2")
    beats(store, w2)
    told = the(ask(), "code")
    assert told.severity == "note"
    assert "v1: worker w1; v2: worker w2" in told.what
    clock.advance(2 * HOUR)
    beats(store, w1)
    beats(store, w2)
    assert the(ask(), "code").severity == "warning"


def test_versions_are_told_of_workers_that_were_given_no_queue(ask: Ask, store: SqlStore) -> None:
    """`unstuck worker shop:app` serves what its app names."""
    for name, version in (("w1", "v1"), ("w2", "v2")):
        worker = a_worker(store, name, lease=10 * HOUR, code_version=version, queues=())
        greet = WorkflowRecord("greet", version, "default", Policy(), {})
        store.register_workflows([greet], worker=worker.number, queues=("default",))
        beats(store, worker)
    assert "v1: worker w1; v2: worker w2" in the(ask(), "code").what


def test_a_worker_with_another_version_of_unstuck(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    beats(store, w1, version="0.0.1")
    assert the(ask(), "code").what == f"it runs unstuck 0.0.1, this is {__version__}"


def test_a_worker_that_cannot_fork_says_why(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    assert found(ask(), "forks") == []
    beats(store, w1, mode="spawn", mode_reason="the app's import left 2 Python threads running")
    told = the(ask(), "forks")
    assert (told.severity, told.about) == ("note", "worker w1")
    assert told.what.endswith("the app's import left 2 Python threads running")


def test_a_drain_that_is_longer_than_managers_allow(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    beats(store, w1, drain=60.0, kill_grace=5.0)
    assert found(ask(), "drains") == []
    beats(store, w1, drain=300.0, kill_grace=10.0)
    told = the(ask(), "drains")
    assert "allow at least 310 seconds" in (told.remedy or "")


def test_a_role_that_fails(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    role = {"name": "settle", "failing_for": 40.0, "failures": 12, "error": "RuntimeError: column gone"}
    beats(store, w1, roles=[role])
    told = the(ask(), "roles")
    assert (told.severity, told.remedy) == ("error", "unstuck workers")
    assert told.what.endswith("RuntimeError: column gone")


def test_a_lease_that_ended_and_that_nobody_looks_after(
    ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock
) -> None:
    gone = a_worker(store, "w2", lease=5.0)
    job = claimed(store, gone)
    assert found(ask(), "leases") == []
    clock.advance(HOUR)
    told = the(ask(), "leases")
    assert told.severity == "error"
    assert f"job {job.id} of worker w2, whose lease ended" in told.what


def test_marks_of_bodies_that_are_gone_for_certain_are_lifted_and_no_others(
    ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock, store_url: str
) -> None:
    gone = a_worker(store, "w2", lease=5.0)
    for worker in (gone, w1):
        job = claimed(store, worker)
        give_up(store, worker, job)
        by_hand(
            store_url,
            "INSERT INTO unstuck_body_marks (job, worker, since_at, reason) VALUES (%s, %s, 1, 'x')",
            *(job.ref.job, worker.number),
        )
    assert found(ask(), "body_marks") == []
    clock.advance(HOUR)
    assert the(ask(), "body_marks").what.startswith("1 job")
    seen = doctor.fix(ask(), only=["body_marks"])
    assert [each.did for each in seen.fixed] == ["1 body mark lifted, of workers whose lease is over"]
    assert seen.findings == ()
    assert store.dead_body_marks(-(10.0**9)) == 1, "the one whose worker lives stands"


# --- jobs ---------------------------------------------------------------------------------------------------------


def test_jobs_of_a_workflow_that_no_worker_has(
    ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock
) -> None:
    submitted(store, workflow="greet")
    job = submitted(store, workflow="gone away", tenant="acme")
    assert found(ask(), "orphans") == []
    clock.advance(HOUR)
    told = the(ask(), "orphans")
    assert told.about == "workflow gone away"
    assert job.id in told.what
    assert (told.remedy or "").endswith("unstuck jobs cancel --state QUEUED --workflow 'gone away'")


def test_a_due_job_that_nobody_takes_although_slots_are_free(
    ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock
) -> None:
    job = submitted(store, workflow="greet", tenant="acme")
    assert found(ask(), "unclaimed") == []
    clock.advance(HOUR)
    beats(store, w1)
    told = the(ask(), "unclaimed")
    assert (told.about, told.remedy) == (f"job {job.id}", f"unstuck why {job.id} --all-tenants")


def test_blocked_targets_of_whatever_tenant(ask: Ask, store: SqlStore, w1: WorkerRecord) -> None:
    blocked(store, w1, target="acme", tenant="other")
    told = the(ask(), "targets")
    assert told.what.startswith("1 blocked, the first")
    assert told.remedy == "unstuck targets --blocked"


def test_a_schedule_that_nobody_fires(ask: Ask, store: SqlStore, w1: WorkerRecord, clock: StoreClock) -> None:
    made(store)
    assert found(ask(), "schedules") == []
    come(store, clock, late=HOUR)
    told = the(ask(), "schedules")
    assert told.what.startswith("1 silent, first nightly: it should have fired")
    assert told.remedy == "unstuck schedules firings nightly"


def test_a_name_that_a_shell_would_obey_is_quoted_in_what_is_to_be_typed(
    ask: Ask, store: SqlStore, store_url: str, w1: WorkerRecord, clock: StoreClock
) -> None:
    """Whoever may name a webhook must not have its operator run what they like."""
    name = "x; touch /tmp/owned `id` $HOME it's"
    verbs(store, "acme").create(name, "greet", kwargs={}, every=60.0)
    clock.advance(2 * HOUR)
    by_hand(store_url, *webhook_in_trouble("*", name))
    for check, verb, tenant in (("schedules", "schedules firings", "acme"), ("webhooks", "webhooks show", "*")):
        remedy = the(ask(), check).remedy
        assert remedy is not None
        assert shlex.split(remedy) == ["unstuck", *verb.split(), name, "--tenant", tenant]
        understand(remedy)


def webhook_in_trouble(tenant: str, name: str) -> tuple[str, str, str]:
    """A statement, and its values."""
    statement = (
        "INSERT INTO unstuck_webhooks (tenant, name, url, filter, secret, state_at, state_by, created_at, created_by,"
        " changed_at, changed_by, failures, failing_since, last_error)"
        " VALUES (%s, %s, 'https://x.example', '{}', 's', 1, 'a', 1, 'a', 1, 'a', 7, 1, 'refused')"
    )
    return statement, tenant, name


def test_a_webhook_that_takes_nothing(ask: Ask, store_url: str) -> None:
    assert found(ask(), "webhooks") == []
    by_hand(store_url, *webhook_in_trouble("acme", "billing"))
    told = the(ask(), "webhooks")
    assert told.what == "1 in trouble, first billing: it has not taken its last 7 tries: refused"
    assert told.remedy == "unstuck webhooks show billing --tenant acme"


# --- keys ---------------------------------------------------------------------------------------------------------


def test_api_keys_that_end_soon_unless_another_took_their_place(ask: Ask, store: SqlStore, clock: StoreClock) -> None:
    keys.create(ask(), "for ever", role="reader")
    keys.create(ask(), "late", role="reader", expires="90d")
    soon = keys.create(ask(), "soon", role="reader", expires="10d")
    urgent = keys.create(ask(tenant="acme"), "urgent", role="reader", expires="1d")
    seen = {each.about: each.severity for each in found(ask(), "api_keys")}
    assert seen == {f"API key {soon.id} (soon)": "note", f"API key {urgent.id} (urgent)": "warning"}
    keys.rotate(ask(), soon.id)
    keys.rotate(ask(tenant="acme"), urgent.id)
    assert [each.about for each in found(ask(), "api_keys") if soon.id in each.about or urgent.id in each.about] == []


def test_signing_keys_that_end_soon_and_have_no_heir(ask: Ask, store: SqlStore) -> None:
    now = store.now()
    secret = b"s" * 32

    def signing(*more: SigningKey) -> Callable[[], SigningKeys]:
        ending = SigningKey("k1", "hmac-sha256", end=now + timedelta(days=1), secret=secret)
        return lambda: SigningKeys([ending, *more])

    told = the(ask(signing=signing()), "signing_keys")
    assert (told.severity, told.about) == ("warning", "signing key k1")
    heir = SigningKey("k2", "hmac-sha256", begin=now, secret=secret)
    assert found(ask(signing=signing(heir)), "signing_keys") == []
    stranger = SigningKey("k3", "hmac-sha256", tenant="acme", secret=secret)
    assert the(ask(signing=signing(stranger)), "signing_keys").about == "signing key k1"
    ended = SigningKey("k4", "hmac-sha256", begin=now - timedelta(days=9), end=now - timedelta(days=1), secret=secret)
    assert the(ask(signing=lambda: SigningKeys([ended])), "signing_keys").severity == "error"


@ON_SQLITE
def test_signing_keys_that_cannot_be_read(ask: Ask) -> None:
    told = the(ask(signing=lambda: SigningKeys.of(None, ["*"])), "signing_keys")
    assert told.severity == "error"
    assert "there is no signing key" in told.what


def test_secrets_of_hooks_in_clear_text_or_that_cannot_be_opened(ask: Ask, store: SqlStore) -> None:
    assert found(ask(), "hook_secrets") == []
    hooks.made(store)
    told = the(ask(), "hook_secrets")
    assert (told.severity, told.about) == ("warning", "hook pushes")
    hooks.made(store, "sealed", sealer=hooks.SEALER)
    assert the(ask(sealer=lambda: hooks.SEALER), "hook_secrets").severity == "warning"
    [clear, lost] = found(ask(), "hook_secrets")
    assert {clear.severity, lost.severity} == {"warning", "error"}
    assert "sealing_keys" in f"{lost.remedy}{clear.remedy}"


def test_secrets_that_need_an_older_key(ask: Ask, store: SqlStore) -> None:
    assert found(ask(), "sealed_secrets") == []
    hooks.made(store, "sealed", sealer=hooks.SEALER)
    webhooks.made(store, "out")
    told = the(ask(), "sealed_secrets")
    assert (told.severity, told.about) == ("warning", "webhook out")
    newer = Sealer([("k2", b"n" * 32), ("k1", b"k" * 32)])
    [old, clear] = sorted(found(ask(sealer=lambda: newer), "sealed_secrets"), key=lambda each: each.severity)
    assert (old.about, old.severity, old.remedy) == ("hook sealed", "note", "unstuck db reseal")
    assert "key k1" in old.what
    assert (clear.about, clear.remedy) == ("webhook out", "unstuck db reseal")
    reseal(store, newer, "ada")
    assert found(ask(sealer=lambda: newer), "sealed_secrets") == []
    assert the(ask(), "sealed_secrets").severity == "error"


def test_the_worst_comes_first() -> None:
    def one(severity: Any) -> FindingView:
        return FindingView(check="x", severity=severity, about="", what="", why="", remedy=None, fixable=False)

    seen = DoctorView.of((one("note"), one("warning"), one("error"), one("unchecked")), ())
    assert [each.severity for each in seen.findings] == ["error", "unchecked", "warning", "note"]
    assert not seen.ok
    assert DoctorView.of((one("note"), one("warning")), ()).ok
