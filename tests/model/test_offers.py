"""How claims of workers at a distance are spelled."""

from __future__ import annotations

import pytest

from unstuck.model.offers import claim_id, is_claim_of, key_of, offered, remote_incarnation

NONCE = "0123456789abcdef" * 2


def test_a_claim_says_whose_it_is() -> None:
    claim = claim_id(12, NONCE)
    assert is_claim_of(12, claim)
    assert not is_claim_of(1, claim)
    assert not is_claim_of(2, claim)


@pytest.mark.parametrize("claim", [NONCE, f"w12-{NONCE}x", "w12-", "w12-abc", f"w12-{NONCE.upper()}", ""])
def test_what_is_spelled_otherwise_is_nobodys(claim: str) -> None:
    assert not is_claim_of(12, claim)


def test_an_offer_is_no_acknowledged_claim() -> None:
    assert not is_claim_of(12, offered(claim_id(12, NONCE)))


def test_an_incarnation_says_by_which_key_it_registered() -> None:
    assert key_of(remote_incarnation("k3y00001", NONCE)) == "k3y00001"
    assert key_of(remote_incarnation(None, NONCE)) == "loopback"
    assert key_of(NONCE) is None
    assert key_of("k3y00001.short") is None
