"""Settings: who wins, what is refused, and where each value came from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unstuck import App, config
from unstuck.assembly.worker import WorkerOptions, build_worker
from unstuck.config import PRESETS, Settings, load, masked, seconds
from unstuck.model.errors import InvalidPolicy, InvalidSettings
from unstuck.model.times import Times


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def problems(flags: dict[str, Any] | None = None, folder: Path = Path("/nonexistent"), **environ: str) -> list[str]:
    with pytest.raises(InvalidSettings) as refused:
        load(flags, environ=environ, directory=folder)
    return list(refused.value.problems)


def test_defaults_hold(folder: Path) -> None:
    settings = load(environ={}, directory=folder)

    assert settings == Settings(origins={})
    assert settings.database == "sqlite:///unstuck.db"
    assert (settings.concurrency, settings.processes) == (10, os.cpu_count())
    assert (settings.times.lease, settings.times.beat, settings.policy.timeout) == (30, 5, 600)


def test_preset_file_environment_and_flags_win_in_this_order(folder: Path) -> None:
    (folder / "unstuck.toml").write_text(
        'preset = "retry_first"\nbeat = 20\nsweep = "4s"\npoll = 0.5\nqueues = ["a"]\n'
    )
    environ = {"UNSTUCK_SWEEP": "3s", "UNSTUCK_POLL": "0.4", "UNSTUCK_QUEUES": "b, c"}

    settings = load({"poll": 0.3, "grace": None}, environ=environ, directory=folder)

    assert [settings.value(n) for n in ("lease", "beat", "sweep", "poll", "cancel_poll")] == [300, 20, 3, 0.3, 2]
    assert settings.queues == ("b", "c")
    told = settings.sources()
    assert told["lease"] == (300, "preset retry_first")
    assert told["beat"] == (20, "unstuck.toml")
    assert told["sweep"] == (3, "UNSTUCK_SWEEP")
    assert told["poll"] == (0.3, "flags")
    assert told["cancel_poll"] == (2, "default")


def test_the_highest_layer_names_the_preset(folder: Path) -> None:
    (folder / "unstuck.toml").write_text('preset = "retry_first"\n')

    settings = load({"preset": "human_gate"}, environ={"UNSTUCK_PRESET": "development"}, directory=folder)

    assert (settings.preset, settings.times.beat, settings.times.lease) == ("human_gate", 2, 30)


def test_pyproject_is_read_where_there_is_no_file_of_our_own(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.unstuck]\nconcurrency = 7\n[tool.other]\nx = 1\n")
    assert load(environ={}, directory=folder).concurrency == 7

    (folder / "unstuck.toml").write_text("concurrency = 8\n")
    assert load(environ={}, directory=folder).concurrency == 8


def test_a_broken_file_is_told_and_a_broken_pyproject_is_not_ours(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[broken")
    assert load(environ={}, directory=folder) == Settings(origins={})

    (folder / "unstuck.toml").write_text("lease = = 3")
    assert "unstuck.toml cannot be read" in problems(folder=folder)[0]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_keeps_its_promises(name: str, folder: Path) -> None:
    settings = load({"preset": name}, environ={}, directory=folder)

    assert settings.times.problems(timeout=float(settings.policy.timeout)) == []
    assert settings.policy.problems(settings.times.max_timeout) == []
    for key, value in PRESETS[name].items():
        assert settings.value(key) == value


def test_presets_carry_their_numbers() -> None:
    told = {name: load({"preset": name}, environ={}, directory="/nonexistent") for name in PRESETS}

    assert {name: sorted(numbers) for name, numbers in PRESETS.items()} == {
        "retry_first": ["beat", "drain", "lease", "lost_grace", "on_drain_timeout"],
        "production": ["beat", "drain", "lease", "lost_grace", "on_drain_timeout"],
        "development": ["beat", "lease"],
        "high_reliability": ["beat", "lease"],
        "signed_remote": ["beat", "lease"],
        "human_gate": ["beat", "on_drain_timeout", "on_lost", "retries", "store_call"],
        "stuck_guard": ["grace"],
    }, "the numbers of their documents, and no others"
    assert (told["retry_first"].times.lease, told["retry_first"].times.beat) == (300, 30)
    assert (told["retry_first"].times.lost_grace, told["retry_first"].times.drain) == (60, 30)
    assert told["retry_first"].policy.on_drain_timeout == "expire"
    assert (told["development"].times.lease, told["development"].times.beat) == (60, 10)
    assert (told["high_reliability"].times.lease, told["high_reliability"].times.beat) == (180, 15)
    assert (told["signed_remote"].times.lease, told["signed_remote"].times.beat) == (60, 15)
    assert (told["human_gate"].times.beat, told["human_gate"].times.store_call) == (2, 1)
    assert (told["human_gate"].policy.on_lost, told["human_gate"].policy.on_drain_timeout) == ("fail", "pause")
    assert told["human_gate"].policy.retries == 0
    assert told["stuck_guard"].policy.grace == told["stuck_guard"].times.grace == 10
    assert replace(told["production"], preset="", origins={}) == replace(told["retry_first"], preset="", origins={})


def test_the_last_word_about_reruns_counts() -> None:
    """max_retries bounds failures and losses together; whoever speaks of one of them afterwards is not bound."""

    def reruns(flags: dict[str, int], **environ: str) -> tuple[int | None, int, int]:
        policy = load(flags, environ=environ, directory="/nonexistent").policy
        return policy.max_retries, policy.retries, policy.max_lost

    assert reruns({"max_retries": 0}) == (0, 0, 0)
    assert reruns({"max_retries": 5, "retries": 2}) == (5, 2, 5)
    assert reruns({"max_retries": 1}, UNSTUCK_RETRIES="9") == (1, 1, 1)
    assert reruns({"retries": 4}, UNSTUCK_MAX_RETRIES="0") == (None, 4, 0)


def test_other_names_of_settings_are_understood(folder: Path) -> None:
    flags = {"heartbeat_interval": 4, "lease-duration": "40s", "max_retries": 9}
    environ = {"CANCEL_GRACE_SECONDS": "7", "SHUTDOWN_GRACE_PERIOD_SECONDS": "120", "TOKEN_LIMIT": "5000"}

    settings = load(flags, environ=environ, directory=folder)

    assert (settings.times.beat, settings.times.lease, settings.policy.retries) == (4, 40, 9)
    assert (settings.times.grace, settings.policy.grace, settings.times.drain) == (7, 7, 120)
    assert settings.token_limit == 5000
    assert settings.sources()["drain"] == (120, "SHUTDOWN_GRACE_PERIOD_SECONDS")


def test_a_token_limit_is_a_budget(folder: Path) -> None:
    """A20"""
    limited = load(environ={"TOKEN_LIMIT": "5000", "UNSTUCK_BUDGET": "euros=2.5"}, directory=folder)
    exact = load({"budget": {"tokens": 7}}, environ={"TOKEN_LIMIT": "5000"}, directory=folder)

    assert limited.policy.budget == (("euros", 2.5), ("tokens", 5000.0))
    assert limited.sources()["budget"] == ({"euros": 2.5, "tokens": 5000.0}, "UNSTUCK_BUDGET")
    assert exact.policy.budget == (("tokens", 7.0),)
    assert load(environ={"UNSTUCK_BUDGET": "none"}, directory=folder).policy.budget == ()


@pytest.mark.parametrize("budget", ["tokens", "tokens=many", "to kens=5", "tokens=-1", "=5", 5, ["tokens"]])
def test_a_budget_that_cannot_be_read_is_refused(folder: Path, budget: object) -> None:
    assert any("budget=" in problem for problem in problems({"budget": budget}, folder))


def test_options_of_jobs_that_are_words_are_read_as_words(folder: Path) -> None:
    (folder / "unstuck.toml").write_text('on_failure = "continue"\non_blacklist = "hold"\nwait_timeout = "2h"\n')

    policy = load(environ={}, directory=folder).policy

    assert (policy.on_failure, policy.on_blacklist, policy.wait_timeout) == ("continue", "hold", 7200)


def test_our_own_name_in_the_environment_beats_the_other_one(folder: Path) -> None:
    settings = load(environ={"CANCEL_GRACE_SECONDS": "7", "UNSTUCK_GRACE": "8"}, directory=folder)

    assert settings.policy.grace == 8


def test_all_problems_are_told_at_once(folder: Path) -> None:
    (folder / "unstuck.toml").write_text('leese = 3\nbeat = "often"\nisolation = "thread"\n')

    found = problems({"concurrency": "many", "retries": 1.5}, folder, UNSTUCK_SWEPE="3", UNSTUCK_POLL="-1")

    assert "leese (unstuck.toml) is not a setting; did you mean lease?" in found
    assert any(p.startswith("beat='often' (unstuck.toml): not a duration") for p in found)
    assert any(p.startswith("isolation='thread' (unstuck.toml): not one of shared, process") for p in found)
    assert "UNSTUCK_SWEPE is not a setting; did you mean UNSTUCK_SWEEP?" in found
    assert "poll='-1' (UNSTUCK_POLL): not a number of seconds of 0 or more" in found or any(
        "poll" in p for p in found
    )
    assert "concurrency='many' (flags): not a whole number" in found
    assert "retries=1.5 (flags): not a whole number" in found
    assert len(found) == 7


def test_names_that_a_cluster_puts_into_the_environment_are_left_alone(folder: Path) -> None:
    environ = {
        "UNSTUCK_SERVICE_HOST": "10.0.0.1",
        "UNSTUCK_PORT_80_TCP": "tcp://10.0.0.1:80",
        "UNSTUCK_INCARNATION": "abc",
        "UNSTUCK_EXECUTOR": "abc/1",
        "UNSTUCK_FORK": "off",
        "UNSTUCK_LEASE": "",
    }

    assert load(environ=environ, directory=folder) == Settings(origins={})


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"lease": 10}, "lease=10 is below 2·beat"),
        ({"beat": "3s"}, "store_call=3 is not below beat=3"),
        ({"timeout": "2h"}, "timeout=7200.0 is above max_timeout=3600"),
        ({"stop_time": 30}, "drain=300 is above the service manager's stop time"),
        ({"concurrency": 0}, "concurrency=0 is below 1"),
        ({"processes": 0}, "processes=0 is below 1"),
        ({"tenant": "a\tb"}, "tenant"),
        ({"backoff_factor": 0.5}, "backoff_factor=0.5 is not between"),
        ({"grace": 0}, "grace=0 is not above 0: a job that is asked to stop needs a moment to do so"),
        ({"kill_grace": "0s"}, "kill_grace=0 is not above 0"),
        ({"memory_limit": 0}, "memory_limit=0 is below 1"),
        ({"memory_limit": "1G", "max_memory": "2G"}, "memory_limit=1073741824 is below max_memory=2147483648"),
        ({"ready_file": 7}, "ready_file=7 (flags): not a text"),
    ],
)
def test_settings_that_cannot_keep_their_promises_are_refused(flags: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(flags)), problems(flags)


def test_a_known_stop_time_is_kept_and_an_unknown_one_is_a_warning(folder: Path) -> None:
    unknown = load(environ={}, directory=folder)
    known = load(environ={"UNSTUCK_STOP_TIME": "10m"}, directory=folder)

    assert "305 seconds" in unknown.warnings()[0]
    assert (known.stop_time, known.warnings()) == (600, [])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (600, 600),
        ("600", 600),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1d", 86400),
        (0.5, 0.5),
    ],
)
def test_durations(given: Any, meant: float) -> None:
    assert seconds(given) == meant


@pytest.mark.parametrize("given", ["", "soon", "5x", "s", "5m5", "-5s", True, None, [], "nan", "inf"])
def test_what_is_no_duration_is_refused(given: Any) -> None:
    assert problems({"sweep": given if given is not None else "none"})


@pytest.mark.parametrize(("given", "meant"), [("512M", 512 << 20), ("2GiB", 2 << 30), (100, 100), ("1.5k", 1536)])
def test_sizes(given: Any, meant: int, folder: Path) -> None:
    assert load({"max_memory": given}, environ={}, directory=folder).max_memory == meant


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:s3:c/r@et@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:p@ss@host:5432/db?sslmode=require", "postgresql://me:***@host:5432/db?sslmode=require"),
        ("postgresql://me:secret?@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db?password=secret&x=1", "postgresql://me@host/db?password=***&x=1"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("sqlite:///unstuck.db", "sqlite:///unstuck.db"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
    settings = load({"database": url}, environ={}, directory="/nonexistent")
    assert settings.database == url
    for secret in ("secret", "p@ss", "s3:c"):
        assert secret not in str(settings.sources()["database"])


def test_check_reads_nothing_and_refuses_what_nothing_could_mend(folder: Path) -> None:
    config.check({"lease": 10, "database": "x.db"})
    with pytest.raises(InvalidSettings, match="did you mean lease"):
        config.check({"leese": 10})


def test_a_memory_limit_and_a_ready_file_are_read_from_everywhere(folder: Path) -> None:
    (folder / "unstuck.toml").write_text('memory_limit = "2G"\nready_file = "/run/unstuck/ready"\n')
    settings = load(environ={"UNSTUCK_MEMORY_LIMIT": "3G"}, directory=folder)
    assert (settings.memory_limit, settings.ready_file) == (3 << 30, "/run/unstuck/ready")
    off = load(environ={"UNSTUCK_MEMORY_LIMIT": "none"}, directory=folder)
    assert off.memory_limit is None


def nothing() -> None: ...


def _decorate(**options: Any) -> None:
    App("doors.db").workflow(**options)(nothing).enqueue()


def _enqueue(**options: Any) -> None:
    App("doors.db").workflow(nothing).using(**options).enqueue()


def _start(**times: Any) -> None:
    build_worker(WorkerOptions(app="a:app", database="sqlite:///doors.db", times=replace(Times(), **times)))


@pytest.mark.parametrize("door", [_decorate, _enqueue, _start, lambda **given: load(given, environ={})])
def test_a_grace_of_nothing_is_refused_at_every_door(
    door: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises((InvalidPolicy, InvalidSettings), match=r"grace=0(\.0)? is not (above 0|between 0\.05 and)"):
        door(grace=0)


@pytest.mark.parametrize("door", [_decorate, _enqueue, lambda **given: load(given, environ={})])
def test_a_timeout_above_the_maximum_is_refused_at_every_door(
    door: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises((InvalidPolicy, InvalidSettings), match=r"timeout=7200.* is above max_timeout=3600"):
        door(timeout=7200)


def test_a_worker_is_not_started_with_sizes_that_cannot_hold() -> None:
    chosen = WorkerOptions(app="a:app", database="sqlite:///doors.db", max_memory=2, memory_limit=1)
    with pytest.raises(InvalidSettings, match="memory_limit=1 is below max_memory=2"):
        build_worker(chosen)
