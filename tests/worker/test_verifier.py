"""Between the claim and the executors: what somebody with SQL changed never starts, on either database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Leap, StoreClock
from tests.support.builders import a_job, a_worker, boom, claim_all, kinds, record, settle, submitted
from tests.support.eventually import eventually
from tests.support.schedules import come, fired, made
from tests.support.signing import EVERYWHERE, Desk, a_key, attach, envelope_of, literal, write_keys
from tests.support.troubles import execute, holding, raising
from tests.tiers import in_tiers
from unstuck.assembly.janitor import build_janitor
from unstuck.assembly.worker import WorkerOptions, life_of
from unstuck.chance import SystemChance
from unstuck.clock import FakeClock, MachineClock
from unstuck.intake.signing import SigningDoor
from unstuck.model.errors import InvalidSettings, StoreUnavailable
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import MAX_PAYLOAD
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope, Purpose
from unstuck.model.times import Times
from unstuck.signing import SignatureRule, SigningKey, SigningKeys
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.leaps import Witness
from unstuck.store.port import FeedFilter, NewChild, SignedFacts, Store
from unstuck.store.sql_store import SqlStore
from unstuck.worker.claim import Claimer
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.readiness import Readiness
from unstuck.worker.served import Served
from unstuck.worker.shares import FreeRoom
from unstuck.worker.shutdown import Shutdown
from unstuck.worker.verifier import Verifier


def signed(store: Store, url: str, key: SigningKey | None = None, **options: Any) -> NewJob:
    """A job in the queue, with its envelope. Options of both."""
    names = ("policy_text", "ago", "life", "accepted_at", "expires_at", "not_before", "signature")
    about = {name: options.pop(name) for name in names if name in options}
    if "policy_text" in about:
        about["policy"] = about.pop("policy_text")
    job = submitted(store, **options)
    attach(url, (job, envelope_of(store, job, key, **about)))
    return job


def test_what_a_schedule_fires_is_signed_by_a_key_of_the_purpose_fire(store: Store, clock: StoreClock) -> None:
    made(store)
    keys = SigningKeys([a_key("ticker", purposes=("fire",))], EVERYWHERE)
    come(store, clock)
    build_janitor(store, Times(), signing=lambda: keys).tick()
    [job] = Desk(store, keys).admitted()
    assert job.id == fired(store)[-1].job
    come(store, clock)
    # Who has none does not fire it unsigned, and the tick says why there is no job. A key for children does not sign
    # it: its row may be anybody's who can write the database, or an operator's with an API key.
    build_janitor(
        store, Times(), signing=lambda: SigningKeys([a_key(purposes=("submit", "spawn"))], EVERYWHERE)
    ).tick()
    last = fired(store)[-1]
    assert (last.outcome, last.job) == ("refused", None)
    assert "a signature is required" in (last.reason or "")


def test_what_a_schedule_fired_is_so_as_long_as_its_row_is_there(store: Store, clock: StoreClock) -> None:
    """It failed late, and is resumed after the history of its schedule was forgotten"""
    made(store, policy={"retries": 0})
    keys = SigningKeys([a_key("ticker", purposes=("fire",))], EVERYWHERE)
    come(store, clock)
    build_janitor(store, Times(), signing=lambda: keys).tick()
    clock.advance(hours=3)
    desk = Desk(store, keys)
    [job] = desk.admitted()
    settle(store, desk.worker, job.ref, boom())

    store.forget_firings(3600.0)
    store.resume("default", job.id, "kim")

    assert [found.id for found in desk.admitted()] == [job.id]


def test_a_child_outlives_its_parents_row(store: Store, clock: StoreClock) -> None:
    """It was left to run by itself, fails late, and is resumed when nobody remembers who spawned it"""
    keys = SigningKeys([a_key(), a_key("spawner", purposes=("spawn",))])
    desk, door = Desk(store, keys), SigningDoor(keys, store)
    submitted(store, workflow="parent")
    [parent] = desk.admitted()
    child = door.made(a_job(retries=0), "parent")
    store.spawn(NewChild(parent.ref, "c", 1, child, "leave"))
    settle(store, desk.worker, parent.ref)
    clock.advance(hours=2)
    assert store.forget_ended(60.0) == 1
    desk = Desk(store, keys)
    [attempt] = desk.admitted()
    settle(store, desk.worker, attempt.ref, boom())

    store.resume("default", child.id, "kim")

    assert [found.id for found in desk.admitted()] == [child.id]
    assert record(store, child.id).made_by == "parent"


@pytest.mark.parametrize(
    ("purpose", "made_by"),
    [("submit", "'parent'"), ("spawn", "NULL"), ("spawn", "'schedule'"), ("fire", "'parent'"), ("spawn", "'nobody'")],
)
def test_who_made_a_job_cannot_be_changed_beside_its_key(
    store: Store, store_url: str, purpose: Purpose, made_by: str
) -> None:
    """It is not signed: that would make of each key one that could sign anything"""
    job = signed(store, store_url, a_key(purposes=(purpose,)))
    execute(store_url, f"UPDATE unstuck_jobs SET made_by = {made_by} WHERE uid = {literal(job.id)}")

    assert Desk(store, a_key(purposes=(purpose,))).admitted() == []
    refused(store, job.id, "wrong_purpose")


def refused(store: Store, job: str, problem: str, tenant: str = "default") -> None:
    found = record(store, job, tenant)
    assert (found.state, found.error_type) == (JobState.DEAD, "SignatureInvalid"), found
    actions = [action for action in store.audit(verb="signing.refuse") if action.subject == job]
    assert [action.detail["problem"] for action in actions] == [problem]


def test_a_signed_job_may_run(store: Store, store_url: str) -> None:
    job = signed(store, store_url, target="t", priority=3, timeout=7.0, policy_text='{"timeout": 7.0}')
    store.ingest()

    [admitted] = Desk(store).admitted()

    assert admitted.id == job.id
    assert record(store, job.id).state is JobState.RUNNING


def test_what_is_refused_is_dead_at_once_with_all_that_belongs_to_it(store: Store, store_url: str) -> None:
    """A42: dead letter with reason and envelope, event, audit, notification, news; its handler never began"""
    job = signed(store, store_url, max_retries=5)
    execute(store_url, f"""UPDATE unstuck_jobs SET payload = '{{"args":[666]}}' WHERE uid = {literal(job.id)}""")

    assert Desk(store).admitted() == []

    refused(store, job.id, "altered")
    found = record(store, job.id)
    assert found.error_message == "what is stored is not what was signed (signing key 'web')"
    assert (found.started, found.started_at, found.duration_ms) == (False, None, None)
    assert kinds(store, job.id) == ["submitted", "claimed", "buried"]
    [told] = [n for n in store.notifications("default") if n.workflow == job.workflow]
    assert told.title == "Dead letters: altered"
    wanted = FeedFilter(kinds=("security.signature_refused",))
    eventually(lambda: store.sequence() == 0)
    [news] = store.feed(store.feed_bounds().oldest, wanted, 10).events
    assert (news.job, news.data["problem"]) == (job.id, "altered")
    assert store.open_routes() == []


def _other(what: str) -> str:
    return f"(SELECT {what} FROM unstuck_jobs WHERE workflow = 'other')"


def _moved(to: str) -> str:
    """To the route of another job, with everything that the claim goes by."""
    route = f"(SELECT route FROM unstuck_jobs WHERE workflow = '{to}')"
    return (
        f"UPDATE unstuck_ready SET route = {route} WHERE job = (SELECT id FROM unstuck_jobs WHERE uid = :uid);"
        f"UPDATE unstuck_jobs SET route = {route} WHERE uid = :uid"
    )


TAMPERED: dict[str, str] = {
    "payload": "UPDATE unstuck_jobs SET payload = '{\"args\": [1]}' WHERE uid = :uid",
    "a space in the payload": "UPDATE unstuck_jobs SET payload = payload || ' ' WHERE uid = :uid",
    "tenant": "UPDATE unstuck_jobs SET tenant = 'other' WHERE uid = :uid",
    "queue": "UPDATE unstuck_jobs SET queue = 'other' WHERE uid = :uid",
    "workflow": "UPDATE unstuck_jobs SET workflow = 'other' WHERE uid = :uid",
    "priority": "UPDATE unstuck_jobs SET priority = 9 WHERE uid = :uid",
    "target": "UPDATE unstuck_jobs SET target = (SELECT id FROM unstuck_targets WHERE name = 'v') WHERE uid = :uid",
    "no target": "UPDATE unstuck_jobs SET target = NULL WHERE uid = :uid",
    "a target that is not there": "UPDATE unstuck_jobs SET target = 999999 WHERE uid = :uid",
    "the target's name": "UPDATE unstuck_targets SET name = 'elsewhere' WHERE name = 't'",
    "the target's tenant": "UPDATE unstuck_targets SET tenant = 'elsewhere' WHERE name = 't'",
    "policy": f"UPDATE unstuck_jobs SET policy = {_other('policy')} WHERE uid = :uid",
    "route": _moved("other"),
    "route and names": _moved("other") + "; UPDATE unstuck_jobs SET workflow = 'other', queue = 'q' WHERE uid = :uid",
    "signature of another": f"UPDATE unstuck_jobs SET signature = {_other('signature')} WHERE uid = :uid",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_every_field_that_is_signed_is_held_against_its_signature(store: Store, store_url: str, what: str) -> None:
    other = signed(store, store_url, workflow="other", queue="q", target="u", timeout=9.0)
    job = signed(store, store_url, target="t", timeout=5.0)
    submitted(store, target="v", on_hold=True)
    store.ingest()

    execute(store_url, TAMPERED[what].replace(":uid", literal(job.id)))

    assert [admitted.id for admitted in Desk(store).admitted()] == [other.id]
    tenant = "other" if what == "tenant" else "default"
    refused(store, job.id, "altered", tenant)


def test_another_id_is_another_job(store: Store, store_url: str) -> None:
    job = signed(store, store_url)
    execute(store_url, f"UPDATE unstuck_jobs SET uid = 'j-other' WHERE uid = {literal(job.id)}")

    assert Desk(store).admitted() == []
    refused(store, "j-other", "altered")


ENVELOPES: dict[str, tuple[Callable[[Envelope], Envelope | str | None], str]] = {
    "expiry": (lambda e: replace(e, expires_at=e.expires_at + 1), "altered"),
    "not before": (lambda e: replace(e, not_before=1), "altered"),
    "policy": (lambda e: replace(e, policy='{"retries":9}'), "altered"),
    "key": (lambda e: replace(e, key="web2"), "altered"),
    "a key that nobody knows": (lambda e: replace(e, key="nobody"), "unknown_key"),
    "bits": (lambda e: replace(e, signature=bytes([e.signature[0] ^ 1]) + e.signature[1:]), "altered"),
    "longer": (lambda e: replace(e, signature=e.signature + b"x"), "altered"),
    "never accepted": (lambda e: replace(e, accepted_at=None), "unreadable"),
    "accepted after its expiry": (lambda e: replace(e, accepted_at=e.expires_at), "expired"),
    "accepted long before": (lambda e: replace(e, accepted_at=e.expires_at - 8 * 86_400_000_000), "lives_too_long"),
    "cut": (lambda e: e.text()[:-2], "unreadable"),
    "empty": (lambda e: "", "unreadable"),
    "twice": (lambda e: e.text() * 2, "unreadable"),
    "another version": (lambda e: e.text().replace('"version":1', '"version":2'), "unreadable"),
    "a field too many": (lambda e: e.text().replace('"version":1', '"version":1,"alg":"none"'), "unreadable"),
    "endless": (lambda e: "x" * 300_000, "unreadable"),
    "none": (lambda e: None, "missing"),
}


@pytest.mark.parametrize("what", ENVELOPES)
def test_envelopes_that_were_changed_are_refused_for_what_they_are(store: Store, store_url: str, what: str) -> None:
    change, problem = ENVELOPES[what]
    job = submitted(store)
    attach(store_url, (job, change(envelope_of(store, job))))

    assert Desk(store, SigningKeys([a_key(), a_key("web2")], EVERYWHERE)).admitted() == []
    refused(store, job.id, problem)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_bytes_that_are_no_text_stop_nobody_else(store: Store, store_url: str) -> None:
    """SQLite keeps any bytes as text, and Python reads none of them"""
    job, fine = signed(store, store_url), signed(store, store_url)
    execute(store_url, f"UPDATE unstuck_jobs SET signature = CAST(x'ff00fe' AS TEXT) WHERE uid = {literal(job.id)}")

    assert [admitted.id for admitted in Desk(store).admitted()] == [fine.id]
    [action] = store.audit(verb="signing.refuse")
    assert (action.subject, action.detail["problem"]) == (job.id, "unreadable")
    assert store.counts()[JobState.DEAD] == 1


def test_a_key_signs_for_its_tenant_and_its_purpose_and_in_its_time(store: Store, store_url: str) -> None:
    now, hour = store.now(), timedelta(hours=1)
    keys = {
        "foreign_key": a_key("foreign", tenant="acme"),
        "wrong_purpose": a_key("spawner", purposes=("spawn",)),
        "not_yet": a_key("young", begin=now + hour),
        "key_ended": a_key("old", end=now - hour),
        "revoked": a_key("stolen", is_revoked=True),
    }
    jobs = {problem: signed(store, store_url, key) for problem, key in keys.items()}

    assert Desk(store, SigningKeys(keys.values(), EVERYWHERE)).admitted() == []

    for problem, job in jobs.items():
        refused(store, job.id, problem)


def test_an_accepted_job_does_not_die_because_it_waited(store: Store, store_url: str) -> None:
    """Its key has ended since, and its signature has expired; within the overlap it was accepted even later"""
    end = store.now() - timedelta(hours=2)
    ended = a_key("ended", end=end)
    overlapping = a_key("overlapping", end=end, overlap=7200.0)
    waited = signed(store, store_url, ended, ago=3 * 3600, life=60)
    late = signed(store, store_url, overlapping, ago=3600, life=60)

    found = Desk(store, SigningKeys([ended, overlapping], EVERYWHERE)).admitted()

    assert {job.id for job in found} == {waited.id, late.id}


def test_two_keys_in_overlap_both_verify(store: Store, store_url: str) -> None:
    """A44"""
    old, new = a_key("old"), a_key("new")
    jobs = {signed(store, store_url, key).id for key in (old, new)}

    assert {job.id for job in Desk(store, SigningKeys([old, new], EVERYWHERE)).admitted()} == jobs


def test_a_job_is_not_claimed_before_its_signed_time(store: Store, store_url: str) -> None:
    job = submitted(store, start_at=store.now() + timedelta(hours=1))
    attach(store_url, (job, envelope_of(store, job)))
    execute(
        store_url,
        "DELETE FROM unstuck_timers;"
        "INSERT INTO unstuck_ready (route, rank, job) SELECT route, rank, id FROM unstuck_jobs",
    )

    assert Desk(store).admitted() == []
    refused(store, job.id, "too_early")


def test_a_clock_that_is_set_back_makes_nothing_too_early_that_was_due(store_url: str, leap: Leap) -> None:
    """It began at its time and failed, or had become due; then the host's clock was mended by an hour"""
    store = SqlStore(open_database(store_url, witness=Witness()))
    soon = store.now() + timedelta(seconds=0.5)
    begun, due = (submitted(store, start_at=soon, retries=3, backoff_base=0.0) for _ in range(2))
    attach(store_url, (begun, envelope_of(store, begun)), (due, envelope_of(store, due)))
    desk, released = Desk(store), 0
    while released < 2:
        released += store.release_due()
    [attempt] = desk.admitted(1)
    settle(store, desk.worker, attempt.ref, boom())
    leap(-3600.0)
    store.now()
    store.release_due()

    assert {job.id for job in desk.admitted()} == {begun.id, due.id}
    store.close()


