"""Signed submits over HTTP: verified at the door, stored as they came, refused in words that say what was checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.server.conftest import Site, problem, running
from tests.support.signing import OTHER, a_key, toml
from unstuck.assembly.server import ServerOptions
from unstuck.model.errors import InvalidSettings
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope
from unstuck.operations import keys
from unstuck.operations.table import Caller, Role
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

JOBS = "/api/v1/jobs"
SHOP, BANK = a_key("shop", tenant="shop"), a_key("bank", "ed25519", tenant="bank", secret=OTHER)
UID = "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36"
PAYLOAD = '{"args":[1],"kwargs":{}}'


@pytest.fixture
def site(store_url: str, store: SqlStore) -> Iterator[Site]:
    """It verifies by what is needed for that, and requires signatures of one tenant."""
    store.register_workflows([WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), {})])
    signing = SigningKeys.of(toml(SHOP, BANK.for_verifying()), ["tenant:bank"])
    with running(ServerOptions(store_url, port=0, signing=signing)) as found:
        yield found


def a_submit(key: SigningKey = SHOP, tenant: str = "shop", **said: Any) -> dict[str, Any]:
    """The body of a signed submit. `said`: what is signed, where it is not ordinary."""
    at = said.pop("at", datetime.now(UTC))
    policy: str = said.pop("policy", "")
    given: dict[str, Any] = {
        "job": UID,
        "workflow": "charge",
        "queue": "money",
        "target": None,
        "priority": 0,
        "payload": PAYLOAD,
        "policy": Policy(timeout=60.0),
    }
    call = StoredCall(tenant=tenant, **(given | said))
    envelope = SigningKeys([key]).sign(key, call, at, policy=policy)
    return {"workflow": call.workflow, "id": call.job, "payload": call.payload, "signature": envelope.facts()}


def post(site: Site, body: Any, tenant: str = "shop") -> Any:
    return site.post(f"{JOBS}?tenant={tenant}", body)


def stored(store: SqlStore) -> int:
    return len(store.jobs(None, JobFilter()).jobs)


def test_a_signed_job_is_stored_as_it_came(site: Site, store: SqlStore) -> None:
    payload = ' {"kwargs": {}, "args": [1.0, "\\u00e4 ä", 1e2, -0]}\n'
    answer = post(site, a_submit(payload=payload))
    assert answer.status_code == 201, answer.text
    record = store.get("shop", UID)
    assert record is not None
    assert record.payload == payload
    told = Envelope.of(record.signature or "")
    assert told is not None
    assert told.key == "shop"
    assert told.accepted_at is not None
    assert site.get(f"{JOBS}/{UID}?tenant=shop").json()["signed_by"] == "shop"


def test_who_sends_it_again_is_told_of_the_same_job(site: Site, store: SqlStore) -> None:
    """Check 13."""
    body = a_submit()
    first, second = post(site, body), post(site, body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"] == UID
    assert (first.json()["created"], second.json()["created"]) == (True, False)
    assert stored(store) == 1


def test_what_is_signed_of_queue_target_priority_policy_and_time_is_said_beside(site: Site, store: SqlStore) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    body = a_submit(
        queue="slow",
        target="card",
        priority=7,
        policy='{"timeout":5,"retries":1}',
        not_before=micros(start),
    )
    # The call that was signed above has the time limit of its policy.
    signed = StoredCall(
        UID, "shop", "charge", "slow", "card", 7, PAYLOAD, Policy(timeout=5), not_before=micros(start)
    )
    told = SigningKeys([SHOP]).sign(SHOP, signed, datetime.now(UTC), policy='{"timeout":5,"retries":1}')
    body |= {"queue": "slow", "target": "card", "priority": 7, "signature": told.facts()}
    assert post(site, body).status_code == 201
    record = store.get("shop", UID)
    assert record is not None
    assert (record.queue, record.target, record.priority) == ("slow", "card", 7)
    assert (record.policy.timeout, record.policy.retries) == (5, 1)
    assert abs(record.available_at - start) < timedelta(seconds=1)


OTHERS: list[dict[str, Any]] = [
    {"queue": "other"},
    {"target": "x"},
    {"priority": 1},
    {"payload": '{"args":[2],"kwargs":{}}'},
    {"payload": '{"args": [1],"kwargs":{}}'},
    {"id": "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f37"},
]


def test_another_job_under_the_same_signature_is_refused(site: Site, store: SqlStore) -> None:
    """Check 12."""
    for change in OTHERS:
        about = problem(post(site, a_submit() | change), 422, "SignatureRefused")["about"]
        assert about["problem"] == "altered", change
        assert "payload" not in about["checked"]
        assert about["checked"]["timeout"] == 60.0
    assert stored(store) == 0


def test_a_time_limit_that_is_not_the_workflows_is_refused(site: Site, store: SqlStore) -> None:
    call = StoredCall(UID, "shop", "charge", "money", None, 0, PAYLOAD, Policy(timeout=61.0))
    told = SigningKeys([SHOP]).sign(SHOP, call, datetime.now(UTC))
    body = {"workflow": "charge", "id": call.job, "payload": PAYLOAD, "signature": told.facts()}
    assert problem(post(site, body), 422, "SignatureRefused")["about"]["problem"] == "altered"
    assert stored(store) == 0


def test_each_tenant_has_its_own_keys(site: Site, store: SqlStore) -> None:
    """The same bytes under another tenant, a key of another tenant, a key that nobody knows."""
    refused = [
        (a_submit(), "bank", "altered"),
        (a_submit(SHOP, "bank"), "bank", "foreign_key"),
        (a_submit(BANK, "shop"), "shop", "foreign_key"),
        (a_submit(a_key("new")), "shop", "unknown_key"),
        (a_submit(a_key("shop", secret=OTHER)), "shop", "altered"),
    ]
    for body, tenant, code in refused:
        told = problem(post(site, body, tenant), 422, "SignatureRefused")
        assert told["about"]["problem"] == code
    assert stored(store) == 0
    assert post(site, a_submit(BANK, "bank"), "bank").status_code == 201


def test_keys_of_tenants_over_http_see_their_own_refusals_alone(site: Site, store: SqlStore) -> None:
    made = {
        tenant: keys.create(Caller(store, "root", tenant), tenant, role=Role.OPERATOR).key
        for tenant in ("shop", "bank")
    }
    as_tenant = {tenant: {"Authorization": f"Bearer {key}"} for tenant, key in made.items()}
    refused = site.post(JOBS, a_submit(BANK, "shop"), headers=as_tenant["shop"])
    assert problem(refused, 422, "SignatureRefused")["about"]["problem"] == "foreign_key"
    # Who signs for another tenant than its API key is about has signed something else.
    moved = site.post(JOBS, a_submit(SHOP, "shop"), headers=as_tenant["bank"])
    assert problem(moved, 422, "SignatureRefused")["about"]["problem"] == "altered"

    def told(tenant: str) -> list[str]:
        found = site.get("/api/v1/events?limit=100", headers=as_tenant[tenant]).json()["items"]
        return [each["data"]["problem"] for each in found if each["kind"] == "security.signature_refused"]

    assert (told("shop"), told("bank")) == (["foreign_key"], ["altered"])


def test_a_refusal_is_told_in_the_feed_and_in_the_audit(site: Site, store: SqlStore) -> None:
    problem(post(site, a_submit() | {"priority": 1}), 422, "SignatureRefused")
    events = site.get("/api/v1/events?limit=100&tenant=shop").json()["items"]
    assert [each["data"]["problem"] for each in events if each["kind"] == "security.signature_refused"] == ["altered"]
    [line] = store.audit(verb="signing.refuse")
    assert (line.tenant, line.subject, line.detail["problem"], line.detail["key"]) == ("shop", UID, "altered", "shop")
    assert line.address


def test_a44_two_keys_in_overlap_are_both_accepted(store_url: str, store: SqlStore) -> None:
    store.register_workflows([WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), {})])
    now = datetime.now(UTC)
    old = a_key("old", end=now - timedelta(minutes=1), overlap=3600.0)
    new = a_key("new", "ed25519", begin=now - timedelta(minutes=2))
    gone = a_key("gone", end=now - timedelta(hours=2), overlap=3600.0)
    with running(ServerOptions(store_url, port=0, signing=SigningKeys([old, new, gone]))) as site:
        for number, key in enumerate((old, new)):
            assert post(site, a_submit(key, job=f"{UID[:-1]}{number}")).status_code == 201
        ended = problem(post(site, a_submit(gone, job=f"{UID[:-1]}9")), 422, "SignatureRefused")
    assert ended["about"]["problem"] == "key_ended"


def test_what_must_be_signed_and_is_not_is_refused_one_by_one_and_in_a_batch(site: Site, store: SqlStore) -> None:
    told = problem(post(site, {"workflow": "charge", "args": [1]}, "bank"), 422, "SignatureRefused")
    assert told["about"]["problem"] == "missing"
    bodies = [{"workflow": "charge", "args": [1]}, a_submit(BANK, "bank"), a_submit(SHOP, "bank")]
    items = site.post(f"{JOBS}/batch?tenant=bank", {"jobs": bodies}).json()["items"]
    assert [item["status"] for item in items] == [422, 201, 422]
    assert [item["problem"]["about"]["problem"] for item in items if item["problem"]] == ["missing", "foreign_key"]
    assert stored(store) == 1
    assert sorted(line.detail["problem"] for line in store.audit(verb="signing.refuse")) == [
        "foreign_key",
        "missing",
        "missing",
    ]


def test_where_nothing_is_required_an_unsigned_job_is_accepted_and_the_server_signs_nothing(
    site: Site, store: SqlStore
) -> None:
    """It holds the secret of an hmac key: who asks over HTTP must not be signed for by it."""
    answer = post(site, {"workflow": "charge", "args": [1]})
    assert answer.status_code == 201
    record = store.get("shop", answer.json()["id"])
    assert record is not None
    assert record.signature is None


def test_an_expired_a_revoked_and_a_long_lived_signature_are_refused(site: Site, store: SqlStore) -> None:
    now = datetime.now(UTC)
    old, soon = a_submit(at=now - timedelta(days=2)), a_submit(at=now + timedelta(days=8))
    assert problem(post(site, old), 422, "SignatureRefused")["about"]["problem"] == "expired"
    assert problem(post(site, soon), 422, "SignatureRefused")["about"]["problem"] == "lives_too_long"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"signature": None}, "payload and signature go together"),
    ({"payload": None}, "payload and signature go together"),
    ({"id": None}, "a signed job needs the id"),
    ({"args": [1]}, "args or kwargs cannot be given"),
    ({"kwargs": {"a": 1}}, "args or kwargs cannot be given"),
    ({"policy": {"retries": 1}}, "policy cannot be given"),
    ({"delay": 5}, "delay cannot be given"),
    ({"at": "2030-01-01T00:00:00Z"}, "at cannot be given"),
    ({"payload": "[1]"}, "is the text of"),
    ({"payload": '{"args":[1],"more":1}'}, "is the text of"),
    ({"payload": '{"args":[1],"args":[2]}'}, "occurs twice"),
    ({"payload": '{"args":[{"a":1,"\\u0061":2}]}'}, "occurs twice"),
    ({"payload": '{"args":[NaN]}'}, "not a number that JSON knows"),
    ({"payload": '{"args":[1e999]}'}, "not a number that JSON knows"),
    ({"payload": '{"args":[01]}'}, "not JSON we can read"),
    ({"payload": '{"args":["\\ud800"]}'}, "lone surrogate"),
    ({"payload": '{"args":["\\u0000"]}'}, "NUL"),
    ({"payload": '{"args":[1]'}, "not JSON we can read"),
    ({"payload": "[" * 200 + "]" * 200}, "nested deeper"),
]


def test_what_could_be_read_in_two_ways_is_refused_in_words(site: Site, store: SqlStore) -> None:
    for change, words in BAD:
        answer = post(site, {name: value for name, value in (a_submit() | change).items() if value is not None})
        assert answer.status_code == 422, (change, answer.text)
        assert words in answer.text, change
    assert stored(store) == 0


UNREADABLE: list[dict[str, Any]] = [
    {"version": 2},
    {"signature": "AAAA"},
    {"signature": None},
    {"key": "a b"},
    {"expires_at": None},
    {"expires_at": 1.5},
    {"algorithm": "none"},
    {"policy": '{"retries":1,"retries":2}'},
    {"policy": '{"timeout_seconds":60}'},
    {"policy": '{"priority":1}'},
    {"policy": "[]"},
]


def test_a_signature_that_cannot_be_read_is_refused(site: Site, store: SqlStore) -> None:
    body = a_submit()
    for change in UNREADABLE:
        answer = post(site, body | {"signature": body["signature"] | change})
        assert answer.status_code == 422, (change, answer.text)
        assert answer.json()["code"] in ("InvalidInput", "NotStorable", "InvalidPolicy")
    assert stored(store) == 0


def test_a_payload_that_does_not_fit_its_workflow_is_refused(site: Site, store: SqlStore) -> None:
    schema = {"x-positional": ["n"], "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    store.register_workflows([WorkflowRecord("count", "v1", "money", Policy(timeout=60.0), schema)])
    body = a_submit(workflow="count", payload='{"args":["x"],"kwargs":{}}')
    problem(post(site, body), 422, "InvalidArguments")
    assert post(site, a_submit(workflow="count")).status_code == 201


def test_a_server_without_keys_passes_a_signature_on(store_url: str, store: SqlStore) -> None:
    """The worker that claims it verifies it; the door only keeps what came."""
    store.register_workflows([WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), {})])
    with running(ServerOptions(store_url, port=0)) as site:
        assert post(site, a_submit(a_key("unknown"))).status_code == 201
    record = store.get("shop", UID)
    assert record is not None
    assert json.loads(record.signature or "{}")["key"] == "unknown"


def test_a_signature_that_claims_to_live_for_ever_does_not_keep_its_row_for_ever(
    store_url: str, store: SqlStore, clock: StoreClock
) -> None:
    """A server without keys cannot tell that it is none, and must not remember it longer than any that is one"""
    store.register_workflows([WorkflowRecord("charge", "v1", "money", Policy(timeout=60.0), {})])
    body = a_submit(a_key("unknown"))
    body["signature"] |= {"expires_at": micros(datetime(2999, 1, 1, tzinfo=UTC))}
    with running(ServerOptions(store_url, port=0)) as site:
        assert post(site, body).status_code == 201
    store.cancel("shop", UID, "kim")

    clock.advance(days=6)
    assert store.forget_ended(60.0) == 0
    clock.advance(days=2)
    assert store.forget_ended(60.0) == 1


def test_a_server_that_requires_signatures_and_has_no_key_does_not_begin() -> None:
    """A44: before its options exist."""
    with pytest.raises(InvalidSettings, match="a signature is required"):
        ServerOptions("sqlite://", signing=SigningKeys.of(None, ["tenant:bank"]))
