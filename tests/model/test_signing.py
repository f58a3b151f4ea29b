"""What a signature covers: whatever is changed of a job, or of its envelope, is noticed at door and claim."""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.signing import ALGORITHMS, NOW, OTHER, SECRET, a_call, a_key, accepted, signed, toml
from unstuck.model.errors import InvalidInput, InvalidSettings
from unstuck.model.policy import Policy
from unstuck.model.signing import (
    LONGEST_ENVELOPE,
    LONGEST_LIFE,
    LONGEST_POLICY,
    Envelope,
    SignatureProblem,
    envelope,
    signed_bytes,
)
from unstuck.signing import SignatureRule, SigningKey, SigningKeys, StoredCall, micros, read_keys

MINUTE = 60_000_000
both_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)

#: A change of each thing that is signed.
CHANGES: dict[str, Callable[[StoredCall], StoredCall]] = {
    "tenant": lambda call: replace(call, tenant="other"),
    "workflow": lambda call: replace(call, workflow="refund"),
    "queue": lambda call: replace(call, queue="money2"),
    "target": lambda call: replace(call, target="card-8"),
    "no target": lambda call: replace(call, target=None),
    "priority": lambda call: replace(call, priority=4),
    "time limit": lambda call: replace(call, policy=replace(call.policy, timeout=61.0)),
    "no time limit": lambda call: replace(call, policy=replace(call.policy, timeout="unlimited")),
    "job": lambda call: replace(call, job="0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f37"),
    "payload": lambda call: replace(call, payload='{"args":[2],"kwargs":{}}'),
    "white space of the payload": lambda call: replace(call, payload='{"args": [1],"kwargs":{}}'),
    "what is asked of the policy": lambda call: replace(call, policy=replace(call.policy, retries=3)),
}
OF_ENVELOPE: dict[str, Callable[[Envelope], Envelope]] = {
    "expiry": lambda told: replace(told, expires_at=told.expires_at + 1),
    "not before": lambda told: replace(told, not_before=(told.not_before or 0) + 1),
    "no time": lambda told: replace(told, not_before=None),
    "policy": lambda told: replace(told, policy='{"retries":1}'),
    "no policy": lambda told: replace(told, policy=""),
}


def problem(keys: SigningKeys, call: StoredCall, told: Envelope) -> SignatureProblem | None:
    """The verdict of the door; the claim must say the same."""
    at_door = keys.problem_at_door(call, told, NOW)
    assert keys.problem_at_claim(call, accepted(told), NOW + timedelta(days=400)) is at_door
    return at_door


@both_algorithms
@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_of_the_job_is_noticed(algorithm: str, what: str) -> None:
    key, call = a_key(algorithm=algorithm), a_call(not_before=micros(NOW))
    told = signed(key, call, policy='{"retries":2}')
    assert problem(SigningKeys([key]), call, told) is None
    assert problem(SigningKeys([key]), CHANGES[what](call), told) is SignatureProblem.ALTERED


@both_algorithms
@pytest.mark.parametrize("what", OF_ENVELOPE)
def test_whatever_is_changed_of_the_envelope_is_noticed(algorithm: str, what: str) -> None:
    key, call = a_key(algorithm=algorithm), a_call(not_before=micros(NOW))
    told = OF_ENVELOPE[what](signed(key, call, policy='{"retries":2}'))
    assert problem(SigningKeys([key]), call, told) is SignatureProblem.ALTERED