@pytest.mark.parametrize("rule", ["tenant:acme", "queue:q", "workflow:pay", "*"])
def test_an_unsigned_job_is_refused_exactly_where_a_signature_is_required(store: Store, rule: str) -> None:
    within = submitted(store, tenant="acme", queue="q", workflow="pay")
    beyond = submitted(store)

    found = Desk(store, SigningKeys([a_key()], [SignatureRule.of(rule)])).admitted()

    assert [job.id for job in found] == ([] if rule == "*" else [beyond.id])
    refused(store, within.id, "missing", "acme")


def test_a_worker_without_keys_verifies_nothing(store: Store, store_url: str) -> None:
    job = signed(store, store_url)
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(job.id)}")

    assert [found.id for found in Desk(store, SigningKeys()).admitted()] == [job.id]


def test_a_bad_signature_is_refused_also_where_none_is_required(store: Store, store_url: str) -> None:
    job, unsigned = signed(store, store_url), submitted(store)
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(job.id)}")

    assert [found.id for found in Desk(store, SigningKeys([a_key()])).admitted()] == [unsigned.id]
    refused(store, job.id, "altered")


# --- who is near --------------------------------------------------------------------------------------------------


def test_the_target_moves_on_and_dependants_hear_of_it(store: Store, store_url: str) -> None:
    bad = signed(store, store_url, target="t", on_failure="block")
    next_one = signed(store, store_url, target="t")
    dependant = submitted(store, after=(bad.id,))
    store.ingest()
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(bad.id)}")
    desk = Desk(store)

    assert desk.admitted() == []
    store.ingest()

    assert [job.id for job in desk.admitted()] == [next_one.id]
    assert record(store, dependant.id).state is JobState.FAILED


