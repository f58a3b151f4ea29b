"""Webhooks: what is signed, and what follows from each answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from unstuck.clock import wall
from unstuck.model.errors import InvalidInput
from unstuck.model.webhooks import (
    DeliveryState,
    TryOutcome,
    WebhookFilter,
    WebhookRules,
    WebhookStanding,
    about_of,
    body_of,
    check_secret,
    judge,
    retry_after_of,
    secret_bytes,
    signed_headers,
    spell_secret,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RULES = WebhookRules()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_bytes_that_are_signed_are_those_of_the_specification() -> None:
    """By hand, over the example that the specification's libraries are tested with."""
    headers = signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [secret_bytes(SECRET)]
    )
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    text = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    by_hand = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    assert by_hand == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": f"v1,{by_hand}",
    }


def test_the_reference_library_verifies_what_either_secret_signed() -> None:
    new, old = spell_secret(b"n" * 32), spell_secret(b"o" * 32)
    body = body_of("completed", "2030-01-01T00:00:00Z", {"job": "ä\u2028\x00"}).encode()
    secrets = [secret_bytes(new), secret_bytes(old)]
    headers = signed_headers("msg_1-abc-7", int(wall().timestamp()), body, secrets)
    for secret in (new, old):
        assert Webhook(secret).verify(body, headers)["data"] == {"job": "ä\u2028\x00"}
    for wrong, said in ((spell_secret(b"x" * 32), body), (new, body + b" ")):
        with pytest.raises(WebhookVerificationError):
            Webhook(wrong).verify(said, headers)
    assert "." not in headers["webhook-id"] + headers["webhook-timestamp"]


def test_a_secret_that_is_none_is_refused_and_not_repeated() -> None:
    assert check_secret(SECRET) == SECRET
    for wrong in ("", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%", 7, None):
        with pytest.raises(InvalidInput) as refused:
            check_secret(wrong)
        assert "c2hvcnQ" not in str(refused.value)


def test_a_try_that_fails_is_made_again_ever_later_for_days() -> None:
    standing, at, waits = WebhookStanding(), NOW, list[float]()
    while True:
        verdict = judge(TryOutcome(503), standing, at, RULES, 0.0)
        if verdict.disabled is not None:
            break
        assert verdict.next_at is not None
        waits.append((verdict.next_at - at).total_seconds())
        standing, at = verdict.standing, verdict.next_at
    assert waits[:8] == [5, 20, 80, 320, 1280, 5120, 20480, 43200]
    assert set(waits[8:]) == {43200}
    assert timedelta(days=4) <= at - NOW < timedelta(days=4.5)
    assert "it took nothing for 4 days" in verdict.disabled
    assert verdict.state is DeliveryState.WAITING  # for who enables it


def test_jitter_only_adds() -> None:
    assert RULES.rest(1, 0.0) == timedelta(seconds=5)
    assert RULES.rest(1, 1.0) == timedelta(seconds=6)


def test_a_receiver_that_takes_nothing_rests_as_a_whole_and_a_message_alone_does_not() -> None:
    first = judge(TryOutcome(500), WebhookStanding(), NOW, RULES, 0.0)
    second = judge(TryOutcome(error="x"), WebhookStanding(failures=1, failing_since=NOW), NOW, RULES, 0.0)
    third = judge(TryOutcome(404), WebhookStanding(failures=2, failing_since=NOW), NOW, RULES, 0.0)
    assert (first.rest_until, second.rest_until) == (None, None)
    assert third.rest_until == NOW + timedelta(seconds=5)
    assert judge(TryOutcome(204), WebhookStanding(9, NOW, 2, NOW), NOW, RULES, 0.0) == (
        type(first)(DeliveryState.DELIVERED, WebhookStanding(0, None, 3, NOW))
    )


def test_one_message_is_given_up_and_its_webhook_goes_on() -> None:
    long_ago = NOW - timedelta(days=4)
    verdict = judge(TryOutcome(422), WebhookStanding(0, None, 12, long_ago), NOW, RULES, 0.0)
    assert (verdict.state, verdict.disabled) == (DeliveryState.FAILED, None)


def test_gone_disables_at_once() -> None:
    verdict = judge(TryOutcome(410), WebhookStanding(), NOW, RULES, 0.0)
    assert (verdict.state, verdict.disabled) == (DeliveryState.WAITING, "the receiver answered 410: it is gone")


@pytest.mark.parametrize("status", [100, 199, 300, 301, 308, 400, 429, 500, 599, None])
def test_nothing_but_2xx_takes_it(status: int | None) -> None:
    assert judge(TryOutcome(status, "x"), WebhookStanding(), NOW, RULES, 0.0).state is DeliveryState.WAITING


def test_what_is_about_one_thing_has_one_name() -> None:
    assert about_of(job="j", target="t", workflow="w") == "job:j"
    assert about_of(job=None, worker="ada") == "worker:ada"
    assert about_of(job=None) == ""


def test_a_filter_is_kept_as_it_was_said() -> None:
    said = WebhookFilter(kinds=("completed", "failed"), queue="io", workflow="ü")
    assert WebhookFilter.from_json(said.to_json()) == said
    for damaged in ("[]", '{"what": 1}', "x"):
        with pytest.raises(ValueError):
            WebhookFilter.from_json(damaged)


@pytest.mark.parametrize(
    ("asked", "waits"), [(None, 5), (0.0, 5), (3.0, 5), (600.0, 600), (1e9, RULES.longest_retry), (-7.0, 5)]
)
def test_the_next_try_is_the_later_of_ours_and_what_the_receiver_asked_for(asked: float | None, waits: float) -> None:
    verdict = judge(TryOutcome(429, retry_after=asked), WebhookStanding(), NOW, RULES, 0.0)
    assert verdict.next_at == NOW + timedelta(seconds=waits)
    is_asked = asked is not None and asked > 0
    within = None if not is_asked else NOW + timedelta(seconds=min(asked or 0.0, RULES.longest_retry))
    assert verdict.rest_until == within, "what else waits is not sent meanwhile either"


def test_who_takes_nothing_rests_for_the_longer_of_both() -> None:
    standing = WebhookStanding(failures=5, failing_since=NOW, tries=1, tried_since=NOW)
    ours = judge(TryOutcome(503, retry_after=1.0), standing, NOW, RULES, 0.0)
    theirs = judge(TryOutcome(503, retry_after=3600.0), standing, NOW, RULES, 0.0)
    assert ours.rest_until == NOW + RULES.rest(4, 0.0)
    assert theirs.rest_until == NOW + timedelta(hours=1)
    assert judge(TryOutcome(200, retry_after=3600.0), standing, NOW, RULES, 0.0).rest_until is None


@pytest.mark.parametrize(
    ("status", "said", "seconds"),
    [
        (429, "120", 120.0),
        (503, " 7 ", 7.0),
        (503, "Tue, 01 Jan 2030 00:02:00 GMT", 120.0),
        (503, "Mon, 31 Dec 2029 00:00:00 GMT", 0.0),
        (429, "9" * 400, 999_999_999.0),
        (429, "soon", None),
        (429, "-5", None),
        (429, "1.5", None),
        (429, "\u0663", None),
        (429, "Tue, 99 Foo 2030", None),
        (429, "", None),
        (429, None, None),
        (500, "120", None),
        (200, "120", None),
    ],
)
def test_what_a_receiver_asks_for_is_read_or_it_asks_for_nothing(
    status: int, said: str | None, seconds: float | None
) -> None:
    assert retry_after_of(status, said, NOW) == seconds
