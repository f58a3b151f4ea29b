"""unstuck quarantine: on both databases, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.builders import a_job, record
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


@pytest.fixture
def job(store: SqlStore) -> str:
    first, other = a_job(workflow="crawl"), a_job(workflow="mail", tenant="acme")
    store.submit([first, other])
    store.quarantine("settle", {record(store, first.id).number: "CheckViolation: not for you"}, by="worker 1")
    store.quarantine("start", {record(store, other.id, "acme").number: "held"}, by="sweep")
    return first.id


def test_what_is_set_aside_is_listed_with_its_reason(unstuck: Command, job: str) -> None:
    shown = unstuck("quarantine").out
    assert all(word in shown for word in ("settle", job, "crawl", "CheckViolation: not for you", "acme"))
    first, second = unstuck("quarantine", "list", "--json").lines
    assert (first["duty"], first["job"], first["workflow"], first["tries"]) == ("settle", job, "crawl", 1)
    assert (first["error"], first["by"], first["tenant"]) == (
        "CheckViolation: not for you",
        "worker 1",
        "default",
    )
    assert (second["duty"], second["tenant"]) == ("start", "acme")
    assert [line["tenant"] for line in unstuck("quarantine", "--json", "--tenant", "acme").lines] == ["acme"]
    assert len(unstuck("quarantine", "--json", "--limit", "1").lines) == 1


def test_nothing_set_aside_is_said(unstuck: Command, store: SqlStore) -> None:
    answer = unstuck("quarantine")
    assert (answer.code, "nothing is set aside" in answer.out + answer.err) == (0, True)


def test_one_or_all_are_tried_next_and_the_audit_says_who_asked(unstuck: Command, store: SqlStore, job: str) -> None:
    assert (
        unstuck("quarantine", "retry", job[:13], "--by", "kim").word
        == "1 thing will be tried again with the next sweep"
    )
    assert unstuck("quarantine", "retry", "--all", "--json").lines == [{"job": None, "tried": 2}]
    assert {found.tried_at.year for found in store.quarantined()} == {1970}
    latest, first = unstuck("audit", "--verb", "quarantine", "--json").lines
    assert (first["verb"], first["subject"], first["by"]) == ("quarantine.retry", job, "kim")
    assert (latest["subject"], latest["by"].endswith("(cli)")) == ("all", True)


def test_what_is_not_there_or_not_clear_is_refused(unstuck: Command, store: SqlStore, job: str) -> None:
    free = a_job(workflow="crawl")
    store.submit([free])
    missing = unstuck("quarantine", "retry", free.id)
    assert (missing.code, "is set aside" in missing.err) == (3, True)
    assert unstuck("quarantine", "retry", "0" * 32).code == 3
    assert unstuck("quarantine", "retry").code == 2
    assert unstuck("quarantine", "retry", job, "--all").code == 2
    assert unstuck("audit", "--verb", "quarantine", "--json").lines == []