def test_a_cancel_that_was_asked_meanwhile_does_not_hide_it(store: Store, store_url: str) -> None:
    job = signed(store, store_url)
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(job.id)}")
    desk = Desk(store)
    claim = claim_all(store, desk.worker)
    store.cancel("default", job.id, "kim")

    assert desk.verifier.admitted(claim[0].ref.claim, claim) == []
    refused(store, job.id, "altered")


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_what_cannot_be_buried_at_once_is_the_settlers_and_never_goes_back(store: Store, store_url: str) -> None:
    job, fine = signed(store, store_url), signed(store, store_url)
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(job.id)}")
    desk = Desk(store)

    with holding(store_url, "unstuck_jobs", f"uid = {literal(job.id)}"):
        found = desk.admitted()
        assert [admitted.id for admitted in found] == [fine.id]
        with desk.ledger.still() as told:
            settling = told.settling
        refs = [admitted.ref for admitted in found]
        assert store.beat(desk.worker.number, 30.0, refs, settling=settling).unheld == ()

    assert [report.ref.job for report in desk.kept] == [ref.job for ref in settling]
    store.settle(desk.worker.number, desk.kept)
    refused(store, job.id, "altered")


def test_a_letter_that_cannot_be_written_keeps_nobody_else_from_running(store: Store, store_url: str) -> None:
    """Somebody's trigger raises for the letters of one workflow: its jobs never run, and all others go on"""
    unwritable, written = signed(store, store_url, workflow="bad"), signed(store, store_url)
    fine = [signed(store, store_url) for _ in range(3)]
    for job in (unwritable, written):
        execute(store_url, f"UPDATE unstuck_jobs SET payload = '[]' WHERE uid = {literal(job.id)}")
    desk = Desk(store)

    with raising(store_url, "unstuck_dead_letters", "NEW.workflow = 'bad'"):
        assert {job.id for job in desk.admitted()} == {job.id for job in fine}
        refused(store, written.id, "altered")
        later = signed(store, store_url)
        assert [job.id for job in desk.admitted()] == [later.id]
        assert record(store, unwritable.id).state is JobState.RUNNING, "of no handler: it waits for its end"

    store.settle(desk.worker.number, desk.kept)  # as the settler does, which keeps it
    refused(store, unwritable.id, "altered")


