"""Signed jobs with real workers: what somebody with SQL changed never begins, and keys come and go under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import Jobs, only_here, only_sqlite
from tests.journeys.signed_app import app
from tests.support.eventually import eventually
from tests.support.signing import a_key, envelope_of, literal, write_keys
from tests.support.troubles import execute, raising
from tests.support.workers import Worker, workers
from tests.tiers import commit, slow, torture
from unstuck.chance import SystemChance
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import encode
from unstuck.operations import dead_letters, health
from unstuck.operations import jobs as job_questions
from unstuck.operations.table import Caller
from unstuck.signing import SigningKey
from unstuck.store.port import Store

APP = "tests.journeys.signed_app:app"
#: So many are claimed at once: what is tested is many jobs, not many claims.
CROWD = 100
#: How many jobs wait while keys change.
many = pytest.mark.parametrize("count", [pytest.param(300, marks=slow), pytest.param(10_000, marks=torture)])


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, app)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys.toml", a_key())


class Marks:
    """What handlers wrote as they began."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def words(self) -> list[str]:
        path = Path(self.path)
        return path.read_text().split("\n")[:-1] if path.exists() else []


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


def signed(db: Store, marks: Marks, count: int, key: SigningKey | None = None) -> list[str]:
    """In the queue, each with its envelope."""
    handler, chance, by, now = app._registry.handler("mark"), SystemChance(), key or a_key(), db.now()
    new = [
        NewJob(
            id=chance.job_id(),
            tenant="default",
            queue=handler.queue,
            workflow="mark",
            payload=encode({"args": [marks.path, f"{by.id}-{number}"], "kwargs": {}}, "arguments"),
            policy=handler.policy,
        )
        for number in range(count)
    ]
    for job in new:
        job.signature = envelope_of(db, job, by, now=now).text()
    for start in range(0, count, 500):
        db.submit(new[start : start + 500])
    return [job.id for job in new]


ROUTE = "(SELECT route FROM unstuck_jobs WHERE workflow = 'other' AND on_hold = 1)"
POLICY = "(SELECT policy FROM unstuck_jobs WHERE workflow = 'other' AND on_hold = 1)"
TAMPERED = (
    "UPDATE unstuck_jobs SET payload = replace(payload, 'web', 'bad') WHERE uid = :uid",
    "UPDATE unstuck_jobs SET tenant = 'acme' WHERE uid = :uid",
    "UPDATE unstuck_jobs SET queue = 'other' WHERE uid = :uid",
    "UPDATE unstuck_jobs SET workflow = 'other' WHERE uid = :uid",
    "UPDATE unstuck_jobs SET priority = 1 WHERE uid = :uid",
    f"UPDATE unstuck_jobs SET policy = {POLICY} WHERE uid = :uid",
    f"UPDATE unstuck_ready SET route = {ROUTE} WHERE job = (SELECT id FROM unstuck_jobs WHERE uid = :uid);"
    f"UPDATE unstuck_jobs SET route = {ROUTE} WHERE uid = :uid",
    "UPDATE unstuck_jobs SET signature = NULL WHERE uid = :uid",
    "UPDATE unstuck_jobs SET signature = replace(signature, 'web', 'wbe') WHERE uid = :uid",
    "UPDATE unstuck_jobs SET signature = replace(signature, '\"expires_at\":1', '\"expires_at\":2') WHERE uid = :uid",
)


@only_here
@commit
@pytest.mark.timeout(120)
def test_no_line_of_a_handler_runs_for_what_was_changed_in_the_database(
    start: Callable[..., Worker], db: Store, store_url: str, jobs: Jobs, keys: Path, marks: Marks
) -> None:
    """A42, S11: each signed field by SQL, one by one; the others run as if nothing had been"""
    fine = signed(db, marks, 3)
    bad = signed(db, marks, len(TAMPERED))
    [held] = jobs.submit("other", marks.path, "held", policy={"timeout": 77.0}, on_hold=True)
    for job, change in zip(bad, TAMPERED, strict=True):
        execute(store_url, change.replace(":uid", literal(job)))

    start(app=APP, signing={"file": str(keys), "required": ["*"]})

    for job in fine:
        jobs.until(job, JobState.COMPLETED, within=30)
    for number, job in enumerate(bad):
        tenant = "acme" if "'acme'" in TAMPERED[number] else "default"
        record = eventually(partial(_ended, db, tenant, job), timeout=30)
        assert (record.state, record.error_type) == (JobState.DEAD, "SignatureInvalid"), TAMPERED[number]
        kinds = [event.kind for event in db.history(tenant, job)]
        assert kinds == ["submitted", "claimed", "buried"], TAMPERED[number]
    assert sorted(marks.words()) == ["web-0", "web-1", "web-2"]
    assert jobs.state(held) is JobState.PENDING
    told = Counter((n.tenant, n.workflow, n.title.removeprefix("Dead letters: ")) for n in db.notifications())
    mark = ("default", "mark")
    causes = [("acme", "mark", "altered"), ("default", "other", "altered")]
    causes += [(*mark, "altered"), (*mark, "missing"), (*mark, "unknown_key")]
    assert told == Counter(causes), "once each, however many there were"


