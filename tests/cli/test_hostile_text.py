"""Words of jobs and operators reach a terminal as text, whatever they hold; on both databases."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.support.builders import TENANT, begin, boom, claim_all, record, submitted
from tests.support.parking import Stage
from unstuck.cli.main import main
from unstuck.store.sql_store import SqlStore

EVIL = "\x1b[2J\x1b]0;owned\x07 \u202eevil\x9b5n"


def test_no_view_lets_a_job_or_an_operator_command_the_terminal(
    unstuck: Command, store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(store)
    submitted(store, target="ada", workflow="deliver", retries=0)
    submitted(store, target="ada", workflow="deliver", retries=0)
    store.ingest()
    [failed] = claim_all(store, stage.worker)
    begin(store, stage.worker, failed)
    stage.step(failed, "fetch", '"\\u001b[2J"')
    stage.end(failed, boom(EVIL))
    store.ingest()
    waits, asks = stage.awaits("paid"), stage.asks(f"Deploy? {EVIL}", who=(EVIL,))
    held = unstuck.enqueue("add", "1")
    running = stage.begun()
    monkeypatch.setenv("UNSTUCK_DATABASE", str(unstuck.url))
    commands = [
        ("queues", "pause", "default", "--reason", EVIL),
        ("targets", "pause", "ada", "--reason", EVIL),
        ("workflows", "pause", "add", "--reason", EVIL),
        ("blacklist", "add", "harm", "--reason", EVIL),
        ("blacklist", "add", "harm"),
        ("blacklist", "history"),
        ("enqueue", "harm"),
        ("jobs", "cancel", running.id, "--reason", EVIL),
        ("events", "send", waits, "paid", "--by", EVIL),
        *((verb, held) for verb in ("why", "stack")),
        *(("why", job) for job in (failed.id, asks, running.id)),
        *(("jobs", verb, failed.id) for verb in ("show", "history", "steps", "tree", "wait", "cancel")),
        *(("jobs", "show", job) for job in (waits, asks, running.id)),
        ("jobs", "list"),
        ("jobs", "list", "--workflow", EVIL),
        ("jobs", "show", EVIL),
        ("approvals",),
        ("approvals", "reject", asks, "--comment", EVIL, "--by", EVIL),
        ("approvals", "approve", asks),
        ("events", "list"),
        ("targets",),
        ("targets", "show", "ada"),
        *(
            (noun,)
            for noun in ("pauses", "queues", "workflows", "tenants", "audit", "workers", "notifications", "alerts")
        ),
        ("tenants", "show", "default"),
        ("blacklist", "remove", "harm"),
    ]
    obeyed = []
    for words in commands:
        main(list(words))
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert text, words
        if set(text) & set(EVIL) - set(" [2J]0;ownedevil5n"):
            obeyed.append((words, text))
    assert obeyed == []


def test_the_type_of_an_error_is_one_line_wherever_it_is_shown(
    unstuck: Command, store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`type("Bad\\nType", (Exception,), {})` is a class like any other."""
    stage = Stage(store)
    submitted(store, target="ada", workflow="deliver", retries=0)
    store.ingest()
    [failed] = claim_all(store, stage.worker)
    begin(store, stage.worker, failed)
    stage.end(failed, boom("no", "Bad\n\tType\r\nof \u2028 mine"))
    store.ingest()
    [attempt] = store.attempts(TENANT, failed.id)
    last = store.history(TENANT, failed.id)[-1]
    found = {record(store, failed.id).error_type, attempt.error_type, last.data["error_type"]}
    assert found == {"Bad Type of mine"}

    monkeypatch.setenv("UNSTUCK_DATABASE", str(unstuck.url))
    commands = [
        ("jobs", "list"),
        ("jobs", "list", "--wide"),
        ("jobs", "list", "--error", "Bad Type of mine"),
        *(("jobs", verb, failed.id) for verb in ("show", "history", "tree", "wait")),
        ("why", failed.id),
        ("targets", "show", "ada"),
    ]
    for words in commands:
        main(list(words))
        printed = capsys.readouterr()
        assert "Bad Type of mine" in printed.out + printed.err, (words, printed)
