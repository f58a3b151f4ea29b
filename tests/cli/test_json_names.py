"""--json: one name for one thing, whatever the command; on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.command import APP, Command
from tests.support.builders import begin, boom, claim_all, record, submitted
from tests.support.parking import Stage
from unstuck.cli.main import main
from unstuck.store.sql_store import SqlStore

#: What others chose: handlers, operators, the code of an app, the kind of an event.
FOREIGN = {
    "args", "kwargs", "result", "payload", "progress", "value", "data", "detail", "details", "info", "policy",
    "schema",
}  # fmt: skip
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")
#: Whose job something is, in a word that says more than `job`.
ROLES = {"id", "job", "parent", "replay_of", "head", "blocked_by", "answered", "subject"}


@pytest.fixture
def answers(
    unstuck: Command, store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Every kind of object that the command line prints, with the command that did."""
    stage = Stage(store)
    submitted(store, target="ada", workflow="deliver", retries=0)
    store.ingest()
    [failed] = claim_all(store, stage.worker)
    begin(store, stage.worker, failed)
    stage.step(failed, "fetch", '{"until": 1}')
    stage.spawn(failed, "crawl")
    stage.end(failed, boom())
    asks = stage.asks()
    waits = stage.awaits("paid")
    queued = unstuck.enqueue("add", "1", "--limit-key", "host:a")
    after = unstuck.enqueue("add", "1", "--after", queued)
    store.quarantine("start", {record(store, queued).number: "not for you"}, by="w1")
    commands = [
        ("enqueue", "add", "1", "--app", APP),
        ("queues", "pause", "mail", "--for", "1h"),
        ("queues", "limit", "mail", "--rate", "5/m"),
        ("blacklist", "add", "harm"),
        ("settings", "set", "stuck_circuit_breaker_threshold", "3"),
        ("jobs", "list"),
        *(("jobs", "show", job) for job in (failed.id, asks, waits, after)),
        ("jobs", "history", failed.id),
        ("jobs", "steps", failed.id),
        ("jobs", "tree", failed.id),
        ("jobs", "replay", failed.id),
        ("why", queued),
        ("why", waits),
        ("approvals",),
        ("approvals", "approve", asks),
        ("events", "list"),
        ("events", "send", waits, "paid"),
        ("targets",),
        ("targets", "show", "ada"),
        *(
            (noun,)
            for noun in ("pauses", "limits", "queues", "workflows", "workers", "tenants", "blacklist", "audit")
        ),
        ("settings",),
        ("notifications",),
        ("alerts", "--all"),
        ("alerts", "rules"),
        ("quarantine",),
        ("quarantine", "retry", queued),
        ("stats",),
        ("stats", "--by-queue"),
        ("health",),
    ]
    # In this process: forty commands would spend most of their time starting.
    monkeypatch.setenv("UNSTUCK_DATABASE", str(unstuck.url))
    found = []
    for words in commands:
        main([*words, "--json"])
        found += [(" ".join(words), json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    return found


def test_one_thing_has_one_name_in_every_answer(answers: list[tuple[str, dict[str, Any]]]) -> None:
    """The rules that views/__init__.py states."""
    asked = {command.split()[0] for command, _ in answers}
    assert asked >= {"jobs", "why", "approvals", "events", "targets", "pauses", "limits", "audit"}
    known = {each["id"] for command, each in answers if command == "jobs list"}
    assert len(known) >= 6
    broken = [
        f"{command}: {complaint}"
        for command, each in answers
        for found in objects(each)
        for complaint in complaints(found, known)
    ]
    assert not broken, "\n".join(sorted(set(broken)))


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """An object and those inside it, as far as their keys are ours."""
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            if name not in FOREIGN:
                yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def complaints(found: dict[str, Any], jobs: set[str]) -> Iterator[str]:
    shown = json.dumps(found)[:200]
    if "id" in found and not {"workflow", "state"} <= found.keys():
        yield f"id, but not a job: {shown}"
    if {"id", "job"} <= found.keys():
        yield f"both id and job: {shown}"
    if isinstance(found.get("attempt"), dict) or "token" in found:
        yield f"an attempt is called by its number, `attempt`: {shown}"
    if "by" in found and not found.keys() & {"at", "since_at"}:
        yield f"`by` does not say what was done: {shown}"
    for name, value in found.items():
        if name in FOREIGN or not isinstance(value, str):
            continue
        if INSTANT.fullmatch(value) and not (name == "at" or name.endswith(("_at", "_until"))):
            yield f"an instant is called {name}: {value}"
        if value in jobs and name not in ROLES:
            yield f"a job is called {name}"
    for name in found:
        if name in ("since", "until", "time", "order", "job_id", "workflow_name", "asked"):
            yield f"{name}: {shown}"
