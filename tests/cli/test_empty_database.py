"""A database without tables: every command says the same, and only a worker or a job of a known app makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import APP, Command
from unstuck.cli.commands import COMMANDS, load
from unstuck.cli.main import main

JOB = "01890000-0000-7000-8000-000000000000"
#: What a verb needs beside the database; verbs that are not here need nothing.
WORDS = {
    "enqueue": ["add", "1"], "why": [JOB], "stack": [JOB],
    "blacklist add": ["harm"], "blacklist remove": ["harm"], "settings get": ["breaker_probe_after"],
    "settings set": ["breaker_probe_after", "60"], "notifications ack": ["1"],
    **{f"alerts {verb}": ["1"] for verb in ("show", "ack", "mute", "unmute")}, "quarantine retry": ["--all"],
    "approvals approve": [JOB], "approvals reject": [JOB], "events send": [JOB, "paid"], "events publish": ["paid"],
    "jobs resolve": [JOB, "null"], "jobs reprioritise": ["5", JOB],
    "bulks show": ["1"], "bulks cancel": ["1"],
    "keys create": ["ci", "--role", "reader"], "keys show": ["a1b2c3d4"], "keys revoke": ["a1b2c3d4"],
    "keys rotate": ["a1b2c3d4"],
    "targets show": ["ada"], "targets pause": ["ada"], "targets unpause": ["ada"], "queues pause": ["mail"],
    "queues unpause": ["mail"], "queues limit": ["mail", "--concurrency", "1"], "workflows pause": ["add"],
    "workflows unpause": ["add"], "workflows limit": ["add", "--concurrency", "1"], "tenants show": ["acme"],
    "tenants pause": ["acme"], "tenants unpause": ["acme"], "tenants limit": ["acme", "--concurrency", "1"],
    "limits key": ["host:a", "--concurrency", "1"],
    "workers drain": ["w1"], "workers recycle": ["1"], "workers kill": ["1"], "tenants weight": ["acme", "2"],
    "sessions end": ["1"],
    **{f"schedules {verb}": ["nightly"] for verb in ("show", "delete", "pause", "resume", "run-now", "next")},
    "schedules firings": ["nightly"], "schedules create": ["nightly", "add", "--cron", "0 3 * * *"],
    "schedules update": ["nightly", "--cron", "0 4 * * *"],
    "schedules backfill": ["nightly", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"],
    **{f"webhooks {verb}": ["hook"] for verb in ("show", "update", "rotate", "pause", "enable", "disable", "test")},
    **{f"hooks {verb}": ["pushes"] for verb in ("show", "update", "rotate", "pause", "resume", "delete")},
    "hooks deliveries": ["pushes"], "hooks create": ["pushes", "add"], "hooks dry-run": ["pushes"],
    "webhooks delete": ["hook"], "webhooks create": ["hook", "https://93.184.216.34/"],
    "webhooks replay": ["hook", "--since", "2026-11-01T00:00:00Z"], "deliveries show": ["1"],
    **{f"dead-letters {verb}": [JOB] for verb in ("show", "resign", "redrive", "discard")},
    "signing revoke": ["old"], "signing unrevoke": ["old"],
}  # fmt: skip
#: What is about keys, which are in no database.
WITHOUT = {"signing new-key", "signing keys", "signing sign", "signing verify"}
#: They need no database, or make one, or judge it.
OTHERS = {"health", "doctor", "worker", "server", "demo", "bench", "config", "completion", "version", "db", "dev"}


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        (tmp_path / "empty.db").touch()
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    url = server.create(migrated=False)
    yield url
    server.drop(url)


def verbs() -> Iterator[list[str]]:
    for command in COMMANDS:
        if command.name not in OTHERS:
            group = load(command.module)
            names = [[command.name, verb] for verb in group.verbs] if group.is_group else [[command.name]]
            yield from (words for words in names if " ".join(words) not in WITHOUT)


def test_every_command_names_the_remedy_in_the_same_words_and_makes_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNSTUCK_DATABASE", empty)
    answers = {}
    for words in verbs():
        name = " ".join(words)
        more = WORDS.get(name, [JOB] if words[0] == "jobs" and words[1:] != ["list"] else [])
        code = main([*words, *more])
        printed = capsys.readouterr()
        answers[name] = (code, printed.out, printed.err)
    assert len(answers) > 40
    assert main(["db", "current"]) == 0
    assert capsys.readouterr().out == "0\n"
    [(code, out, said)] = set(answers.values())
    assert (code, out) == (6, "")
    assert said.endswith(
        "has no tables yet; make them: unstuck db migrate (the first worker makes them too, and so does the first "
        "job that is enqueued with --app)\n"
    )


def test_the_first_job_of_a_known_app_makes_the_tables_and_the_next_command_finds_it(
    empty: str, bare: Command
) -> None:
    job = bare("enqueue", "add", "1", "--app", APP, "--database", empty)
    assert job.code == 0, job.err
    assert bare("jobs", "list", "--database", empty, "--json").object["id"] == job.word


def test_health_names_the_remedy_and_shows_no_statement(
    empty: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNSTUCK_DATABASE", empty)
    assert main(["health"]) == 10
    told = capsys.readouterr()
    assert "BAD   schema        there are no tables yet; make them: unstuck db migrate" in told.out
    assert "ok    database" in told.out
    for word in ("SELECT", "LINE", "unstuck_now", "no such table"):
        assert word not in told.out + told.err
