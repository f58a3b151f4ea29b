"""Dead letters as people ask for them: who may do what, what is signed anew, what a canary is for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import msgspec
import pytest

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.support.builders import TENANT, boom, claim_all, claimed, record, settle
from tests.support.burying import Graveyard
from tests.support.troubles import execute
from unstuck.intake.bulks import is_everything
from unstuck.model.dead_letters import REASONS
from unstuck.model.errors import (
    CanaryNotCompleted,
    IllegalMove,
    InvalidInput,
    NeedsSignature,
    NoDeadLetter,
    NoSigningKey,
    NotPermitted,
    OtherCount,
    SignatureRefused,
    UnknownJob,
)
from unstuck.model.job import Maker, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope, SignatureProblem, purpose_of
from unstuck.operations import dead_letters, health, jobs, metrics
from unstuck.operations.table import OPERATOR, PLATFORM_ADMIN, READER, SUBMITTER, TENANT_ADMIN, Caller
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import JobFilter, LetterTerms
from unstuck.store.sql_store import SqlStore
from unstuck.views import as_json

K1 = SigningKey("k1", "hmac-sha256", secret=b"1" * 32)
K2 = SigningKey("k2", "hmac-sha256", secret=b"2" * 32, purposes=("submit", "spawn"))
KEYS = SigningKeys([K1, K2])
DAY = timedelta(days=1)


@pytest.fixture
def graveyard(store: SqlStore, store_url: str) -> Graveyard:
    return Graveyard(store, store_url)


def stored_call(store: SqlStore, job: str, **changed: Any) -> StoredCall:
    at = record(store, job)
    call = StoredCall(
        at.id, at.tenant, at.workflow, at.queue, at.target, at.priority, at.payload, at.policy, purpose="submit"
    )
    return replace(call, **changed)


def envelope_of(graveyard: Graveyard, job: str) -> Envelope:
    found = Envelope.of(graveyard.signature(record(graveyard.store, job).number) or "")
    assert found is not None
    return found


def facts_of(made: Envelope) -> dict[str, Any]:
    import json

    facts: dict[str, Any] = json.loads(made.text())
    return facts


# --- look ---------------------------------------------------------------------------------------------------------


def test_a_letter_is_shown_with_its_whole_envelope_and_how_it_came_there(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    text = Envelope("k1", 5, b"s" * 32, policy='{"retries":0}', accepted_at=3).text()
    payload = '{"args":[1],"kwargs":{"b":2}}'
    job = graveyard.bury(SignatureProblem.REVOKED, signature=text, payload=payload)

    (listed,) = dead_letters.list_(ask())
    whole = dead_letters.get(ask(), job[:13])

    assert (listed.job, listed.reason, listed.key, listed.run) == (job, "revoked", "k1", 1)
    assert listed.until_at == listed.since_at + DAY
    assert (whole.payload, whole.args, whole.kwargs) == (payload, (1,), {"b": 2})
    assert (whole.signature["key"], whole.signature["policy"]) == ("k1", '{"retries":0}')
    assert (whole.state, whole.policy.retries) == (JobState.DEAD, 0)
    assert [event.kind for event in whole.history] == ["submitted", "claimed", "buried"]
    assert jobs.get(ask(), job).dead_letter == "revoked"
    with pytest.raises(NoDeadLetter):
        dead_letters.get(ask(), claimed(store, graveyard.worker).id)


def test_a_reader_sees_nothing_that_is_hidden_of_jobs(graveyard: Graveyard, store: SqlStore, ask: Ask) -> None:
    secret = WorkflowRecord("pay", "v1", "default", Policy(), {"x-positional": ["card"]}, redact=("card",))
    store.register_workflows([secret])
    job = graveyard.bury(workflow="pay", payload='{"args":["4111"],"kwargs":{}}')

    for role, seen in ((READER, None), (TENANT_ADMIN, '{"args":["4111"],"kwargs":{}}')):
        caller = ask(role=role)
        whole, (exported,) = dead_letters.get(caller, job), dead_letters.export(caller)
        assert (whole.payload, exported.payload) == (seen, seen)
        assert ("4111" in str(whole.args)) is (seen is not None)


def test_an_export_has_all_of_them_page_by_page(graveyard: Graveyard, ask: Ask) -> None:
    jobs_ = [graveyard.bury(payload=f'{{"args":[{number}],"kwargs":{{}}}}') for number in range(5)]
    seen, after = list[str](), None
    while True:
        page = dead_letters.export(ask(), limit=2, after=after)
        seen += [each.job for each in page]
        after = page.next
        if after is None:
            break

    assert seen == jobs_[::-1]


def test_an_export_stops_where_it_is_large(graveyard: Graveyard, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs_ = [graveyard.bury(payload='{"args":["' + "x" * 1000 + '"],"kwargs":{}}') for _ in range(3)]
    monkeypatch.setattr("unstuck.operations.bounds.MOST_CHARACTERS", 1500)

    first = dead_letters.export(ask())
    second = dead_letters.export(ask(), after=first.next)

    assert [each.job for each in first] == [jobs_[2], jobs_[1]]
    assert [each.job for each in second] == [jobs_[0]]


def test_a_list_stops_where_envelopes_are_large(
    graveyard: Graveyard, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs_ = [graveyard.bury(signature="x" * 1000) for _ in range(3)]
    for place in ("operations.bounds", "store.guard.dead_letters"):
        monkeypatch.setattr(f"unstuck.{place}.MOST_CHARACTERS", 1500)

    first = dead_letters.list_(ask())
    second = dead_letters.list_(ask(), after=first.next)

    assert [each.job for each in first] == [jobs_[2], jobs_[1]]
    assert [each.job for each in second] == [jobs_[0]]
    assert (first[0].key, dead_letters.get(ask(), jobs_[0]).signature) == (None, "x" * 1000)


def test_what_somebody_wrote_into_the_row_hides_no_letter(graveyard: Graveyard, store_url: str, ask: Ask) -> None:
    deep = "[" * 50_000
    bad, good = graveyard.bury(signature=deep), graveyard.bury()
    execute(store_url, f"UPDATE unstuck_jobs SET payload = '{deep}' WHERE uid = '{bad}'")

    whole = dead_letters.get(ask(), bad)

    assert (whole.payload, whole.signature, whole.args, whole.key) == (deep, deep, (deep,), None)
    assert [each.job for each in dead_letters.export(ask())] == [good, bad]
    assert as_json(whole)


NO_CALLS = (
    '{"args":null}',
    '{"args":5,"kwargs":{}}',
    '{"args":[],"kwargs":[1]}',
    '{"args":[NaN,-Infinity]}',
    '{"kwargs":{"n":1e999}}',
    '{"args":["\\ud800"]}',
    "null",
    "",
)


@pytest.mark.parametrize("hidden", [(), ("card",)], ids=["all shown", "some hidden"])
def test_every_letter_is_a_line_of_json_whatever_somebody_wrote_into_its_row(
    hidden: tuple[str, ...], graveyard: Graveyard, store: SqlStore, store_url: str, ask: Ask
) -> None:
    store.register_workflows([WorkflowRecord("pay", "v1", "q", Policy(), {"x-positional": ["card"]}, redact=hidden)])
    buried = [graveyard.bury(workflow="pay", signature=text) for text in NO_CALLS]
    for job, text in zip(buried, NO_CALLS, strict=True):
        execute(store_url, f"UPDATE unstuck_jobs SET payload = '{text}' WHERE uid = '{job}'")
    caller = ask(role=READER)

    lines = [as_json(letter).encode(errors="replace") for letter in dead_letters.export(caller)]

    assert [msgspec.json.decode(line)["job"] for line in lines] == buried[::-1]
    for job in buried:
        for view in (dead_letters.get(caller, job), jobs.get(caller, job), jobs.why(caller, job)):
            msgspec.json.decode(as_json(view).encode(errors="replace"))
    assert jobs.list_(ask(), argument=("card", 1)).items == ()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_bytes_that_are_no_text_hide_no_other_job(graveyard: Graveyard, store_url: str, ask: Ask) -> None:
    """SQLite keeps any bytes as text, and Python reads none of them"""
    bad, good = graveyard.bury(), graveyard.bury()
    execute(store_url, f"UPDATE unstuck_jobs SET payload = CAST(x'7b7dff' AS TEXT) WHERE uid = '{bad}'")

    exported = dead_letters.export(ask()).items

    assert [(each.job, each.payload) for each in exported] == [(good, "{}"), (bad, "\ufffd{}\ufffd")]
    assert {each.id for each in jobs.list_(ask())} == {bad, good}
    assert jobs.why(ask(), bad).reasons
    assert jobs.get(ask(), bad).args == ("\ufffd{}\ufffd",)


def test_filters_are_checked_and_count_as_they_list(graveyard: Graveyard, ask: Ask) -> None:
    graveyard.bury(SignatureProblem.ALTERED)
    graveyard.bury(SignatureProblem.EXPIRED, workflow="mail")
    now = ask().store.now()

    def listed(**asked: Any) -> int:
        assert dead_letters.count(ask(), **asked).number == len(dead_letters.list_(ask(), **asked))
        return len(dead_letters.list_(ask(), **asked))

    assert listed() == 2
    assert listed(reason="expired") == listed(workflow="mail") == 1
    assert listed(before=now - timedelta(hours=1)) == listed(queue="nowhere") == 0
    assert listed(since=now - timedelta(hours=1)) == 2
    with pytest.raises(InvalidInput, match="reason='gone' is none of missing, "):
        dead_letters.list_(ask(), reason="gone")
    with pytest.raises(InvalidInput):
        dead_letters.list_(ask(), limit=0)
    assert not is_everything(JobFilter(letter=LetterTerms()))


def test_what_is_set_aside_is_among_them_and_redriven_by_the_quarantine(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    dead, stuck = graveyard.bury(), claimed(store, graveyard.worker)
    store.quarantine("settle", {stuck.ref.job: "CheckViolation: no"}, by="worker 1")
    store.quarantine("start", {record(store, dead).number: "held"}, by="sweep")

    found = dead_letters.list_(ask())
    assert [(each.job, each.reason, each.number is None) for each in found] == [
        (stuck.id, "set_aside", True),
        (dead, "altered", False),
    ]
    assert found[0].message == "settle: CheckViolation: no"
    assert [each.job for each in dead_letters.list_(ask(), reason="set_aside")] == [stuck.id]
    assert dead_letters.list_(ask(tenant="acme"), reason="set_aside").items == ()

    assert dead_letters.redrive(ask(), stuck.id).state is JobState.RUNNING
    assert [each.tried_at.year for each in store.quarantined() if each.duty == "settle"] == [1970]
    with pytest.raises(InvalidInput, match="unstuck quarantine retry"):
        dead_letters.redrive_all(ask(), reason="set_aside")
    with pytest.raises(NoDeadLetter):
        dead_letters.discard(ask(), stuck.id)


# --- who ----------------------------------------------------------------------------------------------------------


def test_roles(graveyard: Graveyard, ask: Ask) -> None:
    job, worn = graveyard.bury(), graveyard.exhaust()
    keys = {"signing": lambda: KEYS}

    for role in (READER, SUBMITTER):
        assert dead_letters.get(ask(role=role), job).job == job
        for verb in (dead_letters.redrive, dead_letters.discard, dead_letters.resign):
            with pytest.raises(NotPermitted):
                verb(ask(role=role), job)
    with pytest.raises(NotPermitted, match=r"dead_letters\.resign needs the role tenant-admin"):
        dead_letters.resign(ask(role=OPERATOR, **keys), job)
    with pytest.raises(NotPermitted, match="needs the role platform-admin"):
        dead_letters.resign(ask(role=TENANT_ADMIN, **keys), job)
    with pytest.raises(NotPermitted, match="never run needs the role tenant-admin"):
        dead_letters.redrive(ask(role=OPERATOR), job, force=True)
    with pytest.raises(NotPermitted, match="never run needs the role tenant-admin"):
        dead_letters.redrive_all(ask(role=OPERATOR), reason="altered", force=True)
    assert dead_letters.redrive(ask(role=OPERATOR), worn).state is JobState.QUEUED
    assert dead_letters.resign(ask(role=PLATFORM_ADMIN, **keys), job).state is JobState.QUEUED


def test_a_tenant_and_a_limited_key_see_and_touch_only_theirs(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    ours, foreign = graveyard.bury(tenant="acme", queue="default"), graveyard.bury(tenant="other")
    caller = ask(role=TENANT_ADMIN, bound="acme", signing=lambda: KEYS)
    mails: Caller = ask(role=OPERATOR, tenant="acme", workflows=frozenset({"mail"}))
    assert mails.within == Within(None, frozenset({"mail"}))

    assert [each.job for each in dead_letters.list_(caller)] == [ours]
    assert dead_letters.list_(mails).items == dead_letters.export(mails).items == ()
    for who, job in ((caller, foreign), (mails, ours)):
        for verb in (dead_letters.get, dead_letters.redrive, dead_letters.discard):
            with pytest.raises(UnknownJob):
                verb(who, job)
    with pytest.raises(UnknownJob):
        dead_letters.resign(caller, foreign)
    assert {each.job for each in dead_letters.list_(ask(tenant="*"))} == {ours, foreign}
    assert record(store, foreign, "other").state is JobState.DEAD


# --- sign anew ----------------------------------------------------------------------------------------------------


def test_signed_anew_by_a_key_of_the_process_it_verifies_and_completes(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    asked = Envelope("k0", 5, b"s" * 32, policy='{"grace":10.0}', accepted_at=3).text()
    job = graveyard.bury(SignatureProblem.UNKNOWN_KEY, signature=asked, payload='{"args":[1],"kwargs":{}}')

    after = dead_letters.resign(ask(signing=lambda: KEYS), job)

    assert (after.state, after.run) == (JobState.QUEUED, 2)
    made = envelope_of(graveyard, job)
    assert (made.key, made.policy, made.not_before) == ("k2", '{"grace":10.0}', None)
    assert KEYS.problem_at_claim(stored_call(store, job), made, store.now()) is None
    altered = stored_call(store, job, payload='{"args":[2],"kwargs":{}}')
    assert KEYS.problem_at_claim(altered, made, store.now()) is SignatureProblem.ALTERED
    (attempt,) = claim_all(store, graveyard.worker)
    settle(store, graveyard.worker, attempt.ref)
    assert record(store, job).state is JobState.COMPLETED
    assert [line.verb for line in store.audit(TENANT, subject=job)] == ["dead_letters.resign"]


def test_without_a_key_it_is_refused_with_the_remedy(graveyard: Graveyard, store: SqlStore, ask: Ask) -> None:
    job = graveyard.bury()
    only_children = SigningKeys([replace(K1, purposes=("spawn",))])
    ended = SigningKeys([replace(K1, end=store.now() - timedelta(seconds=1))])

    for keys in (SigningKeys(), only_children, ended):
        with pytest.raises(NoSigningKey, match="give a signature that was made elsewhere"):
            dead_letters.resign(ask(signing=lambda keys=keys: keys), job)
    assert (record(store, job).state, len(dead_letters.list_(ask()))) == (JobState.DEAD, 1)


@pytest.mark.parametrize("maker", get_args(Maker))
def test_what_the_engine_made_is_signed_by_a_key_for_that(
    graveyard: Graveyard, ask: Ask, store: SqlStore, maker: Maker
) -> None:
    """Whatever became of what made it; a tag that looks like a schedule's is anybody's"""
    job, submitted = graveyard.bury(made_by=maker), graveyard.bury(tags=("schedule:nightly",))
    keys = SigningKeys([K1, replace(K2, purposes=("spawn", "fire"))])

    for each in (job, submitted):
        dead_letters.resign(ask(signing=lambda: keys), each)

    assert (envelope_of(graveyard, job).key, envelope_of(graveyard, submitted).key) == ("k2", "k1")
    call = stored_call(store, job, purpose=purpose_of(maker))
    assert keys.problem_at_claim(call, envelope_of(graveyard, job), store.now()) is None


def test_a_signature_that_was_made_elsewhere_is_verified_where_there_are_keys(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    job, other = graveyard.bury(), graveyard.bury()
    made = facts_of(KEYS.sign(K1, stored_call(store, job), store.now()))
    caller = ask(role=TENANT_ADMIN, signing=lambda: KEYS)

    with pytest.raises(SignatureRefused) as refused:
        dead_letters.resign(caller, other, signature=made)
    assert refused.value.problem == "altered"
    with pytest.raises(InvalidInput, match="there is no field colour"):
        dead_letters.resign(caller, job, signature={**made, "colour": 1})
    with pytest.raises(InvalidInput, match="it expired"):
        dead_letters.resign(ask(role=TENANT_ADMIN), job, signature={**made, "expires_at": 5})

    dead_letters.resign(caller, job, signature=made)

    assert KEYS.problem_at_claim(stored_call(store, job), envelope_of(graveyard, job), store.now()) is None


def test_a_signature_for_ever_keeps_the_row_no_longer_than_any_may_live(
    graveyard: Graveyard, store: SqlStore, ask: Ask, clock: StoreClock
) -> None:
    job = graveyard.bury()
    made = facts_of(KEYS.sign(K1, stored_call(store, job), store.now()))
    dead_letters.resign(ask(role=TENANT_ADMIN), job, signature={**made, "expires_at": micros(store.now()) * 2})
    store.cancel(TENANT, job, "kim")

    clock.advance(days=8)

    assert store.forget_ended(60.0) == 1


def test_a_signature_for_later_is_refused_and_the_letter_stays(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    """Signed anew a job runs at once: by such a signature it would be a dead letter again, for being too early"""
    job = graveyard.bury()
    later = store.now() + timedelta(hours=1)
    call = stored_call(store, job, not_before=micros(later))
    made = facts_of(KEYS.sign(K1, call, store.now()))

    for keys in (KEYS, SigningKeys()):
        with pytest.raises(InvalidInput, match="not_before"):
            dead_letters.resign(ask(role=TENANT_ADMIN, signing=lambda keys=keys: keys), job, signature=made)
    assert (record(store, job).state, len(dead_letters.list_(ask()))) == (JobState.DEAD, 1)


def test_what_ran_is_not_signed_anew(graveyard: Graveyard, ask: Ask) -> None:
    worn = graveyard.exhaust()
    with pytest.raises(IllegalMove, match="FAILED job cannot be re-signed"):
        dead_letters.resign(ask(signing=lambda: KEYS), worn)


# --- redrive ------------------------------------------------------------------------------------------------------


def test_what_would_be_refused_again_is_redriven_by_force_alone(
    graveyard: Graveyard, store: SqlStore, ask: Ask
) -> None:
    job = graveyard.bury(SignatureProblem.UNKNOWN_KEY)

    with pytest.raises(NeedsSignature, match=f"unstuck dead-letters resign {job}"):
        dead_letters.redrive(ask(), job)
    after = dead_letters.redrive(ask(), job, force=True)

    assert (after.state, after.run) == (JobState.QUEUED, 2)
    assert [line.verb for line in store.audit(TENANT, subject=job)] == ["dead_letters.redrive"]
    with pytest.raises(NoDeadLetter):
        dead_letters.redrive(ask(), job)


def test_the_rest_waits_for_the_canary(graveyard: Graveyard, store: SqlStore, ask: Ask) -> None:
    first, *rest = [graveyard.exhaust() for _ in range(4)]
    canary = dead_letters.redrive(ask(), first).id

    with pytest.raises(CanaryNotCompleted, match="is QUEUED and not COMPLETED: nothing was redriven; wait"):
        dead_letters.redrive_all(ask(), reason="exhausted", canary=canary)
    (attempt,) = claim_all(store, graveyard.worker)
    settle(store, graveyard.worker, attempt.ref, boom())
    with pytest.raises(CanaryNotCompleted, match="is FAILED and not COMPLETED: nothing was redriven; see why"):
        dead_letters.redrive_all(ask(), reason="exhausted", canary=canary)
    dead_letters.redrive(ask(), first)
    (attempt,) = claim_all(store, graveyard.worker)
    settle(store, graveyard.worker, attempt.ref)
    with pytest.raises(OtherCount):
        dead_letters.redrive_all(ask(), reason="exhausted", canary=canary, expected=7)

    bulk = dead_letters.redrive_all(ask(), reason="exhausted", canary=canary, expected=3)
    store.carry_bulks()

    assert bulk.filter.dead_letter == "exhausted"
    assert {job.id for job in claim_all(store, graveyard.worker)} == set(rest)


def test_a_letter_is_discarded_once_and_its_job_stays(graveyard: Graveyard, store: SqlStore, ask: Ask) -> None:
    job = graveyard.bury()

    assert dead_letters.discard(ask(), job).job == job
    with pytest.raises(NoDeadLetter):
        dead_letters.discard(ask(), job)

    assert jobs.get(ask(), job).dead_letter is None
    assert [(line.verb, line.detail["reason"]) for line in store.audit(TENANT, subject=job)] == [
        ("dead_letters.discard", "altered")
    ]


# --- seen ---------------------------------------------------------------------------------------------------------


def test_health_and_metrics_tell_of_them(graveyard: Graveyard, ask: Ask) -> None:
    before = metrics.measure(ask(), metrics.MetricsMemory())
    assert {before.get("unstuck_dead_letters", reason) for reason in REASONS} == {0}
    assert before.get("unstuck_dead_letter_oldest_seconds") == 0
    graveyard.bury(SignatureProblem.ALTERED)
    graveyard.bury(SignatureProblem.ALTERED, tenant="acme")
    graveyard.exhaust()

    found = metrics.measure(ask(), metrics.MetricsMemory())
    mine = metrics.measure(ask(tenant="acme"), metrics.MetricsMemory())
    assert [found.get("unstuck_dead_letters", reason) for reason in ("altered", "exhausted")] == [2, 1]
    assert [mine.get("unstuck_dead_letters", reason) for reason in ("altered", "exhausted")] == [1, 0]
    assert found.get("unstuck_dead_letter_oldest_seconds") > 0  # type: ignore[operator]
    (check,) = [check for check in health.check(ask()).checks if check.name == "dead_letters"]
    assert (check.ok, check.fatal) == (False, False)
    assert check.detail.startswith("3, the oldest")
    assert check.detail.endswith("altered, what is stored is not what was signed: unstuck dead-letters")


def test_why_says_who_can_do_what(graveyard: Graveyard, store: SqlStore, ask: Ask) -> None:
    text = Envelope("k3", 5, b"s" * 32, accepted_at=3).text()
    job, worn = graveyard.bury(SignatureProblem.REVOKED, signature=text), graveyard.exhaust()

    (reason,) = jobs.why(ask(), job).reasons
    assert (reason.code, reason.actor, reason.remedy) == ("dead", "an admin", f"unstuck dead-letters resign {job}")
    assert "its key is revoked (key k3)" in reason.sentence
    assert f"unstuck dead-letters discard {job}" in reason.details["other_remedies"]
    (reason,) = jobs.why(ask(), worn).reasons
    assert reason.details["dead_letter"] == "exhausted"

    store.discard_letter(TENANT, job, "ada")
    (reason,) = jobs.why(ask(), job).reasons
    assert (reason.actor, "nothing lets it run any more" in reason.sentence) == ("nobody", True)
