"""How an API key is spelled, and what is refused before anybody is asked."""

from __future__ import annotations

import random
import re
from math import log2

import pytest

from unstuck.model.errors import InvalidInput
from unstuck.model.keys import (
    IDS,
    SECRETS,
    Scope,
    Within,
    acting_for,
    check_key_name,
    check_names,
    check_scopes,
    digest,
    id_in,
    person_in,
    spell,
)


def test_a_key_has_a_prefix_an_id_a_secret_of_256_bits_and_a_checksum() -> None:
    dice = random.Random(1)
    for number in (0, IDS - 1, *(dice.randrange(IDS) for _ in range(100))):
        key = spell(number, dice.randrange(SECRETS))
        assert re.fullmatch(r"usk_[0-9a-z]{8}_[0-9A-Za-z]{49}", key)
        assert id_in(key) == key[4:12]
    assert log2(SECRETS) >= 256


def test_a_mistyped_key_is_known_without_asking_anybody() -> None:
    key = spell(7, 7**90)
    wrong = {key[:place] + "x" + key[place + 1 :] for place in range(len(key)) if key[place] != "x"}
    wrong |= {key[:-1], key + "0", key.upper(), f" {key}", f"{key}\n", "", "usk_", "usk__", key.replace("_", "-")}
    assert len(wrong) > 60
    assert [id_in(text) for text in wrong] == [None] * len(wrong)
    assert id_in(None) is None


def test_only_the_hash_of_the_whole_key_is_kept() -> None:
    key = spell(7, 7**90)
    assert len(digest(key)) == 64
    assert digest(key) != digest(key[:-1])
    assert digest("\ud800"), "what no UTF-8 can say is hashed all the same"


def test_what_a_key_may_touch() -> None:
    assert Within().holds("any", "any")
    limited = Within(frozenset({"io"}), frozenset({"mail"}))
    assert limited.holds("io", "mail")
    assert not limited.holds("io", "crawl")
    assert not limited.holds("cpu", "mail")
    assert check_names(["io", "io"], "queue") == frozenset({"io"})
    assert check_names(None, "queue") is None
    for bad in ("io", [], ["*"], [""], [3], 3, [f"q{n}" for n in range(101)]):
        with pytest.raises(InvalidInput):
            check_names(bad, "queue")
    assert check_scopes(["act-as"]) == {Scope.ACT_AS}
    for scopes in ("act-as", ["root"], [["act-as"]], 3):
        with pytest.raises(InvalidInput):
            check_scopes(scopes)


def test_nobody_can_be_named_so_that_somebody_else_seems_to_ask() -> None:
    assert acting_for("anna", "deploy") == "anna via key deploy"
    assert person_in("anna via key deploy") == "anna"
    assert person_in("anna") == "anna"
    for bad in ("anna via key x", "via key x", "x via key", "n" * 81, "", " x "):
        with pytest.raises(InvalidInput):
            check_key_name(bad)
    for bad in ("anna via key root", "n" * 101):
        with pytest.raises(InvalidInput):
            acting_for(bad, "deploy")