def test_of_large_payloads_every_byte_is_verified(store: Store, store_url: str) -> None:
    """So large that a claim answers without them, and they are read behind its commit"""
    text = f'{{"args":["{"x" * (MAX_PAYLOAD - 20)}"]}}'
    fine, altered = (signed(store, store_url, payload=text) for _ in range(2))
    change = f"""UPDATE unstuck_jobs SET payload = replace(payload, 'x"]', 'y"]') WHERE uid = {literal(altered.id)}"""
    execute(store_url, change)

    [admitted] = Desk(store).admitted()

    assert (admitted.id, len(admitted.payload)) == (fine.id, len(text))
    refused(store, altered.id, "altered")


class Blind:
    """A store that answers claims and no questions about signatures."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def signed_facts(self, worker: int, claim: str) -> SignedFacts:
        raise StoreUnavailable("gone for a moment")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def a_claimer(store: Any, worker: int, ledger: Ledger, held: HeldKeys) -> Claimer:
    clock = FakeClock()
    return Claimer(
        store,
        worker,
        ledger,
        Pace(),
        Times(),
        clock,
        SystemChance(),
        name="ada",
        before_first=lambda: None,
        landed=lambda: None,
        verifier=Verifier(store, worker, ledger, held, clock, report=lambda _: None),
    )


def test_if_nobody_can_tell_the_jobs_go_back_uncharged_and_none_is_admitted(store: Store, store_url: str) -> None:
    job = signed(store, store_url)
    worker, ledger = a_worker(store), Ledger()
    claimer = a_claimer(Blind(store), worker.number, ledger, HeldKeys(SigningKeys([a_key()])))
    claimer.serve(Served.of([WorkflowRecord(job.workflow, "v1", "default", Policy(), {})], ()))
    ledger.publish(FreeRoom(4))

    with pytest.raises(StoreUnavailable):
        claimer.tick()

    assert ledger.is_empty
    assert ledger.take_fresh() == []
    assert len(store.beat(worker.number, 30.0, []).unheld) == 1
    found = record(store, job.id)
    assert (found.state, found.failures, found.losses) == (JobState.QUEUED, 0, 0)


# --- revoked keys -------------------------------------------------------------------------------------------------


def test_a_revoked_key_starts_nothing_and_a_run_that_has_begun_goes_on(store: Store, store_url: str) -> None:
    begun, desk = signed(store, store_url, retries=3, backoff_base=0.0), Desk(store)
    [attempt] = desk.admitted()
    waiting = signed(store, store_url)
    store.revoke_signer("web", "kim", "stolen")
    settle(store, desk.worker, attempt.ref, boom())
    store.release_due()

    found = desk.admitted()

    assert [job.id for job in found] == [begun.id], "its second attempt, of the same run"
    refused(store, waiting.id, "revoked")
    settle(store, desk.worker, found[0].ref)


def test_a_resume_is_a_new_run_and_is_judged_anew(store: Store, store_url: str) -> None:
    job, desk = signed(store, store_url, retries=0), Desk(store)
    for _ in range(2):
        [attempt] = desk.admitted()
        settle(store, desk.worker, attempt.ref, boom())
        store.resume("default", job.id, "kim")
    store.revoke_signer("web", "kim")

    assert desk.admitted() == []
    refused(store, job.id, "revoked")


def test_a_revocation_is_kept_once_and_can_be_taken_back(store: Store, store_url: str) -> None:
    first, is_new = store.revoke_signer("web", "kim", "stolen")
    again, is_new_again = store.revoke_signer("web", "ada", "lost")
    assert (is_new, is_new_again) == (True, False)
    assert (again, store.revoked_signers()) == (first, [first])
    assert (first.key, first.revoked_by, first.reason) == ("web", "kim", "stolen")

    assert store.unrevoke_signer("web", "ada") == first
    assert store.unrevoke_signer("web", "ada") is None

    signed(store, store_url)
    assert len(Desk(store).admitted()) == 1
    verbs = [(action.verb, action.by) for action in store.audit(verb="signing")]
    assert verbs == [("signing.unrevoke", "ada"), ("signing.revoke", "kim")]


def test_what_the_file_revokes_no_row_brings_back(store: Store, store_url: str, tmp_path: Path) -> None:
    """Nor one that says that the run has begun: which claim is the first is the database's word"""
    file = str(write_keys(tmp_path / "keys.toml", a_key()))
    desk = Desk(store, HeldKeys(SigningKeys([a_key()], EVERYWHERE), file, every=0.0))
    job = signed(store, store_url, retries=3, backoff_base=0.0)
    [attempt] = desk.admitted()
    settle(store, desk.worker, attempt.ref, boom())
    store.release_due()
    write_keys(tmp_path / "keys.toml", a_key(is_revoked=True))

    assert desk.admitted() == []
    refused(store, job.id, "revoked")


