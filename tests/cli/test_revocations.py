"""unstuck signing revoke, unrevoke, revocations: for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


def test_a_key_is_revoked_listed_and_given_back(unstuck: Command, store: SqlStore) -> None:
    assert "no signing key is revoked" in unstuck("signing", "revocations").err
    assert "is revoked" in unstuck("signing", "revoke", "web-1", "--reason", "stolen", "--by", "kim").out
    assert "revoked already, by kim" in unstuck("signing", "revoke", "web-1").err

    [line] = unstuck("signing", "revocations", "--json").lines
    assert (line["key"], line["revoked_by"], line["reason"]) == ("web-1", "kim", "stolen")
    shown = unstuck("signing", "revocations").out
    assert all(word in shown for word in ("web-1", "kim", "stolen"))

    assert "no longer revoked" in unstuck("signing", "unrevoke", "web-1").out
    assert "was not revoked" in unstuck("signing", "unrevoke", "web-1").err
    assert [action.verb for action in store.audit(verb="signing")] == ["signing.unrevoke", "signing.revoke"]


def test_what_is_no_id_of_a_key_is_refused(unstuck: Command, store: SqlStore) -> None:
    refused = unstuck("signing", "revoke", "not an id")

    assert refused.code == 2

    assert "is not the id of a signing key" in refused.err
    assert store.revoked_signers() == []