@only_here
@pytest.mark.timeout(120)
def test_a_letter_that_cannot_be_written_is_told_and_stops_nobody(
    start: Callable[..., Worker], db: Store, store_url: str, jobs: Jobs, keys: Path, marks: Marks
) -> None:
    """Somebody's trigger raises for every letter: what was changed never begins, and is DEAD once that is mended"""
    [bad] = signed(db, marks, 1)
    fine = signed(db, marks, 2)
    execute(store_url, f"UPDATE unstuck_jobs SET payload = replace(payload, 'web', 'bad') WHERE uid = {literal(bad)}")
    operator = Caller(db, "kim", "default")

    with raising(store_url, "unstuck_dead_letters", "NEW.workflow = 'mark'"):
        start(app=APP, signing={"file": str(keys), "required": ["*"]})
        for job in fine:
            jobs.until(job, JobState.COMPLETED, within=30)
        reason = eventually(partial(_only_reason, operator, bad), timeout=30)
        for job in signed(db, marks, 2):
            jobs.until(job, JobState.COMPLETED, within=30)
        assert jobs.state(bad) is JobState.RUNNING, "it is nobody else's as long as its end cannot be written"
        checks = {check.name: check.detail for check in health.check(operator).checks}
        [letter] = dead_letters.list_(operator)

    assert reason.startswith("its attempt has ended, and its end cannot be written"), "no handler has begun"
    assert bad in checks["quarantine"]
    assert (letter.job, letter.reason) == (bad, "set_aside")
    record = eventually(partial(_ended, db, "default", bad), timeout=30)
    assert (record.state, record.error_type) == (JobState.DEAD, "SignatureInvalid")
    assert dead_letters.get(operator, bad).reason == "altered"
    assert sorted(marks.words()) == ["web-0", "web-0", "web-1", "web-1"]


def _only_reason(operator: Caller, job: str) -> str:
    reasons = job_questions.why(operator, job).reasons
    assert [reason.code for reason in reasons] == ["quarantined"]
    return reasons[0].sentence


def _ended(db: Store, tenant: str, job: str) -> Any:
    record = db.get(tenant, job)
    assert record is not None
    assert record.state.is_final
    return record


@only_sqlite
def test_no_key_reaches_an_executor(db: Store, store_url: str, jobs: Jobs, keys: Path, tmp_path: Path) -> None:
    job = jobs.enqueue("environment")
    with workers(store_url, tmp_path, UNSTUCK_SIGNING_KEYS=str(keys), UNSTUCK_DATABASE=store_url) as start:
        start(app=APP, signing={"file": str(keys)})
        assert jobs.until(job, JobState.COMPLETED).result == "[]"


@only_here
@only_sqlite
def test_a_worker_that_must_see_signatures_and_has_no_key_does_not_start(
    start: Callable[..., Worker], tmp_path: Path
) -> None:
    """A44"""
    none = tmp_path / "none.toml"
    none.write_text("# nobody's\n")

    worker = start(app=APP, signing={"file": str(none), "required": ["workflow:mark"]})

    assert worker.wait() != 0
    assert "there is no signing key" in worker.log.read_text()


@only_here
@many
@pytest.mark.timeout(1200)
def test_a_rotation_while_jobs_wait_loses_none(
    start: Callable[..., Worker],
    db: Store,
    keys: Path,
    marks: Marks,
    count: int,
) -> None:
    """Old key, both, old one ended, under running workers; what the old one signed before its end runs after it"""
    old, new = a_key("old"), a_key("new")
    write_keys(keys, old)
    ids = signed(db, marks, count, old)
    for _ in range(2):
        start(app=APP, signing={"file": str(keys), "required": ["*"]}, concurrency=CROWD)
    eventually(lambda: len(marks.words()) >= count // 10, timeout=120)
    write_keys(keys, old, new)
    write_keys(keys, a_key("old", end=db.now()), new)
    ids += signed(db, marks, count, new)

    eventually(lambda: _left(db) == 0, timeout=60 + count / 20)

    assert _states(db, ids) == {JobState.COMPLETED: 2 * count}
    assert set(marks.words()) == {f"{key}-{i}" for key in ("old", "new") for i in range(count)}
    assert db.audit(verb="signing.refuse") == []


@only_here
@many
@pytest.mark.timeout(1200)
def test_a_revocation_while_jobs_run_stops_those_that_had_not_begun(
    start: Callable[..., Worker], db: Store, keys: Path, marks: Marks, count: int
) -> None:
    """S11: each job either ran to its end or is DEAD and left no mark; none is left"""
    ids = signed(db, marks, count)
    for _ in range(2):
        start(app=APP, signing={"file": str(keys), "required": ["*"]}, concurrency=CROWD)
    eventually(lambda: len(marks.words()) >= count // 10, timeout=120)

    db.revoke_signer("web", "kim", "stolen")
    eventually(lambda: _left(db) == 0, timeout=60 + count / 20)

    states = _states(db, ids)
    assert set(states) <= {JobState.COMPLETED, JobState.DEAD}, states
    assert len(set(marks.words())) == states[JobState.COMPLETED]
    assert sum(states.values()) == count


def _states(db: Store, ids: list[str]) -> Counter[JobState]:
    """One by one: counts for people end at some thousands."""
    parts = [db.get_many(ids[start : start + 500]) for start in range(0, len(ids), 500)]
    return Counter(found.job.state for part in parts for found in part.values())


def _left(db: Store) -> int:
    counts = db.counts()
    return sum(counts.get(state, 0) for state in (JobState.QUEUED, JobState.RUNNING))
