"""One verdict at both doors: what a server with keys refuses, one without passes on, and a worker refuses alike."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.server.conftest import Site, problem, running
from tests.support.builders import record, submitted
from tests.support.signing import EVERYWHERE, OTHER, SECRET, Desk, a_key, attach, envelope_of
from unstuck.assembly.server import ServerOptions
from unstuck.chance import SystemChance
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

JOBS = "/api/v1/jobs"
NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
PAYLOAD = '{"args":[1,"a"],"kwargs":{}}'
WEB = a_key("web", tenant="shop")
EDDY = a_key("eddy", "ed25519", secret=OTHER)
OTHERS = {
    "foreign": a_key("foreign", tenant="bank"),
    "spawner": a_key("spawner", purposes=("spawn",)),
    "young": a_key("young", begin=NOW + HOUR),
    "old": a_key("old", end=NOW - HOUR, overlap=60.0),
    "stolen": a_key("stolen", is_revoked=True),
    "leaked": a_key("leaked"),
}
#: What servers and workers hold: of Ed25519 the public half.
KEYS = SigningKeys([WEB, EDDY.for_verifying(), *OTHERS.values()], EVERYWHERE)


@dataclass
class Bad:
    """A signed submit that must not be: signed by `key`, as `signed` says, over the bytes that `text` makes of it;
    sent with the envelope that `told` makes of it, and with `sent` said beside."""

    problem: str
    key: SigningKey = WEB
    signed: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    at: datetime = NOW
    tenant: str = "shop"
    policy: str = ""
    text: Callable[[bytes], bytes] = lambda text: text
    told: Callable[[dict[str, Any]], dict[str, Any]] = lambda facts: facts

    def body(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "job": SystemChance().job_id(),
            "tenant": "shop",
            "workflow": "charge",
            "queue": "money",
            "target": None,
            "priority": 0,
            "payload": PAYLOAD,
            "policy": Policy(timeout=60.0),
        }
        call = StoredCall(**(given | self.signed))
        made = SigningKeys([self.key]).sign(self.key, call, self.at, policy=self.policy)
        made = replace(made, signature=self.key.sign(self.text(call.signed_bytes(made))))
        body = {"workflow": "charge", "id": call.job, "payload": call.payload, "signature": self.told(made.facts())}
        return body | self.sent


def _said(**facts: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda told: told | facts


def _bits(change: Callable[[bytes], bytes]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def told(facts: dict[str, Any]) -> dict[str, Any]:
        changed = change(base64.b64decode(facts["signature"]))
        return facts | {"signature": base64.b64encode(changed).decode()}

    return told


#: The public half of Ed25519 as the secret of an HMAC, under the name of the Ed25519 key.
CONFUSED = SigningKey("eddy", "hmac-sha256", secret=EDDY.public_half())
#: And where the private half belongs.
PUBLIC_AS_PRIVATE = a_key("eddy", "ed25519", secret=EDDY.public_half())

BAD: dict[str, Bad] = {
    "another tenant": Bad("altered", EDDY, tenant="bank"),
    "another workflow": Bad("altered", sent={"workflow": "refund"}),
    "another queue": Bad("altered", sent={"queue": "other"}),
    "another target": Bad("altered", sent={"target": "card"}),
    "another priority": Bad("altered", sent={"priority": 1}),
    "another id": Bad("altered", sent={"id": SystemChance().job_id()}),
    "another time limit": Bad("altered", signed={"policy": Policy(timeout=61.0)}),
    "another policy": Bad("altered", told=_said(policy='{"retries":9}')),
    "a policy that was taken away": Bad("altered", policy='{"retries":2}', told=_said(policy="")),
    "a policy in another spelling": Bad("altered", policy='{"retries":2}', told=_said(policy='{"retries": 2}')),
    "another start": Bad("altered", told=_said(not_before=micros(NOW))),
    "a longer life": Bad("altered", told=lambda told: told | {"expires_at": told["expires_at"] + 1}),
    "another payload": Bad("altered", sent={"payload": '{"args":[2,"a"],"kwargs":{}}'}),
    "a space": Bad("altered", sent={"payload": '{"args":[1, "a"],"kwargs":{}}'}),
    "another form of a number": Bad("altered", sent={"payload": '{"args":[1.0,"a"],"kwargs":{}}'}),
    "an escape": Bad("altered", sent={"payload": '{"args":[1,"\\u0061"],"kwargs":{}}'}),
    "another order": Bad("altered", sent={"payload": '{"kwargs":{},"args":[1,"a"]}'}),
    "fields in another order": Bad("altered", text=lambda t: t.replace(b"6:charge,5:money,", b"5:money,6:charge,")),
    "a field too few": Bad("altered", text=lambda t: t.replace(b"5:money,", b"")),
    "cut bytes": Bad("altered", text=lambda t: t[:-1]),
    "another version of the bytes": Bad("altered", text=lambda t: t.replace(b",1:1,", b",1:2,", 1)),
    "a flipped bit": Bad("altered", told=_bits(lambda s: bytes([s[0] ^ 1]) + s[1:])),
    "a longer signature": Bad("altered", told=_bits(lambda s: s + b"x")),
    "a shorter signature": Bad("altered", EDDY, told=_bits(lambda s: s[:32])),
    "a key's name for another": Bad("altered", told=_said(key="leaked"), key=a_key("web", secret=OTHER)),
    "an hmac by a public half": Bad("altered", CONFUSED),
    "a public half as a private one": Bad("altered", PUBLIC_AS_PRIVATE),
    "ed25519 in the name of an hmac key": Bad("altered", a_key("web", "ed25519", secret=SECRET)),
    "a key that nobody knows": Bad("unknown_key", a_key("nobody")),
    "a key of another tenant": Bad("foreign_key", OTHERS["foreign"]),
    "a key for what the engine makes": Bad("wrong_purpose", OTHERS["spawner"]),
    "a key that is not yet": Bad("not_yet", OTHERS["young"]),
    "a key that has ended": Bad("key_ended", OTHERS["old"]),
    "a key that its file revokes": Bad("revoked", OTHERS["stolen"]),
    "a key that the database revokes": Bad("revoked", OTHERS["leaked"]),
    "a clock that is behind": Bad("expired", at=NOW - timedelta(days=2)),
    "a clock that is ahead": Bad("lives_too_long", at=NOW + timedelta(days=8)),
    "who says himself when it was accepted": Bad(
        "expired", at=NOW - timedelta(days=2), told=_said(accepted_at=micros(NOW - timedelta(days=2)))
    ),
}


@pytest.fixture
def shop(store: SqlStore) -> None:
    for name in ("charge", "refund"):
        store.register_workflows([WorkflowRecord(name, "v1", "money", Policy(timeout=60.0), {})])
    store.revoke_signer("leaked", "kim", "found in a log")


def post(site: Site, body: Any, tenant: str) -> Any:
    return site.post(f"{JOBS}?tenant={tenant}", body)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("shop")
def test_a_server_with_keys_and_a_worker_behind_one_without_say_the_same(store_url: str, store: SqlStore) -> None:
    bodies = {name: bad.body() for name, bad in BAD.items()}
    bare = {"workflow": "charge", "args": [1]}
    good = [Bad("", key).body() for key in (WEB, EDDY)]
    with running(ServerOptions(store_url, port=0, signing=KEYS)) as site:
        for name, bad in BAD.items():
            told = problem(post(site, bodies[name], bad.tenant), 422, "SignatureRefused")
            assert told["about"]["problem"] == bad.problem, name
        assert problem(post(site, bare, "shop"), 422, "SignatureRefused")["about"]["problem"] == "missing"
        assert store.jobs(None, JobFilter()).jobs == (), "nothing is stored of what is refused"
        assert post(site, good[0], "shop").status_code == 201

    with running(ServerOptions(store_url, port=0)) as site:
        for name, bad in BAD.items():
            answer = post(site, bodies[name], bad.tenant)
            assert answer.status_code == 201, (name, answer.text)
        assert post(site, good[1], "shop").status_code == 201
        unsigned = post(site, bare, "shop").json()["id"]
        again = post(site, bodies["a space"], "shop")
        assert (again.status_code, again.json()["created"]) == (200, False), "a replay is told of its job"

    store.ingest()
    assert {job.id for job in Desk(store, KEYS).admitted()} == {body["id"] for body in good}

    wanted = {bodies[name]["id"]: (name, bad.tenant, bad.problem) for name, bad in BAD.items()}
    wanted[unsigned] = ("unsigned", "shop", "missing")
    letters = {action.subject: action.detail["problem"] for action in store.audit(verb="signing.refuse", limit=1000)}
    for job, (name, tenant, why) in wanted.items():
        found = record(store, job, tenant)
        assert (found.state, found.error_type, letters[job]) == (JobState.DEAD, "SignatureInvalid", why), name


#: Of an envelope as it is sent; both servers know that it is none, and a worker that finds it stored.
UNREADABLE: dict[str, dict[str, Any]] = {
    "another version": {"version": 2},
    "no version": {"version": None},
    "a version that is no whole number": {"version": 1.0},
    "a version that is a truth": {"version": True},
    "an algorithm": {"algorithm": "none"},
    "no key": {"key": None},
    "a key that is no name": {"key": "a b"},
    "no expiry": {"expires_at": None},
    "an expiry that is no whole number": {"expires_at": 1.5},
    "an expiry before time began": {"expires_at": -1},
    "an expiry behind all time": {"expires_at": 1 << 60},
    "a start that is no number": {"not_before": "now"},
    "no signature": {"signature": None},
    "a short signature": {"signature": "AAAA"},
    "a long signature": {"signature": "A" * 400},
    "a signature that is no base64": {"signature": "ä" * 44},
    "a policy that is no text": {"policy": {"retries": 1}},
}


@pytest.mark.usefixtures("shop")
def test_what_is_no_envelope_is_refused_by_every_server(store_url: str, store: SqlStore) -> None:
    body = Bad("altered").body()
    for keys in (KEYS, SigningKeys()):
        with running(ServerOptions(store_url, port=0, signing=keys)) as site:
            for name, change in UNREADABLE.items():
                sent = body | {"signature": body["signature"] | change}
                answer = post(site, sent, "shop")
                assert (answer.status_code, answer.json()["code"]) == (422, "InvalidInput"), (name, answer.text)
    assert store.jobs(None, JobFilter()).jobs == ()


def test_what_is_no_envelope_is_dead_where_somebody_wrote_it_into_the_row(store_url: str, store: SqlStore) -> None:
    jobs = {name: submitted(store, tenant="shop") for name in UNREADABLE}
    for name, job in jobs.items():
        facts = json.loads(envelope_of(store, job, WEB).text()) | UNREADABLE[name]
        attach(store_url, (job, json.dumps({key: value for key, value in facts.items() if value is not None})))

    assert Desk(store, KEYS).admitted() == []

    said = {action.subject: action.detail["problem"] for action in store.audit(verb="signing.refuse", limit=1000)}
    assert said == {job.id: "unreadable" for job in jobs.values()}
