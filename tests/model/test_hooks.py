"""Who sent a delivery, whether it is new, and what it says: signatures by the published vectors, and all that is not
one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from unstuck.model.errors import InvalidInput
from unstuck.model.hooks import (
    MOST_BYTES,
    Delivery,
    DeliveryProblem,
    DeliveryRefused,
    HookSpec,
    checked,
    found_at,
    key_of,
    sources,
    spelled,
    verified,
)

NOW = 1_614_265_330.0
BODY = b'{"test": 2432232314}'
#: From the specification of Standard Webhooks.
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
#: From GitHub's documentation.
GITHUB_SECRET, GITHUB_BODY = "It's a Secret to Everybody", b"Hello, World!"
GITHUB = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
STRIPE_SECRET = "whsec_stripe_signs_with_the_text_itself"


def stripe(body: bytes, at: int, *secrets: str) -> dict[str, str]:
    signatures = [
        hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest() for secret in secrets
    ]
    return {"stripe-signature": ",".join([f"t={at}", *(f"v1={each}" for each in signatures), "v0=ignored"])}


def judged(scheme: Any, secret: str, delivery: Delivery, now: float = NOW, **facts: Any) -> str:
    return verified(HookSpec("w", scheme, **facts), [secret], delivery, now, 300.0)


def problem(scheme: Any, secret: str, delivery: Delivery, now: float = NOW, **facts: Any) -> DeliveryProblem:
    with pytest.raises(DeliveryRefused) as refused:
        judged(scheme, secret, delivery, now, **facts)
    return refused.value.problem


def test_the_vectors_of_standard_webhooks_and_github_hold() -> None:
    assert judged("standard", STANDARD_SECRET, Delivery(BODY, STANDARD)) == f"id:{STANDARD['webhook-id']}"
    github = Delivery(GITHUB_BODY, {**GITHUB, "x-github-delivery": "72d3162e"})
    assert judged("github", GITHUB_SECRET, github) == "id:72d3162e"


def test_several_secrets_and_several_signatures_overlap() -> None:
    other = spelled("standard", b"z" * 32)
    spec = HookSpec("w", "standard")
    two = {**STANDARD, "webhook-signature": f"v1,{'A' * 43}= v1a,xyz {STANDARD['webhook-signature']}"}

    assert verified(spec, [other, STANDARD_SECRET], Delivery(BODY, two), NOW, 300.0)
    assert problem("standard", other, Delivery(BODY, STANDARD)) is DeliveryProblem.WRONG_SIGNATURE
    both = stripe(b"{}", int(NOW), "old" * 8, STRIPE_SECRET)
    assert judged("stripe", STRIPE_SECRET, Delivery(b"{}", both))


def test_stripe_is_known_by_the_id_of_its_event_however_often_it_is_signed_anew() -> None:
    body = json.dumps({"id": "evt_1", "type": "charge.succeeded"}).encode()
    keys = {
        judged("stripe", STRIPE_SECRET, Delivery(body, stripe(body, int(NOW) - ago, STRIPE_SECRET)))
        for ago in (0, 99)
    }
    assert keys == {"id:evt_1"}
    without = b'{"type": "x"}'
    [one, two] = [
        judged("stripe", STRIPE_SECRET, Delivery(without, stripe(without, int(NOW) - a, STRIPE_SECRET)))
        for a in (0, 9)
    ]
    assert one.startswith("digest:")
    assert one != two, "signed at another time, another delivery"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"webhook-signature": ""}, DeliveryProblem.UNSIGNED),
        ({"webhook-signature": STANDARD["webhook-signature"][:-4]}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-signature": "v1,"}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-signature": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-signature": "v1,not base64 at all"}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-signature": "v1,é"}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-id": "msg_other"}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-id": ""}, DeliveryProblem.NO_ID),
        ({"webhook-id": "a\x07"}, DeliveryProblem.NO_ID),
        ({"webhook-id": "a" * 300}, DeliveryProblem.NO_ID),
        ({"webhook-timestamp": "1614265331"}, DeliveryProblem.WRONG_SIGNATURE),
        ({"webhook-timestamp": "01614265330"}, DeliveryProblem.OUT_OF_TIME),
        ({"webhook-timestamp": "-1"}, DeliveryProblem.OUT_OF_TIME),
        ({"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"}, DeliveryProblem.OUT_OF_TIME),
        ({"webhook-timestamp": ""}, DeliveryProblem.OUT_OF_TIME),
    ],
)
def test_whatever_is_altered_is_refused(changes: dict[str, str], told: DeliveryProblem) -> None:
    assert problem("standard", STANDARD_SECRET, Delivery(BODY, STANDARD | changes)) is told


def test_an_altered_or_truncated_body_is_refused_by_every_scheme() -> None:
    for body in (BODY[:-1], BODY + b" ", b"", BODY.replace(b"2", b"3")):
        assert problem("standard", STANDARD_SECRET, Delivery(body, STANDARD)) is DeliveryProblem.WRONG_SIGNATURE
        assert problem("github", GITHUB_SECRET, Delivery(body, GITHUB)) is DeliveryProblem.WRONG_SIGNATURE
        signed = stripe(BODY, int(NOW), STRIPE_SECRET)
        assert problem("stripe", STRIPE_SECRET, Delivery(body, signed)) is DeliveryProblem.WRONG_SIGNATURE


@pytest.mark.parametrize("distance", [301, -301, 86400])
def test_a_signature_is_good_for_five_minutes_in_both_directions(distance: int) -> None:
    assert judged("standard", STANDARD_SECRET, Delivery(BODY, STANDARD), NOW + (300 if distance > 0 else -300))
    assert (
        problem("standard", STANDARD_SECRET, Delivery(BODY, STANDARD), NOW + distance) is DeliveryProblem.OUT_OF_TIME
    )
    late = stripe(BODY, int(NOW) - distance, STRIPE_SECRET)
    assert problem("stripe", STRIPE_SECRET, Delivery(BODY, late)) is DeliveryProblem.OUT_OF_TIME


@pytest.mark.parametrize("header", ["t=1614265330", "v1=00", "t=1,t=2,v1=00", "nonsense", "t=x,v1=00", "t=,v1="])
def test_half_a_stripe_signature_is_none(header: str) -> None:
    assert problem("stripe", STRIPE_SECRET, Delivery(BODY, {"stripe-signature": header})).is_about_sender


def test_a_delivery_without_an_id_is_known_by_its_bytes() -> None:
    key = judged("github", GITHUB_SECRET, Delivery(GITHUB_BODY, GITHUB))
    assert key == f"digest:{hashlib.sha256(GITHUB_BODY).hexdigest()}"


SLACK = {
    "header": "X-Slack-Signature",
    "prefix": "v0=",
    "signed": "v0:{time}:{body}",
    "time_header": "X-Slack-Request-Timestamp",
}


def test_any_other_header_with_an_hmac_can_be_told() -> None:
    secret, at = "8f742231b10e8888abcd99yyyzzz85a5", "1614265300"
    given = hmac.new(secret.encode(), f"v0:{at}:".encode() + BODY, hashlib.sha256).hexdigest()
    slack = Delivery(BODY, {"x-slack-signature": f"v0={given}", "x-slack-request-timestamp": at})
    assert judged("hmac", secret, slack, signature=SLACK)
    assert problem("hmac", secret, slack, NOW + 400, signature=SLACK) is DeliveryProblem.OUT_OF_TIME
    other = replace(slack, headers={**slack.headers, "x-slack-signature": given})
    assert problem("hmac", secret, other, signature=SLACK) is DeliveryProblem.WRONG_SIGNATURE

    shopify = {"header": "X-Shopify-Hmac-Sha256", "encoding": "base64", "id_header": "X-Shopify-Webhook-Id"}
    signed = base64.b64encode(hmac.new(secret.encode(), BODY, hashlib.sha256).digest()).decode()
    headers = {"x-shopify-hmac-sha256": signed, "x-shopify-webhook-id": "b54557e4"}
    assert judged("hmac", secret, Delivery(BODY, headers), signature=shopify) == "id:b54557e4"
    wide = hmac.new(secret.encode(), BODY, hashlib.sha512).hexdigest()
    assert judged("hmac", secret, Delivery(BODY, {"x-s": wide}), signature={"header": "X-S", "algorithm": "sha512"})


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ({"header": "X Y"}, "not the name of a header"),
        ({"algorithm": "md5"}, "not one of sha256, sha512"),
        ({"encoding": "octal"}, "not one of hex, base64"),
        ({"signed": "{time}"}, "must have {body} in it"),
        ({"signed": "{body}{nonce}"}, "must have {body} in it"),
        ({"signed": "{time}.{body}"}, "say time_header"),
        ({"time_header": "X-Time"}, "anybody could change it"),
        ({"hedaer": "X"}, "there is no hedaer"),
        ({"header": 3}, "is not text"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(signature: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(HookSpec("w", "hmac", signature=signature))
    assert words in str(refused.value)


def test_what_no_hook_can_be_is_refused() -> None:
    for spec, words in [
        (HookSpec("w", "none"), "not one of standard, github, stripe, hmac"),  # type: ignore[arg-type]
        (HookSpec("w", "github", signature={"header": "X"}), "knows that by itself"),
        (HookSpec("w", max_bytes=MOST_BYTES + 1), "max_bytes"),
        (HookSpec("w", arguments={"a": "header.Authorization"}), "is a secret"),
        (HookSpec("w", arguments={"a": "header.webhook-signature"}), "is a secret"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            checked(spec)
    assert key_of("standard", "whsec_not base64!") == b""


@pytest.mark.parametrize(
    "said",
    [
        "boddy.a",
        "header",
        "query",
        "",
        "body..a",
        "raw.x",
        3,
        [],
        {"from": "nowhere"},
        {"default": 1},
        {"value": 1, "from": "body"},
    ],
)
def test_a_source_that_is_none_is_refused(said: Any) -> None:
    with pytest.raises(InvalidInput, match="argument a"):
        sources({"a": said})


def test_values_are_found_in_body_headers_and_query() -> None:
    delivery = Delivery(
        json.dumps({"repo": {"full.name": "a/b", "tags": [{"n": 1}, {"n": 2}]}, "none": None}).encode(),
        {"x-user": "ada"},
        [("n", "3"), ("n", "4"), ("a.b", "5")],
    )
    mapping = {
        "named": ["body", "repo", "full.name"],
        "second": "body.repo.tags.1.n",
        "nothing": "body.none",
        "missing": "body.repo.x",
        "beyond": "body.repo.tags.2",
        "who": "header.X-User",
        "n": "query.n",
        "dotted": "query.a.b",
        "fixed": {"value": {"k": 1}},
        "whole": "body",
        "raw": "raw",
        "id": "delivery",
    }
    found = {name: found_at(source, delivery, "d-1") for name, source in sources(mapping).items()}

    assert found.pop("whole")[1]["none"] is None
    assert found.pop("raw") == (True, delivery.body.decode())
    assert found == {
        "named": (True, "a/b"),
        "second": (True, 2),
        "nothing": (True, None),
        "missing": (False, None),
        "beyond": (False, None),
        "who": (True, "ada"),
        "n": (True, "3"),
        "dotted": (True, "5"),
        "fixed": (True, {"k": 1}),
        "id": (True, "d-1"),
    }


def test_a_form_is_a_body_too_and_what_is_neither_is_refused() -> None:
    form = Delivery(b"a=1&b=x+y&b=z", {"content-type": "application/x-www-form-urlencoded; charset=utf-8"})
    assert form.value == {"a": "1", "b": ["x y", "z"]}
    for body in (b"\xff", b"{", b'{"a": 1, "a": 2}', b"NaN", b"[" * 200 + b"]" * 200):
        with pytest.raises(DeliveryRefused) as refused:
            _ = Delivery(body).value
        assert refused.value.problem is DeliveryProblem.UNREADABLE


def test_what_the_reference_library_signs_is_verified() -> None:
    secret, at = spelled("standard", b"k" * 32), datetime.fromtimestamp(NOW, UTC)
    signature = Webhook(secret).sign("msg_9", at, BODY.decode())
    headers = {"webhook-id": "msg_9", "webhook-timestamp": str(int(NOW)), "webhook-signature": signature}

    assert judged("standard", secret, Delivery(BODY, headers)) == "id:msg_9"
    other = spelled("standard", b"o" * 32)
    assert problem("standard", other, Delivery(BODY, headers)) is DeliveryProblem.WRONG_SIGNATURE
