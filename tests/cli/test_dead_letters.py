"""unstuck dead-letters: on both databases, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.builders import TENANT, record
from tests.support.burying import Graveyard
from unstuck.model.lifecycle import JobState
from unstuck.model.signing import Envelope, SignatureProblem
from unstuck.store.sql_store import SqlStore

SIGNED = Envelope("k3", 5, b"s" * 32, accepted_at=3).text()


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


@pytest.fixture
def graveyard(store: SqlStore, store_url: str) -> Graveyard:
    return Graveyard(store, store_url)


def test_they_are_listed_shown_and_exported(unstuck: Command, graveyard: Graveyard) -> None:
    dead = graveyard.bury(SignatureProblem.REVOKED, signature=SIGNED, payload='{"args":["hi"],"kwargs":{}}')
    worn = graveyard.exhaust(workflow="mail")
    other = graveyard.bury(tenant="acme")

    listed = unstuck("dead-letters").out
    assert all(word in listed for word in (dead, "revoked", "k3", worn, "exhausted", "ValueError: boom"))
    assert other not in listed
    assert [line["job"] for line in unstuck("dead-letters", "--json", "--all-tenants").lines] == [other, worn, dead]
    assert [line["job"] for line in unstuck("dead-letters", "list", "-r", "revoked", "--json").lines] == [dead]
    assert [line["job"] for line in unstuck("dead-letters", "--older", "1h", "--json").lines] == []
    assert unstuck("dead-letters", "count", "--newer", "1h").word == "2 dead letters"
    shown = unstuck("dead-letters", "show", dead[:13]).out
    assert all(
        word in shown for word in ("its key is revoked", '{"args":["hi"],"kwargs":{}}', '"key": "k3"', "buried")
    )
    assert [json.loads(line)["payload"] for line in unstuck("dead-letters", "export").out.splitlines()] == [
        "{}",
        '{"args":["hi"],"kwargs":{}}',
    ]
    assert f"unstuck dead-letters show {dead}" in unstuck("jobs", "show", dead).out
    assert f"unstuck dead-letters resign {dead}" in unstuck("why", dead).out
    assert unstuck("dead-letters", "list", "-r", "gone").code == 2


def test_they_are_redriven_discarded_and_refused_with_the_remedy(
    unstuck: Command, graveyard: Graveyard, store: SqlStore
) -> None:
    dead, worn, more = graveyard.bury(), graveyard.exhaust(), graveyard.exhaust()

    refused = unstuck("dead-letters", "redrive", dead, worn)
    assert (refused.code, f"unstuck dead-letters resign {dead}" in refused.err) == (4, True)
    assert record(store, worn).state is JobState.QUEUED
    assert "holds no key" in unstuck("dead-letters", "resign", dead).err
    assert unstuck("dead-letters", "redrive", dead, "--force").code == 0
    assert unstuck("dead-letters", "discard", more, "--by", "kim").code == 0
    again = unstuck("dead-letters", "discard", more)
    assert (again.code, "has no dead letter, or none any more" in again.err) == (3, True)
    assert {(line.verb, line.by == "kim") for line in store.audit(TENANT, verb="dead_letters")} == {
        ("dead_letters.redrive", False),
        ("dead_letters.discard", True),
    }


def test_a_filter_is_needed_asked_about_and_carried_out_by_workers(
    unstuck: Command, graveyard: Graveyard, store: SqlStore
) -> None:
    worn, dead = graveyard.exhaust(), graveyard.bury()

    for verb in ("redrive", "discard", "resign"):
        answer = unstuck("dead-letters", verb)
        assert (answer.code, "which ones?" in answer.err) == (2, True)
        assert unstuck("dead-letters", verb, worn, "--reason", "exhausted").code == 2
    assert "say --yes" in unstuck("dead-letters", "redrive", "--reason", "exhausted").err
    assert unstuck("dead-letters", "redrive", "-r", "exhausted", "--timeout", "5s", "--yes").code == 2
    assert unstuck("dead-letters", "resign", "--every", "--signature", "{}").code == 2
    assert unstuck("dead-letters", "resign", dead, "--signature", "[]").code == 2

    (bulk,) = unstuck("dead-letters", "redrive", "--reason", "exhausted", "--yes", "--json").lines
    assert (bulk["verb"], bulk["filter"]["dead_letter"]) == ("retry", "exhausted")
    store.carry_bulks()
    assert record(store, worn).state is JobState.QUEUED
    assert "dead letters (exhausted)" in unstuck("bulks").out
    assert dead in unstuck("dead-letters", "discard", "--every").out
    assert unstuck("dead-letters", "--json").lines == []


def test_a_canary_that_does_not_complete_stops_the_rest(
    unstuck: Command, graveyard: Graveyard, store: SqlStore
) -> None:
    first, second = graveyard.exhaust(), graveyard.exhaust()

    answer = unstuck("dead-letters", "redrive", "--every", "--canary", "--yes", "--timeout", "0.2s")

    assert (answer.code, "is QUEUED and not COMPLETED: nothing was redriven" in answer.err) == (4, True)
    assert (record(store, second).state, record(store, first).state) == (JobState.QUEUED, JobState.FAILED)
