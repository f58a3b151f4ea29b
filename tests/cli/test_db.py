"""unstuck db, health and config: what operators ask first."""

from __future__ import annotations

import base64
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command import APP, Command
from tests.support import hooks
from tests.support.postgres import PostgresServer
from unstuck.cli import output
from unstuck.store.port import Store


def test_migrate_makes_a_database_and_repeating_it_changes_nothing(bare: Command, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    first = bare("db", "migrate", "--database", url, "--json").object
    assert first["applied"]
    assert bare("db", "migrate", "--database", url, "--json").object == {"applied": [], "version": first["version"]}
    assert bare("db", "current", "--database", url).word == str(first["version"])
    assert bare("db", "check", "--database", url, "--json").object["ok"] is True


def test_migrate_sql_prints_the_statements_and_runs_none(bare: Command, tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'new.db'}", "postgresql://nobody@127.0.0.1:1/none"):
        answer = bare("db", "migrate", "--sql", "--database", url)
        assert answer.code == 0, answer.err
        assert "CREATE TABLE" in answer.out
        assert answer.out.rstrip().endswith("COMMIT;")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_database_of_before_the_first_release_is_refused_whatever_is_asked(
    unstuck: Command, tmp_path: Path
) -> None:
    unstuck.enqueue("add", "1")
    with closing(sqlite3.connect(tmp_path / "unstuck.db", isolation_level=None)) as file:
        [(view,)] = file.execute("SELECT sql FROM sqlite_master WHERE name = 'unstuck_job_rows'").fetchall()
        file.execute("DROP VIEW unstuck_job_rows")
        file.execute(view.replace("AS event_count", "AS n"))
        file.execute("UPDATE unstuck_migrations SET name = 'jobs', checksum = 'old'")

    for words in (["jobs", "list"], ["db", "check"], ["db", "migrate"], ["enqueue", "add", "1", "--app", APP]):
        answer = unstuck(*words)
        assert (answer.code, answer.out) == (6, ""), answer
        assert "was made before the first release of unstuck" in answer.err
        assert "Traceback" not in answer.err


def test_an_empty_database_fails_the_check_and_names_the_remedy(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    answer = bare("db", "check", "--database", f"sqlite:///{tmp_path / 'empty.db'}")
    assert answer.code == 10
    assert "unstuck db migrate" in answer.err


@pytest.mark.parametrize("words", [["jobs", "list"], ["stats"], ["workers"], ["health"], ["db", "current"]])
def test_a_mistyped_path_is_code_6_and_makes_no_file(bare: Command, tmp_path: Path, words: list[str]) -> None:
    answer = bare(*words, "--database", f"sqlite:///{tmp_path / 'typo.db'}")
    assert (answer.code, answer.out) == (6, "")
    assert "typo.db" in answer.err
    assert "--database" in answer.err
    assert not (tmp_path / "typo.db").exists()


def test_a_database_that_cannot_be_reached_is_code_6_and_hides_its_password(bare: Command) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    answer = bare("jobs", "list", "--database", f"postgresql://me:geheim@127.0.0.1:{port}/jobs")
    assert (answer.code, answer.out) == (6, "")
    assert "Traceback" not in answer.err
    assert "geheim" not in answer.err


def test_a_postgres_without_tables_names_the_remedy_and_gets_them_when_first_used(
    bare: Command, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create(migrated=False)
    try:
        looked = bare("jobs", "list", "--database", url)
        assert looked.code == 6
        assert "unstuck db migrate" in looked.err
        assert bare("db", "check", "--database", url).code == 10
        assert bare("enqueue", "add", "1", "--app", APP, "--database", url).code == 0
        assert bare("db", "check", "--database", url).code == 0
    finally:
        postgres_server.drop(url)


def test_health_without_a_worker_is_code_10_unless_that_is_meant(unstuck: Command) -> None:
    sick = unstuck("health", "--json")
    assert (sick.code, sick.object["healthy"]) == (10, False)
    assert {c["name"]: c["ok"] for c in sick.object["checks"]}.items() >= {"database": True, "workers": False}.items()
    assert sick.object["bounds"]["job of a lost machine leaves RUNNING"] == 39
    assert unstuck("health", "--no-workers").code == 0


def test_health_tells_an_unreachable_database_from_an_unhealthy_one(bare: Command) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    away = bare("health", "--json", "--database", f"postgresql://me@127.0.0.1:{port}/jobs")
    assert (away.code, away.object["healthy"]) == (6, False)
    assert [check["name"] for check in away.object["checks"]] == ["database"]
    told = " ".join(bare("health", "--help").out.split())
    assert "Exit code 10 if not, 6 if the database cannot be reached" in told


def test_one_worker_is_one_worker_and_none_are_none(unstuck: Command) -> None:
    assert "0 workers alive" in unstuck("stats").out
    assert output.count(1, "worker") == "1 worker"
    assert output.count(1, "process") == "1 process"
    assert output.count(2, "process") == "2 processes"


def test_config_shows_every_value_and_its_source(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "unstuck.toml").write_text('lease = "1m"\n')
    shown = bare("config", "show", "--sources", "--json", UNSTUCK_BEAT="6s").object
    assert shown["lease"] == {"value": 60.0, "source": "unstuck.toml"}
    assert shown["beat"] == {"value": 6.0, "source": "UNSTUCK_BEAT"}
    assert shown["poll"]["source"] == "default"
    changed = bare("config", "show", "--changed", "--json", "--database", "postgresql://me:geheim@h/d").object
    assert changed == {"lease": 60.0, "database": "postgresql://me:***@h/d"}


def test_settings_that_cannot_hold_are_refused_all_at_once(bare: Command) -> None:
    answer = bare("worker", "a:b", "--set", "lease=5", "--set", "margin=1")
    assert answer.code == 2
    assert "lease=5" in answer.err
    assert "margin=1" in answer.err
    assert bare("worker", "a:b", "--set", "lease").code == 2
    assert "did you mean lease" in bare("worker", "a:b", "--set", "leese=5").err
    assert bare("worker").code == 2


def test_a_worker_says_its_promises_without_starting(bare: Command) -> None:
    answer = bare("worker", "unstuck.examples.demo:app", "--check", "--set", "lease=1m")
    assert answer.code == 0
    assert "1m 9s  job of a lost machine leaves RUNNING" in answer.err


def test_reseal_needs_a_key_and_says_what_it_did(unstuck: Command, store: Store, tmp_path: Path) -> None:
    hooks.made(store)
    refused = unstuck("db", "reseal")
    assert refused.code == 2
    assert "no sealing key" in refused.err
    file = tmp_path / "sealing.keys"
    file.write_text("k1:" + base64.b64encode(b"k" * 32).decode())
    with_key = {"UNSTUCK_SEALING_KEYS": str(file)}
    assert unstuck("db", "reseal", **with_key).out.strip() == "1 sealed anew, 0 were so already"
    file.write_text("k2:" + base64.b64encode(b"n" * 32).decode())
    lost = unstuck("db", "reseal", "--json", **with_key)
    assert lost.code == 10
    assert "key k1" in next(iter(lost.object["problems"].values()))