@pytest.mark.timeout(60)
@in_tiers("jobs", few=60, all_=400)
def test_no_claim_that_begins_after_a_revocation_starts_a_job(store: Store, store_url: str, jobs: int) -> None:
    """S11: two workers claim one by one while a key is revoked"""
    new = [a_job() for _ in range(jobs)]
    store.submit(new)
    attach(store_url, *((job, envelope_of(store, job)) for job in new))
    clock = MachineClock()
    started: list[tuple[float, str]] = []
    half = threading.Event()

    def work() -> None:
        desk = Desk(store)
        while True:
            began = clock.boot()
            claim = claim_all(store, desk.worker, 1)
            if not claim:
                return
            started.extend((began, job.id) for job in desk.verifier.admitted(claim[0].ref.claim, claim))
            if len(started) >= jobs // 3:
                half.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert half.wait(30)
    store.revoke_signer("web", "kim")
    revoked_at = clock.boot()
    for thread in threads:
        thread.join()

    late = [job for began, job in started if began > revoked_at]
    assert late == []
    states = {job.id: record(store, job.id).state for job in new}
    assert {states[job] for _, job in started} == {JobState.RUNNING}
    assert sum(state is JobState.DEAD for state in states.values()) == jobs - len(started)


# --- the keys that a worker holds ---------------------------------------------------------------------------------