@given(bit=st.integers(0, 255))
def test_a_flipped_bit_of_a_signature_is_noticed(bit: int) -> None:
    key, call = a_key(), a_call()
    told = signed(key, call)
    wrong = bytearray(told.signature)
    wrong[bit // 8] ^= 1 << bit % 8
    assert problem(SigningKeys([key]), call, replace(told, signature=bytes(wrong))) is SignatureProblem.ALTERED


@given(secret=st.binary(min_size=32, max_size=200), text=st.binary(max_size=300))
def test_an_hmac_is_what_everybody_calls_so(secret: bytes, text: bytes) -> None:
    assert a_key(secret=secret).sign(text) == hmac.digest(secret, text, "sha256")


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(first=st.tuples(names, names, names, names), second=st.tuples(names, names, names, names))
def test_no_two_calls_have_the_same_bytes(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    def text(tenant: str, workflow: str, queue: str, payload: str) -> bytes:
        facts: dict[str, Any] = {"target": None, "priority": 0, "timeout": 1.0, "not_before": None, "expires_at": 1}
        return signed_bytes("web", tenant, workflow, queue, job="j", policy="", payload=payload, **facts)

    assert (text(*first) == text(*second)) is (first == second)


def test_what_is_moved_from_one_field_to_the_next_is_another_text() -> None:
    one, other = a_call(tenant="a", workflow="bc"), a_call(tenant="ab", workflow="c")
    told = signed(a_key(), one)
    assert problem(SigningKeys([a_key()]), other, told) is SignatureProblem.ALTERED


def test_absent_and_empty_are_written_alike_because_no_name_is_empty() -> None:
    told = signed(a_key(), a_call())
    assert b",0:," in a_call(target=None).signed_bytes(told)
    assert a_call(target="").signed_bytes(told) == a_call(target=None).signed_bytes(told)


# --- keys ---------------------------------------------------------------------------------------------------------


@both_algorithms
def test_two_keys_in_overlap_both_verify_and_the_younger_signs(algorithm: str) -> None:
    old = a_key("old", algorithm, end=NOW + timedelta(hours=1), overlap=3600.0)
    new = a_key("new", algorithm, secret=OTHER, begin=NOW - timedelta(minutes=1))
    keys, call = SigningKeys([old, new]), a_call()
    assert keys.signer("acme", "submit", NOW) is new
    assert keys.signer("acme", "submit", NOW - timedelta(minutes=2)) is old
    for key in (old, new):
        assert problem(keys, call, signed(key, call)) is None


@pytest.mark.parametrize(
    ("minutes", "verdict"),
    [(-1, SignatureProblem.NOT_YET), (0, None), (9, None), (10, None), (14, None), (15, SignatureProblem.KEY_ENDED)],
)
def test_a_key_verifies_from_its_beginning_to_the_end_of_its_overlap(
    minutes: int, verdict: SignatureProblem | None
) -> None:
    key = a_key(begin=NOW, end=NOW + timedelta(minutes=10), overlap=300.0)
    at, call = NOW + timedelta(minutes=minutes), a_call()
    told = signed(key, call, at=at)
    assert SigningKeys([key]).problem_at_door(call, told, at) is verdict
    late = at + timedelta(days=30)
    assert SigningKeys([key]).problem_at_claim(call, accepted(told, at), late) is verdict, "as of its acceptance"


def test_who_may_not_sign_it_is_told_which_of_the_reasons() -> None:
    call = a_call()
    told = signed(a_key(), call)
    assert problem(SigningKeys([a_key("k2")]), call, told) is SignatureProblem.UNKNOWN_KEY
    assert problem(SigningKeys([a_key(tenant="other")]), call, told) is SignatureProblem.FOREIGN_KEY
    assert problem(SigningKeys([a_key(purposes=("spawn",))]), call, told) is SignatureProblem.WRONG_PURPOSE
    assert problem(SigningKeys([a_key(is_revoked=True)]), call, told) is SignatureProblem.REVOKED
    keys = SigningKeys([a_key()])
    assert keys.problem_at_door(call, told, NOW, {"web"}) is SignatureProblem.REVOKED
    assert keys.problem_at_claim(call, accepted(told), NOW, {"web"}) is SignatureProblem.REVOKED
    assert keys.problem_at_claim(call, accepted(told), NOW, {"web"}, is_first=False) is None


def test_a_signature_that_lives_too_long_or_no_more_is_refused() -> None:
    key, call = a_key(), a_call()
    keys = SigningKeys([key])
    bare = Envelope("web", micros(NOW + timedelta(seconds=LONGEST_LIFE)) + 1, b"")
    long = replace(bare, signature=key.sign(call.signed_bytes(bare)))
    assert problem(keys, call, long) is SignatureProblem.LIVES_TOO_LONG
    told = signed(key, call, at=NOW - timedelta(days=1))
    assert problem(keys, call, told) is SignatureProblem.EXPIRED


def test_a_clock_that_is_ahead_by_less_than_the_life_of_a_signature_does_no_harm() -> None:
    key, call = a_key(), a_call()
    for skew in (-86_000, 86_000):
        told = signed(key, call, at=NOW + timedelta(seconds=skew))
        assert problem(SigningKeys([key]), call, told) is None


def test_the_key_says_the_algorithm_and_no_message() -> None:
    """The public half is public: who takes it for the secret of an hmac must not be believed."""
    call, real = a_call(), a_key(algorithm="ed25519")
    public = real.public_half()
    forged = signed(a_key(algorithm="hmac-sha256", secret=public), call)
    keys = SigningKeys([real.for_verifying()])
    assert problem(keys, call, forged) is SignatureProblem.ALTERED
    assert problem(keys, call, signed(real, call)) is None
    with pytest.raises(InvalidInput, match="there is no field algorithm"):
        envelope({**forged.facts(), "algorithm": "hmac-sha256"})


def test_a_public_half_signs_nothing_and_where_a_private_one_belongs_it_is_another_key() -> None:
    real = a_key(algorithm="ed25519")
    half = real.for_verifying()
    assert half.secret is None
    assert SigningKeys([half]).signer("acme", "submit", NOW) is None
    mistaken = a_key(algorithm="ed25519", secret=real.public_half())
    keys = SigningKeys([half])
    assert problem(keys, a_call(), signed(mistaken, a_call())) is SignatureProblem.ALTERED
    with pytest.raises(InvalidSettings, match="public is not the public half of private"):
        a_key(algorithm="ed25519", secret=real.public_half(), public=real.public_half())


# --- as another language writes it --------------------------------------------------------------------------------

GUIDE = (Path(__file__).parents[2] / "docs" / "signing.md").read_text()
VECTOR = a_call(target="card:7", payload='{"args":["7",12.50],"kwargs":{"note":"café"}}')


@pytest.mark.parametrize(("ident", "algorithm"), [("shop-1", "hmac-sha256"), ("shop-2", "ed25519")])
def test_the_test_vectors_of_the_guide_hold(ident: str, algorithm: str) -> None:
    key = a_key(ident, algorithm)
    text = VECTOR.signed_bytes(Envelope(ident, 1795000000000000, b"", policy='{"timeout":60}'))
    assert f"\n{text.decode().replace('shop-2', 'shop-1')}\n" in GUIDE
    [row] = [line for line in GUIDE.splitlines() if line.startswith(f"| `{ident}` | {algorithm}")]
    assert row.endswith(f"`{base64.b64encode(key.sign(text)).decode()}` |")
    if algorithm == "ed25519":
        assert f"`{base64.b64encode(key.public_half()).decode()}`" in row


def test_the_submit_of_the_guide_is_verified() -> None:
    [text] = re.findall(r"```json\n(.*?)```", GUIDE, re.S)
    submit = json.loads(text)
    told = envelope(submit["signature"])
    call = replace(VECTOR, policy=Policy(timeout=60.0))
    assert (submit["id"], submit["payload"], submit["target"]) == (call.job, call.payload, call.target)
    at = datetime.fromtimestamp(told.expires_at / 1_000_000, UTC) - timedelta(days=1)
    assert SigningKeys([a_key("shop-1")]).problem_at_door(call, told, at) is None


# --- envelopes ----------------------------------------------------------------------------------------------------


@both_algorithms
def test_an_envelope_is_read_as_it_was_written(algorithm: str) -> None:
    told = accepted(signed(a_key(algorithm=algorithm), a_call(), policy='{"retries":2}'))
    assert Envelope.of(told.text()) == told
    assert envelope(told.facts()) == replace(told, accepted_at=None)


def test_an_envelope_that_is_cut_off_anywhere_cannot_be_read() -> None:
    text = accepted(signed(a_key(), a_call())).text()
    assert all(Envelope.of(text[:length]) is None for length in range(len(text)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("version", True),
        ("version", "1"),
        ("version", None),
        ("key", ""),
        ("key", "a\x00b"),
        ("key", "k" * 65),
        ("key", 7),
        ("expires_at", None),
        ("expires_at", -1),
        ("expires_at", 1.5),
        ("expires_at", "1"),
        ("expires_at", True),
        ("expires_at", 1 << 62),
        ("not_before", 1 << 62),
        ("not_before", "soon"),
        ("policy", 7),
        ("policy", "\x00"),
        ("policy", "p" * (LONGEST_POLICY + 1)),
        ("signature", None),
        ("signature", ""),
        ("signature", "AAAA"),
        ("signature", "!" * 44),
        ("signature", base64.b64encode(bytes(65)).decode()),
        ("algorithm", "none"),
    ],
)
def test_an_envelope_with_a_wrong_field_is_refused_in_words(name: str, value: Any) -> None:
    facts = {**signed(a_key(), a_call()).facts(), name: value}
    with pytest.raises(InvalidInput):
        envelope(facts)
    assert Envelope.of(json.dumps(facts)) is None


@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_what_is_no_envelope_at_all_is_refused_in_words(value: Any) -> None:
    with pytest.raises(InvalidInput, match="is not an object"):
        envelope(value)
    assert Envelope.of(json.dumps(value)) is None


def test_whatever_is_accepted_can_be_read_when_it_is_stored() -> None:
    told = replace(accepted(signed(a_key(), a_call())), policy='"' * LONGEST_POLICY, not_before=1)
    assert len(told.text()) <= LONGEST_ENVELOPE
    assert Envelope.of(told.text()) == told
    with pytest.raises(InvalidInput, match="the limit is 16,384"):
        signed(a_key(), a_call(), policy=" " * (LONGEST_POLICY + 1))


def test_a_stored_envelope_that_nobody_accepted_does_not_run() -> None:
    told = signed(a_key(), a_call())
    assert SigningKeys([a_key()]).problem_at_claim(a_call(), told, NOW) is SignatureProblem.UNREADABLE


def test_nothing_runs_before_the_time_that_is_signed() -> None:
    call = a_call(not_before=micros(NOW) + MINUTE)
    told, keys = accepted(signed(a_key(), call)), SigningKeys([a_key()])
    assert keys.problem_at_claim(call, told, NOW) is SignatureProblem.TOO_EARLY
    assert keys.problem_at_claim(call, told, NOW + timedelta(minutes=1)) is None


def test_many_are_signed_as_one_is() -> None:
    key, call = a_key(), a_call(policy=Policy(timeout=60.0))
    keys = SigningKeys([key])
    texts, until = keys.sign_all(key, call, ["a", "b"], ["1", "2"], NOW, policy='{"timeout":60.0}')
    for text, job, payload in zip(texts, "ab", "12", strict=True):
        told = Envelope.of(text)
        assert told is not None
        assert told.expires_at == until
        assert told.text() == text
        assert keys.problem_at_claim(replace(call, job=job, payload=payload), told, NOW) is None


# --- where keys come from -----------------------------------------------------------------------------------------


def test_keys_are_read_from_a_file_or_from_its_text(tmp_path: Path) -> None:
    keys = [a_key(), a_key("k2", "ed25519", tenant="acme", purposes=("submit", "spawn"))]
    file = tmp_path / "keys.toml"
    file.write_text(toml(*keys))
    assert read_keys(file) == read_keys(str(file)) == read_keys(toml(*keys)) == keys


def test_what_a_file_says_of_times_is_read() -> None:
    times = "begin = 2026-11-18T00:00:00Z\nend = 2026-12-01T00:00:00+01:00\noverlap = '2h'\nrevoked = true"
    [key] = read_keys(f"{toml(a_key())}\n{times}")
    assert (key.begin, key.overlap, key.is_revoked) == (datetime(2026, 11, 18, tzinfo=UTC), 7200.0, True)
    assert not key.can_sign


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[key]]", "is not 1 to 64 letters"),
        ("[[key]]\nid = 'a b'\nsecret = 'AAAA'", "is not 1 to 64 letters"),
        ("[[key]]\nid = 'a'", "secret is missing"),
        ("[[key]]\nid = 'a'\nsecret = 'AAAA'", "shorter than 32 bytes"),
        ("[[key]]\nid = 'a'\nsecret = 'not base64'", "this is not base64"),
        ("[[key]]\nid = 'a'\nalgorithm = 'none'", "is not one of hmac-sha256, ed25519"),
        ("[[key]]\nid = 'a'\nalgorithm = 'ed25519'", "needs its public or its private half"),
        ("[[key]]\nid = 'a'\nalgorithm = 'ed25519'\npublic = 'AAAA'", "are 32 bytes"),
        ("[[key]]\nid = 'a'\nalgorithm = 'ed25519'\nsecret = 'AAAA'", "secret is no field"),
        ("[[key]]\nid = 'a'\nprivate = 'AAAA'", "private is no field"),
        ("[[key]]\nid = 'a'\npurpose = ['submit']", "there is no purpose"),
        ("[[key]]\nid = 'a'\nbegin = 2026-11-18T00:00:00", "is not an instant with a time zone"),
        ("[[key]]\nid = ", "not TOML"),
        ("no = 'key'", "cannot be read"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_in_words(text: str, problem: str) -> None:
    with pytest.raises(InvalidSettings, match=problem):
        read_keys(text)


@pytest.mark.parametrize("change", [{"purposes": ()}, {"purposes": ("all",)}, {"tenant": " "}, {"overlap": -1.0}])
def test_a_key_made_in_code_is_held_to_the_same(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        a_key(**change)
    with pytest.raises(InvalidSettings, match="it ends before it begins"):
        a_key(begin=NOW, end=NOW)


def test_no_secret_is_shown_by_a_key_or_an_error() -> None:
    secret = base64.b64encode(SECRET).decode()
    assert secret not in repr(a_key())
    assert repr(SECRET) not in repr(a_key())
    with pytest.raises(InvalidSettings) as refused:
        read_keys(f"[[key]]\nid = 'a b'\nsecret = '{secret}'\noverlap = 'x'")
    assert secret not in str(refused.value)


def test_two_keys_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="web is there twice"):
        SigningKeys([a_key(), a_key(secret=OTHER)])


# --- where signatures are required --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["tenant:acme", "queue:money", "workflow:charge", "*"])
def test_a_signature_is_required_where_a_rule_says_so(rule: str) -> None:
    keys = SigningKeys.of(toml(a_key()), [rule])
    assert problem_of_none(keys, a_call()) is SignatureProblem.MISSING
    other = a_call(tenant="b", queue="b", workflow="b")
    assert problem_of_none(keys, other) is (SignatureProblem.MISSING if rule == "*" else None)


def problem_of_none(keys: SigningKeys, call: StoredCall) -> SignatureProblem | None:
    at_door = keys.problem_at_door(call, None, NOW)
    assert keys.problem_at_claim(call, None, NOW) is at_door
    return at_door


@pytest.mark.parametrize("rule", ["tenant", "queue:", "tenant:*", "job:x", "", "*:x"])
def test_a_rule_that_says_nothing_is_refused(rule: str) -> None:
    with pytest.raises(InvalidSettings):
        SigningKeys.of(toml(a_key()), [rule])


def test_what_is_required_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"a signature is required \(queue:money, workflow:charge\)"):
        SigningKeys.of(None, ["workflow:charge", "queue:money"])
    with pytest.raises(InvalidSettings, match=r"required \(workflow:charge\)"):
        SigningKeys().also_requiring(["charge"])
    assert SigningKeys([a_key()]).also_requiring(["charge"]).required == {SignatureRule("workflow", "charge")}
    assert isinstance(SigningKeys([a_key()]).get("web"), SigningKey)