def test_keys_are_read_again_when_their_file_changes_a_beat_later(tmp_path: Path) -> None:
    file = write_keys(tmp_path / "keys.toml", a_key())
    held = HeldKeys(SigningKeys([a_key()], [SignatureRule("*")]), str(file), every=10.0)
    assert [key.id for key in held.at(0.0)] == ["web"]

    write_keys(file, a_key(), a_key("new"))

    assert [key.id for key in held.at(9.0)] == ["web"]
    assert [key.id for key in held.at(10.0)] == ["web", "new"]
    assert held.at(10.0).requires("any", "any", "any")


def test_nothing_is_refused_for_a_key_that_stands_in_the_file_by_now(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    """Who adds a key and signs with it at once must not lose what is claimed before the next look"""
    file, new = write_keys(tmp_path / "keys.toml", a_key()), a_key("new")
    held = HeldKeys(SigningKeys([a_key()], EVERYWHERE), str(file), every=3600.0)
    desk, _ = Desk(store, held), held.at(MachineClock().boot())
    write_keys(file, a_key(), new)

    job = signed(store, store_url, new)

    assert [found.id for found in desk.admitted()] == [job.id]


def test_a_file_that_cannot_be_read_changes_nothing_and_is_told(tmp_path: Path) -> None:
    file = write_keys(tmp_path / "keys.toml", a_key())
    held = HeldKeys(SigningKeys([a_key()]), str(file), every=1.0)
    file.write_text("[[key]]\nid = 'broken")

    assert [key.id for key in held.at(0.0)] == ["web"]
    assert "signing keys" in held.troubles

    write_keys(file, a_key("new"))
    assert [key.id for key in held.at(1.0)] == ["new"]
    assert held.troubles == {}


def test_a_worker_that_claims_nothing_knows_what_its_file_says_by_now(store: Store, tmp_path: Path) -> None:
    """Else an idle one would say that all is well, or for hours that it cannot read what was mended"""
    file = write_keys(tmp_path / "keys.toml", a_key())
    held = HeldKeys(SigningKeys([a_key()]), str(file), every=0.0)
    claimer = a_claimer(store, a_worker(store).number, Ledger(), held)
    file.write_text("[[key]]\nid = 'broken")

    claimer.tick()
    assert "signing keys" in held.troubles

    write_keys(file, a_key("new"))
    claimer.tick()
    assert held.troubles == {}


def test_what_was_changed_before_the_first_look_is_read(tmp_path: Path) -> None:
    """Settings are read first, and a worker is built some time after"""
    file = write_keys(tmp_path / "keys.toml", a_key(is_revoked=True))
    held = HeldKeys(SigningKeys([a_key()], EVERYWHERE), str(file), every=10.0)

    assert [key.is_revoked for key in held.at(0.0)] == [True]

    file.unlink()
    gone = HeldKeys(SigningKeys([a_key()], EVERYWHERE), str(file), every=10.0)
    assert [key.id for key in gone.at(0.0)] == ["web"]
    assert "signing keys" in gone.troubles


def test_the_next_incarnation_does_not_forget_what_the_file_revoked(tmp_path: Path) -> None:
    """A worker that was stopped for a while, or lost its lease, begins anew; its process has the settings of its
    start, in which the key was good. The file may be away just then, too."""
    file, clock = write_keys(tmp_path / "keys.toml", a_key()), MachineClock()
    options = WorkerOptions(
        "none:app", f"sqlite:///{tmp_path}/u.db", signing=SigningKeys([a_key()], EVERYWHERE), signing_file=str(file)
    )
    begin = life_of(options, Readiness())
    first = begin(Shutdown(Times())).parts.keys
    write_keys(file, a_key(is_revoked=True))
    assert [key.is_revoked for key in first.at(clock.boot(), at_once=True)] == [True]
    file.unlink()

    second = begin(Shutdown(Times())).parts.keys

    assert [key.is_revoked for key in second.at(clock.boot(), at_once=True)] == [True]


def test_code_that_requires_a_signature_where_there_is_no_key_is_refused() -> None:
    """A44"""
    with pytest.raises(
        InvalidSettings, match=r"a signature is required \(workflow:pay\), and there is no signing key"
    ):
        HeldKeys().require(["pay"])

    held = HeldKeys(SigningKeys([a_key()]))
    held.require(["pay"])
    assert held.at(0.0).requires("any", "any", "pay")
    assert not held.at(0.0).requires("any", "any", "other")
